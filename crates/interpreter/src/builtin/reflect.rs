//! Which part of a member's status is collected.

use atoll_api::words::annotation;
use serde_json::{Map, Value};

use super::Kind;
use super::field::get;

/// A field of a status, and whether it is written when it is 0.
pub type Field = (&'static str, bool);

pub const DEPLOYMENT: &[Field] = &[
    ("replicas", false),
    ("updatedReplicas", false),
    ("readyReplicas", false),
    ("availableReplicas", false),
    ("unavailableReplicas", false),
];
pub const STATEFUL_SET: &[Field] = &[
    ("replicas", true),
    ("availableReplicas", true),
    ("currentReplicas", false),
    ("readyReplicas", false),
    ("updatedReplicas", false),
];
pub const REPLICA_SET: &[Field] = &[("replicas", true), ("readyReplicas", false), ("availableReplicas", false)];
pub const DAEMON_SET: &[Field] = &[
    ("currentNumberScheduled", true),
    ("numberMisscheduled", true),
    ("desiredNumberScheduled", true),
    ("numberReady", true),
    ("updatedNumberScheduled", false),
    ("numberAvailable", false),
    ("numberUnavailable", false),
];
pub const BUDGET: &[Field] =
    &[("disruptionsAllowed", true), ("currentHealthy", true), ("desiredHealthy", true), ("expectedPods", true)];
pub const AUTOSCALER: &[Field] = &[("currentReplicas", false), ("desiredReplicas", true)];
pub const JOB: &[Field] = &[("active", false), ("succeeded", false), ("failed", false)];

/// The part of a member's object that says how it is.
pub fn reflect(object: &Value) -> Option<Value> {
    // Nothing else than an object can be kept as a status.
    let status = object.get("status").filter(|status| status.is_object())?;
    let (numbers, others): (&[Field], &[&str]) = match Kind::of(object) {
        Some(Kind::Deployment) => (DEPLOYMENT, &[]),
        Some(Kind::StatefulSet) => (STATEFUL_SET, &[]),
        Some(Kind::ReplicaSet) => (REPLICA_SET, &[]),
        Some(Kind::DaemonSet) => (DAEMON_SET, &[]),
        Some(Kind::Job) => (JOB, &["conditions", "startTime", "completionTime"]),
        Some(Kind::PodDisruptionBudget) => (BUDGET, &["disruptedPods"]),
        Some(Kind::HorizontalPodAutoscaler) => (AUTOSCALER, &[]),
        Some(Kind::Service) if object["spec"]["type"] != "LoadBalancer" => return None,
        Some(Kind::Service) => (&[], &["loadBalancer"]),
        _ => return Some(status.clone()),
    };
    let mut out = Map::new();
    for (field, zero) in numbers {
        put(&mut out, field, status[*field].as_i64().unwrap_or_default(), *zero);
    }
    for field in others {
        if let Some(value) = get(status, &[field]) {
            out.insert((*field).to_owned(), value.clone());
        }
    }
    if let Some(Kind::Deployment | Kind::StatefulSet | Kind::ReplicaSet | Kind::DaemonSet) = Kind::of(object) {
        generations(&mut out, object, status);
    }
    // A Deployment that says nothing has not been looked at yet.
    if out.is_empty() && Kind::of(object) == Some(Kind::Deployment) {
        return None;
    }
    Some(Value::Object(out))
}

/// Says of which generation the numbers are, so that old ones are not taken for new ones.
fn generations(out: &mut Map<String, Value>, object: &Value, status: &Value) {
    let meta = &object["metadata"];
    let template = meta["annotations"][annotation::TEMPLATE_GENERATION].as_str().and_then(|text| text.parse().ok());
    put(out, "generation", meta["generation"].as_i64().unwrap_or_default(), false);
    put(out, "resourceTemplateGeneration", template.unwrap_or_default(), false);
    put(out, "observedGeneration", status["observedGeneration"].as_i64().unwrap_or_default(), false);
}

/// Writes a number, or drops it when it is 0 and need not be written.
pub fn put(out: &mut Map<String, Value>, field: &str, number: i64, zero: bool) {
    if number != 0 || zero {
        out.insert(field.to_owned(), number.into());
    } else {
        out.remove(field);
    }
}
