//! Reading and filling JSON trees by dotted path. A missing or mistyped field reads
//! as empty and is left alone on writing, so rules never have to care.

use serde_json::{Map, Value};

static NULL: Value = Value::Null;

/// The value at a dotted path, `null` where there is none.
pub(crate) fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    let mut current = value;
    for key in path.split('.') {
        match current.get(key) {
            Some(next) => current = next,
            None => return &NULL,
        }
    }
    current
}

/// The text at a path, empty where there is none.
pub(crate) fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    at(value, path).as_str().unwrap_or_default()
}

/// The integer at a path.
pub(crate) fn int(value: &Value, path: &str) -> Option<i64> {
    at(value, path).as_i64()
}

/// The boolean at a path; absent means false.
pub(crate) fn flag(value: &Value, path: &str) -> bool {
    at(value, path).as_bool().unwrap_or(false)
}

/// The elements of the list at a path.
pub(crate) fn items<'v>(value: &'v Value, path: &str) -> &'v [Value] {
    at(value, path).as_array().map_or(&[], Vec::as_slice)
}

/// The entries of the map at a path, in key order.
pub(crate) fn entries<'v>(value: &'v Value, path: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    at(value, path).as_object().into_iter().flatten()
}

/// Is there anything but `null` at the path?
pub(crate) fn has(value: &Value, path: &str) -> bool {
    !at(value, path).is_null()
}

/// The number of elements or entries at a path.
pub(crate) fn count(value: &Value, path: &str) -> usize {
    match at(value, path) {
        Value::Array(list) => list.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    }
}

/// The map at a path for writing, made where missing; `None` where something else stands there.
pub(crate) fn map<'v>(value: &'v mut Value, path: &str) -> Option<&'v mut Map<String, Value>> {
    let mut current = value;
    if !path.is_empty() {
        for key in path.split('.') {
            current = current.as_object_mut()?.entry(key).or_insert(Value::Null);
            if current.is_null() {
                *current = Value::Object(Map::new());
            }
        }
    }
    current.as_object_mut()
}

/// The elements of the list at a path for writing.
pub(crate) fn items_mut<'v>(value: &'v mut Value, path: &str) -> impl Iterator<Item = &'v mut Value> {
    let mut current = Some(value);
    for key in path.split('.') {
        current = current.and_then(|inner| inner.get_mut(key));
    }
    current.and_then(Value::as_array_mut).into_iter().flatten()
}

/// The value at a path for writing, when it is there and not `null`.
pub(crate) fn at_mut<'v>(value: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    let mut current = value;
    for key in path.split('.') {
        current = current.get_mut(key)?;
    }
    if current.is_null() { None } else { Some(current) }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

/// Writes a value, making the maps that lead to it.
pub(crate) fn set(value: &mut Value, path: &str, new: impl Into<Value>) {
    let (parent, key) = split(path);
    if let Some(parent) = map(value, parent) {
        parent.insert(key.to_owned(), new.into());
    }
}

/// Writes a value where none (or `null`) stands.
pub(crate) fn fill(value: &mut Value, path: &str, default: impl Into<Value>) {
    if !has(value, path) {
        set(value, path, default);
    }
}

/// Writes a text where none, `null` or an empty one stands.
pub(crate) fn fill_text(value: &mut Value, path: &str, default: &str) {
    if !has(value, path) || at(value, path).as_str() == Some("") {
        set(value, path, default);
    }
}

/// Writes a number where none, `null` or zero stands.
pub(crate) fn fill_number(value: &mut Value, path: &str, default: i64) {
    if !has(value, path) || int(value, path) == Some(0) {
        set(value, path, default);
    }
}

/// Makes sure a map stands at the path.
pub(crate) fn fill_map(value: &mut Value, path: &str) {
    let _made = map(value, path);
}

/// Takes a field away.
pub(crate) fn remove(value: &mut Value, path: &str) {
    let (parent, key) = split(path);
    let parent = if parent.is_empty() { Some(value) } else { at_mut(value, parent) };
    if let Some(map) = parent.and_then(Value::as_object_mut) {
        map.remove(key);
    }
}

/// Makes a field of `new` what it is in `old`, absent included.
pub(crate) fn keep(new: &mut Value, old: &Value, path: &str) {
    if has(old, path) {
        let kept = at(old, path);
        if at(new, path) != kept {
            set(new, path, kept.clone());
        }
    } else {
        remove(new, path);
    }
}

/// Are two fields the same, with absent, `null` and empty taken for one another?
pub(crate) fn same(new: &Value, old: &Value) -> bool {
    if is_empty(new) && is_empty(old) {
        return true;
    }
    match (new, old) {
        (Value::Object(left), Value::Object(right)) => {
            left.iter().all(|(key, value)| same(value, right.get(key).unwrap_or(&NULL)))
                && right.iter().all(|(key, value)| left.contains_key(key) || is_empty(value))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(one, other)| same(one, other))
        }
        _ => new == old,
    }
}

/// `null`, an empty list or an empty map.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn filling_makes_the_way_but_never_overwrites() {
        let mut value = json!({"spec": {"a": 1, "n": null}});
        fill(&mut value, "spec.a", 2);
        fill(&mut value, "spec.n", 3);
        fill(&mut value, "x.y.z", "deep");
        fill(&mut value, "spec.a.b", "no way through a number");
        assert_eq!(value, json!({"spec": {"a": 1, "n": 3}, "x": {"y": {"z": "deep"}}}));
    }

    #[test]
    fn empty_and_absent_are_the_same() {
        assert!(same(&json!({"a": {}, "b": 1}), &json!({"b": 1, "c": []})));
        assert!(!same(&json!({"a": 1}), &json!({})));
        assert!(!same(&json!([1, 2]), &json!([2, 1])));
    }
}
