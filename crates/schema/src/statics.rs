//! Keywords of a schema: which are allowed, what list and map types ask for, how rules are written.

use atoll_meta::{FieldError, FieldPath};
use serde_json::Value;

use crate::{Limits, ListType, Rule, Schema, Type, fieldpath, objectmeta};

fn extra<'a>(schema: &'a Schema, key: &str) -> Option<&'a Value> {
    schema.extra.as_ref()?.get(key)
}

/// The type as written, even if there is no such type.
pub(crate) fn type_name(schema: &Schema) -> &str {
    if schema.ty != Type::Any {
        return schema.ty.as_str();
    }
    extra(schema, "type").and_then(Value::as_str).unwrap_or_default()
}

/// The list type as written.
pub(crate) fn list_type_name(schema: &Schema) -> Option<&str> {
    match schema.list_type {
        Some(ListType::Atomic) => Some("atomic"),
        Some(ListType::Set) => Some("set"),
        Some(ListType::Map) => Some("map"),
        None => extra(schema, "x-kubernetes-list-type").and_then(Value::as_str),
    }
}

/// The map type as written.
pub(crate) fn map_type_name(schema: &Schema) -> Option<&str> {
    if schema.map_atomic {
        return Some("atomic");
    }
    extra(schema, "x-kubernetes-map-type").and_then(Value::as_str)
}

/// Whether anything is said about fields that are not declared.
pub(crate) fn has_additional(schema: &Schema) -> bool {
    schema.additional.is_some() || schema.free_form || extra(schema, "additionalProperties").is_some()
}

/// Whether the schema uses keywords that cannot be expressed structurally at all.
pub(crate) fn has_unsupported(schema: &Schema) -> bool {
    let unsupported = ["id", "$schema", "patternProperties", "dependencies", "additionalItems", "definitions", "items"];
    schema.reference.is_some()
        || unsupported.iter().any(|key| extra(schema, key).is_some())
        || extra(schema, "x-kubernetes-preserve-unknown-fields").is_some()
        || children(schema).any(has_unsupported)
}

fn children(schema: &Schema) -> impl Iterator<Item = &Schema> {
    let limits = schema.limits.as_deref();
    let combined = limits.into_iter().flat_map(|limits| {
        limits.all_of.iter().chain(&limits.any_of).chain(&limits.one_of).chain(limits.not.as_deref())
    });
    let own = schema.properties.values().chain(schema.additional.as_deref()).chain(schema.items.as_deref());
    own.chain(combined)
}

/// What holds for a schema because of where it stands.
#[derive(Clone, Default)]
struct Place {
    /// Why defaults are not allowed here.
    no_defaults: Option<String>,
    in_meta: bool,
}

/// Checks all keywords of a CRD version's schema.
pub(crate) fn check(schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    node(schema, path, &Place::default(), true, errors);
}

