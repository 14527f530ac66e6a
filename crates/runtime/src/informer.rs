//! Follows one resource of one endpoint: present state, then every change; resumes where it stopped.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::{Gvr, Status};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::cache::{Cache, Item};
use crate::endpoint::Endpoint;
use crate::watch::Seen;

/// Which objects to follow.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// One namespace, or all.
    pub namespace: Option<String>,
    /// Encoded query, such as `labelSelector=a%3Db`.
    pub query: String,
}

/// What happened to an object.
#[derive(Clone, Debug)]
pub enum Change {
    /// It is new, or was unknown before.
    Added(Item),
    /// It changed: before and after.
    Updated(Item, Item),
    /// It is gone; its last known state.
    Deleted(Item),
}

impl Change {
    /// The newest known state.
    pub fn item(&self) -> &Item {
        match self {
            Self::Added(item) | Self::Updated(_, item) | Self::Deleted(item) => item,
        }
    }

    /// Whether what is wanted is as before: only the state, or metadata, was written.
    pub fn keeps_generation(&self) -> bool {
        matches!(self, Self::Updated(old, new) if old.object.head.generation == new.object.head.generation)
    }
}

/// A running follower. Dropping it stops it.
pub struct Informer {
    /// What it knows.
    pub cache: Cache,
    synced: watch::Receiver<bool>,
    healthy: watch::Receiver<Option<Status>>,
    stop: CancellationToken,
}

impl Drop for Informer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

type Sink = Arc<dyn Fn(Change) + Send + Sync>;

/// What is taken away from objects before they are kept.
#[derive(Copy, Clone)]
enum Trim {
    /// Fields of the metadata; the object needs no tree for that.
    Fields(&'static [&'static str]),
    /// Anything.
    Tree(fn(&mut Value)),
}

impl Trim {
    fn read(self, text: &str, kind: &str, api_version: &str) -> Option<Item> {
        match self {
            Self::Fields(without) => Item::read(text, kind, api_version, without),
            Self::Tree(trim) => {
                let mut tree: Value = serde_json::from_str(text).ok()?;
                for (key, usual) in [("kind", kind), ("apiVersion", api_version)] {
                    if tree.get(key).is_none() {
                        tree.as_object_mut()?.insert(key.to_owned(), usual.into());
                    }
                }
                trim(&mut tree);
                Item::of(&tree)
            }
        }
    }
}

/// How long an object rests before it is packed, at least.
const REST: Duration = Duration::from_secs(2);

impl Informer {
    /// Starts following; `sink` is called for every change, in order, after the cache has it.
    pub fn start(
        endpoint: Endpoint,
        gvr: Gvr,
        selection: Selection,
        sink: impl Fn(Change) + Send + Sync + 'static,
    ) -> Self {
        Self::begin(endpoint, gvr, selection, Cache::default(), Trim::Fields(&[]), sink)
    }

    /// As [`Informer::start`], without the record of who manages which field, which is often half of an object and
    /// which controllers do not read. What is written back without it keeps it.
    pub fn start_light(
        endpoint: Endpoint,
        gvr: Gvr,
        selection: Selection,
        sink: impl Fn(Change) + Send + Sync + 'static,
    ) -> Self {
        Self::begin(endpoint, gvr, selection, Cache::default(), Trim::Fields(&["managedFields"]), sink)
    }

    /// As [`Informer::start`], for many objects that seldom change: `trim` takes away what nobody reads before an
    /// object is kept or told, and what does not change is packed.
    pub fn start_slim(
        endpoint: Endpoint,
        gvr: Gvr,
        selection: Selection,
        trim: fn(&mut Value),
        sink: impl Fn(Change) + Send + Sync + 'static,
    ) -> Self {
        let cache = Cache::packing();
        let informer = Self::begin(endpoint, gvr, selection, cache.clone(), Trim::Tree(trim), sink);
        let stop = informer.stop.clone();
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            loop {
                tokio::time::sleep(REST).await;
                cache.rest().await;
            }
        }));
        informer
    }

    fn begin(
        endpoint: Endpoint,
        gvr: Gvr,
        selection: Selection,
        cache: Cache,
        trim: Trim,
        sink: impl Fn(Change) + Send + Sync + 'static,
    ) -> Self {
        let stop = CancellationToken::new();
        let (synced_tx, synced) = watch::channel(false);
        let (healthy_tx, healthy) = watch::channel(None);
        let follower = Follower {
            endpoint,
            gvr,
            selection,
            sink: Arc::new(sink),
            trim,
            cache: cache.clone(),
            synced: synced_tx,
            healthy: healthy_tx,
            revision: Arc::default(),
        };
        let token = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = token.cancelled() => {}
                () = follower.run() => {}
            }
        });
        Self { cache, synced, healthy, stop }
    }

    /// Waits until the present state is known.
    pub async fn synced(&self) {
        let mut synced = self.synced.clone();
        // An error means the follower is gone with the informer itself.
        let _ = synced.wait_for(|done| *done).await;
    }

    /// Whether the present state is known.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Why contact is lost, if it is. What is cached stays.
    pub fn trouble(&self) -> Option<Status> {
        self.healthy.borrow().clone()
    }
}

