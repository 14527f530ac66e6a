//! Everything the parts of one simulated cluster share: what is known, what is to do, how to write.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use atoll_apiserver::{Hub, Instance};
use atoll_meta::Revision;
use atoll_runtime::{Cache, Endpoint, Queue};
use jiff::{SignedDuration, Timestamp};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::book::Book;
use crate::correlator::Correlator;
use crate::fault::Faults;
use crate::interest::Interests;
use crate::kind::Kind;
use crate::kubelet::{Addresses, Memory, Variables};
use crate::recorder::Recorder;
use crate::shell::Files;
use crate::spec::Spec;

/// Which part of the cluster has something to do.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Hash)]
#[allow(missing_docs, reason = "named after what they look at")]
pub enum Task {
    Deployment,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
    Service,
    Endpoints,
    EndpointSlice,
    Claim,
    Volume,
    Budget,
    Node,
    Pod,
    Schedule,
}

impl Task {
    /// The controller of a kind.
    pub fn of(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::Deployment => Self::Deployment,
            Kind::ReplicaSet => Self::ReplicaSet,
            Kind::ReplicationController => Self::ReplicationController,
            Kind::StatefulSet => Self::StatefulSet,
            Kind::DaemonSet => Self::DaemonSet,
            Kind::Job => Self::Job,
            Kind::CronJob => Self::CronJob,
            _ => return None,
        })
    }

    /// What is looked at first when much is to do: pods go on before those who count them look, so that many changes
    /// are counted and told together.
    fn rank(self) -> i32 {
        match self {
            Self::Pod | Self::Schedule | Self::Claim | Self::Volume | Self::Node => 2,
            Self::ReplicaSet | Self::ReplicationController | Self::StatefulSet | Self::DaemonSet | Self::Job => 1,
            _ => 0,
        }
    }
}

/// Something to do: a part and the object it shall look at.
#[derive(Clone, Debug, Eq, PartialEq, Hash)]
pub struct Work {
    /// Which part.
    pub task: Task,
    /// `namespace/name`, or only the name outside namespaces.
    pub key: Arc<str>,
}

impl Work {
    /// Some work.
    pub fn new(task: Task, key: impl Into<Arc<str>>) -> Self {
        Self { task, key: key.into() }
    }
}

/// Own writes that must be seen before the same work is looked at again.
struct Floor {
    revision: u64,
    since: Instant,
}

/// How long an own write may stay unseen before it is assumed to be gone already.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long those who ask wait at most until everything stored was seen.
const STALE: Duration = Duration::from_secs(1);

/// One simulated cluster from inside.
pub struct World {
    /// Its name.
    pub name: Arc<str>,
    /// What it looks like.
    pub spec: Spec,
    /// The hub it lives in.
    pub hub: Arc<Hub>,
    /// How controllers reach its API.
    pub manager: Endpoint,
    /// How the scheduler reaches it.
    pub scheduler: Endpoint,
    /// How nodes reach it.
    pub kubelet: Endpoint,
    /// What is to do.
    pub queue: Queue<Work>,
    /// Pods and nodes.
    pub book: RwLock<Book>,
    /// Which services and budgets care for which pods.
    pub interests: RwLock<Interests>,
    /// Addresses of pods.
    pub addresses: Mutex<Addresses>,
    /// What is broken on purpose.
    pub faults: Arc<Faults>,
    /// Files somebody wrote into containers, by uid of the pod and name of the container.
    pub files: Mutex<HashMap<(Box<str>, String), Files>>,
    /// Which events were told lately.
    pub correlator: Mutex<Correlator>,
    /// The way of events into the store.
    pub recorder: Recorder,
    /// ReplicaSets that nobody controls, by key.
    pub orphan_sets: Mutex<BTreeSet<String>>,
    /// What containers left behind on volumes.
    pub memory: Memory,
    /// What containers were told when they started.
    pub variables: Variables,
    /// What guestbooks were told, by namespace and key.
    pub notes: Mutex<HashMap<(String, String), String>>,
    /// Told whenever a pod changes.
    pub pods_changed: Notify,
    /// Ends everything.
    pub stop: CancellationToken,
    caches: [Cache; Kind::COUNT],
    seen: watch::Sender<u64>,
    floors: Mutex<HashMap<Work, Floor>>,
    skew: AtomicI64,
}

