//! What the parts of the engine share, and how a read finds out how far it must have come.

use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Revision;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};

use super::keys::Keys;
use super::wire::proto::{RangeRequest, ResponseHeader};
use super::wire::{Wire, malformed};
use crate::mvcc::Core;
use crate::{Options, StoreError};

/// How long a read or write waits for the copy to catch up.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long events may take to arrive by themselves before etcd is asked for its progress.
const GRACE: Duration = Duration::from_millis(25);

/// How often it is asked then; it does not answer while it is still sending events.
const ASK_AGAIN: Duration = Duration::from_millis(100);

type Question = oneshot::Sender<Result<Revision, StoreError>>;

/// The copy, the connection, and how far the copy has come.
pub(super) struct Shared {
    pub core: Core,
    pub wire: Wire,
    pub keys: Keys,
    pub health: Mutex<Option<String>>,
    /// Rings when someone waits for the watch to say how far it has come.
    pub ask_progress: Notify,
    applied: watch::Sender<Revision>,
    questions: mpsc::UnboundedSender<Question>,
}

impl Shared {
    pub fn new(wire: Wire, keys: Keys, options: Options) -> (Self, mpsc::UnboundedReceiver<Question>) {
        let (questions, asked) = mpsc::unbounded_channel();
        let shared = Self {
            core: Core::new(options),
            wire,
            keys,
            health: Mutex::default(),
            ask_progress: Notify::new(),
            applied: watch::Sender::new(Revision(0)),
            questions,
        };
        (shared, asked)
    }

    /// Tells waiting readers and writers that everything up to a revision is in the copy.
    pub fn applied(&self, upto: Revision) {
        self.core.raise_horizon(upto);
        self.applied.send_if_modified(|applied| {
            let news = upto > *applied;
            *applied = upto.max(*applied);
            news
        });
    }

    /// Waits until the copy shows everything that was acknowledged to anyone before this call.
    pub async fn sync(&self) -> Result<Revision, StoreError> {
        let (question, answer) = oneshot::channel();
        let ended = || StoreError::Unavailable("the engine has ended".into());
        self.questions.send(question).map_err(|_| ended())?;
        let newest = answer.await.map_err(|_| ended())??;
        self.caught_up(newest, Duration::ZERO).await?;
        Ok(newest)
    }

    /// Waits until the copy shows a write of our own.
    pub async fn shows(&self, written: Revision) -> Result<(), StoreError> {
        self.caught_up(written, GRACE).await
    }

    async fn caught_up(&self, to: Revision, grace: Duration) -> Result<(), StoreError> {
        let mut applied = self.applied.subscribe();
        let begun = Instant::now();
        loop {
            if *applied.borrow_and_update() >= to {
                return Ok(());
            }
            let waited = begun.elapsed();
            if waited > PATIENCE {
                return Err(StoreError::Unavailable("the copy of etcd's data lags behind".into()));
            }
            // What others write elsewhere in this etcd raises the revision but is never sent to us.
            if waited >= grace {
                self.ask_progress.notify_one();
            }
            let pause = if waited < grace { grace } else { ASK_AGAIN };
            let _ = timeout(pause, applied.changed()).await;
        }
    }
}

/// Answers all who wait with one question to etcd: the newest revision, agreed on by the cluster.
pub(super) async fn answer(shared: Arc<Shared>, mut questions: mpsc::UnboundedReceiver<Question>) {
    while let Some(first) = questions.recv().await {
        // Only who asked before the question goes out may use its answer.
        let mut waiting = vec![first];
        while let Ok(next) = questions.try_recv() {
            waiting.push(next);
        }
        let newest = newest(&shared).await.map(|header| Revision(header.revision.cast_unsigned()));
        for question in waiting {
            let _ = question.send(newest.clone());
        }
    }
}

/// Asks etcd for its newest revision, agreed on by the cluster.
pub(super) async fn newest(shared: &Shared) -> Result<ResponseHeader, StoreError> {
    let request = RangeRequest { key: shared.keys.format(), count_only: true, ..Default::default() };
    shared.wire.range(request).await?.header.ok_or_else(malformed)
}
