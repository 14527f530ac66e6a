//! The status of a pod, as its physical pod has it.

use serde_json::{Value, json};

use crate::tree::list;

/// What the worker cluster decides. Quality of service and resizing stay what they are above.
const FIELDS: [&str; 11] = [
    "phase",
    "message",
    "reason",
    "hostIP",
    "hostIPs",
    "podIP",
    "podIPs",
    "startTime",
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
];

/// The status a pod should have.
pub(crate) fn mirrored(above: &Value, below: &Value) -> Value {
    let mut status = above.clone();
    if !status.is_object() {
        status = json!({});
    }
    let Some(map) = status.as_object_mut() else { return status };
    for field in FIELDS {
        match &below[field] {
            // A pod that was only just made has no phase yet.
            Value::Null if field == "phase" => {}
            Value::Null => drop(map.remove(field)),
            value => drop(map.insert(field.to_owned(), value.clone())),
        }
    }
    let scheduled = |condition: &&Value| condition["type"] == "PodScheduled";
    let own = list(&above["conditions"]).iter().filter(scheduled);
    let theirs = list(&below["conditions"]).iter().filter(|condition| !scheduled(condition));
    let conditions: Vec<Value> = own.chain(theirs).cloned().collect();
    if conditions.is_empty() {
        map.remove("conditions");
    } else {
        map.insert("conditions".to_owned(), conditions.into());
    }
    status
}

/// The status of a pod whose physical pod vanished.
pub(crate) fn lost(above: &Value) -> Value {
    let mut status = above.clone();
    status["phase"] = "Failed".into();
    status["reason"] = "PhysicalPodLost".into();
    status["message"] = "the pod vanished from the worker cluster".into();
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_the_scheduling_comes_from_below() {
        let above = json!({"phase": "Pending", "qosClass": "Burstable", "reason": "Old", "conditions": [{"type": "PodScheduled", "status": "True"}]});
        let below = json!({
            "phase": "Running", "podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}], "hostIP": "10.1.0.1", "qosClass": "BestEffort",
            "conditions": [{"type": "PodScheduled", "status": "False"}, {"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "c", "ready": true}],
        });
        assert_eq!(
            mirrored(&above, &below),
            json!({
                "phase": "Running", "podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}], "hostIP": "10.1.0.1", "qosClass": "Burstable",
                "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}],
                "containerStatuses": [{"name": "c", "ready": true}],
            })
        );
        assert_eq!(mirrored(&json!({}), &json!({})), json!({}));
    }
}
