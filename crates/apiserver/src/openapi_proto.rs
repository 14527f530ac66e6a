//! Definitions of `/openapi/v2` in protobuf: some clients ask for nothing else and check what they
//! are about to send with it.
//!
//! The messages are those of gnostic's `openapi.v2`, of which only what describes types is written.

use serde_json::{Map, Value};

/// What clients are told they got; they ask with an `@` in place of the dot before the version.
pub const MEDIA: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// A document with these definitions and no paths.
pub fn document(definitions: &[&[u8]]) -> Vec<u8> {
    let mut info = Vec::new();
    text(&mut info, 1, "Kubernetes");
    text(&mut info, 2, "unversioned");
    let size = definitions.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(size + 64);
    text(&mut out, 1, "2.0");
    bytes(&mut out, 2, &info);
    bytes(&mut out, 8, &[]);
    head(&mut out, 9, size);
    definitions.iter().for_each(|part| out.extend_from_slice(part));
    out
}

/// Named schemas, as they stand in a document and in the properties of a schema.
pub fn schemas(map: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in map {
        let mut named = Vec::new();
        text(&mut named, 1, name);
        bytes(&mut named, 2, &schema(value));
        bytes(&mut out, 1, &named);
    }
    out
}

fn schema(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        field(&mut out, key, value);
    }
    out
}

fn field(out: &mut Vec<u8>, key: &str, value: &Value) {
    match (key, value) {
        ("$ref", Value::String(word)) => text(out, 1, word),
        ("format", Value::String(word)) => text(out, 2, word),
        ("title", Value::String(word)) => text(out, 3, word),
        ("description", Value::String(word)) => text(out, 4, word),
        ("pattern", Value::String(word)) => text(out, 13, word),
        ("multipleOf", Value::Number(number)) => double(out, 6, number.as_f64()),
        ("maximum", Value::Number(number)) => double(out, 7, number.as_f64()),
        ("exclusiveMaximum", Value::Bool(flag)) => whole(out, 8, u64::from(*flag)),
        ("minimum", Value::Number(number)) => double(out, 9, number.as_f64()),
        ("exclusiveMinimum", Value::Bool(flag)) => whole(out, 10, u64::from(*flag)),
        ("uniqueItems", Value::Bool(flag)) => whole(out, 16, u64::from(*flag)),
        ("maxLength", Value::Number(number)) => whole(out, 11, number.as_u64().unwrap_or_default()),
        ("minLength", Value::Number(number)) => whole(out, 12, number.as_u64().unwrap_or_default()),
        ("maxItems", Value::Number(number)) => whole(out, 14, number.as_u64().unwrap_or_default()),
        ("minItems", Value::Number(number)) => whole(out, 15, number.as_u64().unwrap_or_default()),
        ("maxProperties", Value::Number(number)) => whole(out, 17, number.as_u64().unwrap_or_default()),
        ("minProperties", Value::Number(number)) => whole(out, 18, number.as_u64().unwrap_or_default()),
        ("required", Value::Array(list)) => {
            list.iter().filter_map(Value::as_str).for_each(|word| text(out, 19, word));
        }
        ("enum", Value::Array(list)) => list.iter().for_each(|one| bytes(out, 20, &any(one))),
        ("additionalProperties", Value::Bool(flag)) => nested(out, 21, |item| whole(item, 2, u64::from(*flag))),
        ("additionalProperties", child) => nested(out, 21, |item| bytes(item, 1, &schema(child))),
        ("type", Value::String(word)) => nested(out, 22, |item| text(item, 1, word)),
        ("items", child) => nested(out, 23, |item| bytes(item, 1, &schema(child))),
        ("properties", Value::Object(map)) => bytes(out, 25, &schemas(map)),
        (key, value) if key.starts_with("x-") => nested(out, 31, |named| {
            text(named, 1, key);
            bytes(named, 2, &any(value));
        }),
        // What old clients cannot use is left out.
        _ => {}
    }
}

/// Any value: gnostic keeps it as YAML, of which JSON is a part.
fn any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    text(&mut out, 2, &value.to_string());
    out
}

fn nested(out: &mut Vec<u8>, number: u64, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    fill(&mut inner);
    bytes(out, number, &inner);
}

fn text(out: &mut Vec<u8>, number: u64, text: &str) {
    bytes(out, number, text.as_bytes());
}

fn bytes(out: &mut Vec<u8>, number: u64, content: &[u8]) {
    head(out, number, content.len());
    out.extend_from_slice(content);
}

/// What stands before a field of so many bytes.
fn head(out: &mut Vec<u8>, number: u64, size: usize) {
    varint(out, number << 3 | 2);
    varint(out, size as u64);
}

fn whole(out: &mut Vec<u8>, number: u64, value: u64) {
    varint(out, number << 3);
    varint(out, value);
}

fn double(out: &mut Vec<u8>, number: u64, value: Option<f64>) {
    varint(out, number << 3 | 1);
    out.extend_from_slice(&value.unwrap_or_default().to_le_bytes());
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_written_field_by_field() {
        let value = json!({"a": {"type": "string", "x-kubernetes-list-type": "set", "minLength": 300}});
        let Value::Object(map) = value else { unreachable!("a map was written") };
        let schema = [
            &b"\xb2\x01\x08\n\x06string"[..],
            b"\xfa\x01\x21\n\x16x-kubernetes-list-type\x12\x07\x12\x05\"set\"",
            b"`\xac\x02",
        ];
        let mut parts: Vec<Vec<u8>> = schema.iter().map(|part| part.to_vec()).collect();
        let got = super::schema(&map["a"]);
        // The order of fields means nothing.
        parts.sort();
        let total: usize = parts.iter().map(Vec::len).sum();
        assert_eq!(got.len(), total, "{got:?}");
        for part in parts {
            assert!(got.windows(part.len()).any(|window| window == part), "{part:?} in {got:?}");
        }
        let whole = document(&[&schemas(&map)]);
        assert!(whole.starts_with(b"\n\x032.0\x12"), "{whole:?}");
    }
}
