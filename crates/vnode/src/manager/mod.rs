//! Watches over bindings: checks them, runs a syncer for each, says how they are.

mod apart;
mod binding;
mod condition;
mod part;
mod running;
mod secret;
mod unbind;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atoll_api::kubeocean::ClusterBinding;
use atoll_meta::Status;
use atoll_runtime::{Cache, Change, Endpoint, Informer, Item, Leadership, Queue, Selection, lead, work};
use parking_lot::RwLock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Clock;
use crate::metrics::Tallies;
use crate::proxier::{Attendance, Kubelets, Proxier, ProxierOptions, attend};
use crate::syncer::{Computing, Syncer};
use crate::worker::WorkerResolver;
use crate::{resource, tree};
pub(crate) use binding::fingerprint;
pub use part::Deployed;
pub(crate) use part::proxier_pods;
use running::Running;
pub(crate) use secret::Secrets;

/// Name in the computing and worker clusters' logs and field managers.
pub(crate) const AGENT: &str = "atoll-vnode";
const BINDING_WORKERS: usize = 5;

/// Which part of the work is done here.
#[derive(Clone, Debug, Default)]
pub enum Share {
    /// All of it: syncers and proxiers are tasks of this process.
    #[default]
    Everything,
    /// The manager's: syncers and proxiers are Deployments, two for each binding.
    Manager(Deployed),
    /// The syncer of the binding of this name.
    Syncer(String),
    /// A proxier of the binding of this name; several serve side by side.
    Proxier(String),
}

/// What a manager needs to know.
#[derive(Clone)]
pub struct Options {
    /// The computing cluster.
    pub computing: Endpoint,
    /// How worker clusters are found.
    pub workers: Arc<dyn WorkerResolver>,
    /// What tells the time.
    pub clock: Clock,
    /// The time zone of windows that name none.
    pub zone: jiff::tz::TimeZone,
    /// How the kubelet API of virtual nodes is served, if it is.
    pub proxier: Option<ProxierOptions>,
    /// Whether pods must be able to reach the computing cluster's API server and DNS through
    /// its `kubernetes-intranet` and `kube-dns-intranet` Services.
    pub intranet_required: bool,
    /// The DNS domain of the computing cluster.
    pub cluster_domain: String,
    /// How often worker clusters are asked whether they are there.
    pub probe: Duration,
    /// Our name among several managers; without one there is no election.
    pub identity: Option<String>,
    /// Which part of the work is done here.
    pub share: Share,
}

impl Options {
    /// The usual settings for a computing cluster and its workers.
    pub fn new(computing: Endpoint, workers: Arc<dyn WorkerResolver>) -> Self {
        Self {
            computing: computing.with_agent(AGENT),
            workers,
            clock: Arc::new(jiff::Timestamp::now),
            zone: jiff::tz::TimeZone::system(),
            proxier: None,
            intranet_required: true,
            cluster_domain: "cluster.local".to_owned(),
            probe: Duration::from_secs(5),
            identity: None,
            share: Share::default(),
        }
    }
}

/// What syncers need of the options.
pub(crate) struct Settings {
    pub(crate) clock: Clock,
    pub(crate) zone: jiff::tz::TimeZone,
    pub(crate) kubelets: Kubelets,
    pub(crate) intranet_required: bool,
    pub(crate) cluster_domain: String,
    pub(crate) probe: Duration,
    pub(crate) tallies: Tallies,
}

/// A running manager. Cheap to clone.
#[derive(Clone)]
pub struct Manager {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    endpoint: Endpoint,
    workers: Arc<dyn WorkerResolver>,
    settings: Arc<Settings>,
    running: RwLock<std::collections::HashMap<String, Running>>,
    share: Share,
    queue: Queue<String>,
    secrets: Secrets,
    /// Bindings as followed, while we do.
    known: RwLock<Option<Cache>>,
    ready: AtomicBool,
    tasks: TaskTracker,
}

