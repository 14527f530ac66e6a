//! The embedded engine: everything in memory, every write in one redb file before it is acknowledged.
//!
//! One thread writes. It takes all transactions that wait (`queue`), under load (`pace`) and when more
//! are announced a moment after the first of them, checks them against the state in memory, commits
//! them to disk together, publishes them and answers (`writer`). What is on disk is only read when the
//! file is opened (`file`), or reopened after a failure.

mod batch;
mod file;
mod mark;
mod pace;
mod queue;
mod writer;

#[cfg(test)]
mod fault;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use atoll_meta::{InstanceId, Revision};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use self::file::Opener;
use self::queue::Entrance;
use self::writer::{Request, Writer};
use crate::memory::refuse_root;
use crate::mvcc::{Core, Cursor};
use crate::{Commit, Engine, Entry, Feed, Options, Scope, Snapshot, StoreError, Watch, Write};

/// Name of the data file where only a directory is given.
const FILE: &str = "store.redb";

/// Why writes fail now, if they do.
type Health = Arc<Mutex<Option<String>>>;

/// Keeps all instances in memory and in one file.
pub struct RedbEngine {
    core: Arc<Core>,
    health: Health,
    requests: Option<Entrance<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl RedbEngine {
    /// Opens or makes the data file. A directory means the file `store.redb` in it.
    ///
    /// Fails with [`StoreError::Damaged`] when the file is not ours, newer than this program,
    /// incomplete or corrupt, and with [`StoreError::Unavailable`] when it is in use or unreadable.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let path = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
        let opener = file::opener(path.clone());
        Self::open_with(path, options, opener)
    }

    fn open_with(path: PathBuf, options: Options, opener: Opener) -> Result<Self, StoreError> {
        let core = Arc::new(Core::new(options));
        let health = Health::default();
        let writer = Writer::open(path, opener, core.clone(), health.clone())?;
        let (requests, queue) = queue::queue();
        let thread = std::thread::Builder::new()
            .name("atoll-store-writer".into())
            .spawn(move || writer.run(&queue))
            .map_err(|error| StoreError::Unavailable(format!("cannot start the writer: {error}")))?;
        Ok(Self { core, health, requests: Some(requests), thread: Some(thread) })
    }

    /// Forgets history that is older than the retention asks for; also happens by itself.
    pub fn tick(&self) {
        self.core.tick((self.core.options().clock)());
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Request,
    ) -> Result<T, StoreError> {
        let gone = || StoreError::Unavailable("the writer has stopped".into());
        let (answer, answered) = oneshot::channel();
        if !self.requests.as_ref().is_some_and(|requests| requests.put(request(answer))) {
            return Err(gone());
        }
        answered.await.map_err(|_| gone())?
    }
}

impl Drop for RedbEngine {
    fn drop(&mut self) {
        // Without an entrance the writer finishes what waits, closes the file and ends.
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[async_trait::async_trait]
impl Engine for RedbEngine {
    async fn create_instance(&self, name: &str) -> Result<InstanceId, StoreError> {
        let name: Arc<str> = name.into();
        self.ask(|answer| Request::Create { name, answer }).await
    }

    async fn drop_instance(&self, instance: InstanceId) -> Result<(), StoreError> {
        refuse_root(instance)?;
        self.ask(|answer| Request::Drop { instance, answer }).await
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
        self.ask(|answer| Request::Commit { instance, writes, answer }).await
    }

    fn expect(&self, commits: usize) {
        if let Some(requests) = &self.requests {
            requests.expect(commits, queue::MOMENT);
        }
    }

    fn watch(&self, instance: InstanceId, scope: Scope, after: Revision) -> Result<Box<dyn Watch>, StoreError> {
        Ok(Box::new(Cursor::new(self.core.instance(instance)?, scope, after)?))
    }

    async fn compact(&self, instance: InstanceId, upto: Revision) -> Result<(), StoreError> {
        self.core.instance(instance)?.compact(upto)
    }

    async fn advance(&self, instance: InstanceId, to: Revision) -> Result<(), StoreError> {
        self.ask(|answer| Request::Advance { instance, to, answer }).await
    }

    fn feed(&self) -> Feed {
        self.core.feed()
    }

    fn usage(&self, instance: InstanceId) -> Result<(u64, u64), StoreError> {
        self.core.instance(instance)?.usage()
    }

    fn health(&self) -> Result<(), String> {
        self.health.lock().clone().map_or(Ok(()), Err)
    }
}
