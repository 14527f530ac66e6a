//! The end of a binding.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::kubeocean::ClusterBinding;
use atoll_api::kubeocean_names::finalizer;
use atoll_meta::Status;
use atoll_runtime::{Cache, Patch};
use serde_json::Value;

use super::{Inner, Share, all, condition};
use crate::binding::{Binding, FORCE_UNBIND, rival};
use crate::copy::unstamp;
use crate::syncer::Computing;
use crate::{behind, resource, tree};

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
            let left = if idle { Vec::new() } else { self.give_back(computing, object, binding, &settings).await? };
            if !left.is_empty() {
                let message = format!("waits until these are gone: {}", told(&left, 10));
                self.say(object, binding, "CleanupInProgress", &message).await?;
                return Ok(Some(AGAIN));
            }
            let rest = tree::finalizers_without(object, finalizer::SYNCER);
            self.patch(object, "", &tree::with_finalizers(object, rest)).await?;
            return Ok(None);
        }
        self.end(&settings.name).await;
        let answers = !matches!(self.share, Share::Syncer(_));
        if answers && tree::has_finalizer(object, finalizer::MANAGER) {
            let rest = tree::finalizers_without(object, finalizer::MANAGER);
            self.patch(object, "", &tree::with_finalizers(object, rest)).await?;
        }
        Ok(None)
    }

    /// Says on a binding how its end goes on; whether that is news.
    async fn say(&self, object: &Value, binding: &ClusterBinding, reason: &str, message: &str) -> Result<bool, Status> {
        let known = binding.status.clone().unwrap_or_default();
        let news = !known.conditions.iter().any(|own| own.type_ == "Ready" && own.message == message);
        self.write_status(object, condition::leaving(known, reason, message, self.now())).await.map(|()| news)
    }

    /// What of the binding is left on either side.
    async fn give_back(
        self: &Arc<Self>,
        computing: &Arc<Computing>,
        object: &Value,
        binding: &ClusterBinding,
        settings: &Binding,
    ) -> Result<Vec<String>, Status> {
        if tree::annotation(object, FORCE_UNBIND) == "true" {
            self.end(&settings.name).await;
            return self.abandon(object, settings).await.map(|()| Vec::new());
        }
        if let Err(failure) = self.ensure_running(computing, binding, settings).await {
            let nothing = computing.nodes_of(&settings.name).is_empty()
                && behind::marked(&self.endpoint, settings).await?.is_empty();
            if nothing {
                return Ok(Vec::new());
            }
            let message = format!(
                "cannot clean up: {}; annotate the binding with {FORCE_UNBIND}=true to leave everything there",
                failure.message
            );
            if self.say(object, binding, "CleanupFailed", &message).await? {
                self.endpoint.event(object, "Warning", "CleanupFailed", &message, self.now()).await;
            }
            return Err(failure.into());
        }
        let nodes = computing.nodes_of(&settings.name);
        if !nodes.is_empty() {
            let with_pods = |name: &str| format!("Node {name} with {} pods", computing.pods_on(name).len());
            return Ok(nodes.iter().map(|node| with_pods(&node.object.head.name)).collect());
        }
        let syncer = self.running.read().get(&settings.name).and_then(super::Running::syncer);
        match syncer {
            Some(syncer) => syncer.leave().await,
            None => Ok(vec!["what the syncer has not looked for yet".to_owned()]),
        }
    }

    /// Lets go of everything on this side without asking the worker cluster; says what it leaves there.
    pub(super) async fn abandon(&self, object: &Value, settings: &Binding) -> Result<(), Status> {
        let left = behind::of(&self.endpoint, settings).await?;
        for node in behind::nodes(&self.endpoint, settings).await? {
            for pod in behind::pods(&self.endpoint, tree::name(&node)).await? {
                let options = tree::only_within(tree::uid(&pod), 0);
                self.endpoint
                    .delete(&resource::pods(), Some(tree::namespace(&pod)), tree::name(&pod), &options)
                    .await?;
            }
            let rest = tree::finalizers_without(&node, finalizer::VIRTUAL_NODE);
            let patch = tree::with_finalizers(&node, rest);
            self.endpoint.patch(&resource::nodes(), None, tree::name(&node), "", Patch::Merge, &patch).await?;
            self.endpoint.delete(&resource::nodes(), None, tree::name(&node), &tree::only(tree::uid(&node))).await?;
        }
        for (kind, original) in behind::marked(&self.endpoint, settings).await? {
            if let Some(patch) = unstamp(&original, &settings.cluster_id) {
                let namespace = Some(tree::namespace(&original)).filter(|namespace| !namespace.is_empty());
                self.endpoint.patch(&kind.gvr(), namespace, tree::name(&original), "", Patch::Merge, &patch).await?;
            }
        }
        let message = format!("left in the worker cluster: {}", told(&left, NAMED));
        self.endpoint.event(object, "Warning", "LeftBehind", &message, self.now()).await;
        Ok(())
    }
}

/// How many objects an event names; `atoll lease unbind` names all of them.
const NAMED: usize = 50;

fn told(left: &[String], most: usize) -> String {
    match left.len() {
        0 => "nothing".to_owned(),
        count if count <= most => left.join(", "),
        count => format!("{} and {} more", left[..most].join(", "), count - most),
    }
}
