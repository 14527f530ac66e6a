//! One instance: its newest state, its history, its revision.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use atoll_meta::{InstanceId, Key, Object, Revision};
use imbl::OrdMap;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, broadcast};

use super::change::{Change, stage};
use super::history::{History, Record};
use crate::{Entry, Event, FeedItem, Retention, Scope, Snapshot, StoreError, Write};

/// How many rebuilt snapshots are remembered, for the pages of lists in progress.
const REBUILT: usize = 4;

/// How many events are forgotten while the lock is held.
const TRIM: usize = 4096;

/// Rebuilding a snapshot by undoing fewer events than this is not worth remembering.
const CHEAP_UNDO: usize = 64;

/// One instance in memory.
#[derive(Debug)]
pub(crate) struct Instance {
    /// Its number.
    pub id: InstanceId,
    /// Its name.
    pub name: Arc<str>,
    /// Revision up to which the engine has applied everything in every instance; stays 0 in
    /// engines that count revisions per instance.
    horizon: Arc<AtomicU64>,
    state: RwLock<State>,
    rebuilt: Mutex<VecDeque<(Revision, OrdMap<Key, Entry>)>>,
}

#[derive(Debug)]
struct State {
    revision: Revision,
    /// The oldest revision that can be read; events after it are all here.
    floor: Revision,
    entries: OrdMap<Key, Entry>,
    bytes: u64,
    dropped: bool,
    history: Option<Box<History>>,
}

/// Where the effects of a transaction go besides the state.
pub(crate) struct Sinks<'a> {
    /// The feed of the hub.
    pub feed: &'a broadcast::Sender<FeedItem>,
    /// The limits of the history.
    pub retention: &'a Retention,
}

impl Instance {
    /// An instance that never held anything, whose history is therefore complete.
    pub fn empty(id: InstanceId, name: Arc<str>, revision: Revision, horizon: Arc<AtomicU64>) -> Self {
        let state =
            State { revision, floor: Revision(0), entries: OrdMap::new(), bytes: 0, dropped: false, history: None };
        Self { id, name, horizon, state: RwLock::new(state), rebuilt: Mutex::default() }
    }

    /// An instance as it was stored; what happened before is not known.
    pub fn loaded(
        id: InstanceId,
        name: Arc<str>,
        revision: Revision,
        entries: OrdMap<Key, Entry>,
        horizon: Arc<AtomicU64>,
    ) -> Self {
        let instance = Self::empty(id, name, revision, horizon);
        {
            let mut state = instance.state.write();
            state.bytes = entries.iter().map(|(key, entry)| weight(key, &entry.object)).sum();
            state.entries = entries;
            state.floor = revision;
        }
        instance
    }

    fn horizon(&self) -> Revision {
        Revision(self.horizon.load(Ordering::Acquire))
    }

    /// The newest revision.
    pub fn revision(&self) -> Result<Revision, StoreError> {
        let horizon = self.horizon();
        Ok(self.state.read().alive()?.revision.max(horizon))
    }

    /// Raises the newest revision without a change.
    pub fn advance(&self, to: Revision) -> Result<(), StoreError> {
        let mut state = self.state.write();
        state.alive()?;
        state.revision = state.revision.max(to);
        Ok(())
    }

