//! Values of the wrong JSON type in built-in kinds, told in the words of the original's decoder.

use base64::Engine as _;
use serde_json::Value;

use crate::{Type, Typed};

/// The first value its type cannot hold, or `None` when the object decodes.
pub fn type_errors(value: &Value, typed: Typed<'_>) -> Option<String> {
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    let root = short_name(typed).map_or(kind, |name| name.rsplit('.').next().unwrap_or(name));
    if !value.is_object() {
        let wanted = short_name(typed).unwrap_or("object");
        return Some(format!("json: cannot unmarshal {} into Go value of type {wanted}", json_word(value)));
    }
    let mut fields = Vec::new();
    walk(value, typed, root, &mut fields).err()
}

/// `v1.DeploymentSpec` of `io.k8s.api.apps.v1.DeploymentSpec`.
fn short_name(typed: Typed<'_>) -> Option<&str> {
    let name = typed.field.reference.as_deref()?;
    let mut dots = name.rmatch_indices('.').map(|(at, _)| at);
    dots.next();
    Some(dots.next().map_or(name, |at| &name[at + 1..]))
}

/// `owner` is the Go struct the walk is in; `fields` the JSON names since the root.
fn walk<'a>(value: &'a Value, typed: Typed<'a>, owner: &str, fields: &mut Vec<&'a str>) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    let fail = |fields: &[&str], wanted: &str, what: &str| {
        if fields.is_empty() {
            return Err(format!("json: cannot unmarshal {what} into Go value of type {wanted}"));
        }
        Err(format!("json: cannot unmarshal {what} into Go struct field {owner}.{} of type {wanted}", fields.join(".")))
    };
    let special = special(typed);
    if let Some(special) = special {
        return match scalar(special, value) {
            Ok(()) => Ok(()),
            Err(Fault::Type(wanted)) => fail(fields, wanted, json_word(value)),
            Err(Fault::Text(text)) => Err(text),
        };
    }
    match (typed.schema.ty, value) {
        (Type::Any, _) | (Type::String, Value::String(_)) | (Type::Boolean, Value::Bool(_)) => Ok(()),
        (Type::Number, Value::Number(_)) => Ok(()),
        (Type::Integer, Value::Number(number)) => {
            let narrow = &*typed.schema.format == "int32";
            let fits = number.as_i64().is_some_and(|whole| !narrow || i32::try_from(whole).is_ok());
            if fits { Ok(()) } else { fail(fields, &go_type(typed), &format!("number {number}")) }
        }
        (Type::Object, Value::Object(map)) => {
            if typed.schema.properties.is_empty() && typed.schema.additional.is_none() {
                return Ok(());
            }
            let inner = match short_name(typed) {
                Some(name) => name.rsplit('.').next().unwrap_or(name),
                None => owner,
            };
            let is_struct = !typed.schema.properties.is_empty();
            for (key, child) in map {
                let Some(property) = typed.property(key) else { continue };
                if is_struct {
                    fields.push(key);
                    walk(child, property, inner, fields)?;
                    fields.pop();
                } else {
                    walk(child, property, inner, fields)?;
                }
            }
            Ok(())
        }
        (Type::Array, Value::Array(items)) => match typed.items() {
            Some(element) => items.iter().try_for_each(|item| walk(item, element, owner, fields)),
            None => Ok(()),
        },
        _ => fail(fields, &go_type(typed), json_word(value)),
    }
}

/// Types that decode themselves.
#[derive(Copy, Clone, PartialEq)]
enum Special {
    Quantity,
    IntOrString,
    Time,
    Bytes,
}

