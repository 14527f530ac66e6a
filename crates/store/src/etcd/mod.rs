//! The engine for several hub replicas over one etcd.
//!
//! All instances share the revision of the etcd cluster. Reads come from a copy in memory that
//! one watch keeps up to date (`follow`); before a read the copy waits until it has caught up with
//! what etcd has acknowledged to anyone (`shared`). Writes are etcd transactions (`commit`,
//! `registry`), and return when the copy shows them.

mod commit;
mod follow;
mod keys;
mod late;
mod listing;
mod registry;
mod shared;
mod wire;

use std::sync::Arc;

use atoll_meta::{InstanceId, Revision};
use tokio::task::JoinHandle;

use self::shared::Shared;
pub use self::wire::EtcdTls;
use crate::memory::refuse_root;
use crate::mvcc::Cursor;
use crate::{Commit, Engine, Entry, Feed, Options, Scope, Snapshot, StoreError, Watch, Write};

/// Keeps all instances in etcd, with a copy in memory.
pub struct EtcdEngine {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

impl EtcdEngine {
    /// Connects to an etcd cluster and reads everything under `/atoll/{prefix}/`.
    pub async fn connect(
        endpoints: &[String],
        tls: Option<EtcdTls>,
        prefix: &str,
        options: Options,
    ) -> Result<Self, StoreError> {
        let wire = wire::Wire::new(endpoints, tls.as_ref())?;
        let (shared, questions) = Shared::new(wire, keys::Keys::new(prefix), options);
        let shared = Arc::new(shared);
        registry::prepare(&shared).await?;
        let cluster = follow::load(&shared).await?;
        let tasks = vec![
            tokio::spawn(follow::follow(shared.clone(), cluster)),
            tokio::spawn(shared::answer(shared.clone(), questions)),
        ];
        Ok(Self { shared, tasks })
    }

    /// Forgets history that is older than the retention asks for; also happens along with writes.
    pub fn tick(&self) {
        self.shared.core.tick((self.shared.core.options().clock)());
    }
}

impl Drop for EtcdEngine {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

#[async_trait::async_trait]
impl Engine for EtcdEngine {
    async fn create_instance(&self, name: &str) -> Result<InstanceId, StoreError> {
        registry::create(&self.shared, name).await
    }

    async fn drop_instance(&self, instance: InstanceId) -> Result<(), StoreError> {
        refuse_root(instance)?;
        registry::remove(&self.shared, instance).await?;
        let shared = self.shared.clone();
        tokio::spawn(async move { registry::purge(&shared, instance).await });
        Ok(())
    }

    fn instances(&self) -> Vec<(InstanceId, Arc<str>)> {
        self.shared.core.list()
    }

    fn revision(&self, instance: InstanceId) -> Result<Revision, StoreError> {
        self.shared.core.instance(instance)?.revision()
    }

    async fn get(&self, instance: InstanceId, key: &str) -> Result<Option<Entry>, StoreError> {
        self.shared.sync().await?;
        self.shared.core.instance(instance)?.get(key)
    }

    async fn snapshot(&self, instance: InstanceId, at: Option<Revision>) -> Result<Snapshot, StoreError> {
        // The past cannot change, so it can be read even while etcd is away.
        if at.is_none_or(|at| at > self.shared.core.horizon()) {
            self.shared.sync().await?;
        }
        self.shared.core.instance(instance)?.snapshot(at)
    }

    async fn commit(&self, instance: InstanceId, writes: Vec<Write>) -> Result<Commit, StoreError> {
        let revision = commit::commit(&self.shared, instance, &writes).await?;
        Ok(Commit { revision })
    }

    fn watch(&self, instance: InstanceId, scope: Scope, after: Revision) -> Result<Box<dyn Watch>, StoreError> {
        let known = self.shared.core.instance(instance)?;
        if after > self.shared.core.horizon() {
            return Ok(Box::new(late::LateWatch::new(Cursor::ahead(known, scope, after)?, after, self.shared.clone())));
        }
        Ok(Box::new(Cursor::new(known, scope, after)?))
    }

    async fn compact(&self, instance: InstanceId, upto: Revision) -> Result<(), StoreError> {
        if upto > self.shared.core.horizon() {
            self.shared.sync().await?;
        }
        self.shared.core.instance(instance)?.compact(upto)
    }

    fn feed(&self) -> Feed {
        self.shared.core.feed()
    }

    fn usage(&self, instance: InstanceId) -> Result<(u64, u64), StoreError> {
        self.shared.core.instance(instance)?.usage()
    }

    fn health(&self) -> Result<(), String> {
        self.shared.health.lock().clone().map_or(Ok(()), Err)
    }
}
