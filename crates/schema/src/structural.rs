//! What a schema must be to be structural: every level says what it is, conditions only restrict.

use atoll_meta::{FieldError, FieldPath};

use crate::validate::openapi;
use crate::{Limits, Schema, Type, objectmeta, pattern, prune, statics};

/// Checks the schema of a CRD version: structure, keywords, list types, metadata, defaults.
///
/// `path` is where the schema stands, usually `spec.versions[0].schema.openAPIV3Schema`.
pub fn check_structural(schema: &Schema, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if schema.nullable {
        errors.push(FieldError::forbidden(path.child("nullable"), "nullable cannot be true at the root"));
    }
    if !statics::has_unsupported(schema) {
        let mut found = Vec::new();
        invariants(schema, Level::Root, path, &mut found);
        completeness(schema.limits.as_deref(), Some(schema), path, path, &mut found);
        found.sort_by_cached_key(ToString::to_string);
        if found.is_empty() {
            defaults(schema, true, false, path, &mut found);
        }
        errors.append(&mut found);
    }
    statics::check(schema, path, &mut errors);
    errors
}

#[derive(Copy, Clone, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

fn invariants(schema: &Schema, level: Level, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if schema.ty == Type::Array && schema.items.is_none() {
        errors.push(FieldError::required(path.child("items"), "must be specified"));
    }
    if let Some(items) = &schema.items {
        invariants(items, Level::Item, &path.child("items"), errors);
    }
    for (name, property) in &schema.properties {
        invariants(property, Level::Field, &path.child("properties").key(name), errors);
    }
    let free = statics::has_additional(schema);
    if free && level == Level::Root {
        errors.push(FieldError::forbidden(path.child("additionalProperties"), "must not be used at the root"));
    }
    if let Some(values) = &schema.additional {
        invariants(values, Level::Field, &path.child("additionalProperties"), errors);
    }
    extensions(schema, path, errors);
    conditions(schema, path, errors);
    types(schema, level, path, errors);
    if schema.embedded_resource && free {
        let what = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(path.child("additionalProperties"), what));
    }
    metadata(schema, level, path, errors);
    if schema.embedded_resource && !schema.preserve_unknown && schema.properties.is_empty() {
        let what =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(path.child("properties"), what));
    }
}

fn extensions(schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if !schema.int_or_string {
        return;
    }
    let what = "must be false if x-kubernetes-int-or-string is true";
    if schema.preserve_unknown {
        errors.push(FieldError::invalid(path.child("x-kubernetes-preserve-unknown-fields"), true, what));
    }
    if schema.embedded_resource {
        errors.push(FieldError::invalid(path.child("x-kubernetes-embedded-resource"), true, what));
    }
}

fn types(schema: &Schema, level: Level, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let name = statics::type_name(schema);
    let path = path.child("type");
    if schema.embedded_resource && name != "object" {
        let what = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match name {
            "" => FieldError::required(path.clone(), what),
            other => FieldError::invalid(path.clone(), other, what),
        });
    } else if name.is_empty() && !schema.int_or_string && !schema.preserve_unknown {
        let what = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(path.clone(), what));
    }
    if level == Level::Root && !name.is_empty() && name != "object" {
        errors.push(FieldError::invalid(path, name, "must be object at the root"));
    }
}

fn metadata(schema: &Schema, level: Level, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let resource = level == Level::Root || schema.embedded_resource;
    let properties = path.child("properties");
    for field in ["kind", "apiVersion"] {
        if let Some(property) = schema.properties.get(field).filter(|_| resource)
            && property.ty != Type::String
        {
            let at = properties.key(field).child("type");
            errors.push(FieldError::invalid(at, statics::type_name(property), "must be string"));
        }
    }
    let Some(meta) = schema.properties.get("metadata") else { return };
    let at = properties.key("metadata");
    if resource && meta.ty != Type::Object {
        errors.push(FieldError::invalid(at.child("type"), statics::type_name(meta), "must be object"));
    }
    if level == Level::Root {
        let mut rest = meta.clone();
        if rest.properties.keys().all(|name| matches!(&**name, "name" | "generateName")) {
            rest.properties.clear();
        }
        rest.ty = Type::Any;
        rest.default = None;
        if rest != Schema::default() {
            let what =
                "must not specify anything other than name and generateName, but metadata is implicitly specified";
            errors.push(FieldError::forbidden(at, what));
        }
    }
}

fn is_int_or_string(schemas: &[Schema]) -> bool {
    let plain = |ty| Schema { ty, ..Schema::default() };
    *schemas == [plain(Type::Integer), plain(Type::String)]
}

/// Checks allOf, anyOf, oneOf and not of a level that says what it is.
fn conditions(schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(limits) = schema.limits.as_deref() else { return };
    // Saying "integer or string" is the one way a condition may name types.
    let skip_any_of = is_int_or_string(&limits.any_of);
    let skip_first = limits.all_of.first().and_then(|first| first.limits.as_deref());
    let skip_first = skip_first.is_some_and(|first| is_int_or_string(&first.any_of));
    limits_of(limits, skip_any_of, skip_first, path, errors);
}

