//! SQLite: one connection writes, several read.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use atoll_meta::Status;
use parking_lot::Mutex;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Transaction, params};

use super::{Label, Outcome, Store, Write, coalesce, failed};
use crate::row::Row;
use crate::shelf::{Shelf, ShelfKey};
use crate::statement::{Cell, Dialect, Param, Statement};

/// Raised when the tables change; the index is a copy and simply read again.
const SCHEMA_VERSION: i64 = 2;
const READERS: usize = 4;

const SCHEMA: &str = "
CREATE TABLE shelves (id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, grp TEXT NOT NULL, resource TEXT NOT NULL,
    version TEXT NOT NULL, kind TEXT NOT NULL, namespaced INTEGER NOT NULL, revision TEXT NOT NULL,
    UNIQUE (source, grp, resource));
CREATE TABLE objects (id INTEGER PRIMARY KEY, shelf INTEGER NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL,
    revision TEXT NOT NULL, created INTEGER NOT NULL, deleting INTEGER NOT NULL, terms TEXT NOT NULL, owners TEXT NOT NULL, body TEXT NOT NULL,
    UNIQUE (shelf, namespace, name));
CREATE INDEX objects_name ON objects (name, shelf);
CREATE INDEX objects_created ON objects (shelf, created, namespace, name);
CREATE TABLE terms (shelf INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, object INTEGER NOT NULL,
    PRIMARY KEY (shelf, key, value, object)) WITHOUT ROWID;
CREATE TABLE owners (owner TEXT NOT NULL, object INTEGER NOT NULL, PRIMARY KEY (owner, object)) WITHOUT ROWID;
";

/// An embedded database.
pub struct Sqlite {
    writer: Arc<Mutex<Connection>>,
    readers: Vec<Arc<Mutex<Connection>>>,
    turn: AtomicUsize,
}

fn cannot(what: &'static str) -> impl Fn(rusqlite::Error) -> Status {
    move |error| failed(what, &error)
}

impl Sqlite {
    /// In memory; readers and writer share the one connection.
    pub fn memory() -> Result<Self, Status> {
        let connection = Connection::open_in_memory().map_err(cannot("open its memory"))?;
        prepare(&connection).map_err(cannot("prepare its tables"))?;
        let writer = Arc::new(Mutex::new(connection));
        Ok(Self { readers: vec![writer.clone()], writer, turn: AtomicUsize::default() })
    }

    /// In a file.
    pub fn file(path: &Path) -> Result<Self, Status> {
        let open = || -> Result<Connection, rusqlite::Error> {
            let connection = Connection::open(path)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            Ok(connection)
        };
        let connection = open().map_err(cannot("open its file"))?;
        prepare(&connection).map_err(cannot("prepare its tables"))?;
        let mut readers = Vec::new();
        for _ in 0..READERS {
            let reader = open().map_err(cannot("open its file"))?;
            settings(&reader)
                .and_then(|()| reader.pragma_update(None, "query_only", true))
                .map_err(cannot("open its file"))?;
            readers.push(Arc::new(Mutex::new(reader)));
        }
        Ok(Self { writer: Arc::new(Mutex::new(connection)), readers, turn: AtomicUsize::default() })
    }

    async fn run<T: Send + 'static>(
        &self,
        connection: &Arc<Mutex<Connection>>,
        what: &'static str,
        work: impl FnOnce(&mut Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, Status> {
        let connection = connection.clone();
        tokio::task::spawn_blocking(move || work(&mut connection.lock()).map_err(cannot(what)))
            .await
            .map_err(|error| failed(what, &error))?
    }
}

fn settings(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.set_prepared_statement_cache_capacity(128);
    connection.busy_timeout(std::time::Duration::from_secs(10))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -32_768)
}

fn prepare(connection: &Connection) -> Result<(), rusqlite::Error> {
    settings(connection)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == SCHEMA_VERSION {
        return Ok(());
    }
    let drops = "DROP TABLE IF EXISTS owners; DROP TABLE IF EXISTS terms; DROP TABLE IF EXISTS objects; DROP TABLE IF EXISTS shelves;";
    connection.execute_batch(&format!("BEGIN; {drops} {SCHEMA} COMMIT;"))?;
    connection.pragma_update(None, "user_version", SCHEMA_VERSION)
}

