//! One binding at work: everything that happens between one worker cluster and the computing cluster.

mod computing;
mod intranet;
mod leave;
mod queues;
mod reach;
mod source;
mod usage;

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use atoll_api::kubeocean::ResourceLeasingPolicy;
use atoll_api::kubeocean_names::label;
use atoll_lease::Policy;
use atoll_meta::Status;
use atoll_runtime::{Cache, Change, Endpoint, Item, Queue, work};
use futures::FutureExt as _;
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use computing::{Computing, Host};
pub(crate) use queues::Queues;
pub(crate) use reach::Reach;
use source::Sources;
pub(crate) use usage::{Usage, is_ours, original_of};

use crate::binding::Binding;
use crate::copy::{Copies, Kind, Thing, Users};
use crate::feature::Feature;
use crate::manager::Settings;
use crate::pod::{Complaints, Intranet, SWEEP, Unplaced, Workload};
use crate::proxier::{Doors, Kubelets, Meter};
use crate::resource;
use crate::service::Traffics;
use crate::switchboard::Switchboard;
use crate::worker::Worker;

const POD_WORKERS: usize = 32;
const NODE_WORKERS: usize = 8;
const OBJECT_WORKERS: usize = 8;

/// One binding at work.
pub(crate) struct Syncer {
    pub(crate) settings: Arc<Settings>,
    pub(crate) computing: Arc<Computing>,
    pub(crate) worker: Worker,
    /// Nodes, pods and policies of the worker cluster.
    pub(crate) nodes: Cache,
    pub(crate) pods: Cache,
    pub(crate) policies: Cache,
    pub(crate) usage: Arc<Usage>,
    pub(crate) queues: Queues,
    pub(crate) reach: Reach,
    pub(crate) copies: Copies,
    pub(crate) users: Users,
    pub(crate) traffics: Traffics,
    pub(crate) doors: Doors,
    pub(crate) board: Arc<Switchboard>,
    /// Pods that serve the kubelet API, where that is not done here.
    pub(crate) proxiers: Option<Cache>,
    pub(crate) csi_nodes: Cache,
    pub(crate) events: Cache,
    /// What pods wait for.
    pub(crate) complaints: Complaints,
    /// Since when pods have no place.
    pub(crate) unplaced: Unplaced,
    /// Name and value of the priority class of leased pods.
    pub(crate) priority: Mutex<Option<(String, Option<i64>)>>,
    /// Deployments of ReplicaSets.
    pub(crate) workloads: Mutex<HashMap<String, Workload>>,
    intranet: Mutex<Option<(tokio::time::Instant, Intranet)>>,
    binding: RwLock<Arc<Binding>>,
}

/// What a pass comes to: when to look again, if at all.
type Pass = Result<Option<Duration>, Status>;

/// The objects of a cache, read one by one: thousands at once would be a burden.
pub(crate) fn one_by_one(cache: &Cache) -> impl Iterator<Item = Item> + '_ {
    cache.keys().into_iter().filter_map(|key| cache.get_key(&key))
}

/// One object in the place of another of its name is an end and a beginning; what happened between was missed.
fn replacement(change: &Change) -> Option<[Change; 2]> {
    match change {
        Change::Updated(old, new) if old.object.head.uid != new.object.head.uid => {
            Some([Change::Deleted(old.clone()), Change::Added(new.clone())])
        }
        _ => None,
    }
}

