//! From what a transaction asks to what it changes.

use std::collections::HashMap;
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
    let changes = writes.iter().zip(befores).filter_map(|(write, before)| change(write, before, revision));
    Ok(if writes.len() == 1 { changes.collect() } else { last_per_key(changes) })
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

fn last_per_key(changes: impl Iterator<Item = Change>) -> Vec<Change> {
    let mut kept: Vec<Change> = Vec::new();
    let mut places: HashMap<Key, usize> = HashMap::new();
    for change in changes {
        match places.get(&change.key) {
            Some(&place) => kept[place] = change,
            None => {
                places.insert(change.key.clone(), kept.len());
                kept.push(change);
            }
        }
    }
    kept
}
