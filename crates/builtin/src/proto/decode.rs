//! Protobuf to JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use super::message::{Count, Kind, MessageId, Messages, WireField};
use super::special::decode_special;
use super::wire::{Raw, Reader};
use super::{Decoded, MAGIC, MAX_DEPTH, MAX_VALUES, ProtoError};
use crate::form;

/// Decodes an enveloped object.
///
/// Values that the original leaves out of JSON when they are zero are left out here too.
pub fn decode(bytes: &[u8]) -> Result<Decoded, ProtoError> {
    Decoder { values: MAX_VALUES }.envelope(bytes, 0)
}

/// The parts of an envelope.
#[derive(Default)]
struct Unknown<'a> {
    api_version: &'a str,
    kind: &'a str,
    raw: &'a [u8],
    content_type: &'a str,
}

impl<'a> Unknown<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, ProtoError> {
        let mut out = Self::default();
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.next()? {
            match number {
                1 => {
                    let mut meta = Reader::new(value.bytes()?);
                    while let Some((number, value)) = meta.next()? {
                        match number {
                            1 => out.api_version = value.text()?,
                            2 => out.kind = value.text()?,
                            _ => {}
                        }
                    }
                }
                2 => out.raw = value.bytes()?,
                3 => match value.text()? {
                    "" => {}
                    other => return Err(ProtoError::Encoding(other.to_owned())),
                },
                4 => out.content_type = value.text()?,
                _ => {}
            }
        }
        Ok(out)
    }
}

/// Decoding state: how many more values may be made.
pub(crate) struct Decoder {
    values: usize,
}

impl Decoder {
    /// Decodes magic, envelope and message.
    pub(crate) fn envelope(&mut self, bytes: &[u8], depth: usize) -> Result<Decoded, ProtoError> {
        let unknown = Unknown::read(bytes.strip_prefix(&MAGIC).ok_or(ProtoError::Magic)?)?;
        if unknown.api_version.is_empty() || unknown.kind.is_empty() {
            return Err(ProtoError::NoKind);
        }
        let mut object = if unknown.content_type.starts_with("application/json") {
            match self.json(unknown.raw)? {
                Value::Object(object) => object,
                _ => return Err(ProtoError::shape(unknown.kind, "object")),
            }
        } else {
            self.object(&unknown, depth)?
        };
        object.insert("apiVersion".to_owned(), unknown.api_version.into());
        object.insert("kind".to_owned(), unknown.kind.into());
        Ok(Decoded {
            api_version: unknown.api_version.to_owned(),
            kind: unknown.kind.to_owned(),
            object: Value::Object(object),
        })
    }

    fn object(&mut self, unknown: &Unknown, depth: usize) -> Result<Map<String, Value>, ProtoError> {
        let (group, version) = atoll_meta::split_api_version(unknown.api_version);
        let messages = Messages::get();
        let type_name = messages.type_of(group, version, unknown.kind);
        let found = type_name.and_then(|name| Some((name, messages.by_name(name)?)));
        let Some((type_name, id)) = found else {
            return Err(ProtoError::UnknownKind {
                api_version: unknown.api_version.to_owned(),
                kind: unknown.kind.to_owned(),
            });
        };
        let mut object = Map::new();
        self.message(id, unknown.raw, depth + 1, &mut object)?;
        form::lean(type_name, &mut object);
        Ok(object)
    }

