//! The data file: its tables, how it is opened, checked and read.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use atoll_meta::{InstanceId, Key, Object, Revision};
use bytes::Bytes;
use redb::{
    Builder, Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, StorageError, TableDefinition,
    TableHandle as _,
};

use super::mark::Mark;
use crate::memory::FIRST;
use crate::mvcc::{Core, Instance, ROOT};
use crate::{Entry, StoreError};

/// Format of the tables below.
const FORMAT: u64 = 1;

/// Reads come from memory, so redb needs little of it.
const CACHE: usize = 16 << 20;

/// Numbers of the whole file, see the names below.
pub(super) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
/// Instance → state ([`LIVE`] or [`DROPPED`]) and name.
pub(super) const INSTANCES: TableDefinition<u32, (u8, &str)> = TableDefinition::new("instances");
/// Instance → newest revision.
pub(super) const REVISIONS: TableDefinition<u32, u64> = TableDefinition::new("revisions");
/// Instance and key → revision of creation, of the last change, and the body.
pub(super) const ENTRIES: TableDefinition<(u32, &str), (u64, u64, &[u8])> = TableDefinition::new("entries");

/// In [`META`]: version of the format.
pub(super) const META_FORMAT: &str = "format";
/// In [`META`]: number of the newest commit.
pub(super) const META_SEQUENCE: &str = "sequence";
/// In [`META`]: number of the next instance; numbers are never used again.
pub(super) const META_NEXT: &str = "next-instance";

/// State of an instance that exists.
pub(super) const LIVE: u8 = 0;
/// State of an instance whose entries are still to be deleted.
pub(super) const DROPPED: u8 = 1;

/// An open database, and whether its checksums were verified on the way.
pub(super) struct Opened {
    pub database: Database,
    pub verified: bool,
}

/// Opens the data file; called again after failures.
pub(super) type Opener = Box<dyn Fn() -> Result<Opened, DatabaseError> + Send>;

/// The opener of a real file, readable by its owner only.
pub(super) fn opener(path: PathBuf) -> Opener {
    Box::new(move || {
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut how, 0o600);
        let file = how.open(&path)?;
        open(|builder| builder.create_file(file))
    })
}

/// Opens a database with our settings.
pub(super) fn open(
    with: impl FnOnce(&mut Builder) -> Result<Database, DatabaseError>,
) -> Result<Opened, DatabaseError> {
    let repaired = Arc::new(AtomicBool::new(false));
    let flag = repaired.clone();
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE).set_repair_callback(move |_| flag.store(true, Ordering::Relaxed));
    let database = with(&mut builder)?;
    // A repair verifies all checksums.
    Ok(Opened { database, verified: repaired.load(Ordering::Relaxed) })
}

/// Whether the file holds anything.
pub(super) fn holds_data(path: &Path) -> Result<bool, StoreError> {
    match std::fs::metadata(path) {
        Ok(meta) => Ok(meta.len() > 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::Unavailable(format!("cannot look at {}: {error}", path.display()))),
    }
}

/// Makes the name of a new file as durable as its content.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Says why a file could not be opened.
pub(super) fn refusal(path: &Path, error: DatabaseError) -> StoreError {
    let path = path.display();
    match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::Unavailable(format!("{path} is in use by another process")),
        DatabaseError::UpgradeRequired(version) => StoreError::Damaged(format!(
            "{path} has version {version} of the file format, which this program cannot read"
        )),
        DatabaseError::Storage(StorageError::Io(error)) if is_full(&error) => {
            StoreError::Unavailable(format!("cannot open {path}, the disk is full: {error}"))
        }
        DatabaseError::Storage(StorageError::Io(error)) if !is_content(&error) => {
            StoreError::Unavailable(format!("cannot open {path}: {error}"))
        }
        DatabaseError::Storage(StorageError::Io(error)) => {
            StoreError::Damaged(format!("{path} is truncated or not a data file: {error}"))
        }
        DatabaseError::Storage(StorageError::Corrupted(why)) => {
            StoreError::Damaged(format!("{path} is corrupt or not a data file: {why}"))
        }
        other => StoreError::Damaged(format!("{path} cannot be opened: {other}")),
    }
}

/// Says why a file could not be written.
pub(super) fn unwritable(path: &Path, error: &io::Error) -> String {
    let what = if is_full(error) { ", the disk is full" } else { "" };
    format!("cannot write {}{what}: {error}", path.display())
}

/// Whether there is no room, by whatever limit.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

/// Whether an error is about what the file contains rather than about reaching it.
fn is_content(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput)
}

/// Verifies all checksums unless that has been done.
pub(super) fn verify(path: &Path, opened: &mut Opened) -> Result<(), StoreError> {
    if opened.verified {
        return Ok(());
    }
    match opened.database.check_integrity() {
        Ok(true) => Ok(()),
        // The data was verified; only redb's own book-keeping of free pages was made anew.
        Ok(false) => {
            tracing::warn!(path = %path.display(), "the data file needed repair although it was closed cleanly");
            Ok(())
        }
        Err(error) => Err(refusal(path, error)),
    }
}

/// What was read from a file besides the instances, which go to the core.
pub(super) struct Loaded {
    pub sequence: u64,
    pub next: u32,
    pub graves: VecDeque<u32>,
}

