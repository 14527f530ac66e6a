//! From what a transaction asks to what it changes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use atoll_meta::{Key, Object, Revision};

use crate::{Entry, Expect, Op, StoreError, Write};

/// A change that has been decided and only needs to be applied.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// What changes.
    pub key: Key,
    /// The new state, `None` for a removal.
    pub current: Option<Entry>,
    /// What watchers of a removal see as the last state, when the deleter gave one.
    pub last: Option<Arc<Object>>,
}

/// Checks the expectations of a transaction and turns it into changes at `revision`.
///
/// All expectations look at the state before the transaction. Where a key is written twice,
/// the last write counts. Removing what is not there changes nothing.
pub(crate) fn stage(
    writes: &[Write],
    revision: Revision,
    mut lookup: impl FnMut(&Key) -> Option<Entry>,
) -> Result<Vec<Change>, StoreError> {
    let mut befores = Vec::with_capacity(writes.len());
    for (index, write) in writes.iter().enumerate() {
        let before = lookup(&write.key);
        let met = match write.expect {
            Expect::Any => true,
            Expect::Absent => before.is_none(),
            Expect::At(at) => before.as_ref().is_some_and(|entry| entry.modified == at),
        };
        if !met {
            return Err(StoreError::Conflict { index, current: before });
        }
        befores.push(before);
    }
    let effective = effective(writes);
    let pairs = writes.iter().zip(befores).enumerate().filter(|(index, _)| effective(*index));
    Ok(pairs.filter_map(|(_, (write, before))| change(write, before, revision)).collect())
}

fn change(write: &Write, before: Option<Entry>, revision: Revision) -> Option<Change> {
    let key = write.key.clone();
    match &write.op {
        Op::Check => None,
        Op::Put(object) => {
            let created = before.map_or(revision, |entry| entry.created);
            let entry = Entry { object: object.clone(), modified: revision, created };
            Some(Change { key, current: Some(entry), last: None })
        }
        Op::Delete(last) => before.map(|_| Change { key, current: None, last: last.clone() }),
    }
}

/// Which writes count: of each key the last that is not only a check.
pub(crate) fn effective(writes: &[Write]) -> impl Fn(usize) -> bool + use<> {
    let mut last: HashMap<Key, usize> = HashMap::new();
    if writes.len() > 1 {
        let real = writes.iter().enumerate().filter(|(_, write)| !matches!(write.op, Op::Check));
        last.extend(real.map(|(index, write)| (write.key.clone(), index)));
    }
    let kept: HashSet<usize> = last.into_values().collect();
    let single = writes.len() == 1;
    move |index| single || kept.contains(&index)
}
