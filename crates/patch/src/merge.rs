//! Merge patch (RFC 7386).

use serde_json::{Map, Value};

/// Merges `patch` into `target`: null removes, objects merge, everything else replaces.
pub fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(into) = target else { return };
    for (name, value) in fields {
        if value.is_null() {
            into.remove(name);
        } else {
            merge_patch(into.entry(name.as_str()).or_insert(Value::Null), value);
        }
    }
}
