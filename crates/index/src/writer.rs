//! The one task that writes: few large transactions instead of many small ones.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::Instant;

use crate::live::LiveEvent;
use crate::row::Row;
use crate::shelf::{Revision, Shelf, Shelves};
use crate::store::{Store, Write};

/// How many changes a transaction holds at most.
const BATCH: usize = 2_000;
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
    let messages: Vec<(Message, Vec<Write>)> =
        messages.into_iter().filter_map(|message| writes(message, &here)).collect();
    if messages.is_empty() {
        return;
    }
    let mut told = Vec::with_capacity(messages.len());
    let mut batch = Vec::with_capacity(2 * messages.len());
    for (message, writes) in messages {
        told.push((message, writes.len() > 1));
        batch.extend(writes);
    }
    let batch = Arc::new(batch);
    retry(|| store.write(batch.clone())).await;
    for (message, reached) in told {
        tell(live, message, reached);
    }
}

fn writes(message: Message, here: &impl Fn(&Shelf) -> bool) -> Option<(Message, Vec<Write>)> {
    let writes = match &message {
        Message::Put(shelf, row) if here(shelf) => {
            let mut all = vec![Write::Put { shelf: shelf.id, row: row.clone() }];
            all.extend(progress(shelf, &row.revision));
            all
        }
        Message::Found(shelf, row) if here(shelf) => vec![Write::Put { shelf: shelf.id, row: row.clone() }],
        Message::Remove(shelf, row) if here(shelf) => {
            let mut all =
                vec![Write::Remove { shelf: shelf.id, namespace: row.namespace.clone(), name: row.name.clone() }];
            all.extend(progress(shelf, &row.revision));
            all
        }
        Message::Progress(shelf, revision) | Message::Synced(shelf, revision) if here(shelf) => {
            vec![Write::Progress { shelf: shelf.id, revision: revision.clone() }]
        }
        _ => return None,
    };
    Some((message, writes))
}

/// While a shelf is read for the first time its revision stays empty: an interrupted read starts again.
fn progress(shelf: &Shelf, revision: &str) -> Option<Write> {
    let synced = shelf.state.lock().synced && !revision.is_empty();
    synced.then(|| Write::Progress { shelf: shelf.id, revision: revision.to_owned() })
}

/// Tries until it works: what followers told must not be lost, and they wait meanwhile.
async fn retry<F: Future<Output = Result<(), atoll_meta::Status>>>(work: impl Fn() -> F) {
    let mut pause = Duration::from_millis(50);
    while let Err(status) = work().await {
        tracing::warn!(%status, "index: will be tried again");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}

fn tell(live: &broadcast::Sender<LiveEvent>, message: Message, reached: bool) {
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
            // Nobody may be listening.
            let _ = live.send(LiveEvent::Put(shelf, row));
        }
        Message::Remove(shelf, row) => {
            advance(&shelf, &row.revision);
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