#[async_trait::async_trait]
impl Store for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn shelves(&self) -> Result<Vec<Shelf>, Status> {
        self.run(&self.writer, "read its shelves", |connection| {
            let mut statement = connection
                .prepare("SELECT id, source, grp, resource, version, kind, namespaced, revision FROM shelves")?;
            statement
                .query_map([], |row| {
                    let key = ShelfKey { source: row.get(1)?, group: row.get(2)?, resource: row.get(3)? };
                    let revision: String = row.get(7)?;
                    Ok(Shelf::new(row.get(0)?, key, row.get(4)?, row.get(5)?, row.get(6)?, &revision))
                })?
                .collect()
        })
        .await
    }

    async fn add_shelf(&self, label: Label) -> Result<Shelf, Status> {
        self.run(&self.writer, "add a shelf", move |connection| {
            let transaction = connection.transaction()?;
            let key = &label.key;
            let known: Option<i64> = transaction
                .query_row("SELECT id FROM shelves WHERE source = ?1 AND grp = ?2 AND resource = ?3", params![key.source, key.group, key.resource], |row| row.get(0))
                .optional()?;
            if let Some(id) = known {
                empty(&transaction, id)?;
            }
            transaction.execute(
                "INSERT INTO shelves (source, grp, resource, version, kind, namespaced, revision) VALUES (?1, ?2, ?3, ?4, ?5, ?6, '')",
                params![key.source, key.group, key.resource, label.version, label.kind, label.namespaced],
            )?;
            let id = transaction.last_insert_rowid();
            transaction.commit()?;
            Ok(Shelf::new(id, label.key, label.version, label.kind, label.namespaced, ""))
        })
        .await
    }

    async fn drop_shelf(&self, id: i64) -> Result<(), Status> {
        self.run(&self.writer, "drop a shelf", move |connection| {
            let transaction = connection.transaction()?;
            empty(&transaction, id)?;
            transaction.commit()
        })
        .await
    }

    async fn write(&self, writes: Arc<Vec<Write>>) -> Result<Outcome, Status> {
        self.run(&self.writer, "write", move |connection| match write(connection, &writes) {
            Ok(()) => Ok(Outcome::Written),
            Err(error) => refusal(&error).map(Outcome::Refused).ok_or(error),
        })
        .await
    }

    async fn select(&self, statement: Statement) -> Result<Vec<Vec<Cell>>, Status> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.readers.len();
        self.run(&self.readers[turn], "answer", move |connection| {
            let mut prepared = connection.prepare_cached(&statement.sql)?;
            let width = prepared.column_count();
            let params = rusqlite::params_from_iter(statement.params.iter());
            let rows = prepared.query_map(params, |row| (0..width).map(|at| row.get_ref(at).map(cell)).collect())?;
            rows.collect()
        })
        .await
    }
}

impl ToSql for Param {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Int(number) => number.to_sql(),
            Self::Text(text) => text.to_sql(),
        }
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Integer(number) => Cell::Int(number),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        _ => Cell::Text(String::new()),
    }
}

fn write(connection: &mut Connection, writes: &[Write]) -> Result<(), rusqlite::Error> {
    let (changes, progress) = coalesce(writes);
    let transaction = connection.transaction()?;
    for change in changes {
        match change {
            Write::Put { shelf, row } => put(&transaction, *shelf, row)?,
            Write::Remove { shelf, namespace, name } => remove(&transaction, *shelf, namespace, name)?,
            Write::Progress { .. } => {}
        }
    }
    for (shelf, revision) in progress {
        transaction
            .prepare_cached("UPDATE shelves SET revision = ?2 WHERE id = ?1")?
            .execute(params![shelf, revision])?;
    }
    transaction.commit()
}

/// Why the database will never take what it was given. Its message may repeat values, its code does not.
fn refusal(error: &rusqlite::Error) -> Option<String> {
    let code = error.sqlite_error_code()?;
    matches!(code, ErrorCode::TooBig | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch)
        .then(|| format!("{code:?}"))
}

