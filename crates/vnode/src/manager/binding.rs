//! One pass over one binding.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use atoll_api::kubeocean::{ClusterBinding, ClusterBindingStatus};
use atoll_api::kubeocean_names::{finalizer, label};
use atoll_meta::Status;
use atoll_runtime::{Cache, Patch};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::running::Running;
use super::{Failure, Inner, Share, all, condition};
use crate::binding::{Binding, check, rival};
use crate::feature::{Feature, Features, listed};
use crate::role::{Rights, rights};
use crate::syncer::Computing;
use crate::worker::{Worker, kubeconfig};
use crate::{resource, tree};

/// How often a healthy binding is looked at although nothing is heard of a change.
const AGAIN: Duration = Duration::from_secs(60);
const CONNECTING: Duration = Duration::from_secs(30);
/// How often the rights are asked for again while something is denied; a quota may be what denies it.
const DENIALS: Duration = Duration::from_secs(30);
/// How long a syncer waits for the answer before it starts without.
const PROMPT: Duration = Duration::from_secs(5);

impl Inner {
    /// One pass, counted.
    pub(super) async fn pass(
        self: Arc<Self>,
        computing: Arc<Computing>,
        cache: Cache,
        name: String,
    ) -> Result<Option<Duration>, Status> {
        let (own, started) = (self.clone(), tokio::time::Instant::now());
        let gone = cache.get("", &name).is_none();
        let result = self.reconcile(computing, cache, name.clone()).await;
        if gone {
            own.settings.tallies.forget(&name);
        } else {
            own.settings.tallies.pass(&name, started.elapsed(), result.is_err());
        }
        result
    }

    async fn reconcile(
        self: Arc<Self>,
        computing: Arc<Computing>,
        cache: Cache,
        name: String,
    ) -> Result<Option<Duration>, Status> {
        let Some(item) = cache.get("", &name) else {
            self.secrets.forget(&name);
            self.end(&name).await;
            return Ok(None);
        };
        let object = item.tree();
        let binding: ClusterBinding = item.decode().map_err(|error| Status::bad_request(error.to_string()))?;
        if tree::is_deleting(&object) {
            return self.unbind(&computing, &cache, &object, &binding).await;
        }
        if self.add_finalizers(&object).await? {
            return Ok(None);
        }
        let known = binding.status.clone().unwrap_or_default();
        if known.phase.is_empty() {
            self.write_status(&object, condition::pending(known, self.now())).await?;
            return Ok(None);
        }
        match self.bring_up(&computing, &cache, &binding).await {
            Ok(()) => {
                if known.phase != "Ready" {
                    self.endpoint
                        .event(&object, "Normal", "Ready", "the worker cluster answers and the syncer runs", self.now())
                        .await;
                }
                self.write_status(
                    &object,
                    condition::ready(known, !self.share.is_apart(), &self.withheld(&name), self.now()),
                )
                .await?;
                Ok(Some(AGAIN))
            }
            Err(failure) => {
                let told = known
                    .conditions
                    .iter()
                    .any(|own| own.type_ == "Ready" && own.reason == failure.reason && own.message == failure.message);
                if !told {
                    self.endpoint.event(&object, "Warning", failure.reason, &failure.message, self.now()).await;
                }
                self.write_status(&object, condition::failed(known, &failure, self.now())).await?;
                Err(failure.into())
            }
        }
    }

    pub(super) fn now(&self) -> jiff::Timestamp {
        (self.settings.clock)()
    }

    /// Stops the syncer of a binding that is gone.
    pub(super) async fn end(&self, name: &str) {
        let running = self.running.write().remove(name);
        if let Some(running) = running {
            running.end().await;
        }
    }

