//! What differs between any two servers is replaced by what it is.
// Each program of tests uses a part of it.
#![allow(dead_code)]

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let table = [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r"\b10\.(9[6-9]|1[01]\d)\.\d{1,3}\.\d{1,3}\b", "<ip>"),
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "<token>"),
        (r"(?i)(resource ?version:? (?:is )?)\d+", "$1<rv>"),
        (r"(current:? |\()\d+\b", "$1<rv>"),
        // Inside a text that holds an object.
        (r#"(resourceVersion\\*":\\*")\d+"#, "$1<rv>"),
        (r"-----BEGIN CERTIFICATE-----[\s\S]+-----END CERTIFICATE-----\n?", "<certificate>"),
        (r"LS0tLS1CRUdJTi[\w+/=]+", "<pem>"),
        (r"\?hash=[0-9A-F]+", "?hash=<hash>"),
        (r"kube-api-access-[a-z0-9]{5}", "kube-api-access-<random>"),
        (r"^\d+(ms|[smhd])(\d+[smh])?$", "<age>"),
    ];
    table.into_iter().map(|(pattern, name)| (Regex::new(pattern).unwrap(), name)).collect()
});

/// Replaces what differs between any two servers.
pub fn value(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let generated = map.get("generateName").and_then(Value::as_str).map(ToOwned::to_owned);
            let keys: Vec<String> = map.keys().cloned().collect();
            for key in keys {
                // Owned elements are named by their keys, which may be identities.
                let plain = text(&key);
                if plain != key
                    && let Some(child) = map.remove(&key)
                {
                    map.insert(plain, child);
                }
            }
            for (key, child) in map.iter_mut() {
                match (key.as_str(), &*child) {
                    ("resourceVersion", Value::String(text)) if text.parse::<u64>().is_ok_and(|number| number > 0) => {
                        *child = "<rv>".into()
                    }
                    ("continue", Value::String(text)) if !text.is_empty() => *child = "<continue>".into(),
                    ("nodePort", Value::Number(_)) => *child = "<port>".into(),
                    ("storageVersionHash", Value::String(_)) => *child = "<hash>".into(),
                    ("name", Value::String(text)) => match &generated {
                        Some(base) if text.starts_with(base.as_str()) => *child = format!("{base}<random>").into(),
                        _ => self::value(child),
                    },
                    _ => self::value(child),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(self::value),
        Value::String(text) => *text = self::text(text),
        _ => {}
    }
}

/// Puts the faults of a refusal in order; the message only lists them again.
pub fn sort_faults(tree: &mut Value) {
    let Some(causes) = tree.pointer_mut("/details/causes").and_then(Value::as_array_mut) else { return };
    causes.sort_by_key(ToString::to_string);
    let message = tree["message"].as_str().unwrap_or_default();
    let start = message.split(" is invalid: ").next().unwrap_or_default().to_owned();
    tree["message"] = start.into();
}

/// Replaces what differs in a text.
pub fn text(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, name) in PATTERNS.iter() {
        if pattern.is_match(&text) {
            text = pattern.replace_all(&text, *name).into_owned();
        }
    }
    text
}