fn empty(transaction: &Transaction<'_>, shelf: i64) -> Result<(), rusqlite::Error> {
    // Owners have no shelf: they are found through the objects, before those go.
    let mut statement = transaction.prepare("SELECT id, owners FROM objects WHERE shelf = ?1 AND owners <> '[]'")?;
    let owned: Vec<(i64, String)> =
        statement.query_map([shelf], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    for (id, owners) in owned {
        for owner in parse::<String>(&owners) {
            transaction
                .prepare_cached("DELETE FROM owners WHERE owner = ?1 AND object = ?2")?
                .execute(params![owner, id])?;
        }
    }
    transaction.execute("DELETE FROM terms WHERE shelf = ?1", [shelf])?;
    transaction.execute("DELETE FROM objects WHERE shelf = ?1", [shelf])?;
    transaction.execute("DELETE FROM shelves WHERE id = ?1", [shelf])?;
    Ok(())
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Vec<T> {
    serde_json::from_str(text).unwrap_or_default()
}

fn put(transaction: &Transaction<'_>, shelf: i64, row: &Row) -> Result<(), rusqlite::Error> {
    let terms = serde_json::to_string(&row.terms).unwrap_or_default();
    let owners = serde_json::to_string(&row.owners).unwrap_or_default();
    let known: Option<(i64, String, String, String, String)> = transaction
        .prepare_cached(
            "SELECT id, uid, revision, terms, owners FROM objects WHERE shelf = ?1 AND namespace = ?2 AND name = ?3",
        )?
        .query_row(params![shelf, row.namespace, row.name], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        })
        .optional()?;
    let id = match known {
        Some((_, _, revision, ..)) if revision == row.revision && !revision.is_empty() => return Ok(()),
        // Most changes leave labels and owners alone; what is not named here needs no look at its index.
        Some((id, uid, _, old_terms, old_owners)) if uid == row.uid && old_terms == terms && old_owners == owners => {
            transaction
                .prepare_cached("UPDATE objects SET revision = ?2, deleting = ?3, body = ?4 WHERE id = ?1")?
                .execute(params![id, row.revision, row.deleting, row.body])?;
            return Ok(());
        }
        Some((id, _, _, old_terms, old_owners)) => {
            transaction
                .prepare_cached("UPDATE objects SET uid = ?2, revision = ?3, created = ?4, deleting = ?5, terms = ?6, owners = ?7, body = ?8 WHERE id = ?1")?
                .execute(params![id, row.uid, row.revision, row.created, row.deleting, terms, owners, row.body])?;
            forget(transaction, shelf, id, &old_terms, &old_owners)?;
            id
        }
        None => {
            transaction
                .prepare_cached("INSERT INTO objects (shelf, namespace, name, uid, revision, created, deleting, terms, owners, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?
                .execute(params![shelf, row.namespace, row.name, row.uid, row.revision, row.created, row.deleting, terms, owners, row.body])?;
            transaction.last_insert_rowid()
        }
    };
    for (key, value) in &row.terms {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO terms VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![shelf, key, value, id])?;
    }
    for owner in &row.owners {
        transaction.prepare_cached("INSERT OR IGNORE INTO owners VALUES (?1, ?2)")?.execute(params![owner, id])?;
    }
    Ok(())
}

fn forget(
    transaction: &Transaction<'_>,
    shelf: i64,
    id: i64,
    terms: &str,
    owners: &str,
) -> Result<(), rusqlite::Error> {
    for (key, value) in parse::<(String, String)>(terms) {
        transaction
            .prepare_cached("DELETE FROM terms WHERE shelf = ?1 AND key = ?2 AND value = ?3 AND object = ?4")?
            .execute(params![shelf, key, value, id])?;
    }
    for owner in parse::<String>(owners) {
        transaction
            .prepare_cached("DELETE FROM owners WHERE owner = ?1 AND object = ?2")?
            .execute(params![owner, id])?;
    }
    Ok(())
}

fn remove(transaction: &Transaction<'_>, shelf: i64, namespace: &str, name: &str) -> Result<(), rusqlite::Error> {
    let known: Option<(i64, String, String)> = transaction
        .prepare_cached("SELECT id, terms, owners FROM objects WHERE shelf = ?1 AND namespace = ?2 AND name = ?3")?
        .query_row(params![shelf, namespace, name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((id, terms, owners)) = known else { return Ok(()) };
    forget(transaction, shelf, id, &terms, &owners)?;
    transaction.prepare_cached("DELETE FROM objects WHERE id = ?1")?.execute([id])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn what_the_database_never_takes_is_told_apart_from_what_it_may_take_later() {
        let store = Sqlite::memory().unwrap();
        let key = ShelfKey { source: "m".into(), group: String::new(), resource: "pods".into() };
        let label = Label { key, version: "v1".into(), kind: "Pod".into(), namespaced: true };
        let shelf = store.add_shelf(label).await.unwrap().id;
        let row = |name: &str| Arc::new(Row { name: name.into(), body: "{}".into(), ..Row::default() });
        let both = Arc::new(["good", "bad"].map(|name| Write::Put { shelf, row: row(name) }).to_vec());
        let fault = "CREATE TRIGGER fault BEFORE INSERT ON objects WHEN NEW.name = 'bad' BEGIN SELECT RAISE(ABORT, 'canary'); END";
        store.writer.lock().execute_batch(fault).unwrap();
        let outcome = store.write(both.clone()).await.unwrap();
        assert_eq!(outcome, Outcome::Refused("ConstraintViolation".into()));
        let count = |store: &Sqlite| -> i64 {
            store.writer.lock().query_row("SELECT count(*) FROM objects", [], |row| row.get(0)).unwrap()
        };
        assert_eq!(count(&store), 0, "all or none");
        store.writer.lock().execute_batch("DROP TRIGGER fault; PRAGMA query_only = true").unwrap();
        assert!(store.write(both.clone()).await.is_err(), "may work later");
        store.writer.lock().execute_batch("PRAGMA query_only = false").unwrap();
        assert_eq!((store.write(both).await.unwrap(), count(&store)), (Outcome::Written, 2));
    }
}
