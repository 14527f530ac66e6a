//! The end of a binding.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::kubeocean::ClusterBinding;
use atoll_api::kubeocean_names::{finalizer, synced_by_label};
use atoll_meta::Status;
use atoll_runtime::{Cache, Patch};
use serde_json::{Value, json};

use super::{Inner, all};
use crate::binding::{Binding, FORCE_UNBIND, rival};
use crate::copy::{Kind, unstamp};
use crate::syncer::Computing;
use crate::{resource, tree};

const AGAIN: Duration = Duration::from_secs(2);

impl Inner {
    /// Takes everything back, then lets the binding go.
    pub(super) async fn unbind(
        self: &Arc<Self>,
        computing: &Arc<Computing>,
        cache: &Cache,
        object: &Value,
        binding: &ClusterBinding,
    ) -> Result<Option<Duration>, Status> {
        let settings = Binding::of(binding);
        if tree::has_finalizer(object, finalizer::SYNCER) {
            // A binding that lost its id to another never did anything under it.
            let idle = rival(binding, &all(cache)).is_some();
            if !idle && !self.give_back(computing, object, binding, &settings).await? {
                return Ok(Some(AGAIN));
            }
            let rest = tree::finalizers_without(object, finalizer::SYNCER);
            self.patch(object, "", &json!({"metadata": {"finalizers": rest}})).await?;
            return Ok(None);
        }
        self.end(&settings.name).await;
        if tree::has_finalizer(object, finalizer::MANAGER) {
            let rest = tree::finalizers_without(object, finalizer::MANAGER);
            self.patch(object, "", &json!({"metadata": {"finalizers": rest}})).await?;
        }
        Ok(None)
    }

    /// Whether nothing of the binding is left on either side.
    async fn give_back(
        self: &Arc<Self>,
        computing: &Arc<Computing>,
        object: &Value,
        binding: &ClusterBinding,
        settings: &Binding,
    ) -> Result<bool, Status> {
        if tree::annotation(object, FORCE_UNBIND) == "true" {
            self.end(&settings.name).await;
            return self.abandon(computing, object, settings).await;
        }
        if let Err(failure) = self.ensure_running(computing, binding, settings).await {
            let nothing = computing.nodes_of(&settings.name).is_empty() && self.marked(settings).await?.is_empty();
            if nothing {
                return Ok(true);
            }
            let message = format!(
                "cannot clean up: {}; annotate the binding with {FORCE_UNBIND}=true to leave everything there",
                failure.message
            );
            self.endpoint.event(object, "Warning", "CleanupFailed", &message, self.now()).await;
            return Err(failure.into());
        }
        if !computing.nodes_of(&settings.name).is_empty() {
            return Ok(false);
        }
        let syncer = self.running.read().get(&settings.name).and_then(super::Running::syncer);
        let Some(syncer) = syncer else { return Ok(false) };
        let left = syncer.leave().await?;
        if !left.is_empty() {
            tracing::debug!(binding = settings.name, ?left, "still leaving");
        }
        Ok(left.is_empty())
    }

    /// Originals that carry the marks of a binding.
    async fn marked(&self, settings: &Binding) -> Result<Vec<(Kind, Value)>, Status> {
        let query = format!("labelSelector={}%3Dtrue", synced_by_label(&settings.cluster_id));
        let mut out = Vec::new();
        for kind in Kind::ALL {
            let list = self.endpoint.list(&kind.gvr(), None, &query).await?;
            out.extend(list.items.into_iter().map(|object| (kind, object)));
        }
        Ok(out)
    }

    /// Lets go of everything on this side without asking the worker cluster; says what it leaves there.
    async fn abandon(&self, computing: &Computing, object: &Value, settings: &Binding) -> Result<bool, Status> {
        let mut behind = Vec::new();
        for node in computing.nodes_of(&settings.name) {
            for key in computing.pods_on(&node.object.head.name) {
                let (namespace, name) = tree::split(&key);
                behind.push(format!(
                    "Pod {}/{}",
                    settings.mount_namespace,
                    atoll_api::kubeocean_names::physical(namespace, name)
                ));
                self.endpoint
                    .delete(&resource::pods(), Some(namespace), name, &json!({"gracePeriodSeconds": 0}))
                    .await?;
            }
            let node = node.tree();
            let rest = tree::finalizers_without(&node, finalizer::VIRTUAL_NODE);
            let patch = json!({"metadata": {"finalizers": rest}});
            self.endpoint.patch(&resource::nodes(), None, tree::name(&node), "", Patch::Merge, &patch).await?;
            self.endpoint.delete(&resource::nodes(), None, tree::name(&node), &tree::only(tree::uid(&node))).await?;
        }
        for (kind, original) in self.marked(settings).await? {
            behind.push(format!(
                "{} {}",
                kind.name(),
                tree::annotation(&original, atoll_api::kubeocean_names::annotation::PHYSICAL_NAME)
            ));
            if let Some(patch) = unstamp(&original, &settings.cluster_id) {
                let namespace = Some(tree::namespace(&original)).filter(|namespace| !namespace.is_empty());
                self.endpoint.patch(&kind.gvr(), namespace, tree::name(&original), "", Patch::Merge, &patch).await?;
            }
        }
        let message = if behind.is_empty() { "nothing".to_owned() } else { behind.join(", ") };
        self.endpoint
            .event(object, "Warning", "LeftBehind", &format!("left in the worker cluster: {message}"), self.now())
            .await;
        Ok(true)
    }
}
