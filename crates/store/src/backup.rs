//! Backup and restore of everything an engine holds, between any two engines.
//!
//! A backup is `ATOLLBAK`, a version, and frames: for each instance a header and its entries, at
//! the end a frame that counts them. Each frame has a checksum, so a backup that was cut off or
//! damaged is refused before anything is written. All numbers are little-endian.

use std::io::{self, Read, Write};
use std::sync::Arc;

use atoll_meta::{InstanceId, Key, Object, Revision};
use bytes::{Buf, BufMut, Bytes};

use crate::checksum::Checksum;
use crate::{Engine, Expect, Op, StoreError};

const MAGIC: &[u8; 8] = b"ATOLLBAK";
const VERSION: u32 = 1;
const INSTANCE: u8 = 1;
const ENTRY: u8 = 2;
const END: u8 = 3;

/// Larger than any object can be; guards against lengths that are noise.
const MAX_FRAME: u32 = 256 << 20;

/// Limits of one transaction of a restore, below etcd's own.
const RESTORE_WRITES: usize = 100;
const RESTORE_BYTES: usize = 1 << 20;

/// Why a backup or restore failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Reading or writing the backup failed.
    #[error("backup: {0}")]
    Io(#[from] io::Error),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The backup is damaged, incomplete, of another program or of a newer version.
    #[error("not a usable backup: {0}")]
    Format(String),
    /// The store to restore into holds data.
    #[error("the store is not empty; restore into a new one")]
    NotEmpty,
}

/// What a backup holds.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub struct BackupSummary {
    /// Number of instances.
    pub instances: u64,
    /// Number of objects in all of them.
    pub objects: u64,
}

/// Writes everything: of each instance a consistent view of its newest state.
pub async fn backup(engine: &dyn Engine, out: &mut (dyn Write + Send)) -> Result<BackupSummary, BackupError> {
    out.write_all(MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())?;
    let mut summary = BackupSummary::default();
    let mut frame = Vec::new();
    for (id, name) in engine.instances() {
        let snapshot = match engine.snapshot(id, None).await {
            Err(StoreError::NoInstance) => continue,
            snapshot => snapshot?,
        };
        frame.clear();
        frame.put_u64_le(snapshot.revision.0);
        frame.put_slice(name.as_bytes());
        write_frame(out, INSTANCE, &frame)?;
        for (key, entry) in &snapshot.entries {
            frame.clear();
            frame.put_u64_le(entry.modified.0);
            frame.put_u32_le(u32::try_from(key.as_str().len()).map_err(io::Error::other)?);
            frame.put_slice(key.as_str().as_bytes());
            frame.put_slice(&entry.object.body);
            write_frame(out, ENTRY, &frame)?;
            summary.objects += 1;
        }
        summary.instances += 1;
    }
    frame.clear();
    frame.put_u64_le(summary.instances);
    frame.put_u64_le(summary.objects);
    write_frame(out, END, &frame)?;
    out.flush()?;
    Ok(summary)
}

/// Reads a whole backup, checks it, and only then writes it into an empty engine.
///
/// Objects get new revisions in their old order; where the engine counts its own revisions they
/// continue above those of the backup.
pub async fn restore(engine: &dyn Engine, from: &mut (dyn Read + Send)) -> Result<BackupSummary, BackupError> {
    let (saved, summary) = read_backup(from)?;
    if engine.instances().len() != 1 || engine.usage(InstanceId::ROOT)?.0 != 0 {
        return Err(BackupError::NotEmpty);
    }
    for (id, name) in engine.instances() {
        if !saved.iter().any(|instance| instance.name == *name) {
            return Err(BackupError::Format(format!("it lacks instance {name} ({id})")));
        }
    }
    for instance in saved {
        let existing = engine.instances().into_iter().find(|(_, name)| **name == *instance.name);
        let id = match existing {
            Some((id, _)) => id,
            None => engine.create_instance(&instance.name).await?,
        };
        fill(engine, id, instance).await?;
    }
    Ok(summary)
}

struct Saved {
    name: String,
    revision: Revision,
    entries: Vec<(Revision, Key, Arc<Object>)>,
}

