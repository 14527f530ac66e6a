//! Versions whose shape differs from the stored one.
//!
//! Most versions of a kind have the same shape; those only change their `apiVersion`. Of built-in kinds the others are
//! known here; custom kinds bring their [`atoll_meta::Conversion`] with them.

use serde_json::{Value, json};

use crate::kind::Kind;

/// Whether versions of this built-in kind differ in more than their name.
pub fn changes_shape(group: &str, kind: &str) -> bool {
    matches!((group, kind), ("autoscaling", "HorizontalPodAutoscaler") | ("events.k8s.io", "Event"))
}

/// From the stored version to the one of `kind`.
pub fn to(kind: &Kind, mut tree: Value) -> Value {
    if let Some(custom) = kind.custom() {
        custom.show(&mut tree);
    } else if &*kind.kind == "HorizontalPodAutoscaler" && &*kind.version == "v1" {
        autoscaler_to_v1(&mut tree);
    } else if &*kind.group == "events.k8s.io" {
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

/// From the version of `kind` to the stored one; what is in that already stays as it is.
pub fn from(kind: &Kind, mut tree: Value) -> Value {
    let stored = kind.storage_api_version();
    if let Some(custom) = kind.custom() {
        if tree["apiVersion"] != *stored {
            custom.store(&mut tree);
        }
    } else if &*kind.kind == "HorizontalPodAutoscaler" && &*kind.version == "v1" {
        autoscaler_from_v1(&mut tree);
    } else if &*kind.group == "events.k8s.io" && tree["apiVersion"] != *stored {
        rename(&mut tree, |names| names);
    }
    tree["apiVersion"] = stored.into();
    tree
}

/// Gives a changed custom object what the version of the request cannot show and its writer thus did not mean to
/// remove. Both trees are in the stored version.
pub fn keep_unseen(kind: &Kind, new: &mut Value, old: &Value) {
    if kind.custom().is_some() {
        let seen = from(kind, to(kind, old.clone()));
        keep(new, old, &seen);
    }
}

/// `seen` is what the writer saw of `old`.
fn keep(new: &mut Value, old: &Value, seen: &Value) {
    let (Some(new), Some(old)) = (new.as_object_mut(), old.as_object()) else { return };
    for (key, value) in old {
        match new.get_mut(key) {
            // Left alone, so that it stays as it is, lists with all they have.
            Some(own) if *own == seen[key] => own.clone_from(value),
            Some(own) => keep(own, value, &seen[key]),
            None if seen.get(key).is_none() => drop(new.insert(key.clone(), value.clone())),
            None => {}
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_writer_could_not_see_stays() {
        let old = json!({"spec": {"shown": {"a": 1, "b": 2}, "hidden": true, "list": [{"a": 1, "hidden": 1}],
            "other": [{"a": 1, "hidden": 1}], "mixed": {"a": 1, "hidden": 1}}});
        let seen =
            json!({"spec": {"shown": {"a": 1, "b": 2}, "list": [{"a": 1}], "other": [{"a": 1}], "mixed": {"a": 1}}});
        let mut new = json!({"spec": {"shown": {"a": 3}, "list": [{"a": 1}], "other": [{"a": 2}], "mixed": {"a": 2}}});
        keep(&mut new, &old, &seen);
        let wanted = json!({"spec": {"shown": {"a": 3}, "hidden": true, "list": [{"a": 1, "hidden": 1}],
            "other": [{"a": 2}], "mixed": {"a": 2, "hidden": 1}}});
        assert_eq!(new, wanted);
    }
}
