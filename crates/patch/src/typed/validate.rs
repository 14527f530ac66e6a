//! Whether an applied configuration fits its schema well enough to be merged.

use std::collections::BTreeSet;

use atoll_schema::Type;
use serde_json::Value;

use super::kind::{Kind, List, Shape};
use crate::fields::PathElement;
use crate::show;

/// Whether the types fit; elements of a list may stand twice.
pub(crate) fn fits(value: &Value, kind: Kind) -> bool {
    let mut faults = Vec::new();
    visit(value, kind, &mut String::new(), &mut faults);
    faults.iter().all(|fault| fault.contains(TWICE))
}

const TWICE: &str = "duplicate entries for key ";

/// Fails with the path and the fault, in the original's words.
pub(crate) fn validate(value: &Value, kind: Kind) -> Result<(), String> {
    let mut faults = Vec::new();
    visit(value, kind, &mut String::new(), &mut faults);
    match faults.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

fn visit(value: &Value, kind: Kind, path: &mut String, faults: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    match (kind.shape(Some(value)), value) {
        (Shape::Scalar, _) => {
            if let Some(fault) = scalar_fault(value, kind) {
                complain(path, &fault, faults);
            }
        }
        (Shape::Map(fields), Value::Object(map)) => {
            for (name, value) in map {
                below(path, &PathElement::field(name), |path| match fields.field(name) {
                    Some(kind) => visit(value, kind, path, faults),
                    None => complain(path, "field not declared in schema", faults),
                });
            }
        }
        (Shape::Map(_), other) => complain(path, &format!("expected map, got &{{{}}}", show::go(other)), faults),
        (Shape::List(list), Value::Array(items)) => visit_list(items, &list, path, faults),
        (Shape::List(_), other) => complain(path, &format!("expected list, got &{{{}}}", show::go(other)), faults),
    }
}

fn visit_list(items: &[Value], list: &List, path: &mut String, faults: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let element = if list.is_atomic() {
            PathElement::Index(i64::try_from(at).unwrap_or(i64::MAX))
        } else {
            match list.element(item) {
                Ok(element) => element,
                Err(error) => return complain(path, &format!("element {at}: {error}"), faults),
            }
        };
        below(path, &element, |path| visit(item, list.items, path, faults));
        let shown = element.to_string();
        if !seen.insert(element) {
            complain(path, &format!("{TWICE}{shown}"), faults);
        }
    }
}

fn below(path: &mut String, element: &PathElement, visit: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push_str(&element.to_string());
    visit(path);
    path.truncate(length);
}

fn complain(path: &str, fault: &str, faults: &mut Vec<String>) {
    faults.push(if path.is_empty() { fault.to_owned() } else { format!("{path}: {fault}") });
}

fn scalar_fault(value: &Value, kind: Kind) -> Option<String> {
    let (ty, format) = kind.scalar();
    match ty {
        Type::Integer | Type::Number if !value.is_number() => {
            Some(format!("expected numeric (int or float), got {}", show::go_type(value)))
        }
        Type::String if matches!(format, "" | "byte") && !value.is_string() => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(value)))
        }
        Type::Boolean if !value.is_boolean() => Some(format!("expected boolean, got &{{{}}}", show::go(value))),
        Type::String | Type::Any if value.is_object() || value.is_array() => {
            Some(format!("expected any scalar, got &{{{}}}", show::go(value)))
        }
        _ => None,
    }
}

/// As Go's `%#v` shows decoded JSON.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let fields: Vec<String> =
                map.iter().map(|(name, value)| format!("{name:?}:{}", go_syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        scalar => show::go(scalar),
    }
}