    async fn add_finalizers(&self, object: &Value) -> Result<bool, Status> {
        // With a manager of its own, a syncer answers for its part only.
        let ours: &[&str] = match self.share {
            Share::Syncer(_) => &[finalizer::SYNCER],
            _ => &[finalizer::MANAGER, finalizer::SYNCER],
        };
        let missing: Vec<&str> = ours.iter().copied().filter(|own| !tree::has_finalizer(object, own)).collect();
        if missing.is_empty() {
            return Ok(false);
        }
        let mut all = tree::list(&object["metadata"]["finalizers"]).to_vec();
        all.extend(missing.into_iter().map(Value::from));
        self.patch(object, "", &tree::with_finalizers(object, all)).await.map(|()| true)
    }

    /// Checks everything and has a syncer running.
    async fn bring_up(
        self: &Arc<Self>,
        computing: &Arc<Computing>,
        cache: &Cache,
        binding: &ClusterBinding,
    ) -> Result<(), Failure> {
        let settings = Binding::of(binding);
        self.validate(computing, cache, binding, &settings)
            .map_err(|message| Failure { reason: "ValidationFailed", message })?;
        self.ensure_running(computing, binding, &settings).await
    }

    /// Has a syncer running that knows the binding as it is; fails while its worker does not answer.
    pub(super) async fn ensure_running(
        self: &Arc<Self>,
        computing: &Arc<Computing>,
        binding: &ClusterBinding,
        settings: &Binding,
    ) -> Result<(), Failure> {
        let lost = |status: Status| Failure { reason: "ConnectivityFailed", message: status.message };
        self.secrets.follow(&self.endpoint, binding, &self.queue);
        let kubeconfig = kubeconfig(&self.endpoint, binding).await.map_err(lost)?;
        let fingerprint = fingerprint(&kubeconfig, settings);
        let known = self.running.read().get(&settings.name).map(|running| running.fingerprint == fingerprint);
        if known == Some(false) {
            self.end(&settings.name).await;
        }
        if known != Some(true) {
            let mut worker = self.workers.resolve(binding, &kubeconfig).await.map_err(lost)?;
            let way = worker.endpoint.clone();
            // Asked first, so that nothing is asked for that is not granted; one that does not answer is asked again.
            let asked = tokio::time::timeout(PROMPT, granted(&worker, settings)).await;
            if let Ok(Ok(rights)) = asked {
                worker.withheld.clone_from(&rights.withheld);
                self.run(computing, worker, settings, fingerprint);
                return self.heed(settings, &rights);
            }
            self.run(computing, worker, settings, fingerprint);
            let answer = tokio::time::timeout(CONNECTING, way.get_path("/version")).await;
            answer.unwrap_or_else(|_| Err(Status::unavailable("no answer in time"))).map_err(lost)?;
            return self.check_permissions(computing, settings).await;
        }
        if let Some(running) = self.running.read().get(&settings.name) {
            running.set_binding(settings.clone());
            if let Some(message) = running.reach.trouble() {
                return Err(Failure { reason: "ConnectivityFailed", message });
            }
        }
        self.check_permissions(computing, settings).await
    }

    /// Asks the worker cluster whether we may do what we have to, until it grants everything. A syncer that knows of
    /// other rights is started anew.
    async fn check_permissions(&self, computing: &Arc<Computing>, settings: &Binding) -> Result<(), Failure> {
        let (mut worker, fingerprint) = match self.running.read().get(&settings.name) {
            Some(running) if !running.permitted.load(Ordering::Relaxed) => {
                (running.worker.clone(), running.fingerprint.clone())
            }
            _ => return Ok(()),
        };
        let lost = |status: Status| Failure { reason: "ConnectivityFailed", message: status.message };
        let rights = granted(&worker, settings).await.map_err(lost)?;
        if rights.missing.is_empty() && rights.withheld != worker.withheld {
            self.end(&settings.name).await;
            worker.withheld.clone_from(&rights.withheld);
            self.run(computing, worker, settings, fingerprint);
        }
        self.heed(settings, &rights)
    }

