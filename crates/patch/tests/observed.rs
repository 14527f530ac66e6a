//! Answers of the original's own libraries to generated writes and patches, one case per line.
#![allow(clippy::unwrap_used)]

mod kinds;

use atoll_meta::split_api_version;
use atoll_patch::managed::{self, Request};
use atoll_patch::{create_strategic, strategic};
use atoll_schema::Typed;
use serde_json::{Map, Value};

fn cases(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn schema(case: &Value) -> Typed<'static> {
    let (group, version) = split_api_version(case["apiVersion"].as_str().unwrap());
    match case["kind"].as_str().unwrap() {
        "Thing" => kinds::custom(),
        kind => kinds::built_in(group, version, kind),
    }
}

/// Without what the original writes out although it is empty.
fn filled(value: &Value) -> Value {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    };
    match value {
        Value::Object(map) => {
            let fields = map.iter().map(|(name, value)| (name.clone(), filled(value)));
            Value::Object(fields.filter(|(_, value)| !empty(value)).collect::<Map<_, _>>())
        }
        Value::Array(list) => list.iter().map(filled).collect(),
        scalar => scalar.clone(),
    }
}

/// The entries and the rest, for comparison; the server, not the manager of fields, sets the uid.
fn parts(object: &Value) -> (Value, Value) {
    let mut rest = object.clone();
    let meta = rest["metadata"].as_object_mut().unwrap();
    meta.remove("uid");
    let entries = meta.remove("managedFields").unwrap_or_default();
    (entries, filled(&rest))
}

#[test]
fn ownership_develops_as_in_the_original() {
    for (at, case) in cases(include_str!("observed/ownership.jsonl")).iter().enumerate() {
        let mut live: Option<Value> = None;
        for step in case["steps"].as_array().unwrap() {
            let subresource = step["subresource"].as_str().unwrap_or_default();
            let reset: &[&str] = match (case["kind"].as_str().unwrap(), subresource) {
                ("ConfigMap", _) => &[],
                (_, "status") => &["spec"],
                _ => &["status"],
            };
            let request = Request {
                manager: step["manager"].as_str().unwrap(),
                api_version: case["apiVersion"].as_str().unwrap(),
                subresource,
                now: "2024-01-01T00:00:00Z",
                schema: Some(schema(case)),
                reset,
                versions: &|_| true,
            };
            let mut new = step["object"].clone();
            let result = if step["op"] == "update" {
                managed::update(&request, live.as_ref(), &mut new);
                Ok(new)
            } else {
                managed::apply(&request, live.as_ref(), &new, step["force"] == true)
            };
            match result {
                Ok(new) => assert_eq!(parts(&new), parts(&step["result"]), "line {}: {step}", at + 1),
                Err(error) => assert_eq!(
                    sorted(&error.to_string()),
                    sorted(step["error"].as_str().unwrap_or_default()),
                    "line {}: {step}",
                    at + 1
                ),
            }
            if let Some(result) = step.get("result") {
                live = Some(result.clone());
            }
        }
    }
}

/// The original reports several faults in no fixed order.
fn sorted(message: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = message.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn strategic_patches_give_what_the_original_gives() {
    for (at, case) in cases(include_str!("observed/strategic.jsonl")).iter().enumerate() {
        let schema = Some(schema(case));
        if let Some(expected) = case.get("difference") {
            assert_eq!(create_strategic(&case["from"], &case["to"], schema).unwrap(), *expected, "line {}", at + 1);
            continue;
        }
        match strategic(&case["object"], &case["patch"], schema) {
            Ok(patched) => assert_eq!(patched, case["result"], "line {}", at + 1),
            Err(error) => assert_eq!(error.to_string(), case["error"].as_str().unwrap_or_default(), "line {}", at + 1),
        }
    }
}
