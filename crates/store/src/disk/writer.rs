//! The thread that writes.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_meta::{InstanceId, Revision};
use redb::Database;
use tokio::sync::oneshot;

use super::Health;
use super::batch::{Batch, reap};
use super::file::{self, Opener};
use super::mark::Mark;
use super::pace::Pace;
use super::queue::{Exit, Nothing};
use crate::mvcc::Core;
use crate::{Commit, StoreError, Write};

/// How many requests share a commit at most.
const BATCH: usize = 4096;

/// How soon a failed file is tried again, at the earliest.
const RETRY: Duration = Duration::from_millis(250);

/// How often an idle writer looks for history to forget.
const IDLE: Duration = Duration::from_secs(30);

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// What the writer can be asked.
pub(super) enum Request {
    /// A transaction.
    Commit { instance: InstanceId, writes: Vec<Write>, answer: Answer<Commit> },
    /// A jump of the revision.
    Advance { instance: InstanceId, to: Revision, answer: Answer<()> },
    /// A new instance.
    Create { name: Arc<str>, answer: Answer<InstanceId> },
    /// The end of an instance.
    Drop { instance: InstanceId, answer: Answer<()> },
}

/// Tells one requester how the whole batch ended.
type Reply = Box<dyn FnOnce(Option<&StoreError>)>;

fn reply<T: 'static>(answer: Answer<T>, result: Result<T, StoreError>) -> Reply {
    Box::new(move |failure| {
        // A refusal may rest on an earlier transaction of the same batch, so it waits like the rest.
        // Nobody may listen any more; the outcome stands all the same.
        let _ = answer.send(failure.map_or(result, |failure| Err(failure.clone())));
    })
}

/// The only one who changes the file and the state in memory.
pub(super) struct Writer {
    path: PathBuf,
    opener: Opener,
    core: Arc<Core>,
    health: Health,
    mark: Mark,
    /// The open file; none after a failure.
    database: Option<Database>,
    sequence: u64,
    next: u32,
    /// Dropped instances whose entries are still in the file.
    graves: VecDeque<u32>,
    /// A batch that failed so late that the file may hold it.
    undecided: Option<Batch>,
    /// When a failed file is tried again.
    retry: Instant,
    pace: Pace,
}

impl Writer {
    /// Opens and reads the file.
    pub fn open(path: PathBuf, opener: Opener, core: Arc<Core>, health: Health) -> Result<Self, StoreError> {
        let mut mark = Mark::of(&path);
        let existed = file::holds_data(&path)?;
        if !existed && mark.exists() {
            return Err(StoreError::Damaged(format!(
                "{} is missing or empty although {} says it held data; restore a backup, or remove the latter to begin anew",
                path.display(),
                mark.path().display()
            )));
        }
        // redb checks what it reads, but a damaged page may still trip one of its assertions.
        let read = catch_unwind(AssertUnwindSafe(|| {
            let mut opened = opener().map_err(|error| file::refusal(&path, error))?;
            file::verify(&path, &mut opened)?;
            let loaded = file::load(&path, &opened.database, &core, &mark)?;
            Ok((opened.database, loaded))
        }));
        let (database, loaded) = read.unwrap_or_else(|_| {
            Err(StoreError::Damaged(format!("{} is corrupt: its structure makes no sense", path.display())))
        })?;
        if !existed {
            file::sync_directory(&path)
                .map_err(|error| StoreError::Unavailable(format!("cannot sync the directory: {error}")))?;
        }
        if let Err(error) = mark.write(loaded.sequence) {
            return Err(StoreError::Unavailable(format!("cannot write {}: {error}", mark.path().display())));
        }
        Ok(Self {
            path,
            opener,
            core,
            health,
            mark,
            database: Some(database),
            sequence: loaded.sequence,
            next: loaded.next,
            graves: loaded.graves,
            undecided: None,
            retry: Instant::now(),
            pace: Pace::default(),
        })
    }

    /// Serves requests until there can be no more.
    pub fn run(mut self, queue: &Exit<Request>) {
        loop {
            let patience = match &self.database {
                None => self.retry.saturating_duration_since(Instant::now()),
                Some(_) if self.graves.is_empty() => IDLE,
                Some(_) => Duration::ZERO,
            };
            let (company, linger) = self.pace.company();
            match queue.take(BATCH, patience, company, Instant::now() + linger) {
                Ok(requests) => self.serve(requests, queue),
                Err(Nothing::Yet) => self.reap(),
                Err(Nothing::Ever) => break,
            }
            // Also between requests: those who try again and again must not keep the file from being tried.
            if self.database.is_none() && Instant::now() >= self.retry {
                self.try_again();
            }
            self.core.tick_sometimes();
        }
    }

