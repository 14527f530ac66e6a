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
        let containers = desired.get_mut("spec").and_then(|spec| spec.get_mut(field)).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = &container["name"];
            let Some(running) = list(&observed["spec"], field).find(|running| running["name"] == *name) else {
                continue;
            };
            match get(running, &["volumeMounts"]) {
                Some(mounts) => set(container, &["volumeMounts"], mounts.clone()),
                None => remove(container, &["volumeMounts"]),
            }
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
