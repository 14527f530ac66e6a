//! Schemas from and to their JSON form (`JSONSchemaProps`, and the components of OpenAPI v3).

use serde_json::{Map, Number, Value};

use crate::{Limits, ListType, PatchStrategy, Rule, Schema, Type};

/// Deeper schemas are refused; the JSON parser allows no more than 128 levels anyway.
const MAX_DEPTH: usize = 128;
const REFERENCE: &str = "#/components/schemas/";

impl Schema {
    /// Reads a schema; fails with the path of the first keyword of the wrong JSON type.
    pub fn from_json(openapi_v3_json: &Value) -> Result<Self, String> {
        read(openapi_v3_json, 0)
    }

    /// Writes the schema as it was read.
    pub fn to_json(&self) -> Value {
        Value::Object(write(self))
    }

    fn limits_mut(&mut self) -> &mut Limits {
        self.limits.get_or_insert_default()
    }
}

fn read(json: &Value, depth: usize) -> Result<Schema, String> {
    let map = json.as_object().ok_or("must be an object")?;
    if depth > MAX_DEPTH {
        return Err("schema is nested too deeply".to_owned());
    }
    let mut schema = Schema::default();
    for (key, value) in map {
        if value.is_null() {
            continue;
        }
        let taken = structure(&mut schema, key, value, depth)
            .and_then(|taken| if taken { Ok(true) } else { extension(&mut schema, key, value) })
            .and_then(|taken| if taken { Ok(true) } else { limit(&mut schema, key, value, depth) })
            .map_err(|why| join(key, &why))?;
        if !taken {
            schema.extra.get_or_insert_default().insert(key.clone(), value.clone());
        }
    }
    Ok(schema)
}

/// `properties` and `spec: must be ..` make `properties.spec: must be ..`.
fn join(key: &str, why: &str) -> String {
    match why.split_once(": ") {
        Some((path, _)) if !path.contains(' ') => format!("{key}.{why}"),
        _ => format!("{key}: {why}"),
    }
}

