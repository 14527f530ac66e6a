//! Whether an answer is as a document says.

use serde_json::{Map, Value};

/// What is wrong with a value by a schema; `definitions` are those it refers to.
pub fn faults(definitions: &Value, schema: &Value, value: &Value, place: &str, out: &mut Vec<String>) {
    let schema = match schema["$ref"].as_str() {
        Some(name) => &definitions[name.rsplit('/').next().unwrap()],
        None => schema,
    };
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object() || value.is_null(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer" | "number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    if !fits {
        out.push(format!("{place}: {value} is not {}", schema["type"]));
        return;
    }
    if let Some(words) = schema["enum"].as_array().filter(|words| !words.contains(value)) {
        out.push(format!("{place}: {value} is none of {words:?}"));
    }
    for item in value.as_array().into_iter().flatten() {
        faults(definitions, &schema["items"], item, &format!("{place}[]"), out);
    }
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    for (key, value) in value.as_object().into_iter().flatten() {
        match (properties.get(key), schema.get("additionalProperties")) {
            (Some(inner), _) => faults(definitions, inner, value, &format!("{place}.{key}"), out),
            (None, Some(inner)) => faults(definitions, inner, value, &format!("{place}.{key}"), out),
            (None, None) => out.push(format!("{place}.{key}: not in the document")),
        }
    }
    for (key, inner) in properties.iter().filter(|_| value.is_object()) {
        // A message that is not set is left out; a word or a number never is.
        let target = inner["$ref"].as_str().map(|name| &definitions[name.rsplit('/').next().unwrap()]);
        let message = target.is_some_and(|target| target["type"] == "object");
        if value.get(key).is_none() && !message {
            out.push(format!("{place}.{key}: missing"));
        }
    }
}
