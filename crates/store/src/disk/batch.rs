//! Transactions that go to disk together.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use atoll_meta::{InstanceId, Key, Revision};
use redb::{Database, ReadableTable as _, Table, WriteTransaction};

use super::file::{DROPPED, ENTRIES, INSTANCES, LIVE, META, META_NEXT, META_SEQUENCE, REVISIONS};
use crate::memory::FIRST;
use crate::mvcc::{Change, Core, Effects, Instance, stage};
use crate::{Entry, StoreError, Write};

/// How many entries of dropped instances one commit deletes.
const REAP: usize = 512;

/// Transactions that were checked one after the other and wait for the disk.
pub(super) struct Batch {
    /// Number of the commit.
    pub sequence: u64,
    /// Number of the next instance after this batch.
    next: u32,
    steps: Vec<Step>,
    /// The state after this batch, where it differs from memory.
    heads: BTreeMap<InstanceId, Head>,
    names: HashMap<Arc<str>, Option<InstanceId>>,
}

enum Step {
    Commit { instance: Arc<Instance>, revision: Revision, changes: Vec<Change> },
    Advance { instance: Arc<Instance>, to: Revision },
    Create { id: InstanceId, name: Arc<str> },
    Drop { id: InstanceId },
}

struct Head {
    revision: Revision,
    dropped: Option<Arc<str>>,
    entries: BTreeMap<Key, Option<Entry>>,
}

impl Batch {
    /// An empty batch.
    pub fn new(sequence: u64, next: u32) -> Self {
        Self { sequence, next, steps: Vec::new(), heads: BTreeMap::new(), names: HashMap::new() }
    }

    /// Whether there is nothing for the disk.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Number of the next instance after this batch.
    pub fn next(&self) -> u32 {
        self.next
    }

    fn head(&mut self, instance: &Instance) -> Result<&mut Head, StoreError> {
        let revision = instance.revision()?;
        let head =
            self.heads.entry(instance.id).or_insert_with(|| Head { revision, dropped: None, entries: BTreeMap::new() });
        if head.dropped.is_some() { Err(StoreError::NoInstance) } else { Ok(head) }
    }

    /// Adds a transaction and says what its revision will be.
    pub fn commit(&mut self, core: &Core, id: InstanceId, writes: &[Write]) -> Result<Revision, StoreError> {
        let instance = core.instance(id)?;
        let head = self.head(&instance)?;
        let revision = head.revision.next();
        let changes = stage(writes, revision, |key| match head.entries.get(key) {
            Some(entry) => entry.clone(),
            None => instance.get(key.as_str()).ok().flatten(),
        })?;
        if changes.is_empty() {
            return Ok(head.revision);
        }
        head.revision = revision;
        for change in &changes {
            head.entries.insert(change.key.clone(), change.current.clone());
        }
        self.steps.push(Step::Commit { instance, revision, changes });
        Ok(revision)
    }

    /// Adds a jump of an instance's revision.
    pub fn advance(&mut self, core: &Core, id: InstanceId, to: Revision) -> Result<(), StoreError> {
        let instance = core.instance(id)?;
        let head = self.head(&instance)?;
        if to > head.revision {
            head.revision = to;
            self.steps.push(Step::Advance { instance, to });
        }
        Ok(())
    }

    /// Adds a new instance.
    pub fn create(&mut self, core: &Core, name: Arc<str>) -> Result<InstanceId, StoreError> {
        let taken = self.names.get(&name).copied().unwrap_or_else(|| core.named(&name));
        if taken.is_some() {
            return Err(StoreError::InstanceExists);
        }
        let id = InstanceId(self.next);
        self.next += 1;
        self.names.insert(name.clone(), Some(id));
        self.steps.push(Step::Create { id, name });
        Ok(id)
    }

