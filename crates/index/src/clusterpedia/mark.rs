//! Marks objects with the name of their cluster without taking them apart: most of a long list is copied as it is.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};

type Shallow<'a> = BTreeMap<&'a str, &'a RawValue>;

/// The text of an object with one annotation more; `None` when it is not as plain as most are.
pub fn annotated(body: &str, key: &str, value: &str) -> Option<String> {
    let mut object: Shallow<'_> = serde_json::from_str(body).ok()?;
    let mut meta: Shallow<'_> = serde_json::from_str(object.get("metadata")?.get()).ok()?;
    let mut notes: Shallow<'_> = match meta.get("annotations").map(|raw| raw.get()) {
        Some(text) if text != "null" => serde_json::from_str(text).ok()?,
        _ => Shallow::new(),
    };
    let value = to_raw_value(value).ok()?;
    notes.insert(key, &value);
    let notes = to_raw_value(&notes).ok()?;
    meta.insert("annotations", &notes);
    let meta = to_raw_value(&meta).ok()?;
    object.insert("metadata", &meta);
    serde_json::to_string(&object).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_annotation_is_added_and_nothing_else_changes() {
        for annotations in [json!({"a": "b \"c\" \u{e9}"}), json!({}), json!({"k": "old"}), Value::Null] {
            let mut object = json!({"kind": "Pod", "metadata": {"name": "p", "annotations": annotations}, "spec": {"x": [1, 1.5, null]}});
            let text = annotated(&object.to_string(), "k", "a \"name\"").unwrap();
            if object["metadata"]["annotations"].is_null() {
                object["metadata"]["annotations"] = json!({});
            }
            object["metadata"]["annotations"]["k"] = "a \"name\"".into();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), object);
        }
        let without = json!({"metadata": {"name": "p"}});
        let text = annotated(&without.to_string(), "k", "v").unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["metadata"]["annotations"], json!({"k": "v"}));
        assert_eq!(annotated("{}", "k", "v"), None, "no metadata");
        assert_eq!(annotated(r#"{"metadata": {"\u0061": 1}}"#, "k", "v"), None, "keys with escapes are left to others");
    }
}