fn node(schema: &Schema, path: &FieldPath, place: &Place, root: bool, errors: &mut Vec<FieldError>) {
    keywords(schema, path, place, errors);
    let limits = schema.limits.as_deref();
    if limits.is_some_and(|limits| limits.unique_items) {
        let what = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(path.child("uniqueItems"), what));
    }
    if has_additional(schema) && !schema.properties.is_empty() && !schema.free_form {
        let what = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(path.child("additionalProperties"), what));
    }
    if let Some(values) = &schema.additional {
        let mut below = place.clone();
        if place.in_meta {
            below.no_defaults = Some("inside additionalProperties applying to object metadata".to_owned());
        }
        node(values, &path.child("additionalProperties"), &below, false, errors);
    }
    for (name, property) in &schema.properties {
        let mut below = place.clone();
        if (root || schema.embedded_resource) && objectmeta::META_FIELDS.contains(&&**name) {
            below.in_meta = true;
            if root {
                below.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        node(property, &path.child("properties").key(name), &below, false, errors);
    }
    if let Some(limits) = limits {
        combined(limits, path, place, errors);
    }
    if let Some(items) = &schema.items {
        node(items, &path.child("items"), place, false, errors);
    }
    if extra(schema, "x-kubernetes-preserve-unknown-fields").is_some() {
        let at = path.child("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(at, false, "must be true or undefined"));
    }
    map_type(schema, path, errors);
    list_type(schema, path, errors);
    for (at, rule) in limits.into_iter().flat_map(|limits| &limits.rules).enumerate() {
        rule_texts(rule, schema, &path.child("x-kubernetes-validations").index(at), errors);
    }
}

fn combined(limits: &Limits, path: &FieldPath, place: &Place, errors: &mut Vec<FieldError>) {
    if let Some(not) = &limits.not {
        node(not, &path.child("not"), place, false, errors);
    }
    for (key, schemas) in [("allOf", &limits.all_of), ("oneOf", &limits.one_of), ("anyOf", &limits.any_of)] {
        for (at, schema) in schemas.iter().enumerate() {
            node(schema, &path.child(key).index(at), place, false, errors);
        }
    }
}

fn keywords(schema: &Schema, path: &FieldPath, place: &Place, errors: &mut Vec<FieldError>) {
    let ty = type_name(schema);
    if Type::parse(ty).is_none() {
        let known = ["array", "boolean", "integer", "number", "object", "string"];
        errors.push(FieldError::not_supported(path.child("type"), ty, &known));
    }
    if let Some(why) = place.no_defaults.as_ref().filter(|_| schema.default.is_some()) {
        errors.push(FieldError::forbidden(path.child("default"), format!("must not be set {why}")));
    }
    for key in ["id", "additionalItems", "patternProperties", "definitions", "dependencies"] {
        if extra(schema, key).is_some() {
            errors.push(FieldError::forbidden(path.child(key), format!("{key} is not supported")));
        }
    }
    if schema.reference.is_some() {
        errors.push(FieldError::forbidden(path.child("$ref"), "$ref is not supported"));
    }
    if ty == "null" {
        let what = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(path.child("type"), what));
    }
    if extra(schema, "items").is_some() {
        errors.push(FieldError::forbidden(path.child("items"), "items must be a schema object and not an array"));
    }
    if place.in_meta && schema.embedded_resource {
        let at = path.child("x-kubernetes-embedded-resource");
        errors.push(FieldError::forbidden(at, "must not be used inside of resource meta"));
    }
}

/// The keyword needs a certain type.
fn needs_type(schema: &Schema, wanted: &str, keyword: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let what = format!("must be {wanted} if x-kubernetes-{keyword} is specified");
    let at = path.child("type");
    match type_name(schema) {
        same if same == wanted => {}
        "" => errors.push(FieldError::required(at, what)),
        other => errors.push(FieldError::invalid(at, other, what)),
    }
}

fn map_type(schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(name) = map_type_name(schema) else { return };
    needs_type(schema, "object", "map-type", path, errors);
    if !matches!(name, "atomic" | "granular") {
        let at = path.child("x-kubernetes-map-type");
        errors.push(FieldError::not_supported(at, name, &["atomic", "granular"]));
    }
}

fn list_type(schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let name = list_type_name(schema);
    let at = path.child("x-kubernetes-list-type");
    if let Some(name) = name {
        needs_type(schema, "array", "list-type", path, errors);
        if name == "set" && schema.ty == Type::Array {
            set_items(schema, path, errors);
        }
        if !matches!(name, "atomic" | "set" | "map") {
            let mut error = FieldError::not_supported(at.clone(), name, &[]);
            error.detail = "supported values: \"atomic\", \"set\", \"map\"".to_owned();
            errors.push(error);
        }
    }
    if !schema.list_map_keys.is_empty() && name != Some("map") {
        let what = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match name {
            None => FieldError::required(at, what),
            Some(other) => FieldError::invalid(at, other, what),
        });
    }
    if name == Some("map") {
        map_items(schema, path, errors);
    }
    unique_items(schema, name, path, errors);
}

