//! Follows one resource of one source into its shelf; resumes where it stopped.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::{Gvr, Status};
use atoll_runtime::{Endpoint, Seen};
use jiff::Timestamp;
use tokio::sync::{Notify, Semaphore, mpsc};

use crate::row::Row;
use crate::shelf::Shelf;
use crate::statement::Statement;
use crate::store::Store;
use crate::writer::Message;

/// How many objects are asked for at a time.
const PAGE: usize = 500;

/// Follows a shelf. Memory holds no objects: what is known is in the store.
pub struct Follower {
    pub endpoint: Endpoint,
    pub shelf: Arc<Shelf>,
    pub store: Arc<dyn Store>,
    pub writer: mpsc::Sender<Message>,
    /// Limits how many resources of a source are read whole at the same time.
    pub reads: Arc<Semaphore>,
    /// Told when a definition comes or goes.
    pub definitions: Option<Arc<Notify>>,
}

/// A watch that ends sooner is not asked for again at once.
const SHORT: Duration = Duration::from_millis(500);

impl Follower {
    /// Runs until dropped.
    pub async fn run(self) {
        let mut revision = self.shelf.applied.borrow().text.clone();
        let mut failures = 0u32;
        loop {
            let started = tokio::time::Instant::now();
            match self.follow(&mut revision).await {
                // A server that goes down ends watches at once; asking again without a pause would be all we do.
                Ok(()) if started.elapsed() < SHORT => tokio::time::sleep(SHORT).await,
                Ok(()) => failures = 0,
                Err(status) => {
                    if matches!(status.code, 410 | 400 | 422) {
                        revision.clear();
                    }
                    self.lost(&status);
                    failures = (failures + 1).min(9);
                    let base = 50u64 << failures;
                    tokio::time::sleep(Duration::from_millis(base / 2 + rand::random::<u64>() % base)).await;
                }
            }
        }
    }

    fn gvr(&self) -> Gvr {
        Gvr::new(&self.shelf.key.group, &self.shelf.version, &self.shelf.key.resource)
    }

    fn lost(&self, status: &Status) {
        tracing::debug!(source = self.shelf.key.source, resource = self.shelf.key.resource, %status, "index: contact lost");
        let mut state = self.shelf.state.lock();
        if state.trouble.is_none() {
            state.contact = Timestamp::now();
        }
        state.trouble = Some(status.message.clone());
    }

    /// Follows one stream until it ends.
    async fn follow(&self, revision: &mut String) -> Result<(), Status> {
        if revision.is_empty() {
            let _turn = self.reads.acquire().await.map_err(Status::internal)?;
            *revision = self.relist().await?;
        }
        let mut stream = self.endpoint.watch(&self.gvr(), None, "", revision).await?;
        self.shelf.state.lock().trouble = None;
        let api_version = self.gvr().api_version();
        let read = |text: &str| Row::read(text, &self.shelf.kind, &api_version).map(Arc::new);
        while let Some(seen) = stream.seen(read).await {
            let (row, gone) = match seen? {
                Seen::Put(row) => (row, false),
                Seen::Gone(row) => (row, true),
                Seen::Bookmark(at) => {
                    self.send(Message::Progress(self.shelf.clone(), at.clone())).await?;
                    *revision = at;
                    continue;
                }
                Seen::Nothing => continue,
            };
            revision.clone_from(&row.revision);
            let shelf = self.shelf.clone();
            self.send(if gone { Message::Remove(shelf, row) } else { Message::Put(shelf, row) }).await?;
            if let Some(definitions) = &self.definitions {
                definitions.notify_one();
            }
        }
        Ok(())
    }

    async fn send(&self, message: Message) -> Result<(), Status> {
        self.writer.send(message).await.map_err(|_| Status::unavailable("the index is closing"))
    }

    /// Reads the whole state page by page; only differences are written.
    async fn relist(&self) -> Result<String, Status> {
        let mut gone = self.known().await?;
        let api_version = self.gvr().api_version();
        let mut next = String::new();
        loop {
            let mut path = format!("{}?limit={PAGE}", self.gvr().path(None, None));
            if !next.is_empty() {
                path.push_str("&continue=");
                path.push_str(&encode(&next));
            }
            let mut rows = Vec::with_capacity(PAGE);
            let each = |text: &str, _: &str, _: &str| rows.extend(Row::read(text, &self.shelf.kind, &api_version));
            let (revision, token) = self.endpoint.page(&path, each).await?;
            for row in rows {
                self.compare(row, &mut gone).await?;
            }
            if !token.is_empty() {
                next = token;
                continue;
            }
            for ((namespace, name), _) in gone {
                let row = Arc::new(Row { namespace, name, ..Row::default() });
                self.send(Message::Remove(self.shelf.clone(), row)).await?;
            }
            self.send(Message::Synced(self.shelf.clone(), revision.clone())).await?;
            return Ok(revision);
        }
    }

    async fn compare(&self, row: Row, gone: &mut HashMap<(String, String), String>) -> Result<(), Status> {
        match gone.remove(&(row.namespace.clone(), row.name.clone())) {
            Some(revision) if revision == row.revision && !revision.is_empty() => Ok(()),
            _ => self.send(Message::Found(self.shelf.clone(), Arc::new(row))).await,
        }
    }

    /// Revisions of what the store has.
    async fn known(&self) -> Result<HashMap<(String, String), String>, Status> {
        let mut statement = Statement::new(
            self.store.dialect(),
            "SELECT o.namespace, o.name, o.revision FROM objects o WHERE o.shelf = ",
        );
        statement.int(self.shelf.id);
        let rows = self.store.select(statement).await?;
        Ok(rows
            .into_iter()
            .filter_map(|row| {
                let mut cells = row.into_iter().map(crate::statement::Cell::into_text);
                Some(((cells.next()?, cells.next()?), cells.next()?))
            })
            .collect())
    }
}

/// Escapes what has a meaning in a query string.
fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
