//! Reading and comparing object trees.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Labels or annotations.
pub(crate) type Strings = BTreeMap<String, String>;

/// A text field of the metadata.
pub(crate) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    meta(object, "name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    meta(object, "namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    meta(object, "uid")
}

/// A label, empty when missing.
pub(crate) fn label<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"]["labels"][key].as_str().unwrap_or_default()
}

/// An annotation, empty when missing.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"]["annotations"][key].as_str().unwrap_or_default()
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

pub(crate) fn labels(object: &Value) -> Strings {
    strings(&object["metadata"]["labels"])
}

pub(crate) fn annotations(object: &Value) -> Strings {
    strings(&object["metadata"]["annotations"])
}

/// `namespace/name`, or only the name outside namespaces.
pub(crate) fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// Namespace and name of a key.
pub(crate) fn split(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}

/// A map of texts; what is not text is left out.
pub(crate) fn strings(value: &Value) -> Strings {
    let entries = value.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// The elements of a list; none when it is missing.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The elements of a list inside an object, to be changed; looking must not make one.
pub(crate) fn list_mut<'a>(object: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> {
    object.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten()
}

pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    list(&object["metadata"]["finalizers"]).iter().any(|own| own == finalizer)
}

/// The finalizers without one of them.
pub(crate) fn finalizers_without(object: &Value, finalizer: &str) -> Vec<Value> {
    list(&object["metadata"]["finalizers"]).iter().filter(|own| *own != finalizer).cloned().collect()
}

/// The patch that gives an object these finalizers. The list is replaced as a whole, so nobody may have changed it
/// meanwhile.
pub(crate) fn with_finalizers(object: &Value, finalizers: Vec<Value>) -> Value {
    json!({"metadata": {"finalizers": finalizers, "resourceVersion": object["metadata"]["resourceVersion"]}})
}

/// The merge patch that makes `old` into `new`; `None` when they are the same.
pub(crate) fn difference(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut patch = Map::new();
            for (key, value) in new {
                match old.get(key) {
                    Some(before) => patch.extend(difference(before, value).map(|patch| (key.clone(), patch))),
                    None if value.is_null() => {}
                    None => drop(patch.insert(key.clone(), value.clone())),
                }
            }
            for (key, value) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
                if !value.is_null() {
                    patch.insert(key.clone(), Value::Null);
                }
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        _ if old == new => None,
        _ => Some(new.clone()),
    }
}

/// DeleteOptions that mean this very object.
pub(crate) fn only(uid: &str) -> Value {
    json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}})
}

/// DeleteOptions that mean this very object as it was seen: whoever changed it meanwhile wins.
pub(crate) fn only_as_seen(object: &Value) -> Value {
    let mut options = only(uid(object));
    options["preconditions"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
    options
}

/// DeleteOptions that mean this very object, with so many seconds to end.
pub(crate) fn only_within(uid: &str, seconds: i64) -> Value {
    json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}, "gracePeriodSeconds": seconds})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_applied_to_the_old_gives_the_new() {
        for (old, new, patch) in [
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": 1}), json!({"a": 2}), Some(json!({"a": 2}))),
            (json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"b": null}))),
            (json!({"a": {"b": 1, "c": 1}}), json!({"a": {"c": 2}}), Some(json!({"a": {"b": null, "c": 2}}))),
            (json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]}))),
            (json!({"a": null}), json!({}), None),
        ] {
            assert_eq!(difference(&old, &new), patch, "{old} → {new}");
        }
    }
}