impl Syncer {
    /// Prepares a syncer and starts following the worker cluster.
    fn open(
        settings: Arc<Settings>,
        computing: Arc<Computing>,
        worker: Worker,
        binding: Binding,
        reach: Reach,
    ) -> (Arc<Self>, Sources) {
        let queues = Queues::default();
        let usage = Arc::new(Usage::default());
        let mut sources = Sources::default();
        let nodes = sources.by_name(&worker, resource::nodes(), &queues.nodes);
        let pods = sources.pods(&worker, &computing.owner, &usage, &queues);
        let policies = sources.by_name(&worker, resource::policies(), &queues.policies);
        // What is not granted is not asked for, and nothing waits for it.
        let granted = |feature| !worker.withheld.contains(&feature);
        let csi_nodes =
            granted(Feature::Volumes).then(|| sources.by_name(&worker, crate::node::csi_nodes(), &queues.nodes));
        let events = granted(Feature::Events).then(|| sources.events(&worker, &binding.mount_namespace, &queues));
        let elsewhere = matches!(settings.kubelets, Kubelets::Elsewhere);
        let proxiers = elsewhere.then(|| sources.proxiers(&computing.endpoint, &binding.name, &queues, &nodes));
        let (copies, informers) = Copies::follow(&computing, &worker, &binding, &queues);
        sources.extend(informers);
        let (traffics, informers) = Traffics::follow(&computing, &worker, &binding, &queues);
        sources.extend(informers);
        let board = Switchboard {
            computing: computing.endpoint.clone(),
            owner: computing.owner.clone(),
            worker: worker.clone(),
            mount: binding.mount_namespace.clone(),
            pods: pods.clone(),
            meter: Meter::default(),
            clock: settings.clock.clone(),
        };
        let syncer = Self {
            settings,
            computing,
            worker: worker.clone(),
            nodes,
            pods,
            policies,
            usage,
            queues,
            reach,
            copies,
            users: Users::default(),
            traffics,
            doors: Doors::default(),
            board: Arc::new(board),
            proxiers,
            csi_nodes: csi_nodes.unwrap_or_default(),
            events: events.unwrap_or_default(),
            complaints: Complaints::default(),
            unplaced: Unplaced::default(),
            priority: Mutex::default(),
            workloads: Mutex::default(),
            intranet: Mutex::default(),
            binding: RwLock::new(Arc::new(binding)),
        };
        (Arc::new(syncer), sources)
    }

