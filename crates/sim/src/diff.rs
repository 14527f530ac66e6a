//! The smallest merge patch (RFC 7386) from one tree to another.

use serde_json::{Map, Value};

/// What to send so that `old` becomes `new`; `None` if they are equal.
pub fn merge(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            let mut patch = Map::new();
            for (key, value) in after {
                match before.get(key) {
                    Some(was) => {
                        if let Some(inner) = merge(was, value) {
                            patch.insert(key.clone(), inner);
                        }
                    }
                    None => drop(patch.insert(key.clone(), value.clone())),
                }
            }
            for key in before.keys().filter(|key| !after.contains_key(*key)) {
                patch.insert(key.clone(), Value::Null);
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        _ if old == new => None,
        _ => Some(new.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_sent() {
        let table = [
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": 1, "b": 2}), json!({"a": 3}), Some(json!({"a": 3, "b": null}))),
            (json!({"a": {"x": 1, "y": [1]}}), json!({"a": {"x": 1, "y": [2]}}), Some(json!({"a": {"y": [2]}}))),
            (Value::Null, json!({"a": 1}), Some(json!({"a": 1}))),
        ];
        for (old, new, expected) in table {
            assert_eq!(merge(&old, &new), expected, "{old} to {new}");
        }
    }
}
