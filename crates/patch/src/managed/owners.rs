//! The owners of one object's fields while a write changes them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::Request;
use super::entry::{Entry, Identity, Operation};
use crate::fields::{FieldSet, Path};
use crate::typed::{Comparison, reconcile};

/// How many Update entries an object may have before the oldest are merged.
const MAX_UPDATERS: usize = 10;

/// Who the merged oldest entries belong to.
const ANCIENT: &str = "ancient-changes";

/// All owners of an object's fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners(pub(super) Vec<Entry>);

/// Fields that belong to nobody, because the server keeps them.
pub(super) fn untracked() -> &'static FieldSet {
    static SET: OnceLock<FieldSet> = OnceLock::new();
    SET.get_or_init(|| {
        let meta = "name namespace creationTimestamp selfLink uid clusterName generation managedFields resourceVersion";
        let meta = meta.split(' ').map(|name| Path::of_fields(&format!("metadata.{name}")));
        let top = ["apiVersion", "kind", "metadata"].into_iter().map(Path::of_fields);
        FieldSet::of_paths(&meta.chain(top).collect::<Vec<Path>>())
    })
}

impl Owners {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn find(&self, identity: &Identity) -> Option<usize> {
        self.0.iter().position(|entry| entry.identity() == *identity)
    }

    /// Drops entries of versions that are no longer served, and adapts the others to the schema.
    pub(super) fn prepare(&mut self, request: &Request) {
        let kind = request.kind();
        self.0.retain(|entry| entry.api_version == request.api_version || (request.versions)(&entry.api_version));
        for entry in self.0.iter_mut().filter(|entry| entry.api_version == request.api_version) {
            let (set, changed) = reconcile(std::mem::take(&mut entry.set), kind);
            if changed {
                entry.change(set);
            } else {
                entry.set = set;
            }
        }
    }

    /// Takes changed and removed fields from everybody, except from one entry.
    pub(super) fn disown(&mut self, diff: &Comparison, except: Option<&Identity>, request: &Request) {
        for entry in &mut self.0 {
            if except.is_some_and(|except| entry.identity() == *except) || !request.comparable(&entry.api_version) {
                continue;
            }
            for fields in [&diff.modified, &diff.added, &diff.removed] {
                entry.take(fields);
            }
        }
        self.drop_empty();
    }

    pub(super) fn drop_empty(&mut self) {
        self.0.retain(|entry| !entry.set.is_empty());
    }

    /// Records a create, update or patch: what changed belongs to its manager from now on.
    pub(super) fn record(&mut self, diff: Comparison, manager: &str, request: &Request) {
        self.disown(&diff, None, request);
        let changed = diff.modified.union(diff.added).difference(untracked());
        if changed.is_empty() {
            return;
        }
        let identity = Identity {
            manager,
            operation: Operation::Update,
            api_version: request.api_version,
            subresource: request.subresource,
        };
        let at = match self.find(&identity) {
            Some(at) => {
                let set = std::mem::take(&mut self.0[at].set);
                self.0[at].change(set.union(changed));
                at
            }
            None => {
                self.0.push(identity.entry(request.api_version, changed));
                self.0.len() - 1
            }
        };
        self.0[at].touch(request.now);
    }

    /// Merges the oldest Update entries, version by version, until there are few enough.
    pub(super) fn cap(&mut self) {
        let is_updater = |entry: &Entry| entry.operation == Operation::Update;
        let mut count = self.0.iter().filter(|entry| is_updater(entry)).count();
        if count <= MAX_UPDATERS {
            return;
        }
        let (mut updaters, appliers): (Vec<Entry>, Vec<Entry>) =
            std::mem::take(&mut self.0).into_iter().partition(is_updater);
        updaters.sort_by_cached_key(|entry| {
            (entry.seconds(), entry.manager.clone(), entry.api_version.clone(), entry.subresource.clone())
        });
        let mut buckets: BTreeMap<String, Entry> = BTreeMap::new();
        let mut rest = Vec::new();
        for entry in updaters {
            if count <= MAX_UPDATERS {
                rest.push(entry);
                continue;
            }
            match buckets.get_mut(&entry.api_version) {
                None => {
                    buckets.insert(entry.api_version.clone(), entry);
                }
                Some(bucket) => {
                    let set = std::mem::take(&mut bucket.set).union(entry.set);
                    bucket.change(set);
                    // The younger time: that is when the merged fields were last written.
                    bucket.time = entry.time;
                    bucket.manager = ANCIENT.to_owned();
                    bucket.subresource = String::new();
                    count -= 1;
                }
            }
        }
        for bucket in buckets.into_values() {
            let known = rest.iter().position(|entry| entry.identity() == bucket.identity());
            match known {
                Some(at) => {
                    let set = std::mem::take(&mut rest[at].set).union(bucket.set);
                    rest[at].change(set);
                }
                None => rest.push(bucket),
            }
        }
        self.0 = appliers;
        self.0.append(&mut rest);
    }
}
