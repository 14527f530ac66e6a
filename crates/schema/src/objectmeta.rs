//! The metadata every object has, as a schema of its own.

use std::sync::LazyLock;

use atoll_meta::{FieldError, name};
use serde_json::{Map, Value, json};

use crate::trail::Trail;
use crate::{Schema, Typed, Types, type_errors};

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

const META_NAME: &str = "meta.v1.ObjectMeta";

static META_TYPES: LazyLock<Types> = LazyLock::new(|| Types::new([(META_NAME.into(), OBJECT_META.clone())]));
static META_POINTER: LazyLock<Schema> =
    LazyLock::new(|| Schema { reference: Some(META_NAME.into()), ..Schema::default() });

/// Checks apiVersion, kind and metadata of all embedded objects.
pub(crate) fn embedded(value: &Value, schema: &Schema, trail: &Trail<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            if schema.embedded_resource {
                identity(map, trail, errors);
            }
            for (key, child) in map {
                if let Some(property) = schema.properties.get(key.as_str()) {
                    embedded(child, property, &Trail::Field(trail, key), errors);
                } else if let Some(values) = schema.additional.as_deref() {
                    embedded(child, values, &Trail::Key(trail, key), errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(element) = schema.items.as_deref() {
                for (at, item) in items.iter().enumerate() {
                    embedded(item, element, &Trail::Index(trail, at), errors);
                }
            }
        }
        _ => {}
    }
}

fn identity(map: &Map<String, Value>, trail: &Trail<'_>, errors: &mut Vec<FieldError>) {
    for field in ["apiVersion", "kind"] {
        let path = Trail::Field(trail, field).bracketed();
        match map.get(field) {
            None => errors.push(FieldError::required(path, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(path, "", "must not be empty"))
            }
            Some(Value::String(text)) if field == "kind" => {
                let faults = name::is_dns1035_label(&text.to_lowercase());
                if !faults.is_empty() {
                    let what = format!("may have mixed case, but should otherwise match: {}", faults.join(","));
                    errors.push(FieldError::invalid(path, text.as_str(), what));
                }
            }
            Some(Value::String(text)) if text.matches('/').count() > 1 => {
                errors.push(FieldError::invalid(
                    path,
                    text.as_str(),
                    format!("unexpected GroupVersion string: {text}"),
                ));
            }
            Some(Value::String(_)) => {}
            Some(other) => errors.push(FieldError::invalid(path, other.clone(), "must be a string")),
        }
    }
    let Some(meta) = map.get("metadata") else { return };
    let trail = Trail::Field(trail, "metadata");
    match type_errors(meta, Typed::new(&META_TYPES, &META_POINTER)) {
        Some(why) => errors.push(FieldError::invalid(trail.bracketed(), meta.clone(), why)),
        None => metadata(meta, &trail, errors),
    }
}

fn metadata(meta: &Value, trail: &Trail<'_>, errors: &mut Vec<FieldError>) {
    let mut check = |field: &str, text: &str, faults: Vec<String>| {
        let path = Trail::Field(trail, field).bracketed();
        errors.extend(faults.into_iter().map(|fault| FieldError::invalid(path.clone(), text, fault)));
    };
    let word = |field: &str| meta.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(text) = word("generateName") {
        check("generateName", text, name::is_path_segment_prefix(text));
    }
    if let Some(text) = word("name") {
        check("name", text, name::is_path_segment(text));
    }
    if let Some(text) = word("namespace") {
        check("namespace", text, name::is_dns1123_label(text));
    }
    for (key, value) in meta.get("labels").and_then(Value::as_object).into_iter().flatten() {
        check("labels", key, name::is_qualified_name(key));
        let text = value.as_str().unwrap_or_default();
        check("labels", text, name::is_label_value(text));
    }
    for key in meta.get("annotations").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        check("annotations", key, name::is_qualified_name(&key.to_lowercase()));
    }
    for finalizer in meta.get("finalizers").and_then(Value::as_array).into_iter().flatten() {
        let text = finalizer.as_str().unwrap_or_default();
        check("finalizers", text, name::is_qualified_name(text));
    }
}
