//! Versions of built-in kinds whose shape differs from the stored one.
//!
//! Most versions of a kind have the same shape; those only change their `apiVersion`.

use serde_json::{Value, json};

use crate::kind::Kind;

/// Whether versions of this kind differ in more than their name.
pub fn changes_shape(group: &str, kind: &str) -> bool {
    matches!((group, kind), ("autoscaling", "HorizontalPodAutoscaler") | ("events.k8s.io", "Event"))
}

/// From the stored version to the one of `kind`.
pub fn to(kind: &Kind, mut tree: Value) -> Value {
    if &*kind.kind == "HorizontalPodAutoscaler" && &*kind.version == "v1" {
        autoscaler_to_v1(&mut tree);
    }
    if &*kind.group == "events.k8s.io" {
        rename(&mut tree, |[new, old]| [old, new]);
        if let Some(map) = tree.as_object_mut() {
            map.retain(|key, value| {
                !(matches!(key.as_str(), "reportingController" | "reportingInstance") && value == "")
            });
        }
    }
    tree["apiVersion"] = kind.api_version().into();
    tree
}

/// From the version of `kind` to the stored one.
pub fn from(kind: &Kind, mut tree: Value) -> Value {
    if &*kind.kind == "HorizontalPodAutoscaler" && &*kind.version == "v1" {
        autoscaler_from_v1(&mut tree);
    }
    if &*kind.group == "events.k8s.io" && tree["apiVersion"] != kind.storage_api_version() {
        rename(&mut tree, |names| names);
    }
    tree["apiVersion"] = kind.storage_api_version().into();
    tree
}

/// Names of fields of events in `events.k8s.io` and in the core group.
const EVENT_FIELDS: [[&str; 2]; 7] = [
    ["regarding", "involvedObject"],
    ["note", "message"],
    ["reportingController", "reportingComponent"],
    ["deprecatedSource", "source"],
    ["deprecatedFirstTimestamp", "firstTimestamp"],
    ["deprecatedLastTimestamp", "lastTimestamp"],
    ["deprecatedCount", "count"],
];

/// Renames the fields of an event; `direction` says from which name to which.
fn rename(tree: &mut Value, direction: fn([&'static str; 2]) -> [&'static str; 2]) {
    let Some(map) = tree.as_object_mut() else { return };
    for [from, to] in EVENT_FIELDS.map(direction) {
        if let Some(value) = map.remove(from) {
            map.insert(to.into(), value);
        }
    }
}

/// v1 knows only one metric, average CPU utilisation; the others stay in an annotation-free v2 form
/// and are not shown.
fn autoscaler_to_v1(tree: &mut Value) {
    let target = cpu_utilization(&tree["spec"]["metrics"], "target");
    let current = cpu_utilization(&tree["status"]["currentMetrics"], "current");
    if let Some(spec) = tree.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("metrics");
        spec.remove("behavior");
        if let Some(target) = target {
            spec.insert("targetCPUUtilizationPercentage".into(), target);
        }
    }
    if let Some(status) = tree.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("currentMetrics");
        status.remove("conditions");
        if let Some(current) = current {
            status.insert("currentCPUUtilizationPercentage".into(), current);
        }
    }
}

fn cpu_utilization(metrics: &Value, part: &str) -> Option<Value> {
    metrics.as_array()?.iter().find_map(|metric| {
        let resource = &metric["resource"];
        (resource["name"] == "cpu")
            .then(|| resource[part]["averageUtilization"].clone())
            .filter(|value| !value.is_null())
    })
}

fn autoscaler_from_v1(tree: &mut Value) {
    let Some(spec) = tree.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let Some(target) = spec.remove("targetCPUUtilizationPercentage") else { return };
    spec.insert(
        "metrics".into(),
        json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}}]),
    );
}
