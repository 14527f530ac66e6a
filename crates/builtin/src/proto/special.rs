//! Types whose JSON form is not that of their message.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::decode::Decoder;
use super::encode;
use super::message::{Messages, Special};
use super::wire::{Reader, put_bytes, put_nested, put_number};
use super::{MAGIC, MAX_DEPTH, ProtoError};

/// The type that the schema-or-something types hold.
const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Decodes one special value.
pub(crate) fn decode_special(
    decoder: &mut Decoder,
    special: Special,
    bytes: &[u8],
    depth: usize,
) -> Result<Value, ProtoError> {
    if depth > MAX_DEPTH {
        return Err(ProtoError::Depth);
    }
    match special {
        Special::Time | Special::MicroTime => decode_time(special, bytes),
        Special::Quantity => match first_bytes(bytes)? {
            [] => Ok("0".into()),
            text => std::str::from_utf8(text).map(Value::from).map_err(|_| ProtoError::Utf8),
        },
        Special::IntOrString => decode_int_or_string(bytes),
        Special::RawExtension => match first_bytes(bytes)? {
            [] => Ok(Value::Null),
            raw if raw.starts_with(&MAGIC) => Ok(decoder.envelope(raw, depth + 1)?.object),
            raw => decoder.json(raw),
        },
        Special::Json => match first_bytes(bytes)? {
            [] => Ok(Value::Null),
            raw => decoder.json(raw),
        },
        Special::SchemaOrBool => decode_schema_or_bool(decoder, bytes, depth),
        Special::SchemaOrArray => decode_schema_or_array(decoder, bytes, depth),
        Special::SchemaOrStrings => match first_schema(decoder, bytes, 1, depth)? {
            Some(schema) => Ok(schema),
            None => Ok(Value::Array(decoder.strings(bytes, 2)?)),
        },
    }
}

/// The last value of field 1 as bytes.
fn first_bytes(bytes: &[u8]) -> Result<&[u8], ProtoError> {
    let mut found: &[u8] = &[];
    let mut reader = Reader::new(bytes);
    while let Some((number, raw)) = reader.next()? {
        if number == 1 {
            found = raw.bytes()?;
        }
    }
    Ok(found)
}

fn decode_time(special: Special, bytes: &[u8]) -> Result<Value, ProtoError> {
    // The zero time travels as an empty message.
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0i64, 0i32);
    let mut reader = Reader::new(bytes);
    while let Some((number, raw)) = reader.next()? {
        match number {
            1 => seconds = raw.varint()? as i64,
            2 => nanos = raw.varint()? as i32,
            _ => {}
        }
    }
    // Plain times have second precision in JSON, so the rest is dropped as the original does.
    let nanos = if special == Special::Time { 0 } else { nanos };
    let time = Timestamp::new(seconds, nanos).map_err(|_| ProtoError::shape("time", "time"))?;
    Ok(if special == Special::MicroTime {
        atoll_meta::time::format_micro(time)
    } else {
        atoll_meta::time::format(time)
    }
    .into())
}