impl Manager {
    /// Starts a manager that works until `stop`.
    pub async fn start(options: Options, stop: CancellationToken) -> Self {
        let proxier = options.proxier.and_then(|proxier| match Proxier::new(proxier, options.clock.clone()) {
            Ok(proxier) => Some(proxier),
            Err(status) => {
                tracing::error!(%status, "the kubelet API of virtual nodes is not served");
                None
            }
        });
        if let Some(proxier) = &proxier {
            tokio::spawn(proxier.clone().keep_fresh(stop.clone()));
        }
        let kubelets = match (proxier, &options.share) {
            (_, Share::Syncer(_)) => Kubelets::Elsewhere,
            (Some(proxier), _) => Kubelets::Here(proxier),
            (None, _) => Kubelets::Nowhere,
        };
        let identity = options.identity.filter(|_| !matches!(options.share, Share::Proxier(_)));
        let settings = Settings {
            clock: options.clock,
            zone: options.zone,
            kubelets,
            intranet_required: options.intranet_required,
            cluster_domain: options.cluster_domain,
            probe: options.probe,
            tallies: Tallies::default(),
        };
        let inner = Arc::new(Inner {
            endpoint: options.computing,
            workers: options.workers,
            settings: Arc::new(settings),
            running: RwLock::default(),
            share: options.share,
            queue: Queue::default(),
            secrets: Secrets::default(),
            known: RwLock::default(),
            ready: AtomicBool::new(identity.is_some()),
            tasks: TaskTracker::new(),
        });
        let own = inner.clone();
        match identity {
            None => drop(inner.tasks.spawn(own.serve(stop))),
            Some(identity) => {
                let leadership = Leadership {
                    namespace: atoll_api::kubeocean_names::SYSTEM_NAMESPACE.to_owned(),
                    name: inner.share.lease(),
                    identity,
                    duration: Duration::from_secs(15),
                };
                let endpoint = inner.endpoint.clone();
                inner.tasks.spawn(lead(endpoint, leadership, stop, move |lost| own.clone().serve(lost)));
            }
        }
        inner.tasks.close();
        Self { inner }
    }

    /// The syncer of a binding, while it runs.
    pub(crate) fn syncer(&self, binding: &str) -> Option<Arc<Syncer>> {
        self.inner.running.read().get(binding)?.syncer()
    }

    /// Waits until a stopped manager has ended what it was doing.
    pub async fn ended(&self) {
        self.inner.tasks.wait().await;
    }

    /// Whether the computing cluster is followed, or somebody else leads and follows it.
    pub fn is_ready(&self) -> bool {
        self.inner.ready.load(Ordering::Relaxed)
    }

    /// The bindings as followed.
    pub(crate) fn known(&self) -> Vec<Item> {
        self.inner.known.read().as_ref().map(Cache::list).unwrap_or_default()
    }

    pub(crate) fn tallies(&self) -> &Tallies {
        &self.inner.settings.tallies
    }

    /// Names of the bindings that are at work.
    pub fn bindings(&self) -> Vec<String> {
        let mut names: Vec<String> = self.inner.running.read().keys().cloned().collect();
        names.sort();
        names
    }
}

impl Share {
    /// The lease that managers with the same share compete for.
    fn lease(&self) -> String {
        match self {
            Self::Syncer(name) => lease_of(name),
            _ => "kubeocean-manager-leader".to_owned(),
        }
    }

    /// Whether a binding is looked after here.
    fn has(&self, binding: &str) -> bool {
        !matches!(self, Self::Syncer(own) if own != binding)
    }

    /// Whether manager, syncer and proxier are processes of their own.
    fn is_apart(&self) -> bool {
        !matches!(self, Self::Everything)
    }
}

/// The lease that the syncers of a binding compete for.
pub(crate) fn lease_of(binding: &str) -> String {
    format!("kubeocean-syncer-{binding}")
}

impl Inner {
    async fn serve(self: Arc<Self>, stop: CancellationToken) {
        self.ready.store(false, Ordering::Relaxed);
        match self.share.clone() {
            Share::Manager(deployed) => return self.oversee(deployed, stop).await,
            Share::Proxier(binding) => return self.answer(binding, stop).await,
            Share::Everything | Share::Syncer(_) => {}
        }
        let Some(computing) = self.connect(&stop).await else { return };
        let computing = Arc::new(computing);
        let queue = self.queue.clone();
        let (sink, share) = (queue.clone(), self.share.clone());
        let bindings =
            Informer::start(self.endpoint.clone(), resource::bindings(), Selection::default(), move |change| {
                let name = &change.item().object.head.name;
                if share.has(name) && !is_mere_telling(&change) {
                    sink.add(name.to_string());
                }
            });
        tokio::select! {
            () = stop.cancelled() => return,
            () = bindings.synced() => {}
        }
        let cache = bindings.cache.clone();
        *self.known.write() = Some(cache.clone());
        self.ready.store(true, Ordering::Relaxed);
        let own = self.clone();
        work(queue, BINDING_WORKERS, stop, move |name| own.clone().pass(computing.clone(), cache.clone(), name)).await;
        *self.known.write() = None;
        self.secrets.clear();
        let running: Vec<Running> = self.running.write().drain().map(|(_, running)| running).collect();
        for running in running {
            running.end().await;
        }
    }

