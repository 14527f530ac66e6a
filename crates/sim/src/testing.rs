//! Pods for table tests.

use std::sync::Arc;

use atoll_runtime::Item;
use serde_json::{Value, json};

use crate::pod::Pod;

/// A pod under construction.
pub struct Builder(Value);

/// A running pod that is not ready.
pub fn pod(name: &str) -> Builder {
    Builder(json!({"kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "d", "uid": format!("uid-{name}"), "resourceVersion": "1",
                     "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Running"}}))
}

impl Builder {
    /// Sets any field by its JSON pointer parts.
    pub fn set(mut self, path: &[&str], value: impl Into<Value>) -> Self {
        let mut place = &mut self.0;
        for part in path {
            place = &mut place[*part];
        }
        *place = value.into();
        self
    }

    /// Ready since long.
    pub fn ready(self) -> Self {
        self.ready_at("2026-01-01T00:00:01Z")
    }

    /// Ready since a moment.
    pub fn ready_at(self, since: &str) -> Self {
        self.set(&["status", "conditions"], json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]))
    }

    /// In a phase.
    pub fn phase(self, phase: &str) -> Self {
        self.set(&["status", "phase"], phase)
    }

    /// On a node.
    pub fn node(self, node: &str) -> Self {
        self.set(&["spec", "nodeName"], node)
    }

    /// With a label.
    pub fn label(self, key: &str, value: &str) -> Self {
        self.set(&["metadata", "labels", key], value)
    }

    /// With a cost of deletion.
    pub fn cost(self, cost: i32) -> Self {
        self.set(&["metadata", "annotations", "controller.kubernetes.io/pod-deletion-cost"], cost.to_string())
    }

    /// Being deleted.
    pub fn deleting(self) -> Self {
        self.set(&["metadata", "deletionTimestamp"], "2026-01-01T00:05:00Z")
    }

    /// The pod.
    pub fn build(self) -> Arc<Pod> {
        Arc::new(Pod::of(&Item::of(&self.0).expect("an object")).expect("a pod"))
    }
}

/// A node with this spec and these labels.
pub fn node(name: &str, spec: Value, labels: Value) -> Arc<crate::node::Node> {
    let tree = json!({"kind": "Node", "apiVersion": "v1",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "1", "labels": labels,
                     "annotations": {"sim.atoll.io/node": "true"}},
        "spec": spec, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
                                 "conditions": [{"type": "Ready", "status": "True"}]}});
    Arc::new(crate::node::Node::of(&Item::of(&tree).expect("an object")).expect("a node"))
}