impl World {
    /// An empty world.
    pub fn new(hub: Arc<Hub>, endpoint: &Endpoint, name: &str, spec: Spec, stop: CancellationToken) -> Self {
        // Who uses the cluster goes before what it does on its own.
        let endpoint = endpoint.patient();
        Self {
            name: name.into(),
            spec,
            hub,
            manager: endpoint.with_agent("kube-controller-manager"),
            scheduler: endpoint.with_agent("kube-scheduler"),
            kubelet: endpoint.with_agent("kubelet"),
            queue: Queue::default(),
            book: RwLock::default(),
            interests: RwLock::default(),
            addresses: Mutex::default(),
            faults: Arc::default(),
            files: Mutex::default(),
            correlator: Mutex::default(),
            recorder: Recorder::default(),
            orphan_sets: Mutex::default(),
            memory: Memory::default(),
            variables: Variables::default(),
            notes: Mutex::default(),
            pods_changed: Notify::new(),
            stop,
            caches: std::array::from_fn(|_| Cache::default()),
            seen: watch::Sender::new(0),
            floors: Mutex::default(),
            skew: AtomicI64::new(0),
        }
    }

    /// What is known of a kind. Pods and nodes are in the book, too.
    pub fn cache(&self, kind: Kind) -> &Cache {
        &self.caches[kind.index()]
    }

    /// The present moment in this cluster.
    pub fn now(&self) -> Timestamp {
        let skew = SignedDuration::from_millis(self.skew.load(Ordering::Relaxed));
        self.hub.now().checked_add(skew).unwrap_or_else(|_| self.hub.now())
    }

    /// Sets how wrong the clock goes.
    pub fn set_skew(&self, skew: SignedDuration) {
        self.skew.store(i64::try_from(skew.as_millis()).unwrap_or_default(), Ordering::Relaxed);
    }

    /// Puts work on the queue.
    pub fn add(&self, task: Task, key: impl Into<Arc<str>>) {
        self.queue.add_ranked(Work::new(task, key), task.rank());
    }

    /// Puts work on the queue for later, so that many changes are looked at together.
    pub fn add_soon(&self, task: Task, key: impl Into<Arc<str>>, delay: Duration) {
        self.queue.add_after(Work::new(task, key), delay);
    }

    /// Takes note that everything up to a revision was seen.
    pub fn saw(&self, revision: Revision) {
        self.seen.send_if_modified(|seen| {
            let newer = *seen < revision.0;
            *seen = (*seen).max(revision.0);
            newer
        });
    }

    /// Waits until everything was seen that is stored now: who asks a kubelet may have seen it already.
    pub async fn catch_up(&self, instance: &Instance) {
        let Ok(newest) = self.hub.engine().revision(instance.id) else { return };
        let mut seen = self.seen.subscribe();
        let all = seen.wait_for(|seen| *seen >= newest.0);
        // Better an answer that is a little old than none.
        let _ = tokio::time::timeout(STALE, all).await;
    }

    /// Asks not to be called for this work again before an own write was seen.
    pub fn expect(&self, work: &Work, revision: u64) {
        if *self.seen.borrow() < revision {
            let mut floors = self.floors.lock();
            let floor = floors.entry(work.clone()).or_insert(Floor { revision, since: Instant::now() });
            floor.revision = floor.revision.max(revision);
        }
    }

    /// Whether all own writes were seen; if not, the event of the write will call again.
    pub fn caught_up(&self, work: &Work) -> bool {
        let mut floors = self.floors.lock();
        let Some(floor) = floors.get(work) else { return true };
        if *self.seen.borrow() < floor.revision && floor.since.elapsed() < PATIENCE {
            // The event calls earlier; this only helps should there be none.
            self.queue.add_after(work.clone(), PATIENCE);
            return false;
        }
        floors.remove(work);
        true
    }
}
