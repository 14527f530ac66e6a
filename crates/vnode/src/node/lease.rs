//! Leases of virtual Nodes: renewed while the node is ready and its cluster answers.

use std::sync::Arc;
use std::time::Duration;

use atoll_meta::{Status, time};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::is_ready;
use crate::resource;
use crate::syncer::Syncer;
use crate::tree;

const NAMESPACE: &str = "kube-node-lease";
const SECONDS: u64 = 40;
const EVERY: Duration = Duration::from_secs(10);
const AT_ONCE: usize = 8;

impl Syncer {
    /// Renews the leases of all nodes until `stop`.
    pub(crate) async fn renew_leases(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
            let nodes = self.computing.nodes_of(&self.binding().name);
            let own = &self;
            futures::stream::iter(nodes)
                .for_each_concurrent(AT_ONCE, |item| async move {
                    let node = item.tree();
                    if let Err(status) = own.renew_lease(&node).await {
                        tracing::debug!(node = tree::name(&node), %status, "lease not renewed");
                    }
                })
                .await;
        }
    }

    /// Renews the lease of a node, unless the node is not ready or its cluster silent.
    pub(crate) async fn renew_lease(&self, node: &Value) -> Result<(), Status> {
        if !is_ready(node) || !self.reach.is_up() {
            return Ok(());
        }
        let name = tree::name(node);
        let renew = json!({"spec": {
            "holderIdentity": name, "leaseDurationSeconds": SECONDS, "renewTime": time::format_micro(self.now()),
        }});
        let leases = resource::leases();
        let above = self.above().brief();
        match above.patch(&leases, Some(NAMESPACE), name, "", atoll_runtime::Patch::Merge, &renew).await {
            Err(status) if status.code == 404 => {}
            result => return result.map(drop),
        }
        let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": name, "uid": tree::uid(node)}]);
        let mut lease = renew;
        lease["apiVersion"] = "coordination.k8s.io/v1".into();
        lease["kind"] = "Lease".into();
        lease["metadata"] = json!({"name": name, "namespace": NAMESPACE, "ownerReferences": owner});
        match self.above().create(&leases, Some(NAMESPACE), &lease).await {
            Err(status) if status.code != 409 => Err(status),
            _ => Ok(()),
        }
    }

    pub(crate) async fn forget_lease(&self, node: &Value) -> Result<(), Status> {
        self.above().delete(&resource::leases(), Some(NAMESPACE), tree::name(node), &Value::Null).await
    }
}