    /// Adds the end of an instance.
    pub fn drop(&mut self, core: &Core, id: InstanceId) -> Result<(), StoreError> {
        let instance = core.instance(id)?;
        let name = instance.name.clone();
        let head = self.head(&instance)?;
        head.dropped = Some(name.clone());
        head.entries.clear();
        self.names.insert(name, None);
        self.steps.push(Step::Drop { id });
        Ok(())
    }

    /// Writes all of it in one durable commit.
    pub fn store(&self, database: &Database) -> Result<(), redb::Error> {
        let write = database.begin_write()?;
        {
            write.open_table(META)?.insert(META_SEQUENCE, self.sequence)?;
            let mut revisions = write.open_table(REVISIONS)?;
            self.store_instances(&write, &mut revisions)?;
            let mut entries = write.open_table(ENTRIES)?;
            for (id, head) in self.heads.iter().filter(|(_, head)| head.dropped.is_none()) {
                revisions.insert(id.0, head.revision.0)?;
                for (key, entry) in &head.entries {
                    let place = (id.0, key.as_str());
                    match entry {
                        Some(entry) => {
                            entries.insert(place, (entry.created.0, entry.modified.0, &*entry.object.body))?
                        }
                        None => entries.remove(place)?,
                    };
                }
            }
        }
        write.commit()?;
        Ok(())
    }

    /// Writes which instances come and go; most commits have none and save themselves the table.
    fn store_instances(
        &self,
        write: &WriteTransaction,
        revisions: &mut Table<'_, u32, u64>,
    ) -> Result<(), redb::Error> {
        if !self.steps.iter().any(|step| matches!(step, Step::Create { .. } | Step::Drop { .. })) {
            return Ok(());
        }
        write.open_table(META)?.insert(META_NEXT, u64::from(self.next))?;
        let mut instances = write.open_table(INSTANCES)?;
        for step in &self.steps {
            if let Step::Create { id, name } = step {
                instances.insert(id.0, (LIVE, &**name))?;
                revisions.insert(id.0, FIRST.0)?;
            }
        }
        for (id, head) in &self.heads {
            if let Some(name) = &head.dropped {
                instances.insert(id.0, (DROPPED, &**name))?;
                revisions.remove(id.0)?;
            }
        }
        Ok(())
    }

    /// Shows all of it to readers and watches; returns the dropped instances.
    pub fn publish(self, core: &Core) -> Vec<u32> {
        let mut graves = Vec::new();
        // Watches wake once for the whole batch, not once for each of its transactions.
        let mut effects = Effects::default();
        for step in self.steps {
            match step {
                Step::Commit { instance, revision, changes } => {
                    effects.join(instance.apply(revision, changes, &core.sinks()));
                }
                // Only fails when the instance is gone, and then there is nothing to raise.
                Step::Advance { instance, to } => drop(instance.advance(to)),
                Step::Create { id, name } => {
                    let added = core.add(Instance::empty(id, name, FIRST, core.horizon_cell()));
                    debug_assert!(added.is_ok(), "the name was checked and only this thread adds");
                }
                Step::Drop { id } => {
                    graves.push(id.0);
                    drop(core.remove(id));
                }
            }
        }
        effects.ring();
        graves
    }
}

/// Deletes some entries of a dropped instance; says whether none are left.
pub(super) fn reap(database: &Database, id: u32) -> Result<bool, redb::Error> {
    let write = database.begin_write()?;
    let done = {
        let mut entries = write.open_table(ENTRIES)?;
        let keys: Vec<String> = entries
            .range((id, "")..)?
            .take(REAP)
            .map(|row| row.map(|(key, _)| (key.value().0, key.value().1.to_owned())))
            .take_while(|row| row.as_ref().map_or(true, |(owner, _)| *owner == id))
            .map(|row| row.map(|(_, key)| key))
            .collect::<Result<_, _>>()?;
        for key in &keys {
            entries.remove((id, key.as_str()))?;
        }
        if keys.len() < REAP {
            write.open_table(INSTANCES)?.remove(id)?;
        }
        keys.len() < REAP
    };
    write.commit()?;
    Ok(done)
}
