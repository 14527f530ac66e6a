//! A store that goes away and comes back, as an etcd that is out of reach.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use atoll_meta::{InstanceId, Revision};
use atoll_store::{Commit, Engine, Entry, Feed, MemoryEngine, Scope, Snapshot, StoreError, Watch, Write};

/// While it is away it only shows what it showed last.
pub struct Away {
    inner: MemoryEngine,
    away: Arc<AtomicBool>,
}

const WHY: &str = "cannot write store.redb, the disk is full: no space left on device";

impl Away {
    /// A store, and the switch that takes it away.
    pub fn new() -> (Arc<Self>, Arc<AtomicBool>) {
        let away = Arc::new(AtomicBool::new(false));
        (Arc::new(Self { inner: MemoryEngine::new(), away: away.clone() }), away)
    }

    fn here(&self) -> Result<(), StoreError> {
        self.health().map_err(StoreError::Unavailable)
    }
}

#[async_trait::async_trait]
impl Engine for Away {
    async fn create_instance(&self, name: &str) -> Result<InstanceId, StoreError> {
        self.here()?;
        self.inner.create_instance(name).await
    }
    async fn drop_instance(&self, instance: InstanceId) -> Result<(), StoreError> {
        self.here()?;
        self.inner.drop_instance(instance).await
    }
    fn instances(&self) -> Vec<(InstanceId, Arc<str>)> {
        self.inner.instances()
    }
    fn revision(&self, instance: InstanceId) -> Result<Revision, StoreError> {
        self.inner.revision(instance)
    }
    async fn get(&self, instance: InstanceId, key: &str) -> Result<Option<Entry>, StoreError> {
        self.here()?;
        self.inner.get(instance, key).await
    }
    async fn snapshot(&self, instance: InstanceId, at: Option<Revision>) -> Result<Snapshot, StoreError> {
        if at.is_none() {
            self.here()?;
        }
        self.inner.snapshot(instance, at).await
    }
    async fn commit(&self, instance: InstanceId, writes: Vec<Write>) -> Result<Commit, StoreError> {
        self.here()?;
        self.inner.commit(instance, writes).await
    }
    fn watch(&self, instance: InstanceId, scope: Scope, after: Revision) -> Result<Box<dyn Watch>, StoreError> {
        self.inner.watch(instance, scope, after)
    }
    async fn compact(&self, instance: InstanceId, upto: Revision) -> Result<(), StoreError> {
        self.inner.compact(instance, upto).await
    }
    fn feed(&self) -> Feed {
        self.inner.feed()
    }
    fn usage(&self, instance: InstanceId) -> Result<(u64, u64), StoreError> {
        self.inner.usage(instance)
    }
    fn health(&self) -> Result<(), String> {
        if self.away.load(Ordering::SeqCst) { Err(WHY.into()) } else { Ok(()) }
    }
}