    /// The newest state of a key.
    pub fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        Ok(self.state.read().alive()?.entries.get(key).cloned())
    }

    /// Number of objects and bytes.
    pub fn usage(&self) -> Result<(u64, u64), StoreError> {
        let state = self.state.read();
        state.alive()?;
        Ok((state.entries.len() as u64, state.bytes))
    }

    /// The state at a revision, or the newest.
    pub fn snapshot(&self, at: Option<Revision>) -> Result<Snapshot, StoreError> {
        let horizon = self.horizon();
        let state = self.state.read();
        let newest = state.alive()?.revision.max(horizon);
        let Some(at) = at else {
            return Ok(Snapshot { revision: newest, entries: state.entries.clone() });
        };
        state.readable(at, newest)?;
        if let Some((_, entries)) = self.rebuilt.lock().iter().find(|(revision, _)| *revision == at) {
            return Ok(Snapshot { revision: at, entries: entries.clone() });
        }
        let undo = state.history.as_ref().map(|history| history.undo(at)).unwrap_or_default();
        let mut entries = state.entries.clone();
        // The rest works on a copy, so that writers need not wait.
        drop(state);
        let costly = undo.len() > CHEAP_UNDO;
        for (key, before) in undo {
            match before {
                Some(entry) => drop(entries.insert(key, entry)),
                None => drop(entries.remove(&key)),
            }
        }
        if costly {
            let mut rebuilt = self.rebuilt.lock();
            rebuilt.truncate(REBUILT - 1);
            rebuilt.push_front((at, entries.clone()));
        }
        Ok(Snapshot { revision: at, entries })
    }

    /// Checks and applies a transaction at once, at the next revision of this instance.
    pub fn transact(&self, writes: &[Write], sinks: &Sinks<'_>) -> Result<Revision, StoreError> {
        let mut state = self.state.write();
        state.alive()?;
        let revision = state.revision.next();
        let changes = stage(writes, revision, |key| state.entries.get(key).cloned())?;
        if changes.is_empty() {
            return Ok(state.revision);
        }
        let effects = state.apply(self.id, revision, changes, sinks);
        drop(state);
        effects.ring();
        Ok(revision)
    }

    /// Applies changes that were decided elsewhere. Revisions must not go down.
    pub fn publish(&self, revision: Revision, changes: Vec<Change>, sinks: &Sinks<'_>) {
        self.apply(revision, changes, sinks).ring();
    }

    /// Like [`Self::publish`], but leaves it to the caller to wake the watches.
    pub fn apply(&self, revision: Revision, changes: Vec<Change>, sinks: &Sinks<'_>) -> Effects {
        let mut state = self.state.write();
        if state.dropped {
            return Effects::default();
        }
        state.apply(self.id, revision, changes, sinks)
    }

    /// Makes everything before a revision unreadable although watches may still pass through it.
    pub fn raise_floor(&self, floor: Revision) {
        let mut state = self.state.write();
        state.floor = state.floor.max(floor);
        drop(state);
        self.forget_rebuilt(floor);
    }

    /// Forgets history up to and including a revision.
    pub fn compact(&self, upto: Revision) -> Result<(), StoreError> {
        let horizon = self.horizon();
        let mut state = self.state.write();
        let newest = state.alive()?.revision.max(horizon);
        if upto > newest {
            return Err(StoreError::Future { newest });
        }
        state.floor = state.floor.max(upto);
        drop(state);
        self.forget(upto);
        Ok(())
    }

    /// Forgets what is older than the retention asks for.
    pub fn tick(&self, now: Instant, retention: &Retention) {
        if self.state.read().history.is_none() {
            return;
        }
        let mut state = self.state.write();
        let Some(upto) = state.history.as_mut().and_then(|history| history.age(now, retention)) else { return };
        drop(state);
        self.forget(upto);
    }

    /// Forgets events a few at a time, so that nobody waits long.
    fn forget(&self, upto: Revision) {
        loop {
            let gone = self.state.write().trim(upto, TRIM);
            if gone.len() < TRIM {
                break;
            }
        }
        self.forget_rebuilt(upto);
    }

    fn forget_rebuilt(&self, floor: Revision) {
        self.rebuilt.lock().retain(|(revision, _)| *revision >= floor);
    }

    /// Ends the instance and its watches, and hands out what it held to be dropped at leisure.
    pub fn end(&self) -> impl Send + 'static {
        let mut state = self.state.write();
        state.dropped = true;
        let held = (std::mem::take(&mut state.entries), state.history.take());
        drop(state);
        if let Some(history) = &held.1 {
            history.bells().for_each(|bell| bell.notify_waiters());
        }
        (held, std::mem::take(&mut *self.rebuilt.lock()))
    }

    /// The bell of a new watch, once it is sure that nothing after `after` is forgotten.
    pub fn subscribe(&self, scope: &Scope, after: Revision, future: bool) -> Result<Arc<Notify>, StoreError> {
        let horizon = self.horizon();
        let mut state = self.state.write();
        let newest = state.alive()?.revision.max(horizon);
        state.readable(after, if future { newest.max(after) } else { newest })?;
        Ok(state.history.get_or_insert_default().bell(scope))
    }

    /// The next events of a watch; empty when there are none yet.
    pub fn since(&self, scope: &Scope, after: Revision) -> Result<Vec<Arc<Event>>, StoreError> {
        let state = self.state.read();
        state.alive()?;
        let Some(history) = &state.history else { return Ok(Vec::new()) };
        history.since(scope, after).map_err(|_| StoreError::Compacted { oldest: state.floor })
    }

    /// Up to where a watch that has seen everything up to `after` is complete.
    pub fn progress(&self, scope: &Scope, after: Revision) -> Revision {
        // The horizon is read first: what it covers has been applied before.
        let horizon = self.horizon();
        let state = self.state.read();
        match &state.history {
            Some(history) if history.pending(scope, after) => after,
            _ => state.revision.max(horizon).max(after),
        }
    }
}

