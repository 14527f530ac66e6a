//! The metadata of a physical pod.

use atoll_api::kubeocean_names::{MANAGED_BY, annotation, label, physical};
use serde_json::{Value, json};

use super::merge::{own_annotations, own_labels};
use crate::binding::{Binding, OWNER};
use crate::node::Expected;
use crate::tree;

/// What a pod is part of.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Workload {
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// What a pod is part of, as its first owner says; a ReplicaSet must still be looked into.
pub(crate) fn workload(object: &Value) -> Workload {
    let Some(owner) = tree::list(&object["metadata"]["ownerReferences"]).first() else {
        return Workload { kind: "pod".to_owned(), name: tree::name(object).to_owned() };
    };
    let text = |field: &str| owner[field].as_str().unwrap_or_default();
    Workload { kind: text("kind").to_lowercase(), name: text("name").to_owned() }
}

/// The physical pod without its spec.
pub(crate) fn physical_pod(pod: &Value, binding: &Binding, owner: &str, workload: &Workload) -> Value {
    let (namespace, name) = (tree::namespace(pod), tree::name(pod));
    let agreed = Expected { labels: own_labels(pod), annotations: own_annotations(pod), taints: Vec::new() };
    let mut labels = agreed.labels.clone();
    labels.extend(marks(binding, owner));
    labels.insert(label::VIRTUAL_NAMESPACE.to_owned(), namespace.to_owned());
    for (key, value) in [(label::WORKLOAD_TYPE, &workload.kind), (label::WORKLOAD_NAME, &workload.name)] {
        // Names may be longer than labels can be.
        if !value.is_empty() && atoll_meta::name::is_label_value(value).is_empty() {
            labels.insert(key.to_owned(), value.clone());
        }
    }
    let mut annotations = agreed.annotations.clone();
    for (key, value) in [
        (annotation::VIRTUAL_POD_NAMESPACE, namespace),
        (annotation::VIRTUAL_POD_NAME, name),
        (annotation::VIRTUAL_POD_UID, tree::uid(pod)),
        (annotation::VIRTUAL_NODE_NAME, pod["spec"]["nodeName"].as_str().unwrap_or_default()),
        (annotation::EXPECTED_METADATA, &agreed.encode()),
    ] {
        annotations.insert(key.to_owned(), value.to_owned());
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": physical(namespace, name), "namespace": binding.mount_namespace,
            "labels": labels, "annotations": annotations,
        },
    })
}

/// The labels that say whose an object in the worker cluster is.
pub(crate) fn marks(binding: &Binding, owner: &str) -> [(String, String); 3] {
    [(label::MANAGED_BY, MANAGED_BY), (label::CLUSTER_BINDING, &binding.name), (OWNER, owner)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_physical_pod_says_whose_it_is() {
        let pod = json!({
            "metadata": {
                "name": "test-pod", "namespace": "default", "uid": "u1", "labels": {"app": "web", "kubeocean.io/managed-by": "kubeocean"},
                "annotations": {"note": "x", "kubeocean.io/physical-pod-name": "old", "kubeocean.io/last-sync-time": "t"},
            },
            "spec": {"nodeName": "vnode-w-n1"},
        });
        let binding = Binding { name: "b".into(), mount_namespace: "mount".into(), ..Binding::default() };
        let below = physical_pod(&pod, &binding, "me", &Workload { kind: "deployment".into(), name: "web".into() });
        assert_eq!(
            below["metadata"]["labels"],
            json!({
                "app": "web", "kubeocean.io/managed-by": "kubeocean", "kubeocean.io/cluster-binding": "b", OWNER: "me",
                "kubeocean.io/virtual-namespace": "default", "kubeocean.io/workload-type": "deployment", "kubeocean.io/workload-name": "web",
            })
        );
        let annotations = tree::annotations(&below);
        assert_eq!(annotations["note"], "x");
        assert_eq!(annotations["kubeocean.io/virtual-node-name"], "vnode-w-n1");
        assert!(!annotations.keys().any(|key| key.contains("physical-pod") || key.contains("last-sync")));
        let agreed = Expected::decode(&annotations[annotation::EXPECTED_METADATA]).unwrap();
        assert_eq!(json!(agreed.labels), json!({"app": "web"}));
        assert_eq!(
            (tree::name(&below), tree::namespace(&below)),
            ("test-pod-49d2ec05688689cc55230ecf7101f2de", "mount")
        );
    }

    #[test]
    fn the_first_owner_says_what_a_pod_is_part_of() {
        let owned = |kind: &str| json!({"metadata": {"name": "p", "ownerReferences": [{"kind": kind, "name": "o"}]}});
        for (object, kind, name) in [
            (json!({"metadata": {"name": "p"}}), "pod", "p"),
            (owned("StatefulSet"), "statefulset", "o"),
            (owned("DaemonSet"), "daemonset", "o"),
            (owned("Job"), "job", "o"),
            (owned("CronJob"), "cronjob", "o"),
            (owned("Deployment"), "deployment", "o"),
            (owned("RayCluster"), "raycluster", "o"),
        ] {
            assert_eq!(workload(&object), Workload { kind: kind.into(), name: name.into() });
        }
    }
}
