//! A schema as OpenAPI v3 JSON.

use atoll_schema::{Limits, ListType, Rule, Schema, Type};
use serde_json::{Map, Value, json};

use super::prose::Prose;
use crate::table::{self, Extra};

/// Where components stand in a document.
pub(crate) const COMPONENTS: &str = "#/components/schemas/";

/// A reference to a component.
pub(crate) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{COMPONENTS}{name}") })
}

/// A schema node as OpenAPI v3 JSON, with its extensions; references stay references.
pub fn schema_json(schema: &Schema) -> Value {
    let mut out = Map::new();
    if let Some(name) = schema.reference.as_deref() {
        let alone =
            schema.default.is_none() && schema.description.is_none() && !schema.map_atomic && !has_patch(schema);
        if alone {
            return reference(name);
        }
        // Next to a reference nothing else may stand, so it moves into a list of one.
        out.insert("allOf".to_owned(), json!([reference(name)]));
    }
    put_type(schema, &mut out);
    put_extensions(schema, &mut out);
    if let Some(limits) = schema.limits.as_deref() {
        put_limits(limits, &mut out);
    }
    Value::Object(out)
}

fn has_patch(schema: &Schema) -> bool {
    let strategy = schema.patch_strategy;
    strategy.merge || strategy.replace || strategy.retain_keys
}

fn put_type(schema: &Schema, out: &mut Map<String, Value>) {
    let ty = match schema.ty {
        Type::Any => "",
        Type::Object => "object",
        Type::Array => "array",
        Type::String => "string",
        Type::Integer => "integer",
        Type::Number => "number",
        Type::Boolean => "boolean",
    };
    let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
    if !ty.is_empty() {
        put("type", ty.into());
    }
    match &*schema.format {
        "" => {}
        "micro-time" => {
            put("format", "date-time".into());
        }
        format => {
            put("format", format.into());
        }
    }
    if let Some(description) = schema.description.as_deref() {
        put("description", description.into());
    }
    if let Some(default) = &schema.default {
        put("default", default.clone());
    }
    if schema.nullable {
        put("nullable", true.into());
    }
    if !schema.properties.is_empty() {
        let properties = schema.properties.iter().map(|(name, property)| (name.to_string(), schema_json(property)));
        put("properties", Value::Object(properties.collect()));
    }
    if !schema.required.is_empty() {
        put("required", strings(&schema.required));
    }
    if let Some(items) = schema.items.as_deref() {
        put("items", schema_json(items));
    }
    if let Some(values) = schema.additional.as_deref() {
        put("additionalProperties", schema_json(values));
    }
}

fn put_extensions(schema: &Schema, out: &mut Map<String, Value>) {
    let mut put = |key: &str, value: Value| out.insert(format!("x-kubernetes-{key}"), value);
    match schema.list_type {
        None => {}
        Some(ListType::Atomic) => drop(put("list-type", "atomic".into())),
        Some(ListType::Set) => drop(put("list-type", "set".into())),
        Some(ListType::Map) => drop(put("list-type", "map".into())),
    }
    if !schema.list_map_keys.is_empty() {
        put("list-map-keys", strings(&schema.list_map_keys));
    }
    if schema.map_atomic {
        put("map-type", "atomic".into());
    }
    if let Some(key) = schema.patch_merge_key.as_deref() {
        put("patch-merge-key", key.into());
    }
    let strategy = schema.patch_strategy;
    let words = [(strategy.merge, "merge"), (strategy.replace, "replace"), (strategy.retain_keys, "retainKeys")];
    if has_patch(schema) {
        let words: Vec<&str> = words.into_iter().filter_map(|(set, word)| set.then_some(word)).collect();
        put("patch-strategy", words.join(",").into());
    }
    for (set, key) in [
        (schema.int_or_string, "int-or-string"),
        (schema.preserve_unknown, "preserve-unknown-fields"),
        (schema.embedded_resource, "embedded-resource"),
    ] {
        if set {
            put(key, true.into());
        }
    }
}