impl State {
    fn alive(&self) -> Result<&Self, StoreError> {
        if self.dropped { Err(StoreError::NoInstance) } else { Ok(self) }
    }

    fn readable(&self, at: Revision, newest: Revision) -> Result<(), StoreError> {
        if at > newest {
            return Err(StoreError::Future { newest });
        }
        if at < self.floor {
            return Err(StoreError::Compacted { oldest: self.floor });
        }
        Ok(())
    }

    fn apply(&mut self, id: InstanceId, revision: Revision, changes: Vec<Change>, sinks: &Sinks<'_>) -> Effects {
        let mut effects = Effects::default();
        self.revision = revision;
        for change in changes {
            let before = match &change.current {
                Some(entry) => self.entries.insert(change.key.clone(), entry.clone()),
                None => self.entries.remove(&change.key),
            };
            self.bytes += change.current.as_ref().map_or(0, |entry| weight(&change.key, &entry.object));
            self.bytes -= before.as_ref().map_or(0, |entry| weight(&change.key, &entry.object));
            let mut previous = before;
            let mut stored = None;
            if let (Some(last), Some(previous)) = (change.last, &mut previous) {
                stored = Some(std::mem::replace(&mut previous.object, last));
            }
            let event = Arc::new(Event { key: change.key, revision, current: change.current, previous });
            self.history.get_or_insert_default().push(&event, stored, &mut effects.bells);
            // Under the lock, so that the feed has each instance's changes in order.
            if sinks.feed.receiver_count() > 0 {
                let _ = sinks.feed.send(FeedItem::Changed(id, event));
            }
        }
        if let Some(upto) = self.history.as_ref().and_then(|history| history.overweight(sinks.retention.bytes)) {
            effects.gone = self.trim(upto, usize::MAX);
        }
        effects
    }

    fn trim(&mut self, upto: Revision, limit: usize) -> Vec<Record> {
        let Some(history) = &mut self.history else { return Vec::new() };
        let gone = history.trim(upto, limit);
        if history.idle() {
            self.history = None;
        }
        if !gone.is_empty() {
            self.floor = self.floor.max(upto);
        }
        gone
    }
}

/// What remains to be done when the lock is released: waking watches, dropping what was forgotten.
#[derive(Default)]
#[must_use = "watches would sleep on"]
pub(crate) struct Effects {
    bells: Vec<Arc<Notify>>,
    gone: Vec<Record>,
}

impl Effects {
    /// Adds the effects of another transaction.
    pub fn join(&mut self, mut other: Self) {
        self.bells.append(&mut other.bells);
        self.gone.append(&mut other.gone);
    }

    /// Wakes the watches, each bell once.
    pub fn ring(mut self) {
        self.bells.sort_unstable_by_key(Arc::as_ptr);
        self.bells.dedup_by(|one, other| Arc::ptr_eq(one, other));
        for bell in &self.bells {
            bell.notify_waiters();
        }
    }
}

fn weight(key: &Key, object: &Object) -> u64 {
    (key.as_str().len() + object.body.len()) as u64
}
