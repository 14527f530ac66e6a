//! The JSON form of built-in objects: what the original leaves out and what it always writes.
//!
//! The original decodes bodies into structs and encodes those again, so `hostNetwork: false`
//! disappears and `resources: {}` appears. [`canonical`] does the same to a tree.

use atoll_meta::quantity::Quantity;
use serde_json::{Map, Value, json};

use crate::proto::{Special, special_type};
use crate::table::{self, Field, Presence, Shape};

/// The type that schema-or-something values hold.
const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Which form is wanted.
#[derive(Copy, Clone, Eq, PartialEq)]
enum Form {
    /// Without anything a client could have left out.
    Lean,
    /// Exactly as the original writes it.
    Full,
}

/// Brings an object of a named type into the form in which the original would write it.
///
/// Fields the type does not know are left alone, and so are values of a wrong JSON type.
pub fn canonical(type_name: &str, object: &mut Value) {
    if let Value::Object(object) = object {
        walk(type_name, object, Form::Full);
    }
}

/// Removes what a client may leave out: zero values and empty structs.
pub(crate) fn lean(type_name: &str, object: &mut Map<String, Value>) {
    walk(type_name, object, Form::Lean);
}

fn walk(type_name: &str, object: &mut Map<String, Value>, form: Form) {
    let Some(extra) = table::types().extras.get(type_name) else { return };
    for field in extra.fields.iter().filter(|field| !field.name.is_empty() && field.presence.known) {
        if let Some(value) = object.get_mut(field.name) {
            walk_shape(&field.shape, value, form);
        }
        match verdict(field, object.get(field.name), form) {
            Verdict::Keep => {}
            Verdict::Drop => {
                object.remove(field.name);
            }
            Verdict::Set(mut value) => {
                walk_shape(&field.shape, &mut value, form);
                object.insert(field.name.to_owned(), value);
            }
        }
    }
}

fn walk_shape(shape: &Shape, value: &mut Value, form: Form) {
    match (shape, value) {
        (Shape::List(element), Value::Array(list)) => list.iter_mut().for_each(|item| walk_shape(element, item, form)),
        (Shape::Map(element), Value::Object(map)) => map.values_mut().for_each(|item| walk_shape(element, item, form)),
        (Shape::Named(name), value) => match (special_type(name), value) {
            (Some(special), value) => walk_special(special, value, form),
            (None, Value::Object(object)) => walk(name, object, form),
            _ => {}
        },
        _ => {}
    }
}

fn walk_special(special: Special, value: &mut Value, form: Form) {
    match (special, &mut *value) {
        (Special::SchemaOrBool | Special::SchemaOrArray | Special::SchemaOrStrings, Value::Object(schema)) => {
            walk(SCHEMA, schema, form)
        }
        (Special::SchemaOrArray, Value::Array(list)) => {
            list.iter_mut().filter_map(Value::as_object_mut).for_each(|schema| walk(SCHEMA, schema, form));
        }
        (Special::Quantity, Value::String(_) | Value::Number(_)) if form == Form::Full => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if let Ok(quantity) = Quantity::parse(text.trim()) {
                *value = quantity.to_string().into();
            }
        }
        (Special::Time | Special::MicroTime, Value::String(text)) if form == Form::Full => {
            if let Some(time) = atoll_meta::time::parse(text) {
                let micro = special == Special::MicroTime;
                *text = if micro { atoll_meta::time::format_micro(time) } else { atoll_meta::time::format(time) };
            }
        }
        _ => {}
    }
}

/// What to do with a field.
enum Verdict {
    Keep,
    Drop,
    Set(Value),
}

fn verdict(field: &Field, value: Option<&Value>, form: Form) -> Verdict {
    let presence = field.presence;
    let missing = value.is_none_or(Value::is_null);
    let must = form == Form::Full || field.required;
    if presence.pointer {
        return match (missing, presence.omit_empty || form == Form::Lean) {
            (false, _) => Verdict::Keep,
            (true, true) => Verdict::Drop,
            (true, false) => Verdict::Set(Value::Null),
        };
    }
    match &field.shape {
        Shape::List(_) | Shape::Map(_) | Shape::Bytes => collection(presence, value, form),
        Shape::Named(name) if presence.by_value => by_value(special_type(name), presence, value, must),
        Shape::String => scalar(presence, missing || value.is_some_and(|v| v == ""), json!("")),
        Shape::Bool => scalar(presence, missing || value == Some(&Value::Bool(false)), json!(false)),
        Shape::Int32 | Shape::Int64 | Shape::Double => {
            scalar(presence, missing || value.is_some_and(|v| v == 0), json!(0))
        }
        _ => Verdict::Keep,
    }
}

fn scalar(presence: Presence, is_zero: bool, zero: Value) -> Verdict {
    match (is_zero, presence.omit_empty) {
        (false, _) => Verdict::Keep,
        (true, true) => Verdict::Drop,
        (true, false) => Verdict::Set(zero),
    }
}

fn collection(presence: Presence, value: Option<&Value>, form: Form) -> Verdict {
    let empty = match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    match value {
        _ if empty && presence.omit_empty => Verdict::Drop,
        None if form == Form::Full => Verdict::Set(Value::Null),
        Some(Value::Null) if form == Form::Lean => Verdict::Drop,
        _ => Verdict::Keep,
    }
}

/// A struct held by value: always written in the full form, only when needed in the lean one.
fn by_value(special: Option<Special>, presence: Presence, value: Option<&Value>, must: bool) -> Verdict {
    let missing = value.is_none_or(Value::is_null);
    let (zero, is_zero) = match special {
        Some(Special::Quantity) => (json!("0"), missing),
        Some(Special::IntOrString) => (json!(0), missing || value.is_some_and(|v| v == 0)),
        Some(_) => (Value::Null, missing),
        None => (json!({}), missing || value.and_then(Value::as_object).is_some_and(Map::is_empty)),
    };
    match is_zero {
        false => Verdict::Keep,
        true if presence.omit_zero || !must => Verdict::Drop,
        true => Verdict::Set(zero),
    }
}
