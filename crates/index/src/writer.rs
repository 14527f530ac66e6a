//! The one task that writes: few large transactions instead of many small ones.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::Instant;

use crate::live::LiveEvent;
use crate::row::Row;
use crate::shelf::{Revision, Shelf, Shelves};
use crate::store::{Outcome, Store, Write};

/// How many changes a transaction holds at most.
const BATCH: usize = 2_000;
/// How many bytes of objects a transaction holds at most, and therefore an object: far more than Kubernetes keeps, and far
/// less than what makes a database end the connection.
const WEIGHT: usize = 64 * 1024 * 1024;
/// How many changes wait at most; followers pause when the store is slower than they are.
const QUEUE: usize = 8_192;

/// How long after a transaction the next one begins at the earliest. What comes after a pause is written at once; what
/// comes in a stream is written together, and an object that changes several times is written once.
const GATHER: Duration = Duration::from_millis(20);

/// What followers tell the writer.
pub enum Message {
    /// An object is so now; the revision the shelf is at with it.
    Put(Arc<Shelf>, Arc<Row>),
    /// An object was found while everything is read: the shelf is not at its revision yet.
    Found(Arc<Shelf>, Arc<Row>),
    /// An object is gone; its last state as far as known.
    Remove(Arc<Shelf>, Arc<Row>),
    /// Nothing else happened up to this revision.
    Progress(Arc<Shelf>, String),
    /// The whole state up to this revision has been told.
    Synced(Arc<Shelf>, String),
    /// A shelf is taken away.
    Drop(Arc<Shelf>, oneshot::Sender<()>),
    /// Tells when everything before has been written.
    Flush(oneshot::Sender<()>),
}

/// Starts the writer; it ends when nobody can send any more.
pub fn start(
    store: Arc<dyn Store>,
    shelves: Arc<Shelves>,
    live: broadcast::Sender<LiveEvent>,
) -> mpsc::Sender<Message> {
    let (sender, mut receiver) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        let mut messages = Vec::with_capacity(BATCH);
        let mut next = Instant::now();
        while receiver.recv_many(&mut messages, BATCH).await > 0 {
            gather(&mut receiver, &mut messages, next).await;
            let mut pending = Vec::with_capacity(messages.len());
            for message in messages.drain(..) {
                match message {
                    Message::Drop(shelf, done) => {
                        commit(&*store, &shelves, &live, std::mem::take(&mut pending)).await;
                        retry(|| store.drop_shelf(shelf.id)).await;
                        let _ = done.send(());
                    }
                    Message::Flush(done) => {
                        commit(&*store, &shelves, &live, std::mem::take(&mut pending)).await;
                        let _ = done.send(());
                    }
                    other => pending.push(other),
                }
            }
            commit(&*store, &shelves, &live, pending).await;
            next = Instant::now() + GATHER;
        }
    });
    sender
}

/// Waits for more until the next transaction may begin, unless somebody waits for what is there.
async fn gather(receiver: &mut mpsc::Receiver<Message>, messages: &mut Vec<Message>, next: Instant) {
    let urgent = |message: &Message| matches!(message, Message::Drop(..) | Message::Flush(_) | Message::Synced(..));
    let mut looked = 0;
    while messages.len() < BATCH && !messages[looked..].iter().any(urgent) {
        looked = messages.len();
        let more = receiver.recv_many(messages, BATCH - looked);
        if !matches!(tokio::time::timeout_at(next, more).await, Ok(1..)) {
            return;
        }
    }
}

async fn commit(store: &dyn Store, shelves: &Shelves, live: &broadcast::Sender<LiveEvent>, messages: Vec<Message>) {
    // A follower may still have been talking when its shelf was taken away.
    let here = |shelf: &Shelf| shelves.get(&shelf.key).is_some_and(|known| known.id == shelf.id);
    let mut synced = HashSet::new();
    let messages: Vec<(Message, Vec<Write>)> =
        messages.into_iter().filter_map(|message| writes(message, &here, &mut synced)).collect();
    if messages.is_empty() {
        return;
    }
    let mut told = Vec::with_capacity(messages.len());
    let mut batch = Vec::with_capacity(2 * messages.len());
    for (message, writes) in messages {
        told.push((message, writes.len() > 1));
        batch.extend(writes);
    }
    let refused = write(store, shelves, batch).await;
    for (message, reached) in told {
        tell(live, message, reached, &refused);
    }
}

