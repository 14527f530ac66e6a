//! Everything etcd holds at one revision, and how the copy becomes equal to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_meta::{InstanceId, Key, Revision};

use super::commit::entry;
use super::keys::Place;
use super::shared::Shared;
use super::wire::malformed;
use super::wire::proto::{KeyValue, RangeRequest, ResponseHeader};
use crate::mvcc::{Change, Instance};
use crate::{Entry, StoreError};

/// How many keys are read at once.
const PAGE: i64 = 500;

/// What etcd held at a revision.
pub(super) struct Listing {
    pub cluster: u64,
    pub revision: Revision,
    instances: BTreeMap<InstanceId, Arc<str>>,
    contents: BTreeMap<InstanceId, BTreeMap<Key, Entry>>,
}

impl Listing {
    /// Reads everything, page by page at one revision.
    pub async fn read(shared: &Shared) -> Result<Self, StoreError> {
        let (mut key, range_end) = shared.keys.all();
        let mut listing =
            Self { cluster: 0, revision: Revision(0), instances: BTreeMap::new(), contents: BTreeMap::new() };
        loop {
            let revision = listing.revision.0.cast_signed();
            let request = RangeRequest {
                key: key.clone(),
                range_end: range_end.clone(),
                limit: PAGE,
                revision,
                ..Default::default()
            };
            let response = shared.wire.range(request).await?;
            if listing.revision == Revision(0) {
                let ResponseHeader { cluster_id, revision } = response.header.ok_or_else(malformed)?;
                listing.cluster = cluster_id;
                listing.revision = Revision(revision.cast_unsigned());
            }
            if let Some(last) = response.kvs.last() {
                key = [&last.key[..], &[0]].concat().into();
            }
            for kv in response.kvs {
                listing.add(shared, kv)?;
            }
            if !response.more {
                return Ok(listing);
            }
        }
    }

    fn add(&mut self, shared: &Shared, kv: KeyValue) -> Result<(), StoreError> {
        match shared.keys.place(&kv.key) {
            Place::Instance(id) => {
                self.instances.insert(id, String::from_utf8_lossy(&kv.value).into());
            }
            Place::Object(id, key) => {
                let entry = entry(kv).map_err(StoreError::Damaged)?;
                self.contents.entry(id).or_default().insert(key, entry);
            }
            Place::Last(_) | Place::Other => {}
        }
        Ok(())
    }

    /// Instances that are gone but left entries behind.
    pub fn graves(&self) -> Vec<InstanceId> {
        self.contents.keys().filter(|id| !self.instances.contains_key(id)).copied().collect()
    }

    /// Makes the copy equal to the listing, with the events that lead there.
    ///
    /// What happened in between is unknown: watches get the sum of it, and reads of the time
    /// before are refused.
    pub fn apply(mut self, shared: &Shared) {
        let known: BTreeSet<InstanceId> = shared.core.list().into_iter().map(|(id, _)| id).collect();
        for gone in known.iter().filter(|id| !self.instances.contains_key(id)) {
            drop(shared.core.remove(*gone));
        }
        for (id, name) in self.instances {
            let contents = self.contents.remove(&id).unwrap_or_default();
            match shared.core.instance(id) {
                Ok(instance) => catch_up(shared, &instance, &contents, self.revision),
                Err(_) => {
                    let horizon = shared.core.horizon_cell();
                    let entries = contents.into_iter().collect();
                    drop(shared.core.add(Instance::loaded(id, name, self.revision, entries, horizon)));
                }
            }
        }
        shared.applied(self.revision);
    }
}

fn catch_up(shared: &Shared, instance: &Instance, contents: &BTreeMap<Key, Entry>, now: Revision) {
    let Ok(old) = instance.snapshot(None) else { return };
    let mut changes: BTreeMap<Revision, Vec<Change>> = BTreeMap::new();
    for (key, entry) in contents {
        let before = old.entries.get(key);
        if before.is_some_and(|before| before.modified == entry.modified) {
            continue;
        }
        if before.is_some_and(|before| before.created != entry.created) {
            // Removed and made again: the removal happened at the latest just before.
            let at = Revision(entry.created.0 - 1);
            changes.entry(at).or_default().push(Change { key: key.clone(), current: None, last: None });
        }
        let change = Change { key: key.clone(), current: Some(entry.clone()), last: None };
        changes.entry(entry.modified).or_default().push(change);
    }
    for key in old.entries.keys().filter(|key| !contents.contains_key(*key)) {
        changes.entry(now).or_default().push(Change { key: key.clone(), current: None, last: None });
    }
    // First of all, because the states in between are not what they were.
    instance.raise_floor(now);
    for (revision, changes) in changes {
        instance.publish(revision, changes, &shared.core.sinks());
    }
}
