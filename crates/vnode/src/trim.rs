//! What of an object is kept in memory: only what is read.

use atoll_api::kubeocean_names::{MANAGED_BY, label};
use serde_json::{Map, Value};

use crate::tree;

/// What virtual nodes are called.
pub(crate) const VIRTUAL: &str = "vnode-";
/// Where a pod is and what it uses there.
const USED: [&str; 5] = ["nodeName", "overhead", "resources", "containers", "initContainers"];
/// The metadata of pods that are somebody else's.
const OTHERS: [&str; 6] = ["name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "labels"];

/// Drops who wrote which field; whoever writes an object asks for it, or leaves it to the server.
pub(crate) fn bare(object: &mut Value) {
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove("managedFields");
    }
}

/// A pod of the computing cluster: whole on a virtual node, elsewhere only where it is.
pub(crate) fn above(pod: &mut Value) {
    bare(pod);
    let elsewhere = pod["spec"]["nodeName"].as_str().is_none_or(|node| !node.starts_with(VIRTUAL));
    if elsewhere {
        only(pod.get_mut("metadata"), &OTHERS);
        only(pod.get_mut("spec"), &["nodeName"]);
        only(pod.get_mut("status"), &["phase"]);
    }
}

/// A pod of the worker cluster: for one of ours what both sides agree on, for others what they use of their node.
pub(crate) fn below(pod: &mut Value) {
    bare(pod);
    if tree::label(pod, label::MANAGED_BY) == MANAGED_BY {
        // Another computing cluster's look the same from here, and count as anybody's.
        only(pod.get_mut("spec"), &[&USED[..], &["activeDeadlineSeconds", "ephemeralContainers"]].concat());
    } else {
        only(pod.get_mut("metadata"), &OTHERS);
        only(pod.get_mut("spec"), &USED);
        only(pod.get_mut("status"), &["phase"]);
    }
    for group in ["/spec/containers", "/spec/initContainers"] {
        tree::list_mut(pod, group).for_each(|own| only(Some(own), &["name", "ports", "resources", "restartPolicy"]));
    }
}

/// Keeps these fields; what is no object is left.
fn only(object: Option<&mut Value>, fields: &[&str]) {
    if let Some(map) = object.and_then(Value::as_object_mut) {
        let kept: Map<String, Value> =
            std::mem::take(map).into_iter().filter(|(key, _)| fields.contains(&key.as_str())).collect();
        *map = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(node: &str, labels: Value) -> Value {
        json!({
            "metadata": {"name": "p", "uid": "u", "resourceVersion": "1", "labels": labels, "annotations": {"a": "1"}, "managedFields": [{}]},
            "spec": {"nodeName": node, "volumes": [], "containers": [{"name": "c", "image": "i", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"phase": "Running", "podIP": "10.0.0.1"},
        })
    }

    #[test]
    fn pods_on_virtual_nodes_stay_whole_and_of_others_only_their_place() {
        let mut leased = pod("vnode-w-n", json!({}));
        above(&mut leased);
        let mut expected = pod("vnode-w-n", json!({}));
        bare(&mut expected);
        assert_eq!(leased, expected);
        assert!(leased["metadata"]["managedFields"].is_null());
        let mut other = pod("own-node", json!({"app": "x"}));
        above(&mut other);
        assert_eq!(
            (&other["spec"], &other["status"]),
            (&json!({"nodeName": "own-node"}), &json!({"phase": "Running"}))
        );
        assert_eq!(other["metadata"]["labels"], json!({"app": "x"}));
        assert!(other["metadata"]["annotations"].is_null());
    }

    #[test]
    fn of_pods_below_stays_what_is_mirrored_or_counted() {
        let mut ours = pod("n", json!({label::MANAGED_BY: MANAGED_BY}));
        below(&mut ours);
        assert!(ours["spec"]["volumes"].is_null() && ours["spec"]["containers"][0]["image"].is_null());
        assert_eq!(
            (&ours["status"]["podIP"], &ours["metadata"]["annotations"]["a"]),
            (&json!("10.0.0.1"), &json!("1"))
        );
        let mut theirs = pod("n", json!({}));
        let counted = atoll_lease::PodFacts::of(&theirs, false);
        below(&mut theirs);
        assert_eq!(atoll_lease::PodFacts::of(&theirs, false), counted);
        assert_eq!(theirs["spec"]["containers"][0]["ports"], json!([{"hostPort": 80}]));
        assert!(theirs["spec"]["containers"][0]["image"].is_null() && theirs["metadata"]["annotations"].is_null());
    }
}
