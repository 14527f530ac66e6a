//! PostgreSQL: the same tables, batches as arrays, connections made again when they break.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use atoll_meta::Status;
use tokio::sync::Mutex;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Transaction};

use super::secure::Way;
use super::{Label, Outcome, Store, Write, coalesce, failed};
use crate::row::Row;
use crate::shelf::{Shelf, ShelfKey};
use crate::statement::{Cell, Dialect, Param, Statement};

const READERS: usize = 4;
/// Raised when the tables change; the index is a copy and simply read again.
const SCHEMA_VERSION: i64 = 2;

const SCHEMA: &str = r#"
CREATE TABLE shelves (id BIGSERIAL PRIMARY KEY, source TEXT COLLATE "C" NOT NULL, grp TEXT COLLATE "C" NOT NULL, resource TEXT COLLATE "C" NOT NULL,
    version TEXT NOT NULL, kind TEXT NOT NULL, namespaced BOOLEAN NOT NULL, revision TEXT NOT NULL, UNIQUE (source, grp, resource));
CREATE TABLE objects (id BIGSERIAL PRIMARY KEY, shelf BIGINT NOT NULL, namespace TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL,
    uid TEXT NOT NULL, revision TEXT NOT NULL, created BIGINT NOT NULL, deleting BIGINT NOT NULL, body JSONB NOT NULL, UNIQUE (shelf, namespace, name));
CREATE INDEX objects_name ON objects (name, shelf);
CREATE INDEX objects_created ON objects (shelf, created, namespace, name);
CREATE TABLE terms (shelf BIGINT NOT NULL, key TEXT COLLATE "C" NOT NULL, value TEXT COLLATE "C" NOT NULL,
    object BIGINT NOT NULL REFERENCES objects (id) ON DELETE CASCADE, PRIMARY KEY (shelf, key, value, object));
CREATE INDEX terms_object ON terms (object);
CREATE TABLE owners (owner TEXT COLLATE "C" NOT NULL, object BIGINT NOT NULL REFERENCES objects (id) ON DELETE CASCADE, PRIMARY KEY (owner, object));
CREATE INDEX owners_object ON owners (object);
"#;

/// A connection that is made when needed.
#[derive(Default)]
struct Slot(Mutex<Option<Client>>);

/// A database server.
pub struct Postgres {
    way: Way,
    writer: Slot,
    readers: Vec<Slot>,
    turn: AtomicUsize,
}

fn cannot(what: &'static str) -> impl Fn(tokio_postgres::Error) -> Status {
    move |error| {
        let cause = error.as_db_error().map(ToString::to_string);
        failed(what, &cause.unwrap_or_else(|| error.to_string()))
    }
}

/// Why the database will never take what it was given. Its message may repeat values, its code does not.
fn refusal(error: &tokio_postgres::Error) -> Option<String> {
    let code = error.code()?.code();
    // Data exceptions, broken constraints, and limits such as that of what an index holds.
    ["22", "23", "54"].iter().any(|class| code.starts_with(class)).then(|| format!("SQLSTATE {code}"))
}

async fn connect(way: &Way) -> Result<Client, Status> {
    let (client, connection) = way.config.connect(way.tls.clone()).await.map_err(cannot("connect to its database"))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "index: connection to PostgreSQL ended");
        }
    });
    Ok(client)
}

impl Slot {
    /// The connection, made anew when it broke.
    async fn take(&self, way: &Way) -> Result<tokio::sync::MutexGuard<'_, Option<Client>>, Status> {
        let mut slot = self.0.lock().await;
        if slot.as_ref().is_none_or(Client::is_closed) {
            *slot = Some(connect(way).await?);
        }
        Ok(slot)
    }
}

impl Postgres {
    /// Connects and prepares the tables.
    pub async fn open(url: &str) -> Result<Self, Status> {
        let way = Way::parse(url).map_err(|error| failed("understand where its database is", &error))?;
        let client = connect(&way).await?;
        prepare(&client).await.map_err(cannot("prepare its tables"))?;
        let readers = (0..READERS).map(|_| Slot::default()).collect();
        Ok(Self { way, writer: Slot(Mutex::new(Some(client))), readers, turn: AtomicUsize::default() })
    }
}

async fn prepare(client: &Client) -> Result<(), tokio_postgres::Error> {
    client.batch_execute("CREATE TABLE IF NOT EXISTS index_version (version BIGINT NOT NULL)").await?;
    let version = client.query_opt("SELECT version FROM index_version", &[]).await?.map(|row| row.get::<_, i64>(0));
    if version == Some(SCHEMA_VERSION) {
        return Ok(());
    }
    client.batch_execute("DROP TABLE IF EXISTS owners, terms, objects, shelves; DELETE FROM index_version;").await?;
    client.batch_execute(SCHEMA).await?;
    client.execute("INSERT INTO index_version VALUES ($1)", &[&SCHEMA_VERSION]).await?;
    Ok(())
}

