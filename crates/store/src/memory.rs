//! The engine that keeps everything in memory only: for tests and simulated members.

use std::sync::Arc;

use atoll_meta::{InstanceId, Revision};
use parking_lot::Mutex;

use crate::mvcc::{Core, Cursor, Instance, ROOT};
use crate::{Commit, Engine, Entry, Feed, Options, Scope, Snapshot, StoreError, Watch, Write};

/// The revision of an instance before its first write. Not 0, which means "any" to clients.
pub(crate) const FIRST: Revision = Revision(1);

/// Keeps all instances in memory; nothing survives the process.
pub struct MemoryEngine {
    core: Core,
    next: Mutex<u32>,
}

impl Default for MemoryEngine {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryEngine {
    /// An engine with an empty `root`.
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    /// An engine with settings.
    pub fn with(options: Options) -> Self {
        let core = Core::new(options);
        let root = Instance::empty(InstanceId::ROOT, ROOT.into(), FIRST, core.horizon_cell());
        core.add(root).expect("the first instance cannot be there already");
        Self { core, next: Mutex::new(1) }
    }

    /// Forgets history that is older than the retention asks for; also happens along with writes.
    pub fn tick(&self) {
        self.core.tick((self.core.options().clock)());
    }
}

#[async_trait::async_trait]
impl Engine for MemoryEngine {
    async fn create_instance(&self, name: &str) -> Result<InstanceId, StoreError> {
        let mut next = self.next.lock();
        let id = InstanceId(*next);
        self.core.add(Instance::empty(id, name.into(), FIRST, self.core.horizon_cell()))?;
        *next += 1;
        Ok(id)
    }

    async fn drop_instance(&self, instance: InstanceId) -> Result<(), StoreError> {
        refuse_root(instance)?;
        self.core.remove(instance)
    }

    fn instances(&self) -> Vec<(InstanceId, Arc<str>)> {
        self.core.list()
    }

    fn revision(&self, instance: InstanceId) -> Result<Revision, StoreError> {
        self.core.instance(instance)?.revision()
    }

    async fn get(&self, instance: InstanceId, key: &str) -> Result<Option<Entry>, StoreError> {
        self.core.instance(instance)?.get(key)
    }

    async fn snapshot(&self, instance: InstanceId, at: Option<Revision>) -> Result<Snapshot, StoreError> {
        self.core.instance(instance)?.snapshot(at)
    }

    async fn commit(&self, instance: InstanceId, writes: Vec<Write>) -> Result<Commit, StoreError> {
        let revision = self.core.instance(instance)?.transact(&writes, &self.core.sinks())?;
        self.core.tick_sometimes();
        Ok(Commit { revision })
    }

    fn watch(&self, instance: InstanceId, scope: Scope, after: Revision) -> Result<Box<dyn Watch>, StoreError> {
        Ok(Box::new(Cursor::new(self.core.instance(instance)?, scope, after)?))
    }

    async fn compact(&self, instance: InstanceId, upto: Revision) -> Result<(), StoreError> {
        self.core.instance(instance)?.compact(upto)
    }

    async fn advance(&self, instance: InstanceId, to: Revision) -> Result<(), StoreError> {
        self.core.instance(instance)?.advance(to)
    }

    fn feed(&self) -> Feed {
        self.core.feed()
    }

    fn usage(&self, instance: InstanceId) -> Result<(u64, u64), StoreError> {
        self.core.instance(instance)?.usage()
    }

    fn health(&self) -> Result<(), String> {
        Ok(())
    }
}

/// `root` holds the hub's own objects and always exists.
pub(crate) fn refuse_root(instance: InstanceId) -> Result<(), StoreError> {
    if instance == InstanceId::ROOT {
        return Err(StoreError::Unavailable("the root instance cannot be dropped".into()));
    }
    Ok(())
}