fn put_limits(limits: &Limits, out: &mut Map<String, Value>) {
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(key.to_owned(), value);
        }
    };
    put("enum", (!limits.enumeration.is_empty()).then(|| limits.enumeration.clone().into()));
    put("pattern", limits.pattern.clone().map(Value::from));
    put("minimum", limits.minimum.map(number));
    put("maximum", limits.maximum.map(number));
    put("multipleOf", limits.multiple_of.map(number));
    put("minLength", limits.min_length.map(Value::from));
    put("maxLength", limits.max_length.map(Value::from));
    put("minItems", limits.min_items.map(Value::from));
    put("maxItems", limits.max_items.map(Value::from));
    put("minProperties", limits.min_properties.map(Value::from));
    put("maxProperties", limits.max_properties.map(Value::from));
    for (set, key) in [
        (limits.exclusive_minimum, "exclusiveMinimum"),
        (limits.exclusive_maximum, "exclusiveMaximum"),
        (limits.unique_items, "uniqueItems"),
    ] {
        put(key, set.then_some(Value::Bool(true)));
    }
    for (list, key) in [(&limits.all_of, "allOf"), (&limits.any_of, "anyOf"), (&limits.one_of, "oneOf")] {
        put(key, (!list.is_empty()).then(|| list.iter().map(schema_json).collect()));
    }
    put("not", limits.not.as_deref().map(schema_json));
    put("x-kubernetes-validations", (!limits.rules.is_empty()).then(|| limits.rules.iter().map(rule).collect()));
}

/// Whole numbers are written without a fraction.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 { (value as i64).into() } else { value.into() }
}

fn rule(rule: &Rule) -> Value {
    let mut out = Map::new();
    for (key, text) in [
        ("rule", &rule.rule),
        ("message", &rule.message),
        ("messageExpression", &rule.message_expression),
        ("reason", &rule.reason),
        ("fieldPath", &rule.field_path),
    ] {
        if !text.is_empty() {
            out.insert(key.to_owned(), text.as_str().into());
        }
    }
    if rule.optional_old_self {
        out.insert("optionalOldSelf".to_owned(), true.into());
    }
    Value::Object(out)
}

fn strings(list: &[Box<str>]) -> Value {
    list.iter().map(|text| Value::from(&**text)).collect()
}

/// One built-in type as a component, with descriptions.
pub(crate) fn component(name: &str, prose: &Prose) -> Option<Value> {
    let table = table::types();
    let (schema, extra) = (table.types.get(name)?, table.extras.get(name)?);
    let mut out = special(name).unwrap_or_else(|| described(name, schema, prose));
    extra
        .fields
        .iter()
        .filter(|field| field.granular)
        .for_each(|field| put_granular(&mut out["properties"][field.name]));
    let object = out.as_object_mut()?;
    if let Some(description) = prose.of_type(name) {
        object.insert("description".to_owned(), description.into());
    }
    put_extra(extra, object);
    Some(out)
}

fn described(name: &str, schema: &Schema, prose: &Prose) -> Value {
    let mut schema = Schema { preserve_unknown: false, ..schema.clone() };
    for (field, property) in &mut schema.properties {
        property.description = prose.of_field(name, field).or_else(|| list_prose(name, field)).map(Into::into);
    }
    schema_json(&schema)
}

/// Marks a field that is merged although its type is not.
fn put_granular(property: &mut Value) {
    if let Some(target) = property.get("$ref").cloned() {
        *property = json!({"allOf": [{"$ref": target}]});
    }
    property["x-kubernetes-map-type"] = "granular".into();
}

/// Lists are not types of their own in k8s-openapi.
fn list_prose(name: &str, field: &str) -> Option<&'static str> {
    match field {
        _ if !name.ends_with("List") => None,
        "apiVersion" => Some("Group and version of the list."),
        "kind" => Some("Kind of the list."),
        "metadata" => Some("Metadata of the list: its resourceVersion and how to continue it."),
        "items" => Some("The objects of the list."),
        _ => None,
    }
}

fn put_extra(extra: &Extra, out: &mut Map<String, Value>) {
    if !extra.gvks.is_empty() {
        let gvks =
            extra.gvks.iter().map(|[group, version, kind]| json!({"group": group, "version": version, "kind": kind}));
        out.insert("x-kubernetes-group-version-kind".to_owned(), gvks.collect());
    }
    if let Some(unions) = &extra.unions {
        out.insert("x-kubernetes-unions".to_owned(), unions.clone());
    }
}

/// Types whose published form is not that of their schema.
fn special(name: &str) -> Option<Value> {
    Some(match name.strip_prefix("io.k8s.apimachinery.pkg.")? {
        "api.resource.Quantity" => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        "util.intstr.IntOrString" => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        "apis.meta.v1.Time" | "apis.meta.v1.MicroTime" => json!({"type": "string", "format": "date-time"}),
        _ => return None,
    })
}
