//! CSINodes: which storage drivers a leased node has.

use atoll_api::kubeocean_names::{MANAGED_BY, annotation, label};
use atoll_meta::{Gvr, Status};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::binding::Binding;
use crate::syncer::Syncer;
use crate::tree;

pub(crate) fn csi_nodes() -> Gvr {
    Gvr::new("storage.k8s.io", "v1", "csinodes")
}

/// The CSINode of a virtual node.
fn wanted(name: &str, physical: &Value, binding: &Binding, known: Option<&Value>, now: Timestamp) -> Value {
    let mut labels = tree::labels(physical);
    for (key, value) in [
        (label::MANAGED_BY, MANAGED_BY),
        (label::CLUSTER_BINDING, &binding.name),
        (label::PHYSICAL_CLUSTER_ID, &binding.cluster_id),
        (label::PHYSICAL_NODE_NAME, tree::name(physical)),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    let mut annotations = tree::annotations(physical);
    annotations.insert(annotation::PHYSICAL_NODE_NAME.to_owned(), tree::name(physical).to_owned());
    annotations.insert(annotation::PHYSICAL_CSINODE_UID.to_owned(), tree::uid(physical).to_owned());
    let stamp = known.map(|known| tree::annotation(known, annotation::LAST_SYNC_TIME).to_owned());
    annotations.insert(annotation::LAST_SYNC_TIME.to_owned(), stamp.unwrap_or_default());
    let mut object = known
        .cloned()
        .unwrap_or_else(|| json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}}));
    object["metadata"]["labels"] = json!(labels);
    object["metadata"]["annotations"] = json!(annotations);
    object["spec"] = physical["spec"].clone();
    if known != Some(&object) {
        object["metadata"]["annotations"][annotation::LAST_SYNC_TIME] = atoll_meta::time::format(now).into();
    }
    object
}

impl Syncer {
    /// Has a CSINode for a virtual node if the leased node has one.
    pub(crate) async fn keep_csi_node(&self, physical: &str, name: &str) -> Result<(), Status> {
        let below = self.csi_nodes.get("", physical).map(|item| item.tree());
        let known = self.computing.csi_nodes.get("", name).map(|item| item.tree());
        let Some(below) = below else { return self.drop_csi_node(name).await };
        let binding = self.binding();
        if known.as_ref().is_some_and(|known| !binding.owns_node(|key| Some(tree::label(known, key).to_owned()))) {
            tracing::warn!(node = name, "a CSINode of this name belongs to somebody else");
            return Ok(());
        }
        let object = wanted(name, &below, &binding, known.as_ref(), self.now());
        match known {
            Some(known) if known == object => Ok(()),
            Some(_) => self.above().update(&csi_nodes(), None, name, &object).await.map(drop),
            None => match self.above().create(&csi_nodes(), None, &object).await {
                // Not ours, or it would be known.
                Err(status) if status.code == 409 => Ok(()),
                result => result.map(drop),
            },
        }
    }

    /// Removes the CSINode of a virtual node, if it is ours.
    pub(crate) async fn drop_csi_node(&self, name: &str) -> Result<(), Status> {
        let Some(known) = self.computing.csi_nodes.get("", name).map(|item| item.tree()) else { return Ok(()) };
        if !self.binding().owns_node(|key| Some(tree::label(&known, key).to_owned())) {
            return Ok(());
        }
        self.above().delete(&csi_nodes(), None, name, &tree::only(tree::uid(&known))).await
    }
}