async fn fill(engine: &dyn Engine, id: InstanceId, mut saved: Saved) -> Result<(), StoreError> {
    saved.entries.sort_by_key(|(modified, ..)| *modified);
    // Ahead of the writes, so that not even an interrupted restore gives out an old revision again.
    engine.advance(id, saved.revision).await?;
    let mut writes = Vec::new();
    let mut bytes = 0;
    for (_, key, object) in saved.entries {
        bytes += object.body.len() + key.as_str().len();
        writes.push(crate::Write { key, expect: Expect::Absent, op: Op::Put(object) });
        if writes.len() >= RESTORE_WRITES || bytes >= RESTORE_BYTES {
            engine.commit(id, std::mem::take(&mut writes)).await?;
            bytes = 0;
        }
    }
    if !writes.is_empty() {
        engine.commit(id, writes).await?;
    }
    Ok(())
}

fn write_frame(out: &mut (dyn Write + Send), kind: u8, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?.to_le_bytes();
    let mut sum = Checksum::new();
    for part in [&[kind][..], &length, payload] {
        sum.add(part);
        out.write_all(part)?;
    }
    out.write_all(&sum.value().to_le_bytes())
}

fn malformed(why: impl Into<String>) -> BackupError {
    BackupError::Format(why.into())
}

fn read_backup(from: &mut (dyn Read + Send)) -> Result<(Vec<Saved>, BackupSummary), BackupError> {
    let mut opening = [0; 12];
    read_exact(from, &mut opening)?;
    if opening[..8] != MAGIC[..] {
        return Err(malformed("it was not written by this program"));
    }
    let version = (&opening[8..]).get_u32_le();
    if version != VERSION {
        return Err(malformed(format!("it has version {version}, this program reads version {VERSION}")));
    }
    let mut saved: Vec<Saved> = Vec::new();
    let mut summary = BackupSummary::default();
    loop {
        let (kind, payload) = read_frame(from)?;
        match (kind, saved.last_mut()) {
            (INSTANCE, _) => {
                saved.push(read_instance(payload)?);
                summary.instances += 1;
            }
            (ENTRY, Some(instance)) => {
                instance.entries.push(read_entry(payload)?);
                summary.objects += 1;
            }
            (END, _) => {
                if payload[..] != [summary.instances.to_le_bytes(), summary.objects.to_le_bytes()].concat() {
                    return Err(malformed("parts of it are missing"));
                }
                if from.read(&mut [0])? != 0 {
                    return Err(malformed("there is something behind its end"));
                }
                return Ok((saved, summary));
            }
            _ => return Err(malformed(format!("a part of kind {kind} is out of place"))),
        }
    }
}

fn read_exact(from: &mut (dyn Read + Send), into: &mut [u8]) -> Result<(), BackupError> {
    from.read_exact(into).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => malformed("it is cut off"),
        _ => error.into(),
    })
}

fn read_frame(from: &mut (dyn Read + Send)) -> Result<(u8, Bytes), BackupError> {
    let mut opening = [0; 5];
    read_exact(from, &mut opening)?;
    let length = (&opening[1..]).get_u32_le();
    if length > MAX_FRAME {
        return Err(malformed("a length in it is absurd"));
    }
    let mut payload = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut payload)?;
    if payload.len() != length as usize {
        return Err(malformed("it is cut off"));
    }
    let mut sum = [0; 4];
    read_exact(from, &mut sum)?;
    let mut actual = Checksum::new();
    actual.add(&opening);
    actual.add(&payload);
    if actual.value().to_le_bytes() != sum {
        return Err(malformed("a checksum does not match"));
    }
    Ok((opening[0], payload.into()))
}

fn read_text(bytes: &[u8]) -> Result<&str, BackupError> {
    std::str::from_utf8(bytes).map_err(|_| malformed("a name in it is not text"))
}

fn read_instance(mut payload: Bytes) -> Result<Saved, BackupError> {
    let revision = payload.try_get_u64_le().map_err(|_| malformed("an instance is incomplete"))?;
    Ok(Saved { name: read_text(&payload)?.to_owned(), revision: Revision(revision), entries: Vec::new() })
}

fn read_entry(mut payload: Bytes) -> Result<(Revision, Key, Arc<Object>), BackupError> {
    let short = |_| malformed("an entry is incomplete");
    let modified = payload.try_get_u64_le().map_err(short)?;
    let length = payload.try_get_u32_le().map_err(short)? as usize;
    if length > payload.len() {
        return Err(malformed("an entry is incomplete"));
    }
    let key = Key::from_text(read_text(&payload.split_to(length))?);
    let object = Object::decode(payload).map_err(|error| malformed(format!("{key} is unreadable: {error}")))?;
    Ok((Revision(modified), key, Arc::new(object)))
}
