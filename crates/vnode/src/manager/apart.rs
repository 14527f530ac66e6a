//! Bindings whose syncers are Deployments: made, repaired and removed here; what they do is theirs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use atoll_api::kubeocean::ClusterBinding;
use atoll_api::kubeocean_names::{SYSTEM_NAMESPACE, finalizer, label};
use atoll_meta::{Gvr, Status};
use atoll_runtime::{Cache, Change, Informer, Patch, Selection, work};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::part::{Deployed, Half, KEEPER, MANAGER, Part, made, parts};
use super::{AGENT, BINDING_WORKERS, Failure, Inner, all, condition, is_mere_telling, lease_of};
use crate::binding::{Binding, FORCE_UNBIND, check, rival};
use crate::{behind, resource, tree};

/// How often everything is looked at although nothing is heard of a change.
const AGAIN: Duration = Duration::from_secs(60);

/// What is known: bindings and the Deployments made for them.
#[derive(Clone)]
struct Followed {
    bindings: Cache,
    deployments: Cache,
}

impl Followed {
    /// Whether half of a binding has a pod that is ready.
    fn is_available(&self, half: Half, cluster_id: &str) -> bool {
        let made = self.deployments.get(SYSTEM_NAMESPACE, &half.name(cluster_id)).map(|item| item.tree());
        made.is_some_and(|made| made["status"]["availableReplicas"].as_i64().is_some_and(|count| count > 0))
    }
}

impl Inner {
    /// Watches over Deployments until `stop`.
    pub(super) async fn oversee(self: Arc<Self>, deployed: Deployed, stop: CancellationToken) {
        let sink = self.queue.clone();
        let bindings =
            Informer::start(self.endpoint.clone(), resource::bindings(), Selection::default(), move |change| {
                if !is_mere_telling(&change) {
                    sink.add(change.item().object.head.name.to_string());
                }
            });
        let made: Vec<Informer> = made().into_iter().map(|(gvr, namespace)| self.follow_made(gvr, namespace)).collect();
        tokio::select! {
            () = stop.cancelled() => return,
            () = async { bindings.synced().await; made[0].synced().await } => {}
        }
        *self.known.write() = Some(bindings.cache.clone());
        self.ready.store(true, Ordering::Relaxed);
        let followed = Followed { bindings: bindings.cache.clone(), deployments: made[0].cache.clone() };
        let (own, queue) = (self.clone(), self.queue.clone());
        work(queue, BINDING_WORKERS, stop, move |name| own.clone().look(followed.clone(), deployed.clone(), name))
            .await;
        *self.known.write() = None;
    }

    /// Looks at a binding again when somebody changes or deletes what was made for it.
    fn follow_made(&self, gvr: Gvr, namespace: Option<&str>) -> Informer {
        let selection = Selection {
            namespace: namespace.map(ToOwned::to_owned),
            query: format!("labelSelector={KEEPER}%3D{MANAGER}"),
        };
        let sink = self.queue.clone();
        Informer::start_light(self.endpoint.clone(), gvr, selection, move |change| {
            let binding = change.item().object.head.label(label::CLUSTER_BINDING);
            // What is new was made here.
            if let (Some(binding), Change::Updated(..) | Change::Deleted(_)) = (binding, &change) {
                sink.add(binding.to_owned());
            }
        })
    }

    /// One look, counted.
    async fn look(
        self: Arc<Self>,
        followed: Followed,
        deployed: Deployed,
        name: String,
    ) -> Result<Option<Duration>, Status> {
        let started = tokio::time::Instant::now();
        let gone = followed.bindings.get("", &name).is_none();
        let result = self.keep_parts(followed, deployed, &name).await;
        if gone {
            self.settings.tallies.forget(&name);
        } else {
            self.settings.tallies.pass(&name, started.elapsed(), result.is_err());
        }
        result
    }

    async fn keep_parts(&self, followed: Followed, deployed: Deployed, name: &str) -> Result<Option<Duration>, Status> {
        // What belonged to a binding that is gone goes with its owner.
        let Some(item) = followed.bindings.get("", name) else { return Ok(None) };
        let object = item.tree();
        let binding: ClusterBinding = item.decode().map_err(|error| Status::bad_request(error.to_string()))?;
        let parts = parts(&binding, &deployed);
        if tree::is_deleting(&object) {
            return self.let_go(&object, &Binding::of(&binding), &parts).await;
        }
        if !tree::has_finalizer(&object, finalizer::MANAGER) {
            let mut finalizers = tree::list(&object["metadata"]["finalizers"]).to_vec();
            finalizers.push(finalizer::MANAGER.into());
            self.patch(&object, "", &tree::with_finalizers(&object, finalizers)).await?;
            return Ok(None);
        }
        let known = binding.status.clone().unwrap_or_default();
        let failure = self.has_parts(&followed, &binding, &parts).await.err();
        let status = match &failure {
            Some(failure) => condition::failed(known, failure, self.now()),
            // The syncer says how the binding is.
            None => known,
        };
        let answers = followed.is_available(Half::Proxier, &binding.spec.cluster_id);
        self.write_status(&object, condition::proxier(status, answers, self.now())).await?;
        match failure {
            Some(failure) if failure.reason != NOT_READY => Err(failure.into()),
            _ => Ok(Some(AGAIN)),
        }
    }