fn set_items(schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(items) = &schema.items else { return };
    let at = path.child("items");
    let what = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let list = list_type_name(items).map_or(Value::Null, Value::from);
    if items.ty == Type::Array && list_type_name(items).is_some_and(|name| name != "atomic") {
        errors.push(FieldError::invalid(at.child("x-kubernetes-list-type"), list, what));
    } else if items.ty == Type::Object && !items.map_atomic {
        errors.push(FieldError::invalid(at.child("x-kubernetes-map-type"), list, what));
    }
}

fn map_items(schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let at = path.child("x-kubernetes-list-map-keys");
    if schema.list_map_keys.is_empty() {
        errors.push(FieldError::required(at.clone(), "must not be empty if x-kubernetes-list-type is map"));
    }
    let Some(items) = schema.items.as_deref() else {
        errors.push(FieldError::required(path.child("items"), "must have a schema if x-kubernetes-list-type is map"));
        return;
    };
    if items.ty != Type::Object {
        let what = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(path.child("items").child("type"), type_name(items), what));
        return;
    }
    let keys = || schema.list_map_keys.iter().map(|key| Value::from(&**key)).collect::<Value>();
    for (index, key) in schema.list_map_keys.iter().enumerate() {
        match items.properties.get(key) {
            Some(property) if matches!(property.ty, Type::Array | Type::Object) => {
                let at = path.child("items").child("properties").key(key).child("type");
                let what = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(at, type_name(items), what));
            }
            Some(_) => {}
            None => {
                errors.push(FieldError::invalid(at.clone(), keys(), "entries must all be names of item properties"))
            }
        }
        if schema.list_map_keys[..index].contains(key) {
            errors.push(FieldError::invalid(at.clone(), keys(), "must not contain duplicate entries"));
        }
    }
}

/// Elements of sets and map lists, and their keys, must always be there.
fn unique_items(schema: &Schema, name: Option<&str>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let (Some(name @ ("set" | "map")), Some(items)) = (name, schema.items.as_deref()) else { return };
    let at = path.child("items");
    if items.nullable {
        let what = format!("cannot be nullable when x-kubernetes-list-type is {name}");
        errors.push(FieldError::forbidden(at.child("nullable"), what));
    }
    if name == "set" {
        return;
    }
    for key in &schema.list_map_keys {
        let Some(property) = items.properties.get(key) else { continue };
        let at = at.child("properties").key(key);
        if !items.required.contains(key) && property.default.is_none() {
            let what =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(at.child("default"), what));
        }
        if property.nullable {
            let what = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(at.child("nullable"), what));
        }
    }
}

fn rule_texts(rule: &Rule, schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let breaks = |text: &str| text.contains(['\n', '\r']);
    let (text, message) = (rule.rule.trim(), rule.message.trim());
    if text.is_empty() {
        errors.push(FieldError::required(path.child("rule"), "rule is not specified"));
    } else if !rule.message.is_empty() && message.is_empty() {
        let what = "must be non-empty if specified";
        errors.push(FieldError::invalid(path.child("message"), rule.message.as_str(), what));
    } else if breaks(message) {
        let what = "must not contain line breaks";
        errors.push(FieldError::invalid(path.child("message"), rule.message.as_str(), what));
    } else if breaks(text) && message.is_empty() {
        let what = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(path.child("message"), what));
    }
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        let what = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(path.child("messageExpression"), what));
    }
    let reasons = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    if !rule.reason.is_empty() && !reasons.contains(&rule.reason.as_str()) {
        errors.push(FieldError::not_supported(path.child("reason"), rule.reason.as_str(), &reasons));
    }
    if rule.field_path.is_empty() {
        return;
    }
    let at = path.child("fieldPath");
    let mut fail = |what: &str| errors.push(FieldError::invalid(at.clone(), rule.field_path.as_str(), what));
    if rule.field_path.trim().is_empty() {
        fail("must be non-empty if specified");
    }
    if breaks(&rule.field_path) {
        fail("must not contain line breaks");
    }
    if fieldpath::normalise(&rule.field_path, schema).is_none() {
        fail("must be a valid path");
    }
}
