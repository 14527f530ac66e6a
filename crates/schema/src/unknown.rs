//! Strict decoding of built-in kinds: fields their types do not have.

use serde_json::Value;

use crate::trail::Trail;
use crate::{Type, Typed};

/// The paths of all fields the type does not have.
pub fn unknown_fields(value: &Value, typed: Typed<'_>) -> Vec<String> {
    let mut found = Vec::new();
    find(value, typed, &Trail::Start(""), &mut found);
    found
}

/// Removes all fields the type does not have and returns their paths.
pub fn drop_unknown(value: &mut Value, typed: Typed<'_>) -> Vec<String> {
    let mut found = Vec::new();
    remove(value, typed, &Trail::Start(""), &mut found);
    found
}

/// Whether any field is welcome: free-form types, and types about which nothing is said.
fn is_open(typed: Typed<'_>) -> bool {
    let described = !typed.schema.properties.is_empty() || typed.schema.additional.is_some();
    typed.keeps_unknown() || (!described && matches!(typed.schema.ty, Type::Any | Type::Object))
}

fn find(value: &Value, typed: Typed<'_>, trail: &Trail<'_>, found: &mut Vec<String>) {
    match value {
        Value::Object(map) if !is_open(typed) => {
            for (key, child) in map {
                let trail = Trail::Field(trail, key);
                match typed.property(key) {
                    Some(property) => find(child, property, &trail, found),
                    None => found.push(trail.dotted()),
                }
            }
        }
        Value::Array(items) => {
            if let Some(element) = typed.items() {
                for (index, item) in items.iter().enumerate() {
                    find(item, element, &Trail::Index(trail, index), found);
                }
            }
        }
        _ => {}
    }
}

fn remove(value: &mut Value, typed: Typed<'_>, trail: &Trail<'_>, found: &mut Vec<String>) {
    match value {
        Value::Object(map) if !is_open(typed) => map.retain(|key, child| {
            let trail = Trail::Field(trail, key);
            match typed.property(key) {
                Some(property) => {
                    remove(child, property, &trail, found);
                    true
                }
                None => {
                    found.push(trail.dotted());
                    false
                }
            }
        }),
        Value::Array(items) => {
            if let Some(element) = typed.items() {
                for (index, item) in items.iter_mut().enumerate() {
                    remove(item, element, &Trail::Index(trail, index), found);
                }
            }
        }
        _ => {}
    }
}