enum Fault {
    Type(&'static str),
    Text(String),
}

fn special(typed: Typed<'_>) -> Option<Special> {
    let name = typed.field.reference.as_deref().unwrap_or_default();
    let schema = typed.schema;
    match &*schema.format {
        "quantity" => return Some(Special::Quantity),
        "int-or-string" => return Some(Special::IntOrString),
        "date-time" | "micro-time" => return Some(Special::Time),
        "byte" => return Some(Special::Bytes),
        _ => {}
    }
    if schema.int_or_string || name.ends_with(".IntOrString") {
        Some(Special::IntOrString)
    } else if name.ends_with(".Quantity") {
        Some(Special::Quantity)
    } else if name.ends_with(".v1.Time") || name.ends_with(".v1.MicroTime") {
        Some(Special::Time)
    } else {
        None
    }
}

fn scalar(special: Special, value: &Value) -> Result<(), Fault> {
    match (special, value) {
        (Special::IntOrString, Value::String(_)) => Ok(()),
        (Special::IntOrString, Value::Number(number)) => {
            let fits = number.as_i64().is_some_and(|whole| i32::try_from(whole).is_ok());
            if fits {
                Ok(())
            } else {
                Err(Fault::Text(format!("json: cannot unmarshal number {number} into Go value of type int32")))
            }
        }
        (Special::IntOrString, _) => Err(Fault::Type("int32")),
        (Special::Quantity, Value::Number(number)) => quantity(&number.to_string()),
        (Special::Quantity, Value::String(text)) => quantity(text),
        (Special::Quantity, other) => quantity(&other.to_string()),
        (Special::Time, Value::String(text)) => time(text),
        (Special::Time, _) => Err(Fault::Type("string")),
        (Special::Bytes, Value::String(text)) => bytes(text),
        (Special::Bytes, _) => Err(Fault::Type("[]uint8")),
    }
}

const QUANTITY: &str = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$";

fn quantity(text: &str) -> Result<(), Fault> {
    static CELL: std::sync::LazyLock<regex::Regex> =
        std::sync::LazyLock::new(|| regex::Regex::new(QUANTITY).expect("the pattern is a constant"));
    if CELL.is_match(text) {
        return Ok(());
    }
    Err(Fault::Text(format!("quantities must match the regular expression '{QUANTITY}'")))
}

fn bytes(text: &str) -> Result<(), Fault> {
    let plain: String;
    let text = if text.contains(['\r', '\n']) {
        plain = text.replace(['\r', '\n'], "");
        &plain
    } else {
        text
    };
    let at = match base64::engine::general_purpose::STANDARD.decode(text) {
        Ok(_) => return Ok(()),
        Err(base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _)) => at,
        Err(_) => text.len() / 4 * 4,
    };
    Err(Fault::Text(format!("illegal base64 data at input byte {at}")))
}

/// RFC 3339, complaining about the first part that does not fit.
fn time(text: &str) -> Result<(), Fault> {
    if text.is_empty() || text.parse::<jiff::Timestamp>().is_ok() && text.as_bytes().get(10) == Some(&b'T') {
        return Ok(());
    }
    const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
    let mut rest = text;
    for part in ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"] {
        let digits = part.as_bytes()[0].is_ascii_digit();
        let head = rest
            .get(..part.len())
            .filter(|head| if digits { head.bytes().all(|byte| byte.is_ascii_digit()) } else { *head == part });
        if head.is_none() {
            return Err(Fault::Text(format!("parsing time {text:?} as {LAYOUT:?}: cannot parse {rest:?} as {part:?}")));
        }
        rest = &rest[part.len()..];
    }
    Err(Fault::Text(format!("parsing time {text:?} as {LAYOUT:?}: cannot parse {rest:?} as \"Z07:00\"")))
}

