//! Rules and tables against what a real server answered (`observed/answers.jsonl`, made by
//! `observed/record` from `observed/cases.jsonl`): the same objects come out, the same complaints
//! are made, the same cells are shown.
#![allow(clippy::unwrap_used, missing_docs)]

use atoll_builtin::strategy::{
    Context, default, name_rule, prepare_create, prepare_status, prepare_update, validate_create, validate_metadata,
    validate_metadata_update, validate_status, validate_update,
};
use atoll_builtin::{canonical, find_kind, print};
use atoll_meta::FieldError;
use serde_json::{Map, Value, json};

/// Each case with what the server answered.
fn cases() -> impl Iterator<Item = Value> {
    let read = |line: &str| serde_json::from_str::<Map<String, Value>>(line).unwrap();
    let answers = include_str!("observed/answers.jsonl").lines().map(read);
    include_str!("observed/cases.jsonl").lines().map(read).zip(answers).map(|(mut case, answer)| {
        case.extend(answer);
        Value::Object(case)
    })
}

/// What the rules make of a case: the object to store, and the complaints.
fn ours(case: &Value) -> (Value, Vec<FieldError>) {
    let text = |field: &str| case[field].as_str().unwrap();
    let ctx =
        Context { group: text("group"), version: text("version"), kind: text("kind"), now: "2026-01-02T03:04:05Z" };
    let type_name = &find_kind(ctx.group, ctx.version, ctx.kind).unwrap().type_name;
    let mut object = case["object"].clone();
    default(&ctx, &mut object);
    let Some(old) = case.get("before") else {
        object["metadata"]["uid"] = case["answer"]["metadata"]["uid"].as_str().unwrap_or("uid").into();
        prepare_create(&ctx, &mut object);
        canonical(type_name, &mut object);
        let namespaced = case["namespaced"].as_bool().unwrap();
        let mut errors = validate_metadata(&object["metadata"], name_rule(ctx.group, ctx.kind), namespaced);
        errors.extend(validate_create(&ctx, &object));
        return (object, errors);
    };
    let mut old = old.clone();
    default(&ctx, &mut old);
    canonical(type_name, &mut old);
    let writes_status = case.get("status").is_some();
    if writes_status {
        object = old.clone();
        object["status"] = case["status"].clone();
        default(&ctx, &mut object);
        prepare_status(&ctx, &mut object, &old);
    } else {
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "finalizers"] {
            if let Some(value) = old["metadata"].get(field) {
                object["metadata"][field] = value.clone();
            }
        }
        prepare_update(&ctx, &mut object, &old);
    }
    canonical(type_name, &mut object);
    let mut errors = validate_metadata_update(&object["metadata"], &old["metadata"]);
    errors.extend(if writes_status {
        validate_status(&ctx, &object, &old)
    } else {
        validate_update(&ctx, &object, &old)
    });
    (object, errors)
}

/// Takes away what others than the rules decide: identity, time, admission, addresses.
fn without_others(object: &Value, kind: &str) -> Value {
    let mut object = object.clone();
    let meta = object["metadata"].as_object_mut().unwrap();
    for field in ["uid", "creationTimestamp", "generation", "resourceVersion", "managedFields", "finalizers"] {
        meta.remove(field);
    }
    let mut drop = |path: &str| {
        let (parent, key) = path.rsplit_once('/').unwrap();
        if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.remove(key);
        }
    };
    let paths: &[&str] = match kind {
        "Pod" => &[
            "/spec/priority",
            "/spec/preemptionPolicy",
            "/spec/serviceAccount",
            "/spec/serviceAccountName",
            "/spec/tolerations",
            "/status/conditions/0/lastTransitionTime",
        ],
        "Service" => &["/spec/clusterIP", "/spec/clusterIPs", "/spec/healthCheckNodePort"],
        "Node" => &["/spec/taints"],
        "PersistentVolume" => &["/status/lastPhaseTransitionTime"],
        "ServiceCIDR" | "APIService" => &["/status"],
        _ => &[],
    };
    paths.iter().for_each(|path| drop(path));
    if kind == "Service" {
        for port in object.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
            port.as_object_mut().unwrap().remove("nodePort");
        }
    }
    object
}

