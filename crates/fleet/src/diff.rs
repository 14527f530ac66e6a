//! The merge patch that turns one tree into another.

use serde_json::{Map, Value};

/// The merge patch from `old` to `new`; `None` when they are equal.
pub fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (old, new) else { return Some(new.clone()) };
    let mut patch = Map::new();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in after {
        match before.get(key) {
            None => {
                patch.insert(key.clone(), value.clone());
            }
            Some(own) => {
                if let Some(inner) = merge_patch(own, value) {
                    patch.insert(key.clone(), inner);
                }
            }
        }
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_turns_the_old_into_the_new() {
        for (old, new) in [
            (json!({"a": 1, "b": {"c": [1], "d": 2}}), json!({"a": 1, "b": {"c": [2]}})),
            (json!({}), json!({"a": {"b": 1}})),
            (json!({"a": {"b": 1}}), json!({})),
        ] {
            let patch = merge_patch(&old, &new).unwrap_or_default();
            let mut tree = old.clone();
            atoll_patch::merge_patch(&mut tree, &patch);
            assert_eq!(tree, new);
        }
        assert_eq!(merge_patch(&json!({"a": 1}), &json!({"a": 1})), None);
    }
}