fn json_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The Go type a field has, as far as a schema tells.
fn go_type(typed: Typed<'_>) -> String {
    match special(typed) {
        Some(Special::Quantity) => return "resource.Quantity".to_owned(),
        Some(Special::IntOrString) => return "intstr.IntOrString".to_owned(),
        Some(Special::Time) => return "v1.Time".to_owned(),
        Some(Special::Bytes) => return "[]uint8".to_owned(),
        None => {}
    }
    match typed.schema.ty {
        Type::String => "string".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::Integer => if &*typed.schema.format == "int32" { "int32" } else { "int64" }.to_owned(),
        Type::Number => "float64".to_owned(),
        Type::Array => format!("[]{}", typed.items().map_or_else(|| "interface {}".to_owned(), go_type)),
        Type::Object | Type::Any => match (short_name(typed), typed.schema.additional.as_deref()) {
            (Some(name), _) => name.to_owned(),
            (None, Some(values)) => format!("map[string]{}", go_type(Typed::new(typed.types, values))),
            (None, None) => "map[string]interface {}".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::{Schema, Types, drop_unknown, unknown_fields};

    fn types() -> Types {
        let entries = json!({
            "io.k8s.api.apps.v1.Deployment": {"type": "object", "properties": {
                "kind": {"type": "string"}, "apiVersion": {"type": "string"},
                "metadata": {"allOf": [{"$ref": "#/components/schemas/io.k8s.meta.v1.ObjectMeta"}], "default": {}},
                "spec": {"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}}},
            "io.k8s.meta.v1.ObjectMeta": {"type": "object", "properties": {
                "creationTimestamp": {"$ref": "#/components/schemas/io.k8s.meta.v1.Time"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}}}},
            "io.k8s.meta.v1.Time": {"type": "string", "format": "date-time"},
            "io.k8s.util.intstr.IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
            "io.k8s.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
            "io.k8s.api.apps.v1.DeploymentSpec": {"type": "object", "properties": {
                "replicas": {"type": "integer", "format": "int32"}, "paused": {"type": "boolean"},
                "surge": {"$ref": "#/components/schemas/io.k8s.util.intstr.IntOrString"},
                "limits": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/io.k8s.resource.Quantity"}},
                "data": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
                "raw": {"type": "object"},
                "env": {"type": "array", "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.EnvVar"}}}},
            "io.k8s.api.core.v1.EnvVar": {"type": "object", "properties": {"value": {"type": "string"}}},
        });
        Types::new(
            entries
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, json)| (name.as_str().into(), Schema::from_json(json).unwrap())),
        )
    }

    #[test]
    fn wrong_types_are_told_in_the_words_of_the_original() {
        let types = types();
        let root = Schema { reference: Some("io.k8s.api.apps.v1.Deployment".into()), ..Schema::default() };
        let typed = Typed::new(&types, &root);
        let cases = [
            (
                json!({"spec": {"replicas": "3"}}),
                "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"spec": {"replicas": 1.5}}),
                "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"spec": {"replicas": 3_000_000_000i64}}),
                "json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"spec": []}),
                "json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec",
            ),
            (
                json!({"spec": {"env": [{"value": 1}]}}),
                "json: cannot unmarshal number into Go struct field EnvVar.spec.env.value of type string",
            ),
            (
                json!({"spec": {"env": {}}}),
                "json: cannot unmarshal object into Go struct field DeploymentSpec.spec.env of type []v1.EnvVar",
            ),
            (
                json!({"metadata": {"labels": {"a": 1}}}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            ),
            (
                json!({"metadata": {"labels": "x"}}),
                "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.labels of type map[string]string",
            ),
            (
                json!({"spec": {"surge": true}}),
                "json: cannot unmarshal bool into Go struct field DeploymentSpec.spec.surge of type int32",
            ),
            (
                json!({"spec": {"limits": {"cpu": "many"}}}),
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
            (json!({"spec": {"data": {"a": "b*=="}}}), "illegal base64 data at input byte 1"),
            (
                json!({"metadata": {"creationTimestamp": "today"}}),
                "parsing time \"today\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"today\" as \"2006\"",
            ),
            (json!([]), "json: cannot unmarshal array into Go value of type v1.Deployment"),
        ];
        for (value, message) in cases {
            assert_eq!(type_errors(&value, typed).as_deref(), Some(message));
        }
        let fine = json!({"metadata": {"creationTimestamp": null, "labels": {"a": "b"}}, "spec": {
            "replicas": 3, "surge": "25%", "limits": {"cpu": 1, "memory": "1Gi"}, "data": {"a": "YWI="}, "raw": {"x": [1]}}});
        assert_eq!(type_errors(&fine, typed), None);
    }

    #[test]
    fn unknown_fields_of_built_in_kinds_are_found_and_dropped() {
        let types = types();
        let root = Schema { reference: Some("io.k8s.api.apps.v1.Deployment".into()), ..Schema::default() };
        let typed = Typed::new(&types, &root);
        let mut value = json!({"bad": 1, "metadata": {"labels": {"any": "x"}, "nope": 1},
            "spec": {"raw": {"x": 1}, "env": [{"value": "a"}, {"valve": "b"}]}});
        let expected = ["bad", "metadata.nope", "spec.env[1].valve"];
        assert_eq!(unknown_fields(&value, typed), expected);
        assert_eq!(drop_unknown(&mut value, typed), expected);
        assert_eq!(
            value,
            json!({"metadata": {"labels": {"any": "x"}}, "spec": {"raw": {"x": 1}, "env": [{"value": "a"}, {}]}})
        );
        assert!(unknown_fields(&value, typed).is_empty());
    }
}
