//! What of a member's object is kept when it is updated.

use atoll_api::words::label;
use serde_json::Value;

use super::Kind;
use super::field::{get, list, remove, set, text};

/// Type of a Secret that holds the token of a ServiceAccount.
const TOKEN: &str = "kubernetes.io/service-account-token";

/// Annotation of such a Secret with the uid of the ServiceAccount.
const TOKEN_OWNER: &str = "kubernetes.io/service-account.uid";

/// Takes over into `desired` what the member decides.
pub fn retain(desired: &mut Value, observed: &Value) {
    match Kind::of(desired) {
        Some(Kind::Deployment) if desired["metadata"]["labels"][label::RETAIN_REPLICAS] == "true" => {
            keep(desired, observed, &["spec", "replicas"]);
        }
        Some(Kind::Pod) => pod(desired, observed),
        Some(Kind::Service) => service(desired, observed),
        Some(Kind::ServiceAccount) => {
            merge_by_name(desired, observed, "secrets");
            merge_by_name(desired, observed, "imagePullSecrets");
        }
        Some(Kind::PersistentVolumeClaim) if text(&observed["spec"], "volumeName").is_some() => {
            keep(desired, observed, &["spec", "volumeName"]);
        }
        Some(Kind::PersistentVolume) => keep(desired, observed, &["spec", "claimRef"]),
        Some(Kind::Job) => {
            keep(desired, observed, &["spec", "selector", "matchLabels"]);
            keep(desired, observed, &["spec", "template", "metadata", "labels"]);
        }
        Some(Kind::Secret) if desired["type"] == TOKEN => {
            keep(desired, observed, &["data"]);
            keep(desired, observed, &["metadata", "annotations", TOKEN_OWNER]);
        }
        _ => {}
    }
}

/// Copies what the member has at a path.
fn keep(desired: &mut Value, observed: &Value, path: &[&str]) {
    if let Some(value) = get(observed, path) {
        set(desired, path, value.clone());
    }
}

/// Pods hardly change once they are made: what admission added in the member stays.
fn pod(desired: &mut Value, observed: &Value) {
    for field in ["nodeName", "serviceAccountName", "volumes"] {
        match get(observed, &["spec", field]) {
            Some(value) => set(desired, &["spec", field], value.clone()),
            None => remove(desired, &["spec", field]),
        }
    }
    for field in ["containers", "initContainers"] {
        let mut wanted: Vec<Value> = list(&desired["spec"], field).cloned().collect();
        let mut all = Vec::with_capacity(wanted.len());
        // In the order of the member, with those that it added: none can be added or removed any more.
        for running in list(&observed["spec"], field) {
            let Some(at) = wanted.iter().position(|container| container["name"] == running["name"]) else {
                all.push(running.clone());
                continue;
            };
            let mut container = wanted.remove(at);
            match get(running, &["volumeMounts"]) {
                Some(mounts) => set(&mut container, &["volumeMounts"], mounts.clone()),
                None => remove(&mut container, &["volumeMounts"]),
            }
            all.push(container);
        }
        all.append(&mut wanted);
        if !all.is_empty() {
            set(desired, &["spec", field], all.into());
        }
    }
}

fn service(desired: &mut Value, observed: &Value) {
    let given = &observed["spec"];
    if given["healthCheckNodePort"].as_i64().is_some_and(|port| port > 0) {
        keep(desired, observed, &["spec", "healthCheckNodePort"]);
    }
    // A Service that became a mere name has no address.
    if desired["spec"]["type"] == "ExternalName" {
        return;
    }
    if text(given, "clusterIP").is_some() {
        keep(desired, observed, &["spec", "clusterIP"]);
        keep(desired, observed, &["spec", "clusterIPs"]);
    }
}

/// Adds the member's entries with other names.
fn merge_by_name(desired: &mut Value, observed: &Value, field: &str) {
    let mut all: Vec<Value> = list(desired, field).cloned().collect();
    for entry in list(observed, field) {
        if !all.iter().any(|known| known["name"] == entry["name"]) {
            all.push(entry.clone());
        }
    }
    if !all.is_empty() {
        set(desired, &[field], all.into());
    }
}
