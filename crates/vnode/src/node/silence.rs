//! Virtual Nodes of a worker cluster that fell silent.

use atoll_runtime::Patch;
use serde_json::json;

use super::build::silent;
use crate::resource;
use crate::syncer::Syncer;
use crate::tree;

impl Syncer {
    /// Says on every virtual Node that its cluster does not answer. Nothing is deleted.
    pub(crate) async fn silence(&self) {
        for item in self.computing.nodes_of(&self.binding().name) {
            let node = item.tree();
            let conditions = silent(tree::list(&node["status"]["conditions"]), &[], self.now());
            if conditions == node["status"]["conditions"] {
                continue;
            }
            let patch = json!({"status": {"conditions": conditions}});
            let written =
                self.above().patch(&resource::nodes(), None, tree::name(&node), "status", Patch::Merge, &patch).await;
            if let Err(status) = written {
                tracing::warn!(node = tree::name(&node), %status, "cannot say that the node is unreachable");
            }
        }
    }
}