    fn serve(&mut self, requests: Vec<Request>, queue: &Exit<Request>) {
        let started = Instant::now();
        let mut batch = Batch::new(self.sequence + 1, self.next);
        let replies: Vec<Reply> = requests.into_iter().map(|request| self.stage(&mut batch, request)).collect();
        let failure = if batch.is_empty() { None } else { self.store(batch).err() };
        match failure {
            None => self.pace.note(replies.len(), queue.len(), started.elapsed()),
            // While the file does not work, who asks is refused at once.
            Some(_) => self.pace = Pace::default(),
        }
        for reply in replies {
            reply(failure.as_ref());
        }
    }

    fn stage(&self, batch: &mut Batch, request: Request) -> Reply {
        let core = &self.core;
        match request {
            Request::Commit { instance, writes, answer } => {
                reply(answer, batch.commit(core, instance, &writes).map(|revision| Commit { revision }))
            }
            Request::Advance { instance, to, answer } => reply(answer, batch.advance(core, instance, to)),
            Request::Create { name, answer } => reply(answer, batch.create(core, name)),
            Request::Drop { instance, answer } => reply(answer, batch.drop(core, instance)),
        }
    }

    fn store(&mut self, batch: Batch) -> Result<(), StoreError> {
        let Some(database) = &self.database else {
            let why = self.health.lock().clone().unwrap_or_default();
            return Err(StoreError::Unavailable(why));
        };
        match batch.store(database) {
            Ok(()) => {
                self.publish(batch);
                Ok(())
            }
            Err(error) => {
                self.undecided = Some(batch);
                Err(self.fail(&error))
            }
        }
    }

    fn publish(&mut self, batch: Batch) {
        self.sequence = batch.sequence;
        self.next = batch.next();
        if let Err(error) = self.mark.write(self.sequence) {
            tracing::warn!(%error, path = %self.mark.path().display(), "cannot note the newest commit");
        }
        self.graves.extend(batch.publish(&self.core));
    }

    /// Closes the file after a failure: redb refuses to go on with it, and only a fresh look
    /// tells what reached the disk.
    fn fail(&mut self, error: &redb::Error) -> StoreError {
        let why = match error {
            redb::Error::Io(error) => file::unwritable(&self.path, error),
            other => format!("cannot write {}: {other}", self.path.display()),
        };
        tracing::error!("{why}; trying again until it works");
        self.database = None;
        self.retry = Instant::now() + RETRY;
        *self.health.lock() = Some(why.clone());
        StoreError::Unavailable(why)
    }

    fn try_again(&mut self) {
        let started = Instant::now();
        self.recover();
        // A large file takes long to look through; most of the time is left to the rest of the machine.
        self.retry = Instant::now() + RETRY.max(4 * started.elapsed());
    }

    fn recover(&mut self) {
        let opened = match (self.opener)() {
            Ok(opened) => opened,
            Err(error) => return *self.health.lock() = Some(file::refusal(&self.path, error).to_string()),
        };
        match file::sequence(&opened.database) {
            Ok(Some(on_disk)) if on_disk == self.sequence => self.undecided = None,
            Ok(Some(on_disk)) if self.undecided.as_ref().is_some_and(|batch| batch.sequence == on_disk) => {
                // It reached the disk after all. Its writers were told that nobody knows.
                if let Some(batch) = self.undecided.take() {
                    self.publish(batch);
                }
            }
            Ok(on_disk) => {
                let why =
                    format!("{} has commit {on_disk:?} where {} was expected", self.path.display(), self.sequence);
                return *self.health.lock() = Some(why);
            }
            Err(error) => return *self.health.lock() = Some(format!("cannot read {}: {error}", self.path.display())),
        }
        self.database = Some(opened.database);
        // Reading may work where writing does not, on a full disk for one.
        if self.store(Batch::new(self.sequence + 1, self.next)).is_ok() {
            tracing::warn!(path = %self.path.display(), "writing works again");
            *self.health.lock() = None;
        }
    }

    fn reap(&mut self) {
        let (Some(database), Some(grave)) = (&self.database, self.graves.front()) else { return };
        match reap(database, *grave) {
            Ok(true) => drop(self.graves.pop_front()),
            Ok(false) => {}
            Err(error) => drop(self.fail(&error)),
        }
    }
}
