//! Values as expressions see them: what the schema describes, in the schema's types.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use cel::objects::{Key, Map};
use kube_cel::cel;
use serde_json::Value;

use super::escape::escape;
use crate::{Schema, Type};

/// The value an expression sees, or `None` where it sees none.
pub(crate) fn visible(value: &Value, schema: &Schema, resource: bool) -> Option<cel::Value> {
    if value.is_null() {
        return Some(cel::Value::Null);
    }
    if schema.int_or_string {
        return Some(plain(value));
    }
    Some(match (schema.ty, value) {
        (Type::Any, _) => return None,
        (Type::Object, Value::Object(map)) => {
            let mut fields = HashMap::with_capacity(map.len());
            for (name, child) in map {
                if let Some((name, child)) = field(name, child, schema, resource) {
                    fields.insert(Key::String(Arc::new(name)), child);
                }
            }
            cel::Value::Map(Map { map: Arc::new(fields) })
        }
        (Type::Array, Value::Array(items)) => {
            let element = schema.items.as_deref()?;
            let items: Option<Vec<cel::Value>> =
                items.iter().map(|item| visible(item, element, element.embedded_resource)).collect();
            cel::Value::List(Arc::new(items?))
        }
        (Type::Number, Value::Number(number)) => cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        (Type::Integer, Value::Number(number)) => match number.as_i64() {
            Some(whole) => cel::Value::Int(whole),
            None => cel::Value::Int(number.as_f64().unwrap_or_default() as i64),
        },
        (Type::String, Value::String(text)) => formatted(text, &schema.format),
        (_, other) => plain(other),
    })
}

fn field(name: &str, value: &Value, schema: &Schema, resource: bool) -> Option<(String, cel::Value)> {
    // For expressions a field that is null is not there.
    if value.is_null() {
        return None;
    }
    if let Some(values) = schema.additional.as_deref() {
        return Some((name.to_owned(), visible(value, values, values.embedded_resource)?));
    }
    match name {
        "apiVersion" | "kind" if resource => return Some((name.to_owned(), plain(value))),
        "metadata" if resource => {
            let names = ["name", "generateName"].into_iter();
            let fields =
                names.filter_map(|name| Some((Key::String(Arc::new(name.to_owned())), plain(value.get(name)?))));
            return Some((name.to_owned(), cel::Value::Map(Map { map: Arc::new(fields.collect()) })));
        }
        _ => {}
    }
    let property = schema.properties.get(name)?;
    Some((escape(name)?.into_owned(), visible(value, property, property.embedded_resource)?))
}

/// Texts of some formats are other types; one that does not parse was refused before.
fn formatted(text: &str, format: &str) -> cel::Value {
    let parsed = match format {
        "date-time" => cel::functions::timestamp(Arc::new(text.to_uppercase())).ok(),
        "date" => cel::functions::timestamp(Arc::new(format!("{text}T00:00:00Z"))).ok(),
        "duration" => cel::functions::duration(Arc::new(text.to_owned())).ok(),
        "byte" => {
            base64::engine::general_purpose::STANDARD.decode(text).ok().map(|bytes| cel::Value::Bytes(Arc::new(bytes)))
        }
        _ => None,
    };
    parsed.unwrap_or_else(|| cel::Value::String(Arc::new(text.to_owned())))
}

/// A value without a schema.
fn plain(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(flag) => cel::Value::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => cel::Value::Int(whole),
            None => cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(plain).collect())),
        Value::Object(map) => {
            let fields = map.iter().map(|(name, child)| (Key::String(Arc::new(name.clone())), plain(child)));
            cel::Value::Map(Map { map: Arc::new(fields.collect()) })
        }
    }
}
