//! What a member's object is to become, given what the Work says and what the member has.

use atoll_api::words::{OVERWRITE, TRUE, annotation, label};
use atoll_interpreter::Interpreter;
use serde_json::{Map, Value, json};

/// Whether an object in a member is ours to change.
pub fn is_ours(observed: &Value) -> bool {
    observed["metadata"]["labels"][label::MANAGED] == TRUE
}

/// Whether a manifest may take over an object that is not ours.
pub fn may_take_over(manifest: &Value) -> bool {
    manifest["metadata"]["annotations"][annotation::CONFLICT_RESOLUTION] == OVERWRITE
}

/// The object to write in place of `observed`.
pub fn merge(manifest: &Value, observed: &Value, interpreter: &Interpreter) -> Result<Value, atoll_interpreter::Error> {
    let mut desired = manifest.clone();
    for field in ["resourceVersion", "finalizers", "ownerReferences", "uid", "creationTimestamp"] {
        if let Some(value) = observed["metadata"].get(field) {
            desired["metadata"][field] = value.clone();
        }
    }
    keep(&mut desired, observed, "labels", annotation::MANAGED_LABELS);
    keep(&mut desired, observed, "annotations", annotation::MANAGED_ANNOTATIONS);
    if let Some(status) = observed.get("status") {
        desired["status"] = status.clone();
    }
    interpreter.retain(&mut desired, observed)?;
    Ok(desired)
}

/// Keeps labels or annotations that others put there: those we never managed.
fn keep(desired: &mut Value, observed: &Value, field: &str, managed: &str) {
    let Some(present) = observed["metadata"][field].as_object() else { return };
    let ours = observed["metadata"]["annotations"][managed].as_str().unwrap_or_default();
    let ours: Vec<&str> = ours.split(',').collect();
    if !desired["metadata"][field].is_object() {
        desired["metadata"][field] = json!({});
    }
    let Some(wanted) = desired["metadata"][field].as_object_mut() else { return };
    for (key, value) in present {
        if !wanted.contains_key(key) && !ours.contains(&key.as_str()) {
            wanted.insert(key.clone(), value.clone());
        }
    }
}

/// Whether everything `wanted` says is so in `present`, which may say more.
pub fn is_within(wanted: &Value, present: &Value) -> bool {
    match (wanted, present) {
        (Value::Object(wanted), Value::Object(present)) => wanted
            .iter()
            .all(|(key, value)| present.get(key).map_or_else(|| is_nothing(value), |own| is_within(value, own))),
        (Value::Array(wanted), Value::Array(present)) => {
            wanted.len() == present.len() && wanted.iter().zip(present).all(|(a, b)| is_within(a, b))
        }
        (wanted, present) => wanted == present,
    }
}

/// Servers leave out what is empty.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_nothing),
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
    }
}

/// The merge patch that removes every trace of us from an object that stays.
pub fn release(observed: &Value) -> Value {
    let ours = |key: &String| key.contains("karmada.io/");
    let nulls = |field: &str| -> Map<String, Value> {
        let keys = observed["metadata"][field].as_object().into_iter().flatten().map(|(key, _)| key);
        keys.filter(|key| ours(key)).map(|key| (key.clone(), Value::Null)).collect()
    };
    json!({"metadata": {"labels": nulls("labels"), "annotations": nulls("annotations")}})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn manifest() -> Value {
        json!({"apiVersion": "v1", "kind": "Service",
               "metadata": {"name": "s", "labels": {"app": "web"}, "annotations": {annotation::MANAGED_LABELS: "app"}},
               "spec": {"ports": [{"port": 80}]}})
    }

    #[test]
    fn the_member_keeps_what_is_its_own() {
        let observed = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "s", "resourceVersion": "5", "finalizers": ["f"],
                         "labels": {"app": "old", "gone": "1", "theirs": "2"}, "annotations": {annotation::MANAGED_LABELS: "app,gone"}},
            "spec": {"clusterIP": "10.0.0.9", "ports": [{"port": 81}]}, "status": {"loadBalancer": {}}});
        let merged = merge(&manifest(), &observed, &Interpreter::default()).unwrap();
        assert_eq!(merged["metadata"]["labels"], json!({"app": "web", "theirs": "2"}));
        assert_eq!(merged["metadata"]["resourceVersion"], "5");
        assert_eq!(merged["metadata"]["finalizers"], json!(["f"]));
        assert_eq!(merged["spec"], json!({"ports": [{"port": 80}], "clusterIP": "10.0.0.9"}));
        assert_eq!(merged["status"], json!({"loadBalancer": {}}));
    }

    #[test]
    fn defaults_of_the_member_are_no_difference() {
        let present = json!({"spec": {"a": 1, "b": [{"x": 1, "y": 2}], "more": true}});
        for (wanted, within) in [
            (json!({"spec": {"a": 1}}), true),
            (json!({"spec": {"b": [{"x": 1}]}}), true),
            (json!({"spec": {"none": {}}}), true),
            (json!({"spec": {"a": 2}}), false),
            (json!({"spec": {"b": []}}), false),
            (json!({"spec": {"c": "x"}}), false),
        ] {
            assert_eq!(is_within(&wanted, &present), within, "{wanted}");
        }
    }

    #[test]
    fn a_released_object_has_no_trace_of_us() {
        let mut object = json!({"metadata": {"labels": {label::MANAGED: "true", "app": "web"}, "annotations": {annotation::WORK_NAME: "w"}}});
        let patch = release(&object);
        atoll_patch::merge_patch(&mut object, &patch);
        assert_eq!(object, json!({"metadata": {"labels": {"app": "web"}, "annotations": {}}}));
    }
}