    /// Notes what a worker cluster grants; a failure if that is not enough.
    fn heed(&self, settings: &Binding, rights: &Rights) -> Result<(), Failure> {
        if !rights.missing.is_empty() {
            let message = format!("the worker cluster does not allow: {}", rights.missing.join(", "));
            return Err(Failure { reason: "PermissionsMissing", message });
        }
        if let Some(running) = self.running.read().get(&settings.name) {
            running.permitted.store(rights.withheld.is_empty(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Starts the syncer of a binding.
    fn run(&self, computing: &Arc<Computing>, worker: Worker, settings: &Binding, fingerprint: String) {
        let running = Running::start(self.settings.clone(), computing.clone(), worker, settings.clone(), fingerprint);
        self.follow(&settings.name, &running);
        self.running.write().insert(settings.name.clone(), running);
    }

    /// What the worker cluster of a binding does not grant, in words.
    fn withheld(&self, name: &str) -> String {
        self.running.read().get(name).map(|running| listed(&running.worker.withheld)).unwrap_or_default()
    }

    /// Looks at a binding again when its worker cluster falls silent, answers again, or no longer allows something.
    fn follow(&self, name: &str, running: &Running) {
        let (queue, name, mut reach) = (self.queue.clone(), name.to_owned(), running.reach.follow());
        let (denials, permitted) = (running.reach.denials(), running.permitted.clone());
        tokio::spawn(async move {
            let mut quiet = tokio::time::Instant::now();
            loop {
                tokio::select! {
                    // Ends with the syncer, which drops the sender.
                    changed = reach.changed() => if changed.is_err() { return },
                    () = async { tokio::time::sleep_until(quiet).await; denials.notified().await } => {
                        permitted.store(false, Ordering::Relaxed);
                        quiet = tokio::time::Instant::now() + DENIALS;
                    }
                }
                queue.add(name.clone());
            }
        });
    }

    fn validate(
        &self,
        computing: &Computing,
        cache: &Cache,
        binding: &ClusterBinding,
        settings: &Binding,
    ) -> Result<(), String> {
        check(binding)?;
        if let Some(other) = rival(binding, &all(cache)) {
            return Err(format!(
                "spec.clusterID {:?} is already used by ClusterBinding {other:?}",
                settings.cluster_id
            ));
        }
        let running = self.running.read().get(&settings.name).map(|running| running.cluster_id.clone());
        let on_nodes = computing.nodes_of(&settings.name);
        let on_nodes = on_nodes
            .iter()
            .filter_map(|node| node.object.head.label(label::PHYSICAL_CLUSTER_ID).map(ToOwned::to_owned));
        match running.into_iter().chain(on_nodes).find(|id| *id != settings.cluster_id) {
            Some(id) => Err(format!("spec.clusterID is immutable: it was {id:?}")),
            None => Ok(()),
        }
    }

    pub(super) async fn write_status(&self, object: &Value, status: ClusterBindingStatus) -> Result<(), Status> {
        let status = serde_json::to_value(&status).map_err(Status::internal)?;
        let Some(patch) = tree::difference(&object["status"], &status) else { return Ok(()) };
        let mut patch = json!({"status": patch});
        if self.share.is_apart() {
            // Manager and syncer both write: whoever read an older status looks again.
            patch["metadata"] = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
        }
        self.patch(object, "status", &patch).await
    }

    pub(super) async fn patch(&self, object: &Value, sub: &str, patch: &Value) -> Result<(), Status> {
        match self.endpoint.patch(&resource::bindings(), None, tree::name(object), sub, Patch::Merge, patch).await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }
}

/// What a worker cluster grants to a binding.
async fn granted(worker: &Worker, settings: &Binding) -> Result<Rights, Status> {
    let services = (!settings.service_namespaces.is_empty()).then_some(Feature::Services);
    rights(&worker.endpoint, &settings.mount_namespace, &Features::from_iter(services)).await
}

/// Changes when a syncer has to be started anew: other credentials, other namespaces to follow.
pub(crate) fn fingerprint(kubeconfig: &str, settings: &Binding) -> String {
    let mut digest = Sha256::new();
    digest.update(kubeconfig);
    for namespace in std::iter::once(&settings.mount_namespace).chain(&settings.service_namespaces) {
        digest.update([0]);
        digest.update(namespace);
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