/// Writes all that the database takes, in few transactions; returns the rows that it does not take. One of them must not
/// keep out what others told: it is found by halves.
async fn write(store: &dyn Store, shelves: &Shelves, batch: Vec<Write>) -> Vec<Arc<Row>> {
    let mut refused = Vec::new();
    let mut parts = vec![Arc::new(batch)];
    while let Some(part) = parts.pop() {
        let outcome = match part.iter().map(weight).sum::<usize>() {
            0..=WEIGHT => retry(|| store.write(part.clone())).await,
            much => Outcome::Refused(format!("{much} bytes")),
        };
        let Outcome::Refused(why) = outcome else { continue };
        if let [one] = part.as_slice() {
            refuse(shelves, one, &why);
            refused.extend(if let Write::Put { row, .. } = one { Some(row.clone()) } else { None });
            continue;
        }
        let (first, second) = part.split_at(part.len() / 2);
        parts.extend([second, first].map(|half| Arc::new(half.to_vec())));
    }
    refused
}

fn weight(write: &Write) -> usize {
    if let Write::Put { row, .. } = write { row.body.len() } else { 0 }
}

/// Says which change will not be found, and nothing of what is in it.
fn refuse(shelves: &Shelves, write: &Write, why: &str) {
    let (id, namespace, name) = match write {
        Write::Put { shelf, row } => (shelf, row.namespace.as_str(), row.name.as_str()),
        Write::Remove { shelf, namespace, name } => (shelf, namespace.as_str(), name.as_str()),
        Write::Progress { shelf, .. } => (shelf, "", ""),
    };
    let shelf = shelves.list().into_iter().find(|shelf| shelf.id == *id);
    let (source, resource) = shelf.as_ref().map(|shelf| (&shelf.key.source, &shelf.key.resource)).unzip();
    tracing::warn!(
        source,
        resource,
        namespace,
        name,
        why,
        "index: the database does not take this change; it is left out"
    );
}

/// What is to be written; `synced` are the shelves of which this batch tells the whole state before the message.
fn writes(
    message: Message,
    here: &impl Fn(&Shelf) -> bool,
    synced: &mut HashSet<i64>,
) -> Option<(Message, Vec<Write>)> {
    let writes = match &message {
        Message::Put(shelf, row) if here(shelf) => {
            let mut all = vec![Write::Put { shelf: shelf.id, row: row.clone() }];
            all.extend(progress(shelf, &row.revision, synced));
            all
        }
        Message::Found(shelf, row) if here(shelf) => vec![Write::Put { shelf: shelf.id, row: row.clone() }],
        Message::Remove(shelf, row) if here(shelf) => {
            let mut all =
                vec![Write::Remove { shelf: shelf.id, namespace: row.namespace.clone(), name: row.name.clone() }];
            all.extend(progress(shelf, &row.revision, synced));
            all
        }
        Message::Progress(shelf, revision) | Message::Synced(shelf, revision) if here(shelf) => {
            if matches!(message, Message::Synced(..)) {
                synced.insert(shelf.id);
            }
            vec![Write::Progress { shelf: shelf.id, revision: revision.clone() }]
        }
        _ => return None,
    };
    Some((message, writes))
}

/// While a shelf is read for the first time its revision stays empty: an interrupted read starts again.
fn progress(shelf: &Shelf, revision: &str, synced: &HashSet<i64>) -> Option<Write> {
    let synced = synced.contains(&shelf.id) || shelf.state.lock().synced;
    (synced && !revision.is_empty()).then(|| Write::Progress { shelf: shelf.id, revision: revision.to_owned() })
}