    /// Has everything made and a syncer at work; it says itself how the binding is.
    async fn has_parts(&self, followed: &Followed, binding: &ClusterBinding, parts: &[Part]) -> Result<(), Failure> {
        let invalid = |message| Failure { reason: "ValidationFailed", message };
        let failed = |status: Status| Failure { reason: "SyncerFailed", message: status.message };
        let settings = Binding::of(binding);
        check(binding).map_err(invalid)?;
        if let Some(other) = rival(binding, &all(&followed.bindings)) {
            return Err(invalid(format!(
                "spec.clusterID {:?} is already used by ClusterBinding {other:?}",
                settings.cluster_id
            )));
        }
        for node in behind::nodes(&self.endpoint, &settings).await.map_err(failed)? {
            let id = tree::label(&node, label::PHYSICAL_CLUSTER_ID);
            if id != settings.cluster_id {
                return Err(invalid(format!("spec.clusterID is immutable: it was {id:?}")));
            }
        }
        self.may_take(binding, parts).await.map_err(failed)?;
        for part in parts {
            self.make_part(part).await.map_err(failed)?;
        }
        let name = Half::Syncer.name(&settings.cluster_id);
        // One that works speaks for itself, whatever its Deployment says.
        match followed.is_available(Half::Syncer, &settings.cluster_id)
            || self.is_at_work(&settings.name).await.map_err(failed)?
        {
            true => Ok(()),
            false => Err(Failure { reason: NOT_READY, message: format!("Deployment {name} has no pod that is ready") }),
        }
    }

    /// Whether a syncer of the binding holds its lease.
    async fn is_at_work(&self, binding: &str) -> Result<bool, Status> {
        let lease = self.endpoint.get_opt(&resource::leases(), Some(SYSTEM_NAMESPACE), &lease_of(binding)).await?;
        let spec = lease.as_ref().map_or(&Value::Null, |lease| &lease["spec"]);
        let held = spec["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
        let renewed = spec["renewTime"].as_str().and_then(atoll_meta::time::parse);
        let lasting = Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or_default());
        // Leases are stamped with the time of day, not with the clock that windows go by.
        let fresh = renewed.is_some_and(|then| jiff::Timestamp::now().duration_since(then).unsigned_abs() <= lasting);
        Ok(held && fresh)
    }

    /// Whether the names are free or the binding's own; two that were made in the same second may not agree on who was first.
    async fn may_take(&self, binding: &ClusterBinding, parts: &[Part]) -> Result<(), Status> {
        let Some(first) = parts.first() else { return Ok(()) };
        let name = tree::name(&first.object);
        let there = self.endpoint.get_opt(&first.gvr, first.namespace.as_deref(), name).await?.unwrap_or_default();
        match tree::label(&there, label::CLUSTER_BINDING) {
            "" => Ok(()),
            owner if Some(owner) == binding.metadata.name.as_deref() => Ok(()),
            owner => Err(Status::internal(format!("{name} belongs to ClusterBinding {owner:?}"))),
        }
    }

    /// Has an object say what it should, unless it does.
    async fn make_part(&self, part: &Part) -> Result<(), Status> {
        let language = Patch::Apply { manager: AGENT, force: true };
        let name = tree::name(&part.object);
        self.endpoint.patch(&part.gvr, part.namespace.as_deref(), name, "", language, &part.object).await.map(drop)
    }

    /// Waits until the syncer gave everything back, then removes it and lets the binding go.
    async fn let_go(&self, object: &Value, binding: &Binding, parts: &[Part]) -> Result<Option<Duration>, Status> {
        let forced = tree::annotation(object, FORCE_UNBIND) == "true";
        if tree::has_finalizer(object, finalizer::SYNCER) {
            if forced && !self.is_at_work(&binding.name).await? {
                // There is nobody left to do it.
                self.abandon(object, binding).await?;
                let rest = tree::finalizers_without(object, finalizer::SYNCER);
                self.patch(object, "", &tree::with_finalizers(object, rest)).await?;
                return Ok(None);
            }
            // Whoever has to give back must be there for it.
            for part in parts {
                self.make_part(part).await?;
            }
            return Ok(Some(AGAIN));
        }
        for part in parts.iter().rev() {
            let name = tree::name(&part.object);
            let Some(there) = self.endpoint.get_opt(&part.gvr, part.namespace.as_deref(), name).await? else {
                continue;
            };
            // Another binding with the same id keeps what it has.
            if tree::label(&there, label::CLUSTER_BINDING) == tree::name(object) {
                self.endpoint
                    .delete(&part.gvr, part.namespace.as_deref(), name, &tree::only(tree::uid(&there)))
                    .await?;
            }
        }
        if tree::has_finalizer(object, finalizer::MANAGER) {
            let rest = tree::finalizers_without(object, finalizer::MANAGER);
            self.patch(object, "", &tree::with_finalizers(object, rest)).await?;
        }
        Ok(None)
    }
}

/// Why a binding is not ready whose Deployment has not started yet, or no longer runs.
pub(super) const NOT_READY: &str = "SyncerNotReady";
