//! Reading and writing fields of objects whose shape is not assured.

use serde_json::{Map, Value};

/// A number, 0 when there is none.
pub fn number(object: &Value, field: &str) -> i64 {
    object[field].as_i64().unwrap_or_default()
}

/// The elements of a list, none when it is not one.
pub fn list<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    object[field].as_array().into_iter().flatten()
}

/// A text that is not empty.
pub fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object[field].as_str().filter(|text| !text.is_empty())
}

/// The value at a path, unless it is null.
pub fn get<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    let value = path.iter().try_fold(object, |place, part| place.get(part))?;
    Some(value).filter(|value| !value.is_null())
}

/// Puts a value at a path; does nothing when something else than an object is in the way.
pub fn set(object: &mut Value, path: &[&str], value: Value) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut place = object;
    for part in parents {
        let Some(map) = place.as_object_mut() else { return };
        place = map.entry(*part).or_insert(Value::Null);
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
    }
    if let Some(map) = place.as_object_mut() {
        map.insert((*last).to_owned(), value);
    }
}

/// Drops the value at a path.
pub fn remove(object: &mut Value, path: &[&str]) {
    let Some((last, parents)) = path.split_last() else { return };
    let place = parents.iter().try_fold(object, |place, part| place.get_mut(part));
    if let Some(map) = place.and_then(Value::as_object_mut) {
        map.remove(*last);
    }
}

/// Makes `status` the status of an object; whether that changed it.
pub fn replace_status(object: &mut Value, status: Map<String, Value>) -> bool {
    let Some(map) = object.as_object_mut() else { return false };
    let status = Value::Object(status);
    if map.get("status") == Some(&status) {
        return false;
    }
    map.insert("status".to_owned(), status);
    true
}