/// Tries until it works: what followers told must not be lost, and they wait meanwhile.
async fn retry<T, F: Future<Output = Result<T, atoll_meta::Status>>>(work: impl Fn() -> F) -> T {
    let mut pause = Duration::from_millis(50);
    loop {
        match work().await {
            Ok(done) => return done,
            Err(status) => tracing::warn!(%status, "index: will be tried again"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}

fn tell(live: &broadcast::Sender<LiveEvent>, message: Message, reached: bool, refused: &[Arc<Row>]) {
    let advance = |shelf: &Shelf, revision: &str| {
        if !revision.is_empty() {
            shelf.applied.send_replace(Revision::of(revision));
        }
    };
    match message {
        Message::Put(shelf, row) | Message::Found(shelf, row) => {
            // Not reached by what is merely found: the rest is still being read.
            if reached {
                advance(&shelf, &row.revision);
            }
            if !refused.iter().any(|one| Arc::ptr_eq(one, &row)) {
                // Nobody may be listening.
                let _ = live.send(LiveEvent::Put(shelf, row));
            }
        }
        Message::Remove(shelf, row) => {
            if reached {
                advance(&shelf, &row.revision);
            }
            let _ = live.send(LiveEvent::Removed(shelf, row));
        }
        Message::Progress(shelf, revision) => advance(&shelf, &revision),
        Message::Synced(shelf, revision) => {
            let mut state = shelf.state.lock();
            state.synced = true;
            state.contact = Timestamp::now();
            drop(state);
            advance(&shelf, &revision);
        }
        Message::Drop(..) | Message::Flush(_) => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use atoll_meta::Status;
    use parking_lot::Mutex;

    use super::*;
    use crate::shelf::ShelfKey;
    use crate::statement::{Cell, Dialect, Statement};
    use crate::store::Label;

    /// Takes nothing that is called `bad`; remembers what it took in each transaction.
    #[derive(Default)]
    struct Picky {
        taken: Mutex<Vec<Vec<Write>>>,
        asked: Mutex<usize>,
    }

    #[async_trait::async_trait]
    impl Store for Picky {
        fn dialect(&self) -> Dialect {
            Dialect::Sqlite
        }

        async fn shelves(&self) -> Result<Vec<Shelf>, Status> {
            Ok(Vec::new())
        }

        async fn add_shelf(&self, _: Label) -> Result<Shelf, Status> {
            Err(Status::unavailable("not needed"))
        }

        async fn drop_shelf(&self, _: i64) -> Result<(), Status> {
            Ok(())
        }

        async fn write(&self, writes: Arc<Vec<Write>>) -> Result<Outcome, Status> {
            *self.asked.lock() += 1;
            let bad = |write: &Write| match write {
                Write::Put { row, .. } => row.name == "bad",
                Write::Progress { revision, .. } => revision == "bad",
                Write::Remove { .. } => false,
            };
            if writes.iter().any(bad) {
                return Ok(Outcome::Refused("bad".into()));
            }
            self.taken.lock().push(writes.to_vec());
            Ok(Outcome::Written)
        }

        async fn select(&self, _: Statement) -> Result<Vec<Vec<Cell>>, Status> {
            Ok(Vec::new())
        }
    }

    struct Desk {
        store: Arc<Picky>,
        shelf: Arc<Shelf>,
        events: broadcast::Receiver<LiveEvent>,
        writer: mpsc::Sender<Message>,
    }

    impl Desk {
        fn new() -> Self {
            let key = ShelfKey { source: "m".into(), group: String::new(), resource: "pods".into() };
            let shelf = Arc::new(Shelf::new(1, key, "v1".into(), "Pod".into(), true, ""));
            let (store, shelves, (live, events)) =
                (Arc::new(Picky::default()), Arc::new(Shelves::default()), broadcast::channel(BATCH));
            shelves.put(shelf.clone());
            let writer = start(store.clone(), shelves, live);
            Self { store, shelf, events, writer }
        }

        /// All at once, so that the writer finds them together.
        async fn told(&self, messages: Vec<Message>) {
            let (done, finished) = oneshot::channel();
            for message in messages.into_iter().chain([Message::Flush(done)]) {
                self.writer.try_send(message).unwrap();
            }
            tokio::time::timeout(Duration::from_secs(60), finished).await.expect("all is written").unwrap();
        }

        fn row(name: &str, revision: &str, body: String) -> Arc<Row> {
            Arc::new(Row { name: name.into(), revision: revision.into(), body, ..Row::default() })
        }
    }

    #[tokio::test]
    async fn what_comes_with_the_end_of_the_first_read_moves_the_revision_on() {
        let desk = Desk::new();
        let (row, gone) = (|revision| Desk::row("a", revision, String::new()), Desk::row("b", "12", String::new()));
        let shelf = || desk.shelf.clone();
        // Before that, nothing does.
        desk.told(vec![Message::Put(shelf(), row("9"))]).await;
        assert_eq!(desk.shelf.applied.borrow().text, "");
        desk.told(vec![
            Message::Found(shelf(), row("7")),
            Message::Synced(shelf(), "10".into()),
            Message::Put(shelf(), row("11")),
        ])
        .await;
        assert_eq!(desk.shelf.applied.borrow().text, "11");
        let taken = desk.store.taken.lock().last().cloned().unwrap();
        assert!(matches!(taken.last(), Some(Write::Progress { revision, .. }) if revision == "11"), "{taken:?}");
        desk.told(vec![Message::Remove(shelf(), gone)]).await;
        assert_eq!(desk.shelf.applied.borrow().text, "12");
    }

    #[tokio::test]
    async fn what_the_database_does_not_take_keeps_nothing_else_out() {
        let mut desk = Desk::new();
        let shelf = || desk.shelf.clone();
        let name = |number: usize| if matches!(number, 0 | 77) { "bad".to_owned() } else { number.to_string() };
        let mut messages = vec![Message::Synced(shelf(), "1".into())];
        messages.extend(
            (0..500).map(|number| {
                Message::Put(shelf(), Desk::row(&name(number), &(number + 2).to_string(), String::new()))
            }),
        );
        messages.push(Message::Progress(shelf(), "bad".into()));
        desk.told(messages).await;
        let taken: Vec<Write> = desk.store.taken.lock().drain(..).flatten().collect();
        let names =
            taken.iter().filter_map(|write| if let Write::Put { row, .. } = write { Some(&row.name) } else { None });
        let good: Vec<String> = (0..500).map(name).filter(|name| name != "bad").collect();
        assert_eq!(names.cloned().collect::<Vec<_>>(), good, "all others, in order");
        assert!(matches!(taken.last(), Some(Write::Progress { revision, .. }) if revision == "501"), "{taken:?}");
        assert!(*desk.store.asked.lock() < 80, "{} transactions", desk.store.asked.lock());
        let mut told = Vec::new();
        while let Ok(LiveEvent::Put(_, row)) = desk.events.try_recv() {
            told.push(row.name.clone());
        }
        assert_eq!(told, good, "what is not there is not told");
    }

    #[tokio::test]
    async fn no_transaction_is_heavier_than_a_database_takes() {
        let desk = Desk::new();
        let rows = [WEIGHT / 2, WEIGHT / 2, WEIGHT / 2, WEIGHT + 1, 5];
        let found = rows.map(|size| Message::Found(desk.shelf.clone(), Desk::row("a", "1", "x".repeat(size))));
        desk.told(found.into()).await;
        let taken = desk.store.taken.lock();
        let weights: Vec<usize> = taken.iter().map(|part| part.iter().map(weight).sum()).collect();
        assert!(weights.iter().all(|weight| *weight <= WEIGHT), "{weights:?}");
        assert_eq!(weights.iter().sum::<usize>(), 3 * (WEIGHT / 2) + 5, "{weights:?}");
    }
}
