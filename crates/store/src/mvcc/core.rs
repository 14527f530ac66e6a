//! All instances of an engine in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use atoll_meta::{InstanceId, Revision};
use parking_lot::{Mutex, RwLock};
use tokio::sync::broadcast;

use super::Instance;
use super::instance::Sinks;
use crate::{Feed, FeedItem, Options, StoreError};

/// Instances with more objects than this are torn down on a thread of their own.
const BIG: u64 = 10_000;

/// The name of the instance that always exists.
pub(crate) const ROOT: &str = "root";

/// All instances, the feed, and the settings.
pub(crate) struct Core {
    instances: RwLock<Registry>,
    feed: broadcast::Sender<FeedItem>,
    horizon: Arc<AtomicU64>,
    options: Options,
    ticked: Mutex<Instant>,
}

#[derive(Default)]
struct Registry {
    by_id: BTreeMap<InstanceId, Arc<Instance>>,
    by_name: HashMap<Arc<str>, InstanceId>,
}

impl Core {
    /// No instances yet.
    pub fn new(options: Options) -> Self {
        let (feed, _) = broadcast::channel(options.feed.max(1));
        let ticked = Mutex::new((options.clock)());
        Self { instances: RwLock::default(), feed, horizon: Arc::default(), options, ticked }
    }

    /// The settings.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Revision up to which everything is applied, in engines that count for all instances together.
    pub fn horizon(&self) -> Revision {
        Revision(self.horizon.load(Ordering::Acquire))
    }

    /// Raises the horizon.
    pub fn raise_horizon(&self, to: Revision) {
        self.horizon.fetch_max(to.0, Ordering::AcqRel);
    }

    /// The shared cell of the horizon, for instances.
    pub fn horizon_cell(&self) -> Arc<AtomicU64> {
        self.horizon.clone()
    }

    /// Where applied changes go.
    pub fn sinks(&self) -> Sinks<'_> {
        Sinks { feed: &self.feed, retention: &self.options.retention }
    }

    /// One instance.
    pub fn instance(&self, id: InstanceId) -> Result<Arc<Instance>, StoreError> {
        self.instances.read().by_id.get(&id).cloned().ok_or(StoreError::NoInstance)
    }

    /// The instance of a name.
    pub fn named(&self, name: &str) -> Option<InstanceId> {
        self.instances.read().by_name.get(name).copied()
    }

    /// All instances, sorted by number.
    pub fn list(&self) -> Vec<(InstanceId, Arc<str>)> {
        self.instances.read().by_id.values().map(|instance| (instance.id, instance.name.clone())).collect()
    }

    /// The highest number in use.
    pub fn highest(&self) -> InstanceId {
        self.instances.read().by_id.last_key_value().map(|(id, _)| *id).unwrap_or_default()
    }

    /// Adds an instance and tells the feed; `InstanceExists` when the name is taken.
    pub fn add(&self, instance: Instance) -> Result<Arc<Instance>, StoreError> {
        let instance = Arc::new(instance);
        let mut registry = self.instances.write();
        if registry.by_name.contains_key(&instance.name) || registry.by_id.contains_key(&instance.id) {
            return Err(StoreError::InstanceExists);
        }
        registry.by_name.insert(instance.name.clone(), instance.id);
        registry.by_id.insert(instance.id, instance.clone());
        let _ = self.feed.send(FeedItem::Created(instance.id, instance.name.clone()));
        Ok(instance)
    }

    /// Removes an instance, ends its watches and tells the feed.
    pub fn remove(&self, id: InstanceId) -> Result<(), StoreError> {
        let instance = {
            let mut registry = self.instances.write();
            let instance = registry.by_id.remove(&id).ok_or(StoreError::NoInstance)?;
            registry.by_name.remove(&instance.name);
            let _ = self.feed.send(FeedItem::Dropped(id, instance.name.clone()));
            instance
        };
        let objects = instance.usage().map_or(0, |(objects, _)| objects);
        let held = instance.end();
        if objects > BIG {
            // Freeing many objects takes time that the caller should not wait for.
            let _ = std::thread::Builder::new().name("atoll-store-drop".into()).spawn(move || drop(held));
        }
        Ok(())
    }

    /// Changes of all instances from now on.
    pub fn feed(&self) -> Feed {
        self.feed.subscribe()
    }

    /// Forgets what is too old, if the last time is long enough ago. Engines call it with every write.
    pub fn tick_sometimes(&self) {
        let now = (self.options.clock)();
        {
            let mut ticked = self.ticked.lock();
            if now.saturating_duration_since(*ticked) < self.options.retention.age / 10 {
                return;
            }
            *ticked = now;
        }
        self.tick(now);
    }

    /// Forgets what is too old in all instances.
    pub fn tick(&self, now: Instant) {
        let instances: Vec<Arc<Instance>> = self.instances.read().by_id.values().cloned().collect();
        for instance in instances {
            instance.tick(now, &self.options.retention);
        }
    }
}