    /// Works until `stop`; an error means it could not begin.
    pub(crate) async fn run(
        settings: Arc<Settings>,
        computing: Arc<Computing>,
        worker: Worker,
        binding: Binding,
        reach: Reach,
        ready: impl FnOnce(Arc<Self>),
        stop: CancellationToken,
    ) -> Result<(), Status> {
        let (syncer, sources) = Self::open(settings, computing, worker, binding, reach);
        let _registration = syncer.computing.register(&syncer.binding().name, syncer.queues.clone());
        let tasks = TaskTracker::new();
        if !syncer.reach.is_up() {
            syncer.silence().await;
        }
        tasks.spawn(syncer.clone().follow_reach(stop.clone()));
        ready(syncer.clone());
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = async { syncer.computing.synced().await; sources.synced().await } => {}
        }
        syncer.seed();
        tasks.spawn(syncer.clone().renew_leases(stop.clone()));
        let queues = &syncer.queues;
        syncer.employ(&tasks, &stop, &queues.nodes, NODE_WORKERS, Self::node);
        syncer.employ(&tasks, &stop, &queues.pods, POD_WORKERS, Self::pod);
        syncer.employ(&tasks, &stop, &queues.policies, 1, Self::policy);
        syncer.employ(&tasks, &stop, &queues.objects, OBJECT_WORKERS, Self::object);
        syncer.employ(&tasks, &stop, &queues.traffic, 2, Self::traffic);
        syncer.employ(&tasks, &stop, &queues.strays, 1, Self::stray);
        syncer.employ(&tasks, &stop, &queues.events, 2, Self::tell);
        tasks.spawn(syncer.clone().sweep_regularly(stop.clone()));
        tasks.close();
        tasks.wait().await;
        Ok(())
    }

    /// Has some workers take what a queue says in turn.
    fn employ<K, F>(
        self: &Arc<Self>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
        queue: &Queue<K>,
        workers: usize,
        pass: impl Fn(Arc<Self>, K) -> F + Clone + Send + Sync + 'static,
    ) where
        K: Clone + Debug + Eq + Hash + Send + Sync + 'static,
        F: Future<Output = Pass> + Send + 'static,
    {
        let own = self.clone();
        tasks.spawn(work(queue.clone(), workers, stop.clone(), move |key| own.clone().guarded(pass(own.clone(), key))));
    }

    /// A pass whose crash is a failure like any other: it is tried again, and no other pass is touched. When the
    /// worker cluster no longer allows something, whoever looks after the binding hears of it.
    async fn guarded(self: Arc<Self>, pass: impl Future<Output = Pass>) -> Pass {
        let guarded = std::panic::AssertUnwindSafe(pass).catch_unwind().await;
        let result = guarded.unwrap_or_else(|_| Err(Status::internal("a pass crashed")));
        if result.as_ref().is_err_and(|status| matches!(status.code, 401 | 403)) {
            self.reach.denied();
        }
        result
    }

    /// Looks at everything once: what happened while nobody looked is found.
    fn seed(&self) {
        let binding = self.binding();
        for node in self.computing.nodes_of(&binding.name) {
            let head = &node.object.head;
            self.computing.ports.assign(&head.name, head.label(label::PROXIER_PORT).unwrap_or_default());
            self.queues.nodes.add(head.label(label::PHYSICAL_NODE_NAME).unwrap_or_default().to_owned());
            for pod in self.computing.pods_on(&head.name) {
                self.computing.pods.get_key(&pod).into_iter().for_each(|item| self.note_needs(&item.tree()));
                self.queues.pods.add(pod);
            }
        }
        for kind in Kind::ALL {
            let originals = self.copies.above(kind).into_iter().flat_map(|cache| cache.list());
            originals.for_each(|item| {
                self.queues.objects.add(Thing::new(kind, &item.object.head.namespace, &item.object.head.name))
            });
            let copies = self.copies.below(kind).into_iter().flat_map(|cache| cache.list());
            copies
                .filter_map(|item| Thing::of_copy(kind, &item.tree()))
                .for_each(|thing| self.queues.objects.add(thing));
        }
        self.nodes.keys().into_iter().for_each(|name| self.queues.nodes.add(name));
        self.policies.keys().into_iter().for_each(|name| self.queues.policies.add(name));
        self.seed_traffic();
        self.sweep();
    }

    /// Looks at every pod of ours in the worker cluster.
    pub(crate) fn sweep(&self) {
        for item in one_by_one(&self.pods) {
            if item.object.head.label(label::MANAGED_BY).is_some() {
                match original_of(&item.tree()) {
                    Some(key) => self.queues.pods.add(key),
                    None => self.queues.strays.add(item.key()),
                }
            }
        }
    }

    /// Finds what was left behind, now and then.
    async fn sweep_regularly(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(SWEEP) => {}
            }
            if self.reach.is_up() {
                self.sweep();
                if let Err(status) = self.sweep_tokens().await {
                    tracing::debug!(%status, "tokens not swept");
                }
            }
        }
    }

    /// Tells everybody when the worker cluster falls silent or answers again.
    async fn follow_reach(self: Arc<Self>, stop: CancellationToken) {
        let mut reach = self.reach.follow();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                changed = reach.changed() => if changed.is_err() { return },
            }
            self.look_at_nodes();
            if self.reach.is_up() {
                self.sweep();
            } else {
                self.silence().await;
            }
        }
    }

    /// Looks at all nodes again.
    pub(crate) fn look_at_nodes(&self) {
        self.nodes.keys().into_iter().for_each(|name| self.queues.nodes.add(name));
        for node in self.computing.nodes_of(&self.binding().name) {
            self.queues.nodes.add(node.object.head.label(label::PHYSICAL_NODE_NAME).unwrap_or_default().to_owned());
        }
    }

    /// Takes over a changed binding.
    pub(crate) fn set_binding(&self, binding: Binding) {
        if **self.binding.read() == binding {
            return;
        }
        *self.binding.write() = Arc::new(binding);
        self.look_at_nodes();
        self.relent();
    }

    /// Looks again at the pods that wait for something: what was refused may be allowed now.
    pub(crate) fn relent(&self) {
        self.complaints.pods().into_iter().for_each(|pod| self.queues.pods.add(pod));
    }

    pub(crate) fn binding(&self) -> Arc<Binding> {
        self.binding.read().clone()
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.settings.clock)()
    }

    /// The worker cluster's API.
    pub(crate) fn below(&self) -> &Endpoint {
        &self.worker.endpoint
    }

    /// The computing cluster's API.
    pub(crate) fn above(&self) -> &Endpoint {
        &self.computing.endpoint
    }

    /// All policies of the worker cluster; one that cannot be read counts for nothing.
    pub(crate) fn all_policies(&self) -> Vec<Policy> {
        let items = self.policies.list();
        items
            .iter()
            .filter_map(|item| item.decode::<ResourceLeasingPolicy>().ok())
            .map(|policy| Policy::from(&policy))
            .collect()
    }

    /// From now until then, never negative.
    pub(crate) fn until(&self, then: Timestamp) -> Duration {
        then.duration_since(self.now()).try_into().unwrap_or_default()
    }
}
