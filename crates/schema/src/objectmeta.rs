//! The metadata every object has, as a schema of its own.

use std::sync::LazyLock;

use serde_json::json;

use crate::Schema;

/// Fields an object has besides those of its own schema.
pub(crate) const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Schema of `metadata`.
pub(crate) static OBJECT_META: LazyLock<Schema> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": text});
    let time = json!({"type": "string", "format": "date-time"});
    let owner = json!({"type": "object", "properties": {
        "apiVersion": text, "kind": text, "name": text, "uid": text,
        "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"}}});
    let manager = json!({"type": "object", "properties": {
        "manager": text, "operation": text, "apiVersion": text, "time": time, "fieldsType": text,
        "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "subresource": text}});
    let schema = json!({"type": "object", "properties": {
        "name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text,
        "resourceVersion": text, "generation": {"type": "integer", "format": "int64"},
        "creationTimestamp": time, "deletionTimestamp": time,
        "deletionGracePeriodSeconds": {"type": "integer", "format": "int64"},
        "labels": texts, "annotations": texts,
        "ownerReferences": {"type": "array", "items": owner},
        "finalizers": {"type": "array", "items": text},
        "managedFields": {"type": "array", "items": manager}}});
    Schema::from_json(&schema).expect("the schema above is written by hand and well-formed")
});