    /// Answers for the virtual nodes of a binding that somebody else keeps.
    async fn answer(self: Arc<Self>, binding: String, stop: CancellationToken) {
        let Kubelets::Here(proxier) = self.settings.kubelets.clone() else {
            return tracing::error!("a proxier without an address serves nobody");
        };
        let attendance = Attendance {
            computing: self.endpoint.clone(),
            workers: self.workers.clone(),
            proxier,
            clock: self.settings.clock.clone(),
            binding,
        };
        attend(attendance, || self.ready.store(true, Ordering::Relaxed), stop).await;
    }

    /// Waits until the computing cluster can be followed.
    async fn connect(&self, stop: &CancellationToken) -> Option<Computing> {
        let mut pause = Duration::from_millis(200);
        loop {
            match Computing::start(self.endpoint.clone()).await {
                Ok(computing) => return Some(computing),
                Err(status) => tracing::warn!(%status, "the computing cluster does not answer"),
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(Duration::from_secs(30)),
            }
        }
    }
}

/// All bindings as they are known.
fn all(cache: &Cache) -> Vec<ClusterBinding> {
    cache.list().iter().filter_map(|item| item.decode().ok()).collect()
}

/// Whether a binding only words its state otherwise. We do that ourselves with every count while it leaves; to look
/// at it for that would write the next count at once, and so on.
fn is_mere_telling(change: &Change) -> bool {
    matches!(change, Change::Updated(old, new) if essence(old) == essence(new))
}

/// What of a binding somebody may have to do something about.
fn essence(binding: &Item) -> Value {
    let binding = binding.tree();
    let (meta, status) = (&binding["metadata"], &binding["status"]);
    let conditions: Vec<[&Value; 3]> =
        tree::list(&status["conditions"]).iter().map(|own| [&own["type"], &own["status"], &own["reason"]]).collect();
    json!([
        meta["uid"],
        meta["deletionTimestamp"],
        meta["annotations"],
        meta["finalizers"],
        binding["spec"],
        status["phase"],
        conditions
    ])
}

/// Why a binding is not ready: the reason and message of its conditions.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        Self::unavailable(format!("{}: {}", failure.reason, failure.message))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_binding_that_only_counts_down_is_not_looked_at_for_that() {
        let binding = json!({
            "apiVersion": "cloud.tencent.com/v1beta1", "kind": "ClusterBinding",
            "metadata": {"name": "w", "uid": "u", "resourceVersion": "1", "generation": 1, "finalizers": ["a"]},
            "spec": {"clusterID": "w"},
            "status": {"phase": "Ready", "conditions": [{"type": "Ready", "status": "False", "reason": "CleanupInProgress", "message": "3 pods"}]},
        });
        let changed = |pointer: &str, value: Value| {
            let mut new = binding.clone();
            new["metadata"]["resourceVersion"] = "2".into();
            new["metadata"]["deletionTimestamp"] = Value::Null;
            new["metadata"]["annotations"] = Value::Null;
            *new.pointer_mut(pointer).unwrap() = value;
            Change::Updated(Item::of(&binding).unwrap(), Item::of(&new).unwrap())
        };
        assert!(is_mere_telling(&changed("/status/conditions/0/message", json!("2 pods"))));
        for (pointer, value) in [
            ("/metadata/uid", json!("another")),
            ("/metadata/deletionTimestamp", json!("2026-01-05T12:00:00Z")),
            ("/metadata/annotations", json!({"atoll.io/force-unbind": "true"})),
            ("/metadata/finalizers", json!([])),
            ("/spec/clusterID", json!("x")),
            ("/status/phase", json!("Failed")),
            ("/status/conditions/0/status", json!("True")),
            ("/status/conditions/0/reason", json!("CleanupFailed")),
        ] {
            assert!(!is_mere_telling(&changed(pointer, value)), "{pointer}");
        }
        assert!(!is_mere_telling(&Change::Deleted(Item::of(&binding).unwrap())));
    }
}
