//! Shelves: one for each resource of each source, and how fresh each is.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

/// Which resource of which source; also the order of shelves.
#[derive(Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash)]
pub struct ShelfKey {
    /// The source: `instance` or `instance/member`.
    pub source: String,
    /// API group.
    pub group: String,
    /// Plural resource.
    pub resource: String,
}

/// A resource of a source.
#[derive(Debug)]
pub struct Shelf {
    /// Its number in the store.
    pub id: i64,
    /// What it holds.
    pub key: ShelfKey,
    /// The version objects are kept in.
    pub version: String,
    /// Their kind.
    pub kind: String,
    /// Whether they have namespaces.
    pub namespaced: bool,
    pub(crate) state: Mutex<State>,
    /// The newest revision that can be found.
    pub(crate) applied: watch::Sender<Revision>,
}

/// A revision as far as it can be compared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Revision {
    pub text: String,
    pub number: u64,
}

impl Revision {
    pub fn of(text: &str) -> Self {
        Self { text: text.to_owned(), number: text.parse().unwrap_or_default() }
    }
}

/// Where the following of a shelf stands.
#[derive(Debug)]
pub(crate) struct State {
    pub synced: bool,
    pub trouble: Option<String>,
    /// The last moment at which the copy was known to be whole.
    pub contact: Timestamp,
}

/// How fresh the answer of a query is.
#[derive(Clone, Debug, PartialEq)]
pub struct Freshness {
    /// The source.
    pub source: String,
    /// As of when the copy is whole; `None` before the first full read.
    pub as_of: Option<Timestamp>,
    /// Why it is not newer.
    pub trouble: Option<String>,
}

impl Shelf {
    pub(crate) fn new(id: i64, key: ShelfKey, version: String, kind: String, namespaced: bool, revision: &str) -> Self {
        let state = State {
            synced: !revision.is_empty(),
            trouble: Some("not yet in contact".into()),
            contact: Timestamp::UNIX_EPOCH,
        };
        Self {
            id,
            key,
            version,
            kind,
            namespaced,
            state: Mutex::new(state),
            applied: watch::Sender::new(Revision::of(revision)),
        }
    }

    /// How fresh it is at `now`.
    pub fn freshness(&self, now: Timestamp) -> Freshness {
        let state = self.state.lock();
        let as_of = match (&state.trouble, state.synced) {
            (_, false) => None,
            (None, true) => Some(now),
            (Some(_), true) => Some(state.contact),
        };
        Freshness { source: self.key.source.clone(), as_of, trouble: state.trouble.clone() }
    }
}

/// All shelves, sorted by key.
#[derive(Default)]
pub(crate) struct Shelves {
    all: RwLock<BTreeMap<ShelfKey, Arc<Shelf>>>,
    hidden: RwLock<std::collections::HashSet<String>>,
}

impl Shelves {
    pub fn put(&self, shelf: Arc<Shelf>) {
        self.all.write().insert(shelf.key.clone(), shelf);
    }

    pub fn remove(&self, key: &ShelfKey) -> Option<Arc<Shelf>> {
        self.all.write().remove(key)
    }

    pub fn get(&self, key: &ShelfKey) -> Option<Arc<Shelf>> {
        self.all.read().get(key).cloned()
    }

    pub fn list(&self) -> Vec<Arc<Shelf>> {
        self.all.read().values().cloned().collect()
    }

    pub fn of_source(&self, source: &str) -> Vec<Arc<Shelf>> {
        self.all.read().values().filter(|shelf| shelf.key.source == source).cloned().collect()
    }

    pub fn hide(&self, source: &str, hidden: bool) {
        let mut set = self.hidden.write();
        if hidden {
            set.insert(source.to_owned())
        } else {
            set.remove(source)
        };
    }

    pub fn is_hidden(&self, source: &str) -> bool {
        self.hidden.read().contains(source)
    }
}