#[async_trait::async_trait]
impl Store for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn shelves(&self) -> Result<Vec<Shelf>, Status> {
        let slot = self.writer.take(&self.way).await?;
        let Some(client) = slot.as_ref() else { return Ok(Vec::new()) };
        let rows = client
            .query("SELECT id, source, grp, resource, version, kind, namespaced, revision FROM shelves", &[])
            .await
            .map_err(cannot("read its shelves"))?;
        Ok(rows
            .iter()
            .map(|row| {
                let key = ShelfKey { source: row.get(1), group: row.get(2), resource: row.get(3) };
                Shelf::new(row.get(0), key, row.get(4), row.get(5), row.get(6), row.get(7))
            })
            .collect())
    }

    async fn add_shelf(&self, label: Label) -> Result<Shelf, Status> {
        let mut slot = self.writer.take(&self.way).await?;
        let Some(client) = slot.as_mut() else { return Err(Status::unavailable("no connection")) };
        let key = &label.key;
        let run = async {
            let transaction = client.transaction().await?;
            let known = transaction
                .query_opt(
                    "SELECT id FROM shelves WHERE source = $1 AND grp = $2 AND resource = $3",
                    &[&key.source, &key.group, &key.resource],
                )
                .await?;
            if let Some(row) = known {
                empty(&transaction, row.get(0)).await?;
            }
            let row = transaction
                .query_one(
                    "INSERT INTO shelves (source, grp, resource, version, kind, namespaced, revision) VALUES ($1, $2, $3, $4, $5, $6, '') RETURNING id",
                    &[&key.source, &key.group, &key.resource, &label.version, &label.kind, &label.namespaced],
                )
                .await?;
            transaction.commit().await?;
            Ok(row.get(0))
        };
        let id = run.await.map_err(cannot("add a shelf"))?;
        Ok(Shelf::new(id, label.key, label.version, label.kind, label.namespaced, ""))
    }

    async fn drop_shelf(&self, id: i64) -> Result<(), Status> {
        let mut slot = self.writer.take(&self.way).await?;
        let Some(client) = slot.as_mut() else { return Err(Status::unavailable("no connection")) };
        let run = async {
            let transaction = client.transaction().await?;
            empty(&transaction, id).await?;
            transaction.commit().await
        };
        run.await.map_err(cannot("drop a shelf"))
    }

    async fn write(&self, writes: Arc<Vec<Write>>) -> Result<Outcome, Status> {
        let mut slot = self.writer.take(&self.way).await?;
        let Some(client) = slot.as_mut() else { return Err(Status::unavailable("no connection")) };
        let (changes, progress) = coalesce(&writes);
        let run = async {
            let transaction = client.transaction().await?;
            remove(&transaction, &changes).await?;
            put(&transaction, &changes).await?;
            for (shelf, revision) in &progress {
                transaction.execute("UPDATE shelves SET revision = $2 WHERE id = $1", &[shelf, *revision]).await?;
            }
            transaction.commit().await
        };
        match run.await {
            Ok(()) => Ok(Outcome::Written),
            Err(error) => refusal(&error).map(Outcome::Refused).ok_or_else(|| cannot("write")(error)),
        }
    }

    async fn select(&self, statement: Statement) -> Result<Vec<Vec<Cell>>, Status> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.readers.len();
        let slot = self.readers[turn].take(&self.way).await?;
        let Some(client) = slot.as_ref() else { return Err(Status::unavailable("no connection")) };
        let params: Vec<&(dyn ToSql + Sync)> = statement
            .params
            .iter()
            .map(|param| match param {
                Param::Int(number) => number as &(dyn ToSql + Sync),
                Param::Text(text) => text as &(dyn ToSql + Sync),
            })
            .collect();
        let rows = client.query(&statement.sql, &params).await.map_err(cannot("answer"))?;
        Ok(rows.iter().map(cells).collect())
    }
}

fn cells(row: &tokio_postgres::Row) -> Vec<Cell> {
    row.columns()
        .iter()
        .enumerate()
        .map(|(at, column)| match *column.type_() {
            Type::INT8 => Cell::Int(row.get::<_, Option<i64>>(at).unwrap_or_default()),
            Type::JSONB => Cell::Text(row.get::<_, Option<Json>>(at).map(|json| json.0).unwrap_or_default()),
            _ => Cell::Text(row.get::<_, Option<String>>(at).unwrap_or_default()),
        })
        .collect()
}

/// JSON as text, without parsing it in between.
#[derive(Debug)]
struct Json(String);