struct Follower {
    endpoint: Endpoint,
    gvr: Gvr,
    selection: Selection,
    sink: Sink,
    trim: Trim,
    cache: Cache,
    synced: watch::Sender<bool>,
    healthy: watch::Sender<Option<Status>>,
    /// What has been seen; empty when it must be read whole.
    revision: Arc<str>,
}

impl Follower {
    async fn run(mut self) {
        let mut failures = 0u32;
        loop {
            let started = tokio::time::Instant::now();
            match self.follow().await {
                Ok(()) if started.elapsed() >= Duration::from_secs(1) => failures = 0,
                // A server that ends streams at once (it is stopping) must not be asked in a tight loop.
                Ok(()) => {
                    failures = (failures + 1).min(8);
                    tokio::time::sleep(Duration::from_millis(25u64 << failures)).await;
                }
                Err(status) => {
                    if matches!(status.code, 410 | 422 | 400) {
                        self.revision = Arc::default();
                    }
                    tracing::debug!(endpoint = self.endpoint.name(), resource = %self.gvr.resource, %status, "watch interrupted");
                    self.healthy.send_replace(Some(status));
                    failures = (failures + 1).min(8);
                    let base = 50u64 << failures;
                    tokio::time::sleep(Duration::from_millis(base / 2 + rand::random::<u64>() % base)).await;
                }
            }
        }
    }

    /// Follows one stream until it ends.
    async fn follow(&mut self) -> Result<(), Status> {
        let namespace = self.selection.namespace.clone();
        if self.revision.is_empty() {
            self.relist(namespace.as_deref()).await?;
        }
        let mut stream =
            self.endpoint.watch(&self.gvr, namespace.as_deref(), &self.selection.query, &self.revision).await?;
        self.healthy.send_replace(None);
        let trim = self.trim;
        while let Some(seen) = stream.seen(|text| trim.read(text, "", "")).await {
            match seen? {
                Seen::Put(item) => self.put(item),
                Seen::Gone(item) => self.remove(item),
                Seen::Bookmark(revision) => self.revision = revision.into(),
                Seen::Nothing => {}
            }
        }
        Ok(())
    }

    /// Reads the whole state; what vanished meanwhile is told as deleted.
    async fn relist(&mut self, namespace: Option<&str>) -> Result<(), Status> {
        let (endpoint, gvr, query) = (self.endpoint.clone(), self.gvr.clone(), self.selection.query.clone());
        let mut present = HashSet::new();
        let each = |text: &str, kind: &str, api_version: &str| {
            if let Some(item) = self.trim.read(text, kind, api_version) {
                present.insert(item.key());
                self.put(item);
            }
        };
        let read = endpoint.visit(&gvr, namespace, &query, each).await;
        // Half a list is no place to go on from.
        let revision = read.inspect_err(|_| self.revision = Arc::default())?;
        for gone in self.cache.keys().into_iter().filter(|known| !present.contains(known)) {
            if let Some(item) = self.cache.remove(&gone) {
                (self.sink)(Change::Deleted(item));
            }
        }
        self.revision = revision.into();
        self.synced.send_replace(true);
        Ok(())
    }

    fn put(&mut self, item: Item) {
        self.revision = item.revision.clone();
        match self.cache.put(item.clone()) {
            Some(old) if old.revision == item.revision => {}
            Some(old) => (self.sink)(Change::Updated(old, item)),
            None => (self.sink)(Change::Added(item)),
        }
    }

    fn remove(&mut self, item: Item) {
        self.revision = item.revision.clone();
        self.cache.remove(&item.key());
        (self.sink)(Change::Deleted(item));
    }
}
