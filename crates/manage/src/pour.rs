//! Objects into messages: what the message has a place for is taken, the rest is left.

use base64::Engine as _;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};

/// The part of an object that fits a message, as the JSON of that message.
pub fn pour(object: &Value, message: &MessageDescriptor) -> Value {
    if message.full_name() == "atoll.v1alpha1.JSON" {
        // Any JSON value, as its text.
        let text = object.to_string();
        return serde_json::json!({"raw": base64::engine::general_purpose::STANDARD.encode(text)});
    }
    let Some(map) = object.as_object() else { return Value::Object(Map::new()) };
    let mut out = Map::new();
    for field in message.fields() {
        let name = field.json_name();
        let value = map
            .get(name)
            .or_else(|| map.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value));
        if let Some(poured) = value.and_then(|value| fit(value, &field)) {
            out.insert(name.to_owned(), poured);
        }
    }
    Value::Object(out)
}

fn fit(value: &Value, field: &FieldDescriptor) -> Option<Value> {
    if value.is_null() {
        return None;
    }
    if field.is_map() {
        let Kind::Message(entry) = field.kind() else { return None };
        let inner = entry.map_entry_value_field();
        return Some(
            value
                .as_object()?
                .iter()
                .filter_map(|(key, value)| Some((key.clone(), one(value, &inner.kind())?)))
                .collect(),
        );
    }
    if field.is_list() {
        return Some(value.as_array()?.iter().filter_map(|value| one(value, &field.kind())).collect());
    }
    one(value, &field.kind())
}

fn one(value: &Value, kind: &Kind) -> Option<Value> {
    match kind {
        Kind::Message(message) => Some(pour(value, message)),
        Kind::String => Some(match value {
            Value::String(_) => value.clone(),
            other => other.to_string().into(),
        }),
        Kind::Bytes => value.as_str().map(Into::into),
        Kind::Bool => value.as_bool().map(Into::into),
        Kind::Double | Kind::Float => value.as_f64().or_else(|| value.as_str()?.parse().ok()).map(Into::into),
        Kind::Enum(words) => word(value, words),
        _ => number(value),
    }
}

/// Whole numbers, and times as seconds since 1970.
fn number(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) => number.as_i64().map(|number| number.to_string().into()),
        Value::String(text) => {
            let seconds = || atoll_meta::time::parse(text).map(jiff::Timestamp::as_second);
            text.parse::<i64>().ok().or_else(seconds).map(|number| number.to_string().into())
        }
        _ => None,
    }
}

/// The word that is meant, whatever its case; words nobody knows are left out.
fn word(value: &Value, words: &prost_reflect::EnumDescriptor) -> Option<Value> {
    let text = value.as_str()?;
    let found = words
        .values()
        .find(|word| word.name() == text)
        .or_else(|| words.values().find(|word| word.name().eq_ignore_ascii_case(text)));
    found.map(|word| word.name().into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::api::Api;
    use crate::transcode::request::from_tree;

    #[test]
    fn an_object_is_poured_into_its_message() {
        let message = Api::get().pool.get_message_by_name("atoll.v1alpha1.Service").unwrap();
        let object = json!({
            "kind": "Service", "metadata": {"name": "s", "creationTimestamp": "1970-01-01T00:01:40Z", "managedFields": [1]},
            "spec": {"type": "ClusterIP", "ports": [{"port": 80, "targetPort": 8080}], "ipFamilies": ["IPv4"], "selector": {"a": "b"}},
        });
        let poured = pour(&object, &message);
        assert_eq!(poured["metadata"]["creationTimestamp"], "100");
        assert_eq!(poured["spec"]["ports"][0]["targetPort"], "8080");
        assert_eq!(poured["spec"]["IPFamilies"], json!(["IPv4"]));
        assert_eq!(poured["metadata"].get("managedFields"), None);
        from_tree(message, &poured).unwrap();
    }
}