impl tokio_postgres::types::FromSql<'_> for Json {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        // The first byte is the version of the binary form.
        Ok(Self(std::str::from_utf8(raw.get(1..).unwrap_or_default())?.to_owned()))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSONB
    }
}

async fn empty(transaction: &Transaction<'_>, shelf: i64) -> Result<(), tokio_postgres::Error> {
    transaction.execute("DELETE FROM objects WHERE shelf = $1", &[&shelf]).await?;
    transaction.execute("DELETE FROM shelves WHERE id = $1", &[&shelf]).await?;
    Ok(())
}

async fn remove(transaction: &Transaction<'_>, changes: &[&Write]) -> Result<(), tokio_postgres::Error> {
    let (mut shelves, mut namespaces, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes {
        if let Write::Remove { shelf, namespace, name } = *change {
            shelves.push(*shelf);
            namespaces.push(namespace.as_str());
            names.push(name.as_str());
        }
    }
    if shelves.is_empty() {
        return Ok(());
    }
    let sql = "DELETE FROM objects o USING unnest($1::bigint[], $2::text[], $3::text[]) g (shelf, namespace, name)
               WHERE o.shelf = g.shelf AND o.namespace = g.namespace AND o.name = g.name";
    transaction.execute(sql, &[&shelves, &namespaces, &names]).await?;
    Ok(())
}

async fn put(transaction: &Transaction<'_>, changes: &[&Write]) -> Result<(), tokio_postgres::Error> {
    let rows: Vec<(i64, &Arc<Row>)> = changes
        .iter()
        .filter_map(|change| if let Write::Put { shelf, row } = *change { Some((*shelf, row)) } else { None })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    let shelves: Vec<i64> = rows.iter().map(|(shelf, _)| *shelf).collect();
    let texts = |pick: fn(&Row) -> &str| rows.iter().map(|(_, row)| pick(row)).collect::<Vec<&str>>();
    let created: Vec<i64> = rows.iter().map(|(_, row)| row.created).collect();
    let deleting: Vec<i64> = rows.iter().map(|(_, row)| i64::from(row.deleting)).collect();
    let sql = "INSERT INTO objects (shelf, namespace, name, uid, revision, created, deleting, body)
               SELECT shelf, namespace, name, uid, revision, created, deleting, body::jsonb
               FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::text[])
                    g (shelf, namespace, name, uid, revision, created, deleting, body)
               ON CONFLICT (shelf, namespace, name) DO UPDATE SET uid = excluded.uid, revision = excluded.revision,
                  created = excluded.created, deleting = excluded.deleting, body = excluded.body
               RETURNING id, shelf, namespace, name";
    let (namespaces, names) = (texts(|row| &row.namespace), texts(|row| &row.name));
    let (uids, revisions, bodies) = (texts(|row| &row.uid), texts(|row| &row.revision), texts(|row| &row.body));
    let written = transaction
        .query(sql, &[&shelves, &namespaces, &names, &uids, &revisions, &created, &deleting, &bodies])
        .await?;
    let ids: std::collections::HashMap<(i64, String, String), i64> =
        written.iter().map(|row| ((row.get(1), row.get(2), row.get(3)), row.get(0))).collect();
    let all: Vec<i64> = ids.values().copied().collect();
    transaction.execute("DELETE FROM terms WHERE object = ANY($1)", &[&all]).await?;
    transaction.execute("DELETE FROM owners WHERE object = ANY($1)", &[&all]).await?;
    relate(transaction, &rows, &ids).await
}

/// Writes what the new rows are found by.
async fn relate(
    transaction: &Transaction<'_>,
    rows: &[(i64, &Arc<Row>)],
    ids: &std::collections::HashMap<(i64, String, String), i64>,
) -> Result<(), tokio_postgres::Error> {
    let (mut shelves, mut keys, mut values, mut objects) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut owners, mut owned) = (Vec::new(), Vec::new());
    for (shelf, row) in rows {
        let Some(id) = ids.get(&(*shelf, row.namespace.clone(), row.name.clone())) else { continue };
        for (key, value) in &row.terms {
            shelves.push(*shelf);
            keys.push(key.as_str());
            values.push(value.as_str());
            objects.push(*id);
        }
        for owner in &row.owners {
            owners.push(owner.as_str());
            owned.push(*id);
        }
    }
    let sql = "INSERT INTO terms SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) ON CONFLICT DO NOTHING";
    transaction.execute(sql, &[&shelves, &keys, &values, &objects]).await?;
    let sql = "INSERT INTO owners SELECT * FROM unnest($1::text[], $2::bigint[]) ON CONFLICT DO NOTHING";
    transaction.execute(sql, &[&owners, &owned]).await?;
    Ok(())
}
