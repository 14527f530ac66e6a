//! The log of one instance: every retained event once in order, and again by resource.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use atoll_meta::{Key, Object, Revision};
use tokio::sync::Notify;

use crate::{Entry, Event, Retention, Scope};

/// How many events a watch takes at once (more only to complete a transaction).
const BATCH: usize = 256;

/// An event with what is needed to undo it.
#[derive(Debug)]
pub(super) struct Record {
    event: Arc<Event>,
    /// The stored object before a removal, where watchers are shown another one.
    stored: Option<Arc<Object>>,
}

impl Record {
    fn before(&self) -> Option<Entry> {
        let mut before = self.event.previous.clone();
        if let (Some(entry), Some(stored)) = (&mut before, &self.stored) {
            entry.object = stored.clone();
        }
        before
    }

    /// Bytes that only history keeps alive.
    fn weight(&self) -> u64 {
        let previous = self.event.previous.as_ref().map_or(0, |entry| entry.object.body.len());
        let stored = self.stored.as_ref().map_or(0, |object| object.body.len());
        (previous + stored + self.event.key.as_str().len() + size_of::<Event>()) as u64
    }
}

/// The events of one scope, as its watches see them.
#[derive(Debug)]
struct Topic<T> {
    ring: VecDeque<T>,
    /// Revision of the newest event that was forgotten.
    trimmed: Revision,
    /// Wakes the watches of this scope and no others.
    bell: Arc<Notify>,
}

impl<T> Default for Topic<T> {
    fn default() -> Self {
        Self { ring: VecDeque::new(), trimmed: Revision(0), bell: Arc::new(Notify::new()) }
    }
}

impl<T> Topic<T> {
    fn since(&self, after: Revision, event: impl Fn(&T) -> &Arc<Event>) -> Result<Vec<Arc<Event>>, Forgotten> {
        if after < self.trimmed {
            return Err(Forgotten);
        }
        let from = self.ring.partition_point(|item| event(item).revision <= after);
        let mut events: Vec<Arc<Event>> = Vec::new();
        for item in self.ring.range(from..) {
            let next = event(item);
            // A transaction is never split: the cursor is a revision, not a place in it.
            if events.len() >= BATCH && events.last().is_some_and(|last| last.revision != next.revision) {
                break;
            }
            events.push(next.clone());
        }
        Ok(events)
    }

    fn watched(&self) -> bool {
        Arc::strong_count(&self.bell) > 1
    }

    fn shrink(&mut self) {
        if self.ring.capacity() > 64 && self.ring.capacity() > 4 * self.ring.len() {
            self.ring.shrink_to(2 * self.ring.len());
        }
    }
}

/// A watch fell behind what is retained.
#[derive(Debug)]
pub(super) struct Forgotten;

/// The log of one instance; made when the first event or watch needs it.
#[derive(Debug, Default)]
pub(super) struct History {
    all: Topic<Record>,
    resources: HashMap<Box<str>, Topic<Arc<Event>>>,
    /// What the newest revision was at some times in the past, oldest first.
    marks: VecDeque<(Instant, Revision)>,
    weight: u64,
}

impl History {
    /// Appends an event; the bells of its scopes are added to `bells` once each.
    pub fn push(&mut self, event: &Arc<Event>, stored: Option<Arc<Object>>, bells: &mut Vec<Arc<Notify>>) {
        let resource = event.key.resource();
        let topic = match self.resources.get_mut(resource) {
            Some(topic) => topic,
            None => self.resources.entry(resource.into()).or_default(),
        };
        topic.ring.push_back(event.clone());
        for bell in [&topic.bell, &self.all.bell] {
            if !bells.iter().any(|known| Arc::ptr_eq(known, bell)) {
                bells.push(bell.clone());
            }
        }
        let record = Record { event: event.clone(), stored };
        self.weight += record.weight();
        self.all.ring.push_back(record);
    }

    /// The bell that rings when the scope changes.
    pub fn bell(&mut self, scope: &Scope) -> Arc<Notify> {
        match scope {
            Scope::All => self.all.bell.clone(),
            Scope::Resource(resource) => match self.resources.get(resource.as_str()) {
                Some(topic) => topic.bell.clone(),
                None => self.resources.entry(resource.as_str().into()).or_default().bell.clone(),
            },
        }
    }