/// Structs are shown with Go's field names, and some changes as a diff of Go values: not compared.
fn comparable(message: &str) -> String {
    let message = message.split("\n@@").next().unwrap_or_default();
    let start = message.find("value: {").or_else(|| message.find("value: [{"));
    match (start, message.rfind('}')) {
        (Some(start), Some(end)) => format!("{}value: {{…}}{}", &message[..start], &message[end + 1..]),
        _ => message.to_owned(),
    }
}

fn sorted(causes: impl Iterator<Item = (String, String, String)>) -> Vec<String> {
    let mut shown: Vec<String> =
        causes.map(|(field, reason, message)| format!("{field} {reason} {}", comparable(&message))).collect();
    shown.sort();
    shown
}

#[test]
fn the_same_objects_are_refused_with_the_same_causes() {
    let mut wrong = Vec::new();
    for case in cases() {
        let empty = Vec::new();
        let theirs = sorted(case["causes"].as_array().unwrap_or(&empty).iter().map(|cause| {
            let part = |field: &str| cause[field].as_str().unwrap_or_default().to_owned();
            (part("field"), part("reason"), part("message"))
        }));
        let found = sorted(
            ours(&case).1.iter().map(|error| (error.path.to_string(), error.kind.reason().to_owned(), error.body())),
        );
        if found != theirs {
            let only = |left: &[String], right: &[String]| -> String {
                left.iter().filter(|line| !right.contains(line)).map(|line| format!("\n      {line}")).collect()
            };
            let (theirs, found) = (only(&theirs, &found), only(&found, &theirs));
            wrong.push(format!(
                "{} {} {}\n   theirs:{theirs}\n   ours:{found}",
                case["kind"], case["object"]["spec"], case["status"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_same_objects_come_out() {
    let mut wrong = Vec::new();
    for case in cases().filter(|case| case.get("answer").is_some()) {
        let kind = case["kind"].as_str().unwrap();
        let (theirs, found) = (without_others(&case["answer"], kind), without_others(&ours(&case).0, kind));
        let mut lines = Vec::new();
        differences("", &theirs, &found, &mut lines);
        if !lines.is_empty() {
            wrong.push(format!("{kind} {} {}{}", case["object"]["spec"], case["status"], lines.concat()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_same_tables_are_shown() {
    let mut wrong = Vec::new();
    for case in cases().filter(|case| case.get("row").is_some()) {
        let (group, kind) = (case["group"].as_str().unwrap(), case["kind"].as_str().unwrap());
        let columns: Vec<Value> = print::columns(group, kind)
            .iter()
            .map(|column| json!({"name": column.name, "type": column.ty, "format": column.format, "priority": column.priority}))
            .collect();
        let object = &case["answer"];
        let made = object["metadata"]["creationTimestamp"].as_str().unwrap();
        let now = atoll_meta::time::parse(made).unwrap().as_second();
        let mut lines = Vec::new();
        differences(" columns", &case["columns"], &columns.clone().into(), &mut lines);
        let mut row = without_ages(&case["row"]);
        // Addresses have a cell more than they have columns.
        row.as_array_mut().unwrap().truncate(columns.len());
        differences(" cells", &row, &without_ages(&print::cells(group, kind, object, now).into()), &mut lines);
        if !lines.is_empty() {
            wrong.push(format!("{kind} {} {}{}", case["object"]["spec"], case["status"], lines.concat()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// When a row was asked for is not known to the second.
fn without_ages(row: &Value) -> Value {
    let hide = |cell: &Value| match cell.as_str() {
        Some(text)
            if text.ends_with(['s', 'm', 'h', 'd']) && text.starts_with(|first: char| first.is_ascii_digit()) =>
        {
            json!("(age)")
        }
        Some(text) if text.contains("controller-uid=") => json!("(uid)"),
        Some(text) if text.starts_with("20") && text.ends_with('Z') => json!("(time)"),
        _ => cell.clone(),
    };
    row.as_array().unwrap().iter().map(hide).collect()
}

/// Paths at which two trees differ.
fn differences(path: &str, theirs: &Value, ours: &Value, out: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(left), Value::Object(right)) => {
            for key in left.keys().chain(right.keys().filter(|key| !left.contains_key(*key))) {
                let get = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or(json!("(absent)"));
                differences(&format!("{path}.{key}"), &get(left), &get(right), out);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                differences(&format!("{path}[{index}]"), left, right, out);
            }
        }
        _ if theirs == ours => {}
        _ => out.push(format!("\n    {path}: theirs {theirs}, ours {ours}")),
    }
}
