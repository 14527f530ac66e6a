//! JSON to protobuf.
//!
//! Fields that the original holds by value are written even when they are zero, in the order of
//! their numbers, so that the bytes are those the original would write.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::message::{Count, Kind, MessageId, Messages, WireField};
use super::special::encode_special;
use super::wire::{FIXED64, put_bytes, put_nested, put_number, put_tag};
use super::{MAGIC, ProtoError};

/// Encodes an object with `apiVersion` and `kind` into an envelope.
pub fn encode(object: &Value) -> Result<Vec<u8>, ProtoError> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let id = message_of(api_version, kind)?;
    envelope(api_version, kind, |out| message(id, kind, object, out))
}

/// Encodes a list from its parts, so that the whole list need not stand in one tree.
///
/// `api_version` is that of the list, such as `apps/v1`.
pub fn encode_list<'a>(
    api_version: &str,
    list_kind: &str,
    metadata: &Value,
    items: impl Iterator<Item = &'a Value>,
) -> Result<Vec<u8>, ProtoError> {
    let list = Messages::get().message(message_of(api_version, list_kind)?);
    let find = |name: &str| list.fields.iter().find(|field| field.name == name);
    let (Some(head), Some(body)) = (find("metadata"), find("items")) else {
        return Err(ProtoError::UnknownKind { api_version: api_version.to_owned(), kind: list_kind.to_owned() });
    };
    envelope(api_version, list_kind, |out| {
        put_value(head, metadata, out)?;
        for item in items {
            put_value(body, item, out)?;
        }
        Ok(())
    })
}

/// Frames one watch event: four bytes of length, then the event around the enveloped object.
pub fn encode_watch_event(event_type: &str, enveloped: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(enveloped.len() + event_type.len() + 24);
    out.extend_from_slice(&[0; 4]);
    put_bytes(&mut out, 1, event_type.as_bytes());
    let filled: Result<(), ProtoError> = put_nested(&mut out, 2, |out| {
        put_bytes(out, 1, enveloped);
        Ok(())
    });
    debug_assert!(filled.is_ok());
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}

fn message_of(api_version: &str, kind: &str) -> Result<MessageId, ProtoError> {
    if api_version.is_empty() || kind.is_empty() {
        return Err(ProtoError::NoKind);
    }
    let (group, version) = atoll_meta::split_api_version(api_version);
    let messages = Messages::get();
    let found = messages.type_of(group, version, kind).and_then(|name| messages.by_name(name));
    found.ok_or_else(|| ProtoError::UnknownKind { api_version: api_version.to_owned(), kind: kind.to_owned() })
}

fn envelope(
    api_version: &str,
    kind: &str,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), ProtoError>,
) -> Result<Vec<u8>, ProtoError> {
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(&MAGIC);
    put_nested(&mut out, 1, |out| {
        put_bytes(out, 1, api_version.as_bytes());
        put_bytes(out, 2, kind.as_bytes());
        Ok::<(), ProtoError>(())
    })?;
    put_nested(&mut out, 2, fill)?;
    put_bytes(&mut out, 3, b"");
    put_bytes(&mut out, 4, b"");
    Ok(out)
}

/// Writes the fields of a message; `name` is only for the error.
pub(crate) fn message(id: MessageId, name: &str, value: &Value, out: &mut Vec<u8>) -> Result<(), ProtoError> {
    let empty = Map::new();
    let object = match value {
        Value::Object(object) => object,
        Value::Null => &empty,
        _ => return Err(ProtoError::shape(name, "object")),
    };
    for field in &Messages::get().message(id).fields {
        match field.kind {
            // The parts of an inlined message stand in this object.
            Kind::Message(inner) if field.name.is_empty() => {
                put_nested(out, field.number, |out| message(inner, name, value, out))?
            }
            _ => put_field(field, object.get(field.name).unwrap_or(&Value::Null), out)?,
        }
    }
    Ok(())
}

fn put_field(field: &WireField, value: &Value, out: &mut Vec<u8>) -> Result<(), ProtoError> {
    match (field.count, value) {
        (Count::List | Count::Map, Value::Null) => Ok(()),
        (Count::List, Value::Array(list)) => list.iter().try_for_each(|item| put_value(field, item, out)),
        (Count::List, _) => Err(ProtoError::shape(field.name, "list")),
        (Count::Map, Value::Object(map)) => put_map(field, map, out),
        (Count::Map, _) => Err(ProtoError::shape(field.name, "map")),
        (Count::One, Value::Null) if !always_written(field) => Ok(()),
        (Count::One, _) => put_value(field, value, out),
    }
}

/// Whether the original writes the field also when it is zero.
fn always_written(field: &WireField) -> bool {
    let by_value = !field.presence.pointer && field.presence.known;
    by_value && !matches!(field.kind, Kind::Bytes | Kind::BoxedStrings)
}

fn put_map(field: &WireField, map: &Map<String, Value>, out: &mut Vec<u8>) -> Result<(), ProtoError> {
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    let inner = WireField { number: 2, count: Count::One, ..field.clone() };
    for (key, value) in entries {
        put_nested(out, field.number, |out| {
            put_bytes(out, 1, key.as_bytes());
            put_value(&inner, value, out)
        })?;
    }
    Ok(())
}

/// Writes one value; null is the zero value.
fn put_value(field: &WireField, value: &Value, out: &mut Vec<u8>) -> Result<(), ProtoError> {
    let number = field.number;
    let wrong = |expected: &'static str| ProtoError::shape(field.name, expected);
    match field.kind {
        Kind::String => put_bytes(out, number, text(value).ok_or_else(|| wrong("string"))?.as_bytes()),
        Kind::Bytes => {
            let bytes =
                STANDARD.decode(text(value).ok_or_else(|| wrong("base64 text"))?).map_err(|_| wrong("base64 text"))?;
            put_bytes(out, number, &bytes);
        }
        Kind::Int32 => {
            let small = integer(value).and_then(|value| i32::try_from(value).ok()).ok_or_else(|| wrong("int32"))?;
            put_number(out, number, i64::from(small) as u64);
        }
        Kind::Int64 => put_number(out, number, integer(value).ok_or_else(|| wrong("int64"))? as u64),
        Kind::Bool => {
            let flag = if value.is_null() { Some(false) } else { value.as_bool() };
            put_number(out, number, u64::from(flag.ok_or_else(|| wrong("boolean"))?));
        }
        Kind::Double => {
            let double = if value.is_null() { Some(0.0) } else { value.as_f64() };
            put_tag(out, number, FIXED64);
            out.extend_from_slice(&double.ok_or_else(|| wrong("number"))?.to_le_bytes());
        }
        Kind::Message(id) => put_nested(out, number, |out| message(id, field.name, value, out))?,
        Kind::Special(special) => put_nested(out, number, |out| encode_special(special, field.name, value, out))?,
        Kind::BoxedStrings => put_nested(out, number, |out| {
            value.as_array().into_iter().flatten().try_for_each(|item| {
                put_bytes(out, 1, item.as_str().ok_or_else(|| wrong("list of strings"))?.as_bytes());
                Ok(())
            })
        })?,
    }
    Ok(())
}

fn text(value: &Value) -> Option<&str> {
    if value.is_null() { Some("") } else { value.as_str() }
}

/// Whole numbers, also when they are written as `1.0`.
fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Null => Some(0),
        Value::Number(number) => number.as_i64().or_else(|| {
            let float = number.as_f64()?;
            (float.fract() == 0.0 && float.abs() < 9.0e15).then_some(float as i64)
        }),
        _ => None,
    }
}
