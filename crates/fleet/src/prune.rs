//! Removes from a manifest what only the server that holds it may say.

use serde_json::{Map, Value};

const META: [&str; 10] = [
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
    "ownerReferences",
    "finalizers",
];

/// Prunes a manifest that is to go to a member.
pub fn prune(manifest: &mut Value) {
    if let Some(map) = manifest.as_object_mut() {
        map.remove("status");
    }
    if let Some(meta) = manifest.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        for field in META {
            meta.remove(field);
        }
    }
    let group = atoll_meta::split_api_version(manifest["apiVersion"].as_str().unwrap_or_default()).0.to_owned();
    let kind = manifest["kind"].as_str().unwrap_or_default().to_owned();
    match (group.as_str(), kind.as_str()) {
        ("apps", "Deployment") => remove(
            manifest,
            "/metadata/annotations",
            &[
                "deployment.kubernetes.io/revision",
                "deployment.kubernetes.io/revision-history",
                "deployment.kubernetes.io/desired-replicas",
                "deployment.kubernetes.io/max-replicas",
            ],
        ),
        ("batch", "Job") => job(manifest),
        ("", "ServiceAccount") => service_account(manifest),
        ("", "Service") if manifest["spec"]["clusterIP"] != "None" => {
            remove(manifest, "/spec", &["clusterIP", "clusterIPs"]);
        }
        ("", "Secret") if manifest["type"] == "kubernetes.io/service-account-token" => {
            if let Some(map) = manifest.as_object_mut() {
                map.remove("data");
            }
            remove(manifest, "/metadata/annotations", &["kubernetes.io/service-account.uid"]);
        }
        ("", "PersistentVolumeClaim") => {
            remove(manifest, "/metadata/annotations", &["volume.kubernetes.io/selected-node"]);
        }
        _ => {}
    }
    for field in ["annotations", "labels"] {
        drop_empty(manifest, "/metadata", field);
    }
}

fn remove(manifest: &mut Value, pointer: &str, keys: &[&str]) {
    if let Some(map) = manifest.pointer_mut(pointer).and_then(Value::as_object_mut) {
        for key in keys {
            map.remove(*key);
        }
    }
}

/// Removes a field that says nothing any more.
fn drop_empty(manifest: &mut Value, pointer: &str, field: &str) {
    if let Some(map) = manifest.pointer_mut(pointer).and_then(Value::as_object_mut)
        && map.get(field).is_some_and(|value| value.is_null() || value.as_object().is_some_and(Map::is_empty))
    {
        map.remove(field);
    }
}

fn job(manifest: &mut Value) {
    if manifest["spec"]["manualSelector"] != true {
        remove(manifest, "/spec/selector/matchLabels", &["controller-uid", "batch.kubernetes.io/controller-uid"]);
        drop_empty(manifest, "/spec/selector", "matchLabels");
        drop_empty(manifest, "/spec", "selector");
        let labels =
            ["controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"];
        remove(manifest, "/spec/template/metadata/labels", &labels);
    }
    remove(manifest, "/spec", &["ttlSecondsAfterFinished"]);
}

/// Token secrets of the template's own account mean nothing elsewhere.
fn service_account(manifest: &mut Value) {
    let prefix = format!("{}-token-", manifest["metadata"]["name"].as_str().unwrap_or_default());
    if let Some(secrets) = manifest.get_mut("secrets").and_then(Value::as_array_mut) {
        secrets.retain(|secret| !secret["name"].as_str().unwrap_or_default().starts_with(&prefix));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_server_says_is_removed_and_the_rest_stays() {
        let cases = [
            (
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 1},
                       "metadata": {"name": "a", "uid": "u", "finalizers": ["x"], "resourceVersion": "1", "generation": 3,
                                    "annotations": {"deployment.kubernetes.io/revision": "1"}}, "spec": {"replicas": 2}}),
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"replicas": 2}}),
            ),
            (
                json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}}),
                json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {}}),
            ),
            (
                json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"clusterIP": "None"}}),
                json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"clusterIP": "None"}}),
            ),
            (
                json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"},
                       "spec": {"selector": {}, "ttlSecondsAfterFinished": 1, "template": {"metadata": {"labels": {"job-name": "a", "x": "y"}}}}}),
                json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"},
                       "spec": {"template": {"metadata": {"labels": {"x": "y"}}}}}),
            ),
            (
                json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"},
                       "spec": {"selector": {"matchLabels": {"controller-uid": "u", "own": "x"}}}}),
                json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"},
                       "spec": {"selector": {"matchLabels": {"own": "x"}}}}),
            ),
            (
                json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": [{"name": "a-token-x"}, {"name": "own"}]}),
                json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": [{"name": "own"}]}),
            ),
            (
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}),
            ),
        ];
        for (mut given, expected) in cases {
            prune(&mut given);
            assert_eq!(given, expected);
        }
    }
}
