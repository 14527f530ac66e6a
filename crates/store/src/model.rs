//! The trait every engine implements, and the words it uses.

use std::ops::Bound;
use std::sync::Arc;

use atoll_meta::{InstanceId, Key, Object, Revision};
use imbl::OrdMap;
use tokio::sync::broadcast;

/// An object as it stands in the store.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The object, shared with everyone who reads it.
    pub object: Arc<Object>,
    /// Revision of the last change.
    pub modified: Revision,
    /// Revision of the creation.
    pub created: Revision,
}

/// What a write expects to find.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Expect {
    /// Nothing under this key.
    Absent,
    /// An entry last changed at this revision.
    At(Revision),
    /// Whatever is there.
    Any,
}

/// What a write does.
#[derive(Clone, Debug)]
pub enum Op {
    /// Puts an object.
    Put(Arc<Object>),
    /// Removes the key. The object, if given, is what watchers see as the last state.
    Delete(Option<Arc<Object>>),
    /// Only checks the expectation.
    Check,
}

/// One write of a transaction.
#[derive(Clone, Debug)]
pub struct Write {
    /// What to write.
    pub key: Key,
    /// What must be there now.
    pub expect: Expect,
    /// What to do.
    pub op: Op,
}

/// A committed transaction.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The revision all its writes share.
    pub revision: Revision,
}

/// Why the store refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// An expectation failed; here is what is there instead.
    #[error("expectation {index} of the transaction failed")]
    Conflict {
        /// Index of the write.
        index: usize,
        /// What is under its key.
        current: Option<Entry>,
    },
    /// The asked-for history was compacted away.
    #[error("revision was compacted, oldest is {oldest}")]
    Compacted {
        /// Oldest revision that can still be read.
        oldest: Revision,
    },
    /// A revision newer than the newest.
    #[error("revision is in the future, newest is {newest}")]
    Future {
        /// Newest revision.
        newest: Revision,
    },
    /// No such instance, or it was dropped meanwhile.
    #[error("instance does not exist")]
    NoInstance,
    /// The name of a new instance is taken.
    #[error("instance already exists")]
    InstanceExists,
    /// The engine cannot write (or read) now: full disk, lost etcd.
    #[error("storage unavailable: {0}")]
    Unavailable(String),
    /// The data on disk is not ours, newer than us, or damaged.
    #[error("storage refused to open: {0}")]
    Damaged(String),
}

/// One change of one key.
#[derive(Clone, Debug)]
pub struct Event {
    /// What changed.
    pub key: Key,
    /// When.
    pub revision: Revision,
    /// The new state; `None` when the key was removed.
    pub current: Option<Entry>,
    /// The state before (for removals: the last state, as given by the deleter).
    pub previous: Option<Entry>,
}

/// What a watch covers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Scope {
    /// One resource (`resource.group`), all namespaces; watchers filter further themselves.
    Resource(String),
    /// Everything in the instance.
    All,
}

/// A consistent view of an instance at one revision. Cheap: it shares structure with the live state.
#[derive(Clone)]
pub struct Snapshot {
    /// The revision it shows.
    pub revision: Revision,
    /// The entries, sorted by key.
    pub entries: OrdMap<Key, Entry>,
}

impl Snapshot {
    /// The entry under a key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Entries whose key begins with `prefix`, strictly after `after` when given.
    pub fn range<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Entry)> + 'a {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(Key::from_text(after)),
            _ => Bound::Included(Key::from_text(prefix)),
        };
        self.entries.range((from, Bound::<Key>::Unbounded)).take_while(move |(key, _)| key.as_str().starts_with(prefix))
    }
}

/// A live sequence of changes without gap or repeat.
///
/// A watch holds only a cursor: events wait in the shared log, so a slow reader costs no memory
/// and never blocks a writer. One that falls behind the retained log gets [`StoreError::Compacted`].
#[async_trait::async_trait]
pub trait Watch: Send {
    /// Waits for the next changes, in order; never empty. `NoInstance` when the instance is dropped.
    async fn next(&mut self) -> Result<Vec<Arc<Event>>, StoreError>;
    /// The revision up to which this watch has seen everything in its scope
    /// (the instance's newest when it is idle): safe for a bookmark.
    fn progress(&self) -> Revision;
}

/// One change somewhere in the hub.
#[derive(Clone, Debug)]
pub enum FeedItem {
    /// A change in an instance.
    Changed(InstanceId, Arc<Event>),
    /// An instance came to be.
    Created(InstanceId, Arc<str>),
    /// An instance was dropped.
    Dropped(InstanceId, Arc<str>),
}

/// Changes of all instances, for the hub's own controllers. A lagging reader must rescan.
pub type Feed = broadcast::Receiver<FeedItem>;

/// An engine: one revision counter and log per instance.
#[async_trait::async_trait]
pub trait Engine: Send + Sync + 'static {
    /// Makes an empty instance.
    async fn create_instance(&self, name: &str) -> Result<InstanceId, StoreError>;
    /// Drops an instance with all it holds, in O(1); its watches end.
    async fn drop_instance(&self, instance: InstanceId) -> Result<(), StoreError>;
    /// All instances with their names. `root` always exists and is [`InstanceId::ROOT`].
    fn instances(&self) -> Vec<(InstanceId, Arc<str>)>;
    /// The newest revision of an instance that is visible here.
    fn revision(&self, instance: InstanceId) -> Result<Revision, StoreError>;
    /// Reads one key, as of the newest acknowledged write.
    async fn get(&self, instance: InstanceId, key: &str) -> Result<Option<Entry>, StoreError>;
    /// The state at a revision, or the newest.
    async fn snapshot(&self, instance: InstanceId, at: Option<Revision>) -> Result<Snapshot, StoreError>;
    /// Commits all writes or none. When it returns, the writes are durable and visible to readers.
    async fn commit(&self, instance: InstanceId, writes: Vec<Write>) -> Result<Commit, StoreError>;
    /// So many commits come next, from one who waits for all of them. Engines for which fewer and larger ones are
    /// cheaper may wait for them a moment.
    fn expect(&self, commits: usize) {
        let _ = commits;
    }
    /// Changes after a revision.
    fn watch(&self, instance: InstanceId, scope: Scope, after: Revision) -> Result<Box<dyn Watch>, StoreError>;
    /// Forgets history up to and including a revision.
    async fn compact(&self, instance: InstanceId, upto: Revision) -> Result<(), StoreError>;
    /// Makes the next revision greater than `to`, so that clients of a restored backup never see
    /// a revision twice. Engines whose revisions are not their own to choose leave it.
    async fn advance(&self, instance: InstanceId, to: Revision) -> Result<(), StoreError> {
        let _ = (instance, to);
        Ok(())
    }
    /// Changes of all instances from now on.
    fn feed(&self) -> Feed;
    /// Number of objects and bytes an instance holds.
    fn usage(&self, instance: InstanceId) -> Result<(u64, u64), StoreError>;
    /// `Ok` while writes are possible; otherwise why not (for readiness and metrics).
    fn health(&self) -> Result<(), String>;
}
