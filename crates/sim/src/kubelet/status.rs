//! What a pod says about itself as a whole.

use serde_json::{Value, json};

use super::container::Restart;
use crate::condition::{self, Says};

/// The phase that follows from the containers.
pub fn phase(pod: &Value, status: &Value) -> &'static str {
    let restart = Restart::of(pod["spec"]["restartPolicy"].as_str());
    let init = status["initContainerStatuses"].as_array();
    for one in init.into_iter().flatten() {
        let exit = one["state"]["terminated"]["exitCode"].as_i64();
        let stays = one["state"].get("running").is_some() && is_sidecar(pod, &one["name"]);
        match exit {
            Some(0) => {}
            Some(_) if restart == Restart::Never => return "Failed",
            _ if stays => {}
            _ => return "Pending",
        }
    }
    let (mut waiting, mut running, mut succeeded, mut failed) = (0, 0, 0, 0);
    for one in status["containerStatuses"].as_array().into_iter().flatten() {
        let state = &one["state"];
        if state.get("running").is_some() {
            running += 1;
        } else if let Some(exit) =
            state["terminated"]["exitCode"].as_i64().or(one["lastState"]["terminated"]["exitCode"].as_i64())
        {
            if exit == 0 { succeeded += 1 } else { failed += 1 }
        } else {
            waiting += 1;
        }
    }
    match (waiting, running, succeeded, failed) {
        (1.., ..) => "Pending",
        (0, 1.., ..) => "Running",
        _ if restart == Restart::Always => "Running",
        (0, 0, _, 0) => "Succeeded",
        _ if restart == Restart::Never => "Failed",
        _ => "Running",
    }
}

fn is_sidecar(pod: &Value, name: &Value) -> bool {
    let list = pod["spec"]["initContainers"].as_array().into_iter().flatten();
    list.into_iter().any(|container| container["name"] == *name && container["restartPolicy"] == "Always")
}

/// Names of containers whose status does not fit.
fn unfit(list: &Value, fits: impl Fn(&Value) -> bool) -> String {
    let names: Vec<&str> =
        list.as_array().into_iter().flatten().filter(|one| !fits(one)).filter_map(|one| one["name"].as_str()).collect();
    names.join(" ")
}

/// The conditions that follow from containers and phase; those of others stay.
pub fn conditions(pod: &Value, status: &Value, phase: &str, now: &str) -> Value {
    let mut list = pod["status"]["conditions"].clone();
    if !list.is_array() {
        list = json!([]);
    }
    let finished = phase == "Succeeded";
    let sidecars_aside = |one: &Value| {
        one["state"]["terminated"]["exitCode"] == 0 || is_sidecar(pod, &one["name"]) && one["started"] == true
    };
    let pending_init = unfit(&status["initContainerStatuses"], sidecars_aside);
    let unready = unfit(&status["containerStatuses"], |one| one["ready"] == true);
    let has_sandbox = status.get("podIP").is_some() && !matches!(phase, "Succeeded" | "Failed");
    put(&mut list, "PodReadyToStartContainers", if has_sandbox { Ok(()) } else { Err(("", String::new())) }, now);
    let initialised = if pending_init.is_empty() {
        Ok(())
    } else {
        Err(("ContainersNotInitialized", format!("containers with incomplete status: [{pending_init}]")))
    };
    put(&mut list, "Initialized", if finished { Ok(()) } else { initialised }, now);
    let containers = match (finished, phase == "Failed", unready.is_empty()) {
        (true, ..) => Err(("PodCompleted", String::new())),
        (_, true, _) => Err(("PodFailed", String::new())),
        (.., true) => Ok(()),
        _ => Err(("ContainersNotReady", format!("containers with unready status: [{unready}]"))),
    };
    let gates = missing_gates(pod, &list);
    let ready = match (&containers, gates.is_empty()) {
        (Ok(()), false) => Err(("ReadinessGatesNotReady", gates)),
        (result, _) => result.clone(),
    };
    put(&mut list, "Ready", ready, now);
    put(&mut list, "ContainersReady", containers, now);
    list
}

/// Conditions of others that the pod waits for.
fn missing_gates(pod: &Value, list: &Value) -> String {
    let gates = pod["spec"]["readinessGates"].as_array().into_iter().flatten();
    let missing: Vec<String> = gates
        .filter_map(|gate| gate["conditionType"].as_str())
        .filter(|kind| !condition::is_true(list, kind))
        .map(|kind| match condition::get(list, kind) {
            Some(_) => format!("the status of pod readiness gate {kind:?} is not \"True\", but False"),
            None => format!("corresponding condition of pod readiness gate {kind:?} does not exist."),
        })
        .collect();
    missing.join(", ")
}

fn put(list: &mut Value, kind: &str, holds: Result<(), (&str, String)>, now: &str) {
    let (status, reason, message) = match &holds {
        Ok(()) => ("True", "", ""),
        Err((reason, message)) => ("False", *reason, message.as_str()),
    };
    let says = Says { kind, status, reason, message };
    condition::set(list, says, condition::Stamps::Probe, now);
}
