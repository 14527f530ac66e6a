//! Where shelves and rows are kept: embedded SQLite, or PostgreSQL.

mod postgres;
mod secure;
mod sqlite;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use atoll_meta::Status;

use crate::row::Row;
use crate::shelf::{Shelf, ShelfKey};
use crate::statement::{Cell, Dialect, Statement};

/// Which database.
#[derive(Clone, Debug)]
pub enum Choice {
    /// Embedded, in memory: gone with the process.
    Memory,
    /// Embedded, in a file.
    Sqlite(PathBuf),
    /// A PostgreSQL server, by URL.
    Postgres(String),
}

/// One change of a shelf.
#[derive(Clone, Debug)]
pub enum Write {
    /// An object is so now.
    Put { shelf: i64, row: Arc<Row> },
    /// An object is gone.
    Remove { shelf: i64, namespace: String, name: String },
    /// Everything up to this revision has been written.
    Progress { shelf: i64, revision: String },
}

/// The resource a new shelf is for.
#[derive(Clone, Debug)]
pub struct Label {
    pub key: ShelfKey,
    pub version: String,
    pub kind: String,
    pub namespaced: bool,
}

/// What came of a write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// All of it is there.
    Written,
    /// None of it: the database does not take something in it, and would not the next time. Why, without any value.
    Refused(String),
}

/// A database.
#[async_trait::async_trait]
pub trait Store: Send + Sync {
    /// Which language it speaks.
    fn dialect(&self) -> Dialect;
    /// All shelves.
    async fn shelves(&self) -> Result<Vec<Shelf>, Status>;
    /// A new shelf; one of the same key but another version is emptied and taken over.
    async fn add_shelf(&self, label: Label) -> Result<Shelf, Status>;
    /// Removes a shelf with everything on it.
    async fn drop_shelf(&self, id: i64) -> Result<(), Status>;
    /// Writes changes, all or none; later ones win.
    async fn write(&self, writes: Arc<Vec<Write>>) -> Result<Outcome, Status>;
    /// Reads.
    async fn select(&self, statement: Statement) -> Result<Vec<Vec<Cell>>, Status>;
}

/// Opens a database.
pub async fn open(choice: &Choice) -> Result<Arc<dyn Store>, Status> {
    Ok(match choice {
        Choice::Memory => Arc::new(sqlite::Sqlite::memory()?),
        Choice::Sqlite(path) => Arc::new(sqlite::Sqlite::file(path)?),
        Choice::Postgres(url) => Arc::new(postgres::Postgres::open(url).await?),
    })
}

/// Tells a failure of the database without its details, which may repeat values.
fn failed(what: &str, error: &dyn std::fmt::Display) -> Status {
    tracing::warn!(%error, "index: {what}");
    Status::unavailable(format!("the index could not {what}"))
}

/// The last change of each object, and the last progress of each shelf.
fn coalesce(writes: &[Write]) -> (Vec<&Write>, BTreeMap<i64, &String>) {
    let mut last: HashMap<(i64, &str, &str), usize> = HashMap::with_capacity(writes.len());
    let mut kept: Vec<Option<&Write>> = Vec::with_capacity(writes.len());
    let mut progress = BTreeMap::new();
    for write in writes {
        let key = match write {
            Write::Put { shelf, row } => (*shelf, row.namespace.as_str(), row.name.as_str()),
            Write::Remove { shelf, namespace, name } => (*shelf, namespace.as_str(), name.as_str()),
            Write::Progress { shelf, revision } => {
                progress.insert(*shelf, revision);
                continue;
            }
        };
        if let Some(old) = last.insert(key, kept.len()) {
            kept[old] = None;
        }
        kept.push(Some(write));
    }
    (kept.into_iter().flatten().collect(), progress)
}