    /// All bells, to end every watch.
    pub fn bells(&self) -> impl Iterator<Item = &Arc<Notify>> {
        std::iter::once(&self.all.bell).chain(self.resources.values().map(|topic| &topic.bell))
    }

    /// The next events of a scope after a revision.
    pub fn since(&self, scope: &Scope, after: Revision) -> Result<Vec<Arc<Event>>, Forgotten> {
        match scope {
            Scope::All => self.all.since(after, |record| &record.event),
            Scope::Resource(resource) => match self.resources.get(resource.as_str()) {
                Some(topic) => topic.since(after, |event| event),
                None => Ok(Vec::new()),
            },
        }
    }

    /// Whether the scope has events after a revision.
    pub fn pending(&self, scope: &Scope, after: Revision) -> bool {
        let newest = match scope {
            Scope::All => self.newest(),
            Scope::Resource(resource) => {
                self.resources.get(resource.as_str()).and_then(|topic| topic.ring.back()).map(|event| event.revision)
            }
        };
        newest.is_some_and(|newest| newest > after)
    }

    fn newest(&self) -> Option<Revision> {
        self.all.ring.back().map(|record| record.event.revision)
    }

    /// What to put back, newest first, to get from now to the state at a revision.
    pub fn undo(&self, at: Revision) -> Vec<(Key, Option<Entry>)> {
        let records = self.all.ring.iter().rev().take_while(|record| record.event.revision > at);
        records.map(|record| (record.event.key.clone(), record.before())).collect()
    }

    /// Forgets up to `limit` events up to and including a revision; the caller drops them outside its lock.
    pub fn trim(&mut self, upto: Revision, limit: usize) -> Vec<Record> {
        let count = self.all.ring.partition_point(|record| record.event.revision <= upto);
        let gone: Vec<Record> = self.all.ring.drain(..count.min(limit)).collect();
        for record in &gone {
            self.weight -= record.weight();
            self.all.trimmed = record.event.revision;
            if let Some(topic) = self.resources.get_mut(record.event.key.resource()) {
                topic.ring.pop_front();
                topic.trimmed = record.event.revision;
            }
        }
        if !gone.is_empty() {
            self.all.shrink();
            self.resources.retain(|_, topic| {
                topic.shrink();
                !topic.ring.is_empty() || topic.watched()
            });
        }
        gone
    }

    /// Whether nothing would be lost by dropping the whole history.
    pub fn idle(&self) -> bool {
        self.all.ring.is_empty() && self.resources.is_empty() && !self.all.watched()
    }

    /// Notes the newest revision now, and says up to where events are too old to keep.
    pub fn age(&mut self, now: Instant, retention: &Retention) -> Option<Revision> {
        if let Some(newest) = self.newest()
            && self.marks.back().is_none_or(|(_, marked)| *marked < newest)
        {
            self.marks.push_back((now, newest));
        }
        let old = self.marks.partition_point(|(time, _)| now.saturating_duration_since(*time) >= retention.age);
        let (_, aged) = *self.marks.get(old.checked_sub(1)?)?;
        self.marks.drain(..old - 1);
        let spare = self.all.ring.len().checked_sub(retention.events)?;
        let spared = self.all.ring.get(spare.checked_sub(1)?)?.event.revision;
        // The events that must stay may begin inside a transaction: then all of it stays.
        let cut = match self.all.ring.get(spare) {
            Some(first) if first.event.revision == spared => Revision(spared.0 - 1),
            _ => spared,
        };
        Some(aged.min(cut))
    }

    /// Up to where to forget so that the rest weighs no more than the ceiling; never the newest revision.
    pub fn overweight(&self, ceiling: u64) -> Option<Revision> {
        if self.weight <= ceiling {
            return None;
        }
        let newest = self.newest()?;
        // Going down to 7/8 keeps trimming rare.
        let mut excess = self.weight - ceiling / 8 * 7;
        let mut upto = None;
        for record in &self.all.ring {
            if record.event.revision == newest || excess == 0 {
                break;
            }
            upto = Some(record.event.revision);
            excess = excess.saturating_sub(record.weight());
        }
        upto
    }
}