/// Reads everything, or sets up a new file.
pub(super) fn load(path: &Path, database: &Database, core: &Core, mark: &Mark) -> Result<Loaded, StoreError> {
    let damaged = |why: String| StoreError::Damaged(format!("{}: {why}", path.display()));
    let read = |error: redb::Error| damaged(format!("cannot be read: {error}"));
    let names = table_names(database).map_err(read)?;
    if names.is_empty() {
        if mark.exists() {
            return Err(damaged(format!("the file is empty although {} says it held data", mark.path().display())));
        }
        initialise(database)
            .map_err(|error| StoreError::Unavailable(format!("cannot write {}: {error}", path.display())))?;
    } else if !names.iter().any(|name| name == "meta") || !names.iter().any(|name| name == "entries") {
        return Err(damaged("this is a redb file of another program".into()));
    }
    let loaded = numbers(database).map_err(read)?;
    if loaded.format != Some(FORMAT) {
        let found = loaded.format.map_or("no".into(), |format| format.to_string());
        return Err(damaged(format!("format {FORMAT} is what this program reads, the file has {found} format")));
    }
    let (Some(sequence), Some(next)) = (loaded.sequence, loaded.next.and_then(|next| u32::try_from(next).ok())) else {
        return Err(damaged("the numbers of the file are missing".into()));
    };
    if let Some(noted) = mark.read().filter(|noted| *noted > sequence) {
        return Err(damaged(format!(
            "commit {noted} was acknowledged but the file ends at commit {sequence}; \
             restore a backup, or remove {} to accept the loss",
            mark.path().display()
        )));
    }
    let graves = read_instances(database, core).map_err(|why| match why {
        Unreadable::Redb(error) => read(*error),
        Unreadable::Content(why) => damaged(why),
    })?;
    if core.instance(InstanceId::ROOT).is_err() || core.highest().0 >= next {
        return Err(damaged("the list of instances is incomplete".into()));
    }
    Ok(Loaded { sequence, next, graves })
}

fn table_names(database: &Database) -> Result<Vec<String>, redb::Error> {
    let read = database.begin_read()?;
    Ok(read.list_tables()?.map(|table| table.name().to_owned()).collect())
}

fn initialise(database: &Database) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    {
        let mut meta = write.open_table(META)?;
        meta.insert(META_FORMAT, FORMAT)?;
        meta.insert(META_SEQUENCE, 1)?;
        meta.insert(META_NEXT, 1)?;
        write.open_table(INSTANCES)?.insert(InstanceId::ROOT.0, (LIVE, ROOT))?;
        write.open_table(REVISIONS)?.insert(InstanceId::ROOT.0, FIRST.0)?;
        write.open_table(ENTRIES)?;
    }
    write.commit()?;
    Ok(())
}

struct Numbers {
    format: Option<u64>,
    sequence: Option<u64>,
    next: Option<u64>,
}

fn numbers(database: &Database) -> Result<Numbers, redb::Error> {
    let meta = database.begin_read()?.open_table(META)?;
    let number = |name| Ok::<_, redb::Error>(meta.get(name)?.map(|guard| guard.value()));
    Ok(Numbers { format: number(META_FORMAT)?, sequence: number(META_SEQUENCE)?, next: number(META_NEXT)? })
}

/// The number of the newest commit on disk.
pub(super) fn sequence(database: &Database) -> Result<Option<u64>, redb::Error> {
    Ok(numbers(database)?.sequence)
}

enum Unreadable {
    Redb(Box<redb::Error>),
    Content(String),
}

impl<E: Into<redb::Error>> From<E> for Unreadable {
    fn from(error: E) -> Self {
        Self::Redb(Box::new(error.into()))
    }
}

fn read_instances(database: &Database, core: &Core) -> Result<VecDeque<u32>, Unreadable> {
    let read = database.begin_read()?;
    let revisions = read.open_table(REVISIONS)?;
    let mut contents = read_entries(&read)?;
    let mut graves = VecDeque::new();
    for row in read.open_table(INSTANCES)?.iter()? {
        let (id, row) = row?;
        let (id, (state, name)) = (id.value(), row.value());
        let entries = contents.remove(&id).unwrap_or_default();
        if state == DROPPED {
            graves.push_back(id);
            continue;
        }
        let revision = revisions.get(id)?.map(|guard| Revision(guard.value()));
        let revision = revision.ok_or_else(|| Unreadable::Content(format!("instance {name} has no revision")))?;
        let newest = entries.iter().map(|(_, entry)| entry.modified).max();
        if newest.is_some_and(|newest| newest > revision) {
            return Err(Unreadable::Content(format!("instance {name} has entries newer than its revision")));
        }
        let (id, name, horizon) = (InstanceId(id), Arc::from(name), core.horizon_cell());
        let instance = if revision == FIRST {
            Instance::empty(id, name, revision, horizon)
        } else {
            Instance::loaded(id, name, revision, entries.into_iter().collect(), horizon)
        };
        core.add(instance).map_err(|_| Unreadable::Content("two instances have one name".into()))?;
    }
    match contents.keys().next() {
        None => Ok(graves),
        Some(stray) => Err(Unreadable::Content(format!("there are entries of instance {stray}, which is not listed"))),
    }
}

type Contents = BTreeMap<u32, Vec<(Key, Entry)>>;

fn read_entries(read: &redb::ReadTransaction) -> Result<Contents, Unreadable> {
    let mut contents = Contents::new();
    let mut dropped = std::collections::HashSet::new();
    for row in read.open_table(INSTANCES)?.iter()? {
        let (id, row) = row?;
        if row.value().0 == DROPPED {
            dropped.insert(id.value());
        }
    }
    for row in read.open_table(ENTRIES)?.iter()? {
        let (key, value) = row?;
        let ((id, text), (created, modified, body)) = (key.value(), value.value());
        if dropped.contains(&id) {
            continue;
        }
        let object = Object::decode(Bytes::copy_from_slice(body))
            .map_err(|error| Unreadable::Content(format!("{text} of instance {id} is unreadable: {error}")))?;
        let entry = Entry { object: Arc::new(object), created: Revision(created), modified: Revision(modified) };
        contents.entry(id).or_default().push((Key::from_text(text), entry));
    }
    Ok(contents)
}