fn limits_of(limits: &Limits, skip_any_of: bool, skip_first: bool, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if !skip_any_of {
        for (at, schema) in limits.any_of.iter().enumerate() {
            nested(schema, false, &path.child("anyOf").index(at), errors);
        }
    }
    for (at, schema) in limits.all_of.iter().enumerate() {
        nested(schema, skip_first && at == 0, &path.child("allOf").index(at), errors);
    }
    for (at, schema) in limits.one_of.iter().enumerate() {
        nested(schema, false, &path.child("oneOf").index(at), errors);
    }
    if let Some(not) = &limits.not {
        nested(not, false, &path.child("not"), errors);
    }
    if let Some(text) = limits.pattern.as_deref().filter(|text| !text.is_empty())
        && let Err(why) = pattern::compile(text)
    {
        let what = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid(path.child("pattern"), text, what));
    }
}

/// A schema inside a condition may only restrict.
fn nested(schema: &Schema, skip_any_of: bool, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(limits) = schema.limits.as_deref() {
        limits_of(limits, skip_any_of, false, path, errors);
    }
    if let Some(items) = &schema.items {
        nested(items, false, &path.child("items"), errors);
    }
    for (name, property) in &schema.properties {
        nested(property, false, &path.child("properties").key(name), errors);
    }
    let extra = |key: &str| schema.extra.as_ref().is_some_and(|extra| extra.contains_key(key));
    let rules = schema.limits.as_deref().is_some_and(|limits| !limits.rules.is_empty());
    let (empty, undefined, off) =
        ("must be empty to be structural", "must be undefined to be structural", "must be false to be structural");
    let forbidden = [
        (!statics::type_name(schema).is_empty(), "type", empty),
        (statics::has_additional(schema), "additionalProperties", undefined),
        (schema.default.is_some(), "default", undefined),
        (extra("title"), "title", empty),
        (schema.description.is_some(), "description", empty),
        (schema.nullable, "nullable", off),
        (extra("externalDocs"), "externalDocs", undefined),
        (schema.preserve_unknown, "x-kubernetes-preserve-unknown-fields", off),
        (schema.embedded_resource, "x-kubernetes-embedded-resource", off),
        (schema.int_or_string, "x-kubernetes-int-or-string", off),
        (!schema.list_map_keys.is_empty(), "x-kubernetes-list-map-keys", empty),
        (statics::list_type_name(schema).is_some(), "x-kubernetes-list-type", undefined),
        (statics::map_type_name(schema).is_some(), "x-kubernetes-map-type", undefined),
        (rules, "x-kubernetes-validations", empty),
    ];
    for (present, key, what) in forbidden {
        if present {
            errors.push(FieldError::forbidden(path.child(key), what));
        }
    }
    if schema.properties.contains_key("metadata") {
        let at = path.child("properties").key("metadata");
        errors.push(FieldError::forbidden(at, "must not be specified in a nested context"));
    }
}

/// What a condition talks about must be described outside of it, too.
fn completeness(
    limits: Option<&Limits>,
    schema: Option<&Schema>,
    path: &FieldPath,
    from: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let Some(limits) = limits else { return };
    if let Some(not) = &limits.not {
        nested_completeness(not, schema, path, &from.child("not"), errors);
    }
    for (key, schemas) in [("allOf", &limits.all_of), ("anyOf", &limits.any_of), ("oneOf", &limits.one_of)] {
        for (at, one) in schemas.iter().enumerate() {
            nested_completeness(one, schema, path, &from.child(key).index(at), errors);
        }
    }
}

fn nested_completeness(
    one: &Schema,
    schema: Option<&Schema>,
    path: &FieldPath,
    from: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let Some(schema) = schema else {
        errors.push(FieldError::required(path.clone(), format!("because it is defined in {from}")));
        return;
    };
    completeness(one.limits.as_deref(), Some(schema), path, from, errors);
    if let Some(items) = &one.items {
        nested_completeness(items, schema.items.as_deref(), &path.child("items"), &from.child("items"), errors);
    }
    for (name, property) in &one.properties {
        let (path, from) = (path.child("properties").key(name), from.child("properties").key(name));
        nested_completeness(property, schema.properties.get(name), &path, &from, errors);
    }
}

/// Defaults must be valid and have no unknown fields. Those of map values are never applied.
fn defaults(schema: &Schema, resource: bool, in_meta: bool, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(default) = &schema.default {
        let at = path.child("default");
        let mut pruned = default.clone();
        if !in_meta && !prune(&mut pruned, schema, schema.embedded_resource).is_empty() {
            errors.push(FieldError::invalid(at.clone(), default.clone(), "must not have unknown fields"));
        }
        let mut found = Vec::new();
        objectmeta::embedded(default, schema, &crate::trail::Trail::Start(at.as_str()), &mut found);
        if found.is_empty() {
            found = openapi(default, schema, None, &at);
        }
        errors.append(&mut found);
    }
    if let Some(items) = &schema.items {
        defaults(items, items.embedded_resource, in_meta, &path.child("items"), errors);
    }
    for (name, property) in &schema.properties {
        let in_meta =
            (in_meta && !property.embedded_resource) || (resource && objectmeta::META_FIELDS.contains(&&**name));
        let at = path.child("properties").key(name);
        defaults(property, property.embedded_resource, in_meta, &at, errors);
    }
}