fn decode_int_or_string(bytes: &[u8]) -> Result<Value, ProtoError> {
    let (mut is_text, mut number, mut text) = (false, 0i32, "");
    let mut reader = Reader::new(bytes);
    while let Some((field, raw)) = reader.next()? {
        match field {
            1 => is_text = raw.varint()? == 1,
            2 => number = raw.varint()? as i32,
            3 => text = raw.text()?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

fn schema_object(decoder: &mut Decoder, bytes: &[u8], depth: usize) -> Result<Value, ProtoError> {
    let id = Messages::get().by_name(SCHEMA).expect("the table has the schema type");
    let mut object = Map::new();
    decoder.message(id, bytes, depth + 1, &mut object)?;
    Ok(Value::Object(object))
}

fn first_schema(decoder: &mut Decoder, bytes: &[u8], wanted: u32, depth: usize) -> Result<Option<Value>, ProtoError> {
    let mut found = None;
    let mut reader = Reader::new(bytes);
    while let Some((number, raw)) = reader.next()? {
        if number == wanted {
            found = Some(schema_object(decoder, raw.bytes()?, depth)?);
        }
    }
    Ok(found)
}

fn decode_schema_or_bool(decoder: &mut Decoder, bytes: &[u8], depth: usize) -> Result<Value, ProtoError> {
    if let Some(schema) = first_schema(decoder, bytes, 2, depth)? {
        return Ok(schema);
    }
    let mut allows = false;
    let mut reader = Reader::new(bytes);
    while let Some((number, raw)) = reader.next()? {
        if number == 1 {
            allows = raw.varint()? != 0;
        }
    }
    Ok(allows.into())
}

fn decode_schema_or_array(decoder: &mut Decoder, bytes: &[u8], depth: usize) -> Result<Value, ProtoError> {
    if let Some(schema) = first_schema(decoder, bytes, 1, depth)? {
        return Ok(schema);
    }
    let mut list = Vec::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, raw)) = reader.next()? {
        if number == 2 {
            list.push(schema_object(decoder, raw.bytes()?, depth)?);
        }
    }
    Ok(Value::Array(list))
}

/// Writes the content of one special value; `field` is only for the error.
pub(crate) fn encode_special(
    special: Special,
    field: &str,
    value: &Value,
    out: &mut Vec<u8>,
) -> Result<(), ProtoError> {
    match special {
        Special::Time | Special::MicroTime => encode_time(special, field, value, out),
        Special::Quantity => {
            match value {
                Value::String(text) => put_bytes(out, 1, text.as_bytes()),
                Value::Number(number) => put_bytes(out, 1, number.to_string().as_bytes()),
                Value::Null => put_bytes(out, 1, b"0"),
                _ => return Err(ProtoError::shape(field, "quantity")),
            }
            Ok(())
        }
        Special::IntOrString => encode_int_or_string(field, value, out),
        Special::RawExtension | Special::Json => {
            if !value.is_null() {
                put_bytes(out, 1, value.to_string().as_bytes());
            }
            Ok(())
        }
        Special::SchemaOrBool => match value {
            Value::Bool(allows) => {
                put_number(out, 1, u64::from(*allows));
                Ok(())
            }
            _ => {
                // With a schema, the flag is always set.
                put_number(out, 1, 1);
                put_schema(2, field, value, out)
            }
        },
        Special::SchemaOrArray => match value {
            Value::Array(list) => list.iter().try_for_each(|schema| put_schema(2, field, schema, out)),
            _ => put_schema(1, field, value, out),
        },
        Special::SchemaOrStrings => match value {
            Value::Array(list) => list.iter().try_for_each(|item| {
                put_bytes(out, 2, item.as_str().ok_or_else(|| ProtoError::shape(field, "list of strings"))?.as_bytes());
                Ok(())
            }),
            _ => put_schema(1, field, value, out),
        },
    }
}

fn put_schema(number: u32, field: &str, value: &Value, out: &mut Vec<u8>) -> Result<(), ProtoError> {
    let id = Messages::get().by_name(SCHEMA).expect("the table has the schema type");
    put_nested(out, number, |out| encode::message(id, field, value, out))
}

fn encode_time(special: Special, field: &str, value: &Value, out: &mut Vec<u8>) -> Result<(), ProtoError> {
    let text = match value {
        Value::Null => return Ok(()),
        Value::String(text) => text,
        _ => return Err(ProtoError::shape(field, "time")),
    };
    let time = atoll_meta::time::parse(text).ok_or_else(|| ProtoError::shape(field, "time"))?;
    let seconds = time.as_nanosecond().div_euclid(1_000_000_000) as i64;
    let nanos = time.as_nanosecond().rem_euclid(1_000_000_000) as u64;
    put_number(out, 1, seconds as u64);
    put_number(out, 2, if special == Special::Time { 0 } else { nanos / 1000 * 1000 });
    Ok(())
}

fn encode_int_or_string(field: &str, value: &Value, out: &mut Vec<u8>) -> Result<(), ProtoError> {
    let (kind, number, text) = match value {
        Value::Null => (0, 0, ""),
        Value::Number(number) => match number.as_i64().and_then(|number| i32::try_from(number).ok()) {
            Some(number) => (0, number, ""),
            None => return Err(ProtoError::shape(field, "int32 or string")),
        },
        Value::String(text) => (1, 0, text.as_str()),
        _ => return Err(ProtoError::shape(field, "int32 or string")),
    };
    put_number(out, 1, kind);
    put_number(out, 2, i64::from(number) as u64);
    put_bytes(out, 3, text.as_bytes());
    Ok(())
}
