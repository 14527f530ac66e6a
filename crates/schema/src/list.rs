//! Lists that are sets or maps: no element, or no key, may occur twice.

use std::collections::HashMap;

use atoll_meta::FieldError;
use serde_json::{Map, Value};

use crate::trail::Trail;
use crate::{ListType, Schema};

/// All duplicates in lists of type set and map.
pub(crate) fn duplicates(value: &Value, schema: &Schema, trail: &Trail<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Array(items) => {
            match schema.list_type {
                Some(ListType::Set) => {
                    for at in repeated(items.iter().map(text)) {
                        errors.push(FieldError::duplicate(Trail::Index(trail, at).bracketed(), items[at].clone()));
                    }
                }
                Some(ListType::Map) => keyed(items, schema, trail, errors),
                _ => {}
            }
            if let Some(element) = schema.items.as_deref() {
                for (at, item) in items.iter().enumerate() {
                    duplicates(item, element, &Trail::Index(trail, at), errors);
                }
            }
        }
        Value::Object(map) => {
            for (key, child) in map {
                if let Some(values) = schema.additional.as_deref() {
                    duplicates(child, values, &Trail::Key(trail, key), errors);
                }
                if let Some(property) = schema.properties.get(key.as_str()) {
                    duplicates(child, property, &Trail::Field(trail, key), errors);
                }
            }
        }
        _ => {}
    }
}

fn keyed(items: &[Value], schema: &Schema, trail: &Trail<'_>, errors: &mut Vec<FieldError>) {
    for (at, item) in items.iter().enumerate() {
        if !item.is_object() && !item.is_null() {
            let path = Trail::Index(trail, at).bracketed();
            errors.push(FieldError::invalid(path, item.clone(), "must be an object for an array of list-type map"));
            return;
        }
    }
    for at in repeated(items.iter().map(|item| key_text(item, schema))) {
        errors.push(FieldError::duplicate(Trail::Index(trail, at).bracketed(), key_value(&items[at], schema)));
    }
}

/// The key fields of an element, as one text.
pub(crate) fn key_text(item: &Value, schema: &Schema) -> String {
    match &*schema.list_map_keys {
        [one] => item.get(&**one).map_or_else(String::new, text),
        _ => Value::Object(key_value(item, schema)).to_string(),
    }
}

fn key_value(item: &Value, schema: &Schema) -> Map<String, Value> {
    let field = |key: &str| Some((key.to_owned(), item.get(key)?.clone()));
    schema.list_map_keys.iter().filter_map(|key| field(key)).collect()
}

fn text(value: &Value) -> String {
    value.to_string()
}

/// Where a text occurs for the second time; a third is no news.
fn repeated(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut again = Vec::new();
    for (at, text) in texts.enumerate() {
        let times = seen.entry(text).or_insert(0);
        *times += 1;
        if *times == 2 {
            again.push(at);
        }
    }
    again
}