/// Keywords that say what a value is made of.
fn structure(schema: &mut Schema, key: &str, value: &Value, depth: usize) -> Result<bool, String> {
    match key {
        "$ref" => schema.reference = Some(reference(text(value)?).into()),
        "type" => match Type::parse(text(value)?) {
            Some(ty) => schema.ty = ty,
            None => return Ok(false),
        },
        "format" => schema.format = text(value)?.into(),
        "description" => schema.description = Some(text(value)?.into()),
        "nullable" => schema.nullable = flag(value)?,
        "default" => schema.default = Some(value.clone()),
        "required" => schema.required = texts(value)?,
        "properties" => {
            for (name, child) in value.as_object().ok_or("must be an object")? {
                let child = read(child, depth + 1).map_err(|why| join(name, &why))?;
                schema.properties.insert(name.as_str().into(), child);
            }
            // An empty map is no statement, but is published as it was written.
            return Ok(!schema.properties.is_empty());
        }
        "additionalProperties" => match value {
            Value::Bool(true) => schema.free_form = true,
            Value::Bool(false) => return Ok(false),
            other => schema.additional = Some(Box::new(read(other, depth + 1)?)),
        },
        "items" if value.is_object() => schema.items = Some(Box::new(read(value, depth + 1)?)),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Keywords of Kubernetes; values the model cannot express are left to `extra`.
fn extension(schema: &mut Schema, key: &str, value: &Value) -> Result<bool, String> {
    let Some(name) = key.strip_prefix("x-kubernetes-") else { return Ok(false) };
    match name {
        "int-or-string" => schema.int_or_string = flag(value)?,
        "embedded-resource" => schema.embedded_resource = flag(value)?,
        "preserve-unknown-fields" => {
            schema.preserve_unknown = flag(value)?;
            return Ok(schema.preserve_unknown);
        }
        "list-type" => {
            schema.list_type = match text(value)? {
                "atomic" => Some(ListType::Atomic),
                "set" => Some(ListType::Set),
                "map" => Some(ListType::Map),
                _ => return Ok(false),
            }
        }
        "list-map-keys" => schema.list_map_keys = texts(value)?,
        "map-type" => {
            schema.map_atomic = text(value)? == "atomic";
            return Ok(schema.map_atomic);
        }
        "patch-merge-key" => schema.patch_merge_key = Some(text(value)?.into()),
        "patch-strategy" => {
            let words: Vec<&str> = text(value)?.split(',').collect();
            schema.patch_strategy = PatchStrategy {
                merge: words.contains(&"merge"),
                replace: words.contains(&"replace"),
                retain_keys: words.contains(&"retainKeys"),
            };
        }
        "validations" => {
            let rules = value.as_array().ok_or("must be a list")?;
            let rules: Result<Vec<Rule>, String> = rules.iter().map(rule).collect();
            schema.limits_mut().rules = rules?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Keywords that restrict values.
fn limit(schema: &mut Schema, key: &str, value: &Value, depth: usize) -> Result<bool, String> {
    match key {
        "allOf" => {
            if let Some(target) = only_reference(value) {
                schema.reference = Some(target.into());
                return Ok(true);
            }
            schema.limits_mut().all_of = schemas(value, depth)?;
        }
        "anyOf" => schema.limits_mut().any_of = schemas(value, depth)?,
        "oneOf" => schema.limits_mut().one_of = schemas(value, depth)?,
        "not" => schema.limits_mut().not = Some(Box::new(read(value, depth + 1)?)),
        "enum" => schema.limits_mut().enumeration = value.as_array().ok_or("must be a list")?.clone(),
        "pattern" => schema.limits_mut().pattern = Some(text(value)?.to_owned()),
        "minimum" => schema.limits_mut().minimum = Some(number(value)?),
        "maximum" => schema.limits_mut().maximum = Some(number(value)?),
        "exclusiveMinimum" => schema.limits_mut().exclusive_minimum = flag(value)?,
        "exclusiveMaximum" => schema.limits_mut().exclusive_maximum = flag(value)?,
        "multipleOf" => schema.limits_mut().multiple_of = Some(number(value)?),
        "minLength" => schema.limits_mut().min_length = Some(count(value)?),
        "maxLength" => schema.limits_mut().max_length = Some(count(value)?),
        "minItems" => schema.limits_mut().min_items = Some(count(value)?),
        "maxItems" => schema.limits_mut().max_items = Some(count(value)?),
        "minProperties" => schema.limits_mut().min_properties = Some(count(value)?),
        "maxProperties" => schema.limits_mut().max_properties = Some(count(value)?),
        "uniqueItems" => schema.limits_mut().unique_items = flag(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// OpenAPI v3 writes a reference with attributes as `allOf` with the reference alone.
fn only_reference(value: &Value) -> Option<&str> {
    match value.as_array()?.as_slice() {
        [Value::Object(one)] if one.len() == 1 => one.get("$ref")?.as_str().map(reference),
        _ => None,
    }
}

fn reference(text: &str) -> &str {
    text.strip_prefix(REFERENCE).unwrap_or(text)
}

fn rule(value: &Value) -> Result<Rule, String> {
    let map = value.as_object().ok_or("must be an object")?;
    let word = |key: &str| map.get(key).map_or(Ok(""), text).map(str::to_owned);
    Ok(Rule {
        rule: word("rule")?,
        message: word("message")?,
        message_expression: word("messageExpression")?,
        reason: word("reason")?,
        field_path: word("fieldPath")?,
        optional_old_self: map.get("optionalOldSelf").map_or(Ok(false), flag)?,
    })
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "must be a string".to_owned())
}

fn texts(value: &Value) -> Result<Vec<Box<str>>, String> {
    let items = value.as_array().ok_or("must be a list")?;
    items.iter().map(|item| text(item).map(Into::into)).collect()
}

fn flag(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "must be true or false".to_owned())
}

fn number(value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| "must be a number".to_owned())
}

fn count(value: &Value) -> Result<u64, String> {
    value.as_u64().ok_or_else(|| "must be a whole number and not negative".to_owned())
}

fn schemas(value: &Value, depth: usize) -> Result<Vec<Schema>, String> {
    value.as_array().ok_or("must be a list")?.iter().map(|item| read(item, depth + 1)).collect()
}

fn write(schema: &Schema) -> Map<String, Value> {
    let mut out = schema.extra.as_deref().cloned().unwrap_or_default();
    let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
    if schema.ty != Type::Any {
        put("type", schema.ty.as_str().into());
    }
    if !schema.format.is_empty() {
        put("format", (*schema.format).into());
    }
    if let Some(description) = &schema.description {
        put("description", (**description).into());
    }
    if !schema.properties.is_empty() {
        let properties = schema.properties.iter().map(|(name, child)| (name.to_string(), child.to_json()));
        put("properties", Value::Object(properties.collect()));
    }
    if let Some(values) = &schema.additional {
        put("additionalProperties", values.to_json());
    } else if schema.free_form {
        put("additionalProperties", true.into());
    }
    if let Some(items) = &schema.items {
        put("items", items.to_json());
    }
    if !schema.required.is_empty() {
        put("required", strings(&schema.required));
    }
    if let Some(default) = &schema.default {
        put("default", default.clone());
    }
    if schema.nullable {
        put("nullable", true.into());
    }
    write_extensions(schema, &mut out);
    if let Some(limits) = &schema.limits {
        write_limits(limits, &mut out);
    }
    if let Some(name) = &schema.reference {
        let target = Value::from(format!("{REFERENCE}{name}"));
        if out.is_empty() {
            out.insert("$ref".to_owned(), target);
        } else {
            out.insert("allOf".to_owned(), serde_json::json!([{"$ref": target}]));
        }
    }
    out
}

fn write_extensions(schema: &Schema, out: &mut Map<String, Value>) {
    let mut put = |key: &str, value: Value| out.insert(format!("x-kubernetes-{key}"), value);
    if schema.int_or_string {
        put("int-or-string", true.into());
    }
    if schema.preserve_unknown {
        put("preserve-unknown-fields", true.into());
    }
    if schema.embedded_resource {
        put("embedded-resource", true.into());
    }
    if let Some(list_type) = schema.list_type {
        let name = match list_type {
            ListType::Atomic => "atomic",
            ListType::Set => "set",
            ListType::Map => "map",
        };
        put("list-type", name.into());
    }
    if !schema.list_map_keys.is_empty() {
        put("list-map-keys", strings(&schema.list_map_keys));
    }
    if schema.map_atomic {
        put("map-type", "atomic".into());
    }
    if let Some(key) = &schema.patch_merge_key {
        put("patch-merge-key", (**key).into());
    }
    let PatchStrategy { merge, replace, retain_keys } = schema.patch_strategy;
    let words: Vec<&str> = [(merge, "merge"), (replace, "replace"), (retain_keys, "retainKeys")]
        .into_iter()
        .filter_map(|(set, word)| set.then_some(word))
        .collect();
    if !words.is_empty() {
        put("patch-strategy", words.join(",").into());
    }
}

fn write_limits(limits: &Limits, out: &mut Map<String, Value>) {
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(key.to_owned(), value);
        }
    };
    put("enum", (!limits.enumeration.is_empty()).then(|| limits.enumeration.clone().into()));
    put("pattern", limits.pattern.clone().map(Value::from));
    put("minimum", limits.minimum.map(float));
    put("maximum", limits.maximum.map(float));
    put("exclusiveMinimum", limits.exclusive_minimum.then(|| true.into()));
    put("exclusiveMaximum", limits.exclusive_maximum.then(|| true.into()));
    put("multipleOf", limits.multiple_of.map(float));
    put("minLength", limits.min_length.map(Value::from));
    put("maxLength", limits.max_length.map(Value::from));
    put("minItems", limits.min_items.map(Value::from));
    put("maxItems", limits.max_items.map(Value::from));
    put("minProperties", limits.min_properties.map(Value::from));
    put("maxProperties", limits.max_properties.map(Value::from));
    put("uniqueItems", limits.unique_items.then(|| true.into()));
    put("allOf", list(&limits.all_of, Schema::to_json));
    put("anyOf", list(&limits.any_of, Schema::to_json));
    put("oneOf", list(&limits.one_of, Schema::to_json));
    put("not", limits.not.as_ref().map(|schema| schema.to_json()));
    put("x-kubernetes-validations", list(&limits.rules, rule_json));
}

fn rule_json(rule: &Rule) -> Value {
    let mut out = Map::new();
    let words = [
        ("message", &rule.message),
        ("messageExpression", &rule.message_expression),
        ("reason", &rule.reason),
        ("fieldPath", &rule.field_path),
    ];
    out.insert("rule".to_owned(), rule.rule.clone().into());
    for (key, word) in words {
        if !word.is_empty() {
            out.insert(key.to_owned(), word.clone().into());
        }
    }
    if rule.optional_old_self {
        out.insert("optionalOldSelf".to_owned(), true.into());
    }
    Value::Object(out)
}

fn list<T>(items: &[T], form: impl Fn(&T) -> Value) -> Option<Value> {
    (!items.is_empty()).then(|| items.iter().map(form).collect())
}

fn strings(items: &[Box<str>]) -> Value {
    items.iter().map(|item| Value::from(&**item)).collect()
}

/// A bound without a fraction is written without one, as people write it.
pub(crate) fn float(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9.0e18 {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_written_as_they_were_read() {
        let cases = [
            json!({}),
            json!({"type": "object", "properties": {"a": {"type": "string", "format": "date-time", "title": "T"}},
                   "required": ["a"], "description": "d", "externalDocs": {"url": "u"}, "example": {"a": 1}}),
            json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 2.5,
                   "exclusiveMinimum": true, "multipleOf": 0.5}}),
            json!({"type": "object", "additionalProperties": true}),
            json!({"type": "object", "additionalProperties": false, "properties": {}}),
            json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map",
                   "x-kubernetes-list-map-keys": ["a", "b"], "minItems": 1, "maxItems": 3}),
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            json!({"x-kubernetes-preserve-unknown-fields": false, "x-kubernetes-list-type": "bag", "type": "weird",
                   "x-kubernetes-map-type": "granular", "items": [{}], "patternProperties": {"a": {}}}),
            json!({"$ref": "#/components/schemas/a.B"}),
            json!({"allOf": [{"$ref": "#/components/schemas/a.B"}], "default": {}}),
            json!({"type": "string", "enum": ["a", 1, null], "pattern": "^a$", "nullable": true, "default": "a",
                   "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "m", "reason": "FieldValueForbidden",
                   "fieldPath": ".a", "messageExpression": "'x'", "optionalOldSelf": true}]}),
            json!({"type": "array", "x-kubernetes-patch-strategy": "merge,retainKeys", "x-kubernetes-patch-merge-key": "name"}),
        ];
        for case in cases {
            let schema = Schema::from_json(&case).unwrap();
            assert_eq!(schema.to_json(), case);
            assert_eq!(Schema::from_json(&schema.to_json()).unwrap(), schema);
        }
    }

    #[test]
    fn malformed_keywords_are_named_by_path() {
        let cases = [
            (json!(1), "must be an object"),
            (json!({"type": 1}), "type: must be a string"),
            (
                json!({"properties": {"a": {"maxLength": -1}}}),
                "properties.a.maxLength: must be a whole number and not negative",
            ),
            (json!({"items": {"required": "x"}}), "items.required: must be a list"),
        ];
        for (json, message) in cases {
            assert_eq!(Schema::from_json(&json).unwrap_err(), message);
        }
    }
}
