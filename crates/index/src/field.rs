//! Paths of fields in selectors: `a.b`, `a['b.c']`, `.a.b`.

use std::collections::BTreeMap;

use atoll_meta::Status;
use serde_json::Value;
use serde_json::value::RawValue;

/// Fields that are looked up by index; others are compared inside the object.
pub const INDEXED: [&str; 9] = [
    "spec.nodeName",
    "spec.type",
    "spec.clusterName",
    "status.phase",
    "type",
    "reason",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.uid",
];

/// Splits a path into its steps.
pub fn steps(path: &str) -> Result<Vec<String>, Status> {
    let wrong = || Status::bad_request(format!("field selector: cannot understand the path {path:?}"));
    let mut rest = path.strip_prefix('.').unwrap_or(path);
    let mut found = Vec::new();
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("['").or_else(|| rest.strip_prefix("[\"")) {
            let end = quoted.find("']").or_else(|| quoted.find("\"]")).ok_or_else(wrong)?;
            found.push(quoted[..end].to_owned());
            rest = quoted[end + 2..].strip_prefix('.').unwrap_or(&quoted[end + 2..]);
            continue;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        if end == 0 {
            return Err(wrong());
        }
        found.push(rest[..end].to_owned());
        rest = &rest[end..];
        if let Some(tail) = rest.strip_prefix('.') {
            if tail.is_empty() {
                return Err(wrong());
            }
            rest = tail;
        }
    }
    // A quote or backslash has no spelling in a JSON path of the store.
    if found.is_empty()
        || found.iter().any(|step| step.is_empty() || step.contains(['"', '\\']) || step.contains(char::is_control))
    {
        return Err(wrong());
    }
    Ok(found)
}

/// The value at a path as selectors compare it; what is missing or null is empty.
pub fn text(tree: &Value, steps: &[String]) -> String {
    match steps.iter().try_fold(tree, |value, step| value.get(step)) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The parts of an object, not looked into.
pub type Parts<'a> = BTreeMap<&'a str, &'a RawValue>;

/// The indexed fields an object has.
pub fn indexed(tree: &Value) -> impl Iterator<Item = (&'static str, String)> + '_ {
    INDEXED.iter().filter_map(move |path| {
        let value = path.split('.').try_fold(tree, |value, step| value.get(step))?;
        Some((*path, worth(value)?))
    })
}

/// The indexed fields an object has, from its parts; `None` when they can only be read from its tree.
pub fn indexed_parts(parts: &Parts<'_>) -> Option<Vec<(&'static str, String)>> {
    let mut found = Vec::new();
    let mut open = ("", Parts::new());
    for path in INDEXED {
        let value = match path.split_once('.') {
            None => parts.get(path),
            Some((part, field)) => {
                // Fields of the same part stand together.
                if open.0 != part {
                    let text = parts.get(part).map(|raw| raw.get()).filter(|text| text.starts_with('{'));
                    open = (part, serde_json::from_str(text.unwrap_or("{}")).ok()?);
                }
                open.1.get(field)
            }
        };
        let value = value.map(|raw| raw.get()).filter(|text| !text.starts_with(['{', '[']));
        if let Some(text) = value.and_then(|text| worth(&serde_json::from_str(text).ok()?)) {
            found.push((path, text));
        }
    }
    Some(found)
}

/// A value as it is looked up, if it is worth that.
fn worth(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => return None,
    };
    // Longer than any value worth asking for; a b-tree page must hold several.
    (!text.is_empty() && text.len() <= 256).then_some(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn paths_are_split() {
        let table = [
            ("a.b", vec!["a", "b"]),
            (".a.b", vec!["a", "b"]),
            ("a['b.c'].d", vec!["a", "b.c", "d"]),
            ("metadata.annotations['x/y']", vec!["metadata", "annotations", "x/y"]),
        ];
        for (path, expected) in table {
            assert_eq!(steps(path).unwrap(), expected, "{path}");
        }
        for bad in ["", ".", "a..b", "a['b", "a.b.", "a\"b", "a['x\"y']", "a\\b"] {
            assert!(steps(bad).is_err(), "{bad}");
        }
    }
}