    /// Decodes the fields of a message into an object.
    pub(crate) fn message(
        &mut self,
        id: MessageId,
        bytes: &[u8],
        depth: usize,
        into: &mut Map<String, Value>,
    ) -> Result<(), ProtoError> {
        if depth > MAX_DEPTH {
            return Err(ProtoError::Depth);
        }
        let message = Messages::get().message(id);
        let mut reader = Reader::new(bytes);
        while let Some((number, raw)) = reader.next()? {
            // Fields of newer releases are not known here and are dropped, as the original does.
            if let Some(field) = message.field(number) {
                self.field(field, raw, depth, into)?;
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &WireField,
        raw: Raw,
        depth: usize,
        into: &mut Map<String, Value>,
    ) -> Result<(), ProtoError> {
        match (field.count, field.kind) {
            (Count::One, Kind::Message(id)) if field.name.is_empty() => self.message(id, raw.bytes()?, depth + 1, into),
            (Count::One, _) => {
                let value = self.value(field.kind, raw, depth)?;
                into.insert(field.name.to_owned(), value);
                Ok(())
            }
            (Count::List, _) => {
                let slot = into.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
                let Value::Array(list) = slot else { return Err(ProtoError::WireType) };
                self.elements(field.kind, raw, depth, list)
            }
            (Count::Map, _) => {
                let (key, value) = self.entry(field.kind, raw.bytes()?, depth)?;
                let slot = into.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
                let Value::Object(map) = slot else { return Err(ProtoError::WireType) };
                map.insert(key, value);
                Ok(())
            }
        }
    }

    /// One element of a list, or many numbers packed together.
    fn elements(&mut self, kind: Kind, raw: Raw, depth: usize, list: &mut Vec<Value>) -> Result<(), ProtoError> {
        let packed = match (kind, raw) {
            (Kind::Int32 | Kind::Int64 | Kind::Bool | Kind::Double, Raw::Bytes(bytes)) => bytes,
            _ => {
                list.push(self.value(kind, raw, depth)?);
                return Ok(());
            }
        };
        let mut reader = Reader::new(packed);
        while !reader.is_empty() {
            let raw = match kind {
                Kind::Double => Raw::Fixed64(u64::from_le_bytes(reader.fixed()?)),
                _ => Raw::Varint(reader.varint()?),
            };
            list.push(self.value(kind, raw, depth)?);
        }
        Ok(())
    }

    fn entry(&mut self, kind: Kind, bytes: &[u8], depth: usize) -> Result<(String, Value), ProtoError> {
        let (mut key, mut value) = (String::new(), None);
        let mut reader = Reader::new(bytes);
        while let Some((number, raw)) = reader.next()? {
            match number {
                1 => raw.text()?.clone_into(&mut key),
                2 => value = Some(self.value(kind, raw, depth)?),
                _ => {}
            }
        }
        match value {
            Some(value) => Ok((key, value)),
            None => Ok((key, self.value(kind, zero(kind), depth)?)),
        }
    }

    fn value(&mut self, kind: Kind, raw: Raw, depth: usize) -> Result<Value, ProtoError> {
        self.values = self.values.checked_sub(1).ok_or(ProtoError::Size)?;
        Ok(match kind {
            Kind::String => raw.text()?.into(),
            Kind::Bytes => STANDARD.encode(raw.bytes()?).into(),
            // A negative int32 is written as a 64-bit number; the low half is the value.
            Kind::Int32 => (raw.varint()? as i32).into(),
            Kind::Int64 => (raw.varint()? as i64).into(),
            Kind::Bool => (raw.varint()? != 0).into(),
            Kind::Double => match raw {
                Raw::Fixed64(bits) => number(f64::from_bits(bits)),
                _ => return Err(ProtoError::WireType),
            },
            Kind::Message(id) => {
                let mut object = Map::new();
                self.message(id, raw.bytes()?, depth + 1, &mut object)?;
                Value::Object(object)
            }
            Kind::Special(special) => decode_special(self, special, raw.bytes()?, depth + 1)?,
            Kind::BoxedStrings => Value::Array(self.strings(raw.bytes()?, 1)?),
        })
    }

    /// All strings in the field of that number.
    pub(crate) fn strings(&mut self, bytes: &[u8], wanted: u32) -> Result<Vec<Value>, ProtoError> {
        let mut list = Vec::new();
        let mut reader = Reader::new(bytes);
        while let Some((number, raw)) = reader.next()? {
            if number == wanted {
                list.push(self.value(Kind::String, raw, 0)?);
            }
        }
        Ok(list)
    }

    /// JSON text that stands inside a message.
    pub(crate) fn json(&mut self, bytes: &[u8]) -> Result<Value, ProtoError> {
        // Every value but the first has a comma, colon or bracket before it.
        let marks = bytes.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
        self.values = self.values.checked_sub(marks).ok_or(ProtoError::Size)?;
        serde_json::from_slice(bytes).map_err(|error| ProtoError::Json(error.to_string()))
    }
}

/// A JSON number, whole where it can be; what JSON cannot hold becomes null.
fn number(float: f64) -> Value {
    if float.fract() == 0.0 && float.abs() < 1e15 {
        return (float as i64).into();
    }
    Number::from_f64(float).map_or(Value::Null, Value::Number)
}

/// What a map entry without a value holds.
fn zero(kind: Kind) -> Raw<'static> {
    match kind {
        Kind::Int32 | Kind::Int64 | Kind::Bool => Raw::Varint(0),
        Kind::Double => Raw::Fixed64(0),
        _ => Raw::Bytes(&[]),
    }
}
