//! From what schemars describes to the structural schemas that definitions need.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::attributes;

/// The structural schema of a root object.
pub(crate) fn structural_schema<T: JsonSchema>() -> Value {
    let mut root = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    let definitions = match root.get_mut("$defs").map(Value::take) {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    let mut schema = rewrite(root, &definitions);
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
        properties.insert("kind".to_owned(), json!({"type": "string"}));
        properties.insert("metadata".to_owned(), json!({"type": "object"}));
    }
    schema
}

/// Resolves references, drops prose and the null that comes with `Option`, flattens enums.
fn rewrite(schema: Value, definitions: &Map<String, Value>) -> Value {
    let Value::Object(mut node) = schema else {
        return json!({"x-kubernetes-preserve-unknown-fields": true});
    };
    resolve(&mut node, definitions);
    for prose in ["$schema", "$defs", "title", "description", "examples"] {
        node.remove(prose);
    }
    drop_null(&mut node);
    if let Some(values) = constants(&node) {
        node.remove("oneOf");
        node.insert("type".to_owned(), json!("string"));
        // A type whose values have older names lists them itself.
        node.entry("enum").or_insert(values);
    }
    // Every default of the kinds served here is a scalar; others only stem from serde.
    if node.get("default").is_some_and(|d| d.is_object() || d.is_array() || d.is_null()) {
        node.remove("default");
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = node.remove(key) {
            node.insert(key.to_owned(), rewrite(inner, definitions));
        }
    }
    if let Some(Value::Object(properties)) = node.remove("properties") {
        let properties = properties.into_iter().map(|(name, inner)| (name, rewrite(inner, definitions)));
        node.insert("properties".to_owned(), Value::Object(properties.collect()));
    }
    Value::Object(node)
}

/// Puts the referenced definition, with what the table adds to it, in place of a reference.
fn resolve(node: &mut Map<String, Value>, definitions: &Map<String, Value>) {
    unwrap_option(node);
    while let Some(Value::String(reference)) = node.remove("$ref") {
        let name = reference.trim_start_matches("#/$defs/");
        let mut target = definitions.get(name).cloned().unwrap_or_else(|| json!({}));
        attributes::add(name, &mut target);
        if let Value::Object(target) = target {
            for (key, value) in target {
                node.entry(key).or_insert(value);
            }
        }
        unwrap_option(node);
    }
}

/// `anyOf: [X, null]` is how an optional reference is described; only X is of interest.
fn unwrap_option(node: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = node.get("anyOf") else {
        return;
    };
    let mut given = choices.iter().filter(|choice| choice.get("type") != Some(&json!("null")));
    if let (Some(Value::Object(only)), None) = (given.next().cloned(), given.next()) {
        node.remove("anyOf");
        node.extend(only);
    }
}

/// `type: [X, "null"]` becomes `type: X`.
fn drop_null(node: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = node.get("type")
        && let Some(ty) = types.iter().find(|ty| **ty != json!("null")).cloned()
    {
        node.insert("type".to_owned(), ty);
    }
}

/// The values of an enum whose variants carry documentation.
fn constants(node: &Map<String, Value>) -> Option<Value> {
    let variants = node.get("oneOf")?.as_array()?;
    let values: Option<Vec<Value>> = variants.iter().map(|variant| variant.get("const").cloned()).collect();
    values.map(Value::Array)
}

/// An integer without a format, as Go's `int` gives.
pub(crate) fn plain_integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer"})
}

/// Any value at all.
pub(crate) fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// Any object.
pub(crate) fn raw_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A list of any objects.
pub(crate) fn raw_objects(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}})
}

/// Bytes in base64.
pub(crate) fn byte_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "byte"})
}
