//! Taking a virtual Node back: first its pods, then the Node.

use std::time::Duration;

use atoll_api::kubeocean_names::{FAKE_NAMESPACE, SYSTEM_NAMESPACE, annotation, finalizer, label};
use atoll_meta::Status;
use atoll_runtime::Patch;
use serde_json::{Value, json};

use super::taint;
use crate::resource;
use crate::syncer::Syncer;
use crate::tree;

/// How often a node is looked at whose pods take their time; they also tell when they go.
const AGAIN: Duration = Duration::from_secs(10);

/// Namespaces whose pods are never mapped and keep no node from going.
pub(crate) const SYSTEM_NAMESPACES: [&str; 5] =
    ["kube-system", "kube-public", "kube-node-lease", SYSTEM_NAMESPACE, FAKE_NAMESPACE];

impl Syncer {
    /// Goes one step towards there being no virtual Node.
    pub(crate) async fn withdraw(
        &self,
        physical: Option<&Value>,
        existing: Option<&Value>,
        why: &str,
    ) -> Result<Option<Duration>, Status> {
        let marked = |physical: &&Value| !tree::label(physical, label::POLICY_APPLIED).is_empty();
        if let Some(physical) = physical.filter(marked).filter(|physical| self.may_mark(physical)) {
            self.mark_physical(tree::name(physical), Value::Null).await?;
        }
        let Some(node) = existing else { return Ok(None) };
        if !tree::is_deleting(node) {
            tracing::info!(node = tree::name(node), why, "taking a virtual node back");
            self.mark_deleting(node).await?;
            self.above()
                .event(node, "Normal", "TakenBack", &format!("the node is taken back: {why}"), self.now())
                .await;
            self.above().delete(&resource::nodes(), None, tree::name(node), &tree::only(tree::uid(node))).await?;
            // The Node tells when it is marked.
            return Ok(Some(AGAIN));
        }
        if self.clear(node).await? {
            return Ok(Some(AGAIN));
        }
        self.drop_csi_node(tree::name(node)).await?;
        self.drop_host_ports(tree::name(node)).await?;
        self.forget_lease(node).await?;
        self.doors.close(tree::name(node));
        self.computing.ports.release(tree::name(node));
        let rest = tree::finalizers_without(node, finalizer::VIRTUAL_NODE);
        let patch = tree::with_finalizers(node, rest);
        match self.above().patch(&resource::nodes(), None, tree::name(node), "", Patch::Merge, &patch).await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(None),
        }
    }

    async fn mark_deleting(&self, node: &Value) -> Result<(), Status> {
        let mut taints = super::expected::taints(node).to_vec();
        if taints.iter().any(|own| own["key"] == taint::deleting()["key"]) {
            return Ok(());
        }
        taints.push(taint::deleting());
        let patch = json!({
            "metadata": {
                "annotations": {annotation::DELETION_TAINT_TIME: atoll_meta::time::format(self.now())},
                "resourceVersion": node["metadata"]["resourceVersion"],
            },
            "spec": {"taints": taints, "unschedulable": true},
        });
        self.above().patch(&resource::nodes(), None, tree::name(node), "", Patch::Merge, &patch).await.map(drop)
    }

    /// Deletes all pods of a node; says whether one is still there that counts.
    async fn clear(&self, node: &Value) -> Result<bool, Status> {
        let mut left = false;
        for key in self.computing.pods_on(tree::name(node)) {
            let Some(pod) = self.computing.pods.get_key(&key).map(|item| item.tree()) else { continue };
            if !tree::is_deleting(&pod) {
                let (namespace, name) = (tree::namespace(&pod), tree::name(&pod));
                self.above().delete(&resource::pods(), Some(namespace), name, &tree::only(tree::uid(&pod))).await?;
            }
            left |= !SYSTEM_NAMESPACES.contains(&tree::namespace(&pod)) && !atoll_lease::is_over(&pod);
        }
        Ok(left)
    }
}
