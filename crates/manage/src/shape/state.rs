//! States of workloads in one word.

use serde_json::{Value, json};

fn deleting(tree: &Value) -> bool {
    !tree["metadata"]["deletionTimestamp"].is_null()
}

fn condition(tree: &Value, ty: &str) -> bool {
    let list = tree["status"]["conditions"].as_array();
    list.into_iter().flatten().any(|condition| condition["type"] == ty && condition["status"] == "True")
}

fn status(tree: &mut Value) -> &mut Value {
    if !tree["status"].is_object() {
        tree["status"] = json!({});
    }
    &mut tree["status"]
}

/// `state` and `revision` of a Deployment.
pub fn deployment(tree: &mut Value) {
    let wanted = tree["spec"]["replicas"].as_i64().unwrap_or(1);
    let count = |key: &str| tree["status"][key].as_i64().unwrap_or_default();
    let seen = count("observedGeneration") >= tree["metadata"]["generation"].as_i64().unwrap_or_default();
    let state = if deleting(tree) {
        "WORKLOAD_STATE_DELETING"
    } else if wanted == 0 && count("replicas") == 0 {
        "WORKLOAD_STATE_STOPPED"
    } else if count("readyReplicas") >= wanted && seen {
        "WORKLOAD_STATE_RUNNING"
    } else if count("replicas") == 0 {
        "WORKLOAD_STATE_WAITING"
    } else {
        "WORKLOAD_STATE_NOT_READY"
    };
    if let Some(revision) =
        tree["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_str().map(ToOwned::to_owned)
    {
        tree["revision"] = revision.into();
    }
    status(tree)["state"] = state.into();
}

/// `state` of a DaemonSet: its nodes say how many pods it wants.
pub fn daemon_set(tree: &mut Value) {
    let count = |key: &str| tree["status"][key].as_i64().unwrap_or_default();
    let wanted = count("desiredNumberScheduled");
    let state = if deleting(tree) {
        "WORKLOAD_STATE_DELETING"
    } else if wanted == 0 {
        "WORKLOAD_STATE_WAITING"
    } else if count("numberReady") >= wanted {
        "WORKLOAD_STATE_RUNNING"
    } else {
        "WORKLOAD_STATE_NOT_READY"
    };
    status(tree)["state"] = state.into();
}

/// `phase` of a Job.
pub fn job(tree: &mut Value) {
    let phase = if deleting(tree) {
        "Deleting"
    } else if condition(tree, "Complete") {
        "Completed"
    } else if condition(tree, "Failed") {
        "Failed"
    } else if tree["status"]["active"].as_i64().unwrap_or_default() > 0 {
        "Running"
    } else {
        "Waiting"
    };
    if let Some(start) = tree["status"].get("startTime").cloned() {
        tree["executionTimestamp"] = start;
    }
    let status = status(tree);
    let succeeded = status["succeeded"].clone();
    status["succeed"] = succeeded;
    status["phase"] = phase.into();
}

/// `phase`, images and times of a CronJob.
pub fn cron_job(tree: &mut Value) {
    let suspended = tree["spec"]["suspend"] == true;
    let phase = if deleting(tree) {
        "Deleting"
    } else if suspended {
        "Stopped"
    } else if tree["status"]["lastScheduleTime"].is_null() {
        "Waiting"
    } else {
        "Activated"
    };
    let containers = tree["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"].as_array();
    let images: Vec<Value> = containers.into_iter().flatten().map(|container| container["image"].clone()).collect();
    tree["images"] = images.into();
    tree["spec"]["paused"] = suspended.into();
    let active = tree["status"]["active"].as_array().map_or(0, Vec::len);
    tree["availed"] = active.into();
    tree["total"] = active.into();
    if let Some(last) = tree["status"].get("lastScheduleTime").cloned() {
        tree["executionTimestamp"] = last;
    }
    let status = status(tree);
    status["phase"] = phase.into();
    // Conditions of a CronJob are those of its Jobs; an object has none of that form.
    if let Some(map) = status.as_object_mut() {
        map.remove("conditions");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deployments_have_a_state() {
        let table = [
            (json!({"metadata": {"deletionTimestamp": "x"}}), "WORKLOAD_STATE_DELETING"),
            (json!({"spec": {"replicas": 0}}), "WORKLOAD_STATE_STOPPED"),
            (json!({"spec": {"replicas": 2}, "status": {"replicas": 2, "readyReplicas": 2}}), "WORKLOAD_STATE_RUNNING"),
            (
                json!({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": {"replicas": 2, "readyReplicas": 2, "observedGeneration": 1}}),
                "WORKLOAD_STATE_NOT_READY",
            ),
            (
                json!({"spec": {"replicas": 2}, "status": {"replicas": 2, "readyReplicas": 1}}),
                "WORKLOAD_STATE_NOT_READY",
            ),
            (json!({"spec": {"replicas": 2}}), "WORKLOAD_STATE_WAITING"),
        ];
        for (mut tree, state) in table {
            deployment(&mut tree);
            assert_eq!(tree["status"]["state"], state, "{tree}");
        }
    }

    #[test]
    fn jobs_have_a_phase() {
        let table = [
            (json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}), "Completed"),
            (json!({"status": {"conditions": [{"type": "Failed", "status": "True"}]}}), "Failed"),
            (json!({"status": {"active": 1}}), "Running"),
            (json!({}), "Waiting"),
        ];
        for (mut tree, phase) in table {
            job(&mut tree);
            assert_eq!(tree["status"]["phase"], phase, "{tree}");
        }
    }
}
