//! The index: what it follows and how fresh it is.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Status;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::follow::{Following, Resources, Source};
use crate::live::LiveEvent;
use crate::row::Row;
use crate::shelf::{Freshness, Shelf, ShelfKey, Shelves};
use crate::store::{self, Choice, Label, Store};
use crate::writer::{self, Message};

/// How many live changes a slow watch may be behind.
const LIVE: usize = 4_096;

/// The index. Cheap to clone.
#[derive(Clone)]
pub struct Index {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    shelves: Arc<Shelves>,
    writer: mpsc::Sender<Message>,
    events: broadcast::Sender<LiveEvent>,
    sources: Mutex<HashMap<String, CancellationToken>>,
    /// Sources whose resources are all known.
    discovered: Mutex<HashSet<String>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.sources.lock().values().for_each(CancellationToken::cancel);
    }
}

impl Index {
    /// Opens an index; what it knew before can be found at once.
    pub async fn open(choice: &Choice) -> Result<Self, Status> {
        let store = store::open(choice).await?;
        let shelves = Arc::new(Shelves::default());
        for shelf in store.shelves().await? {
            shelves.put(Arc::new(shelf));
        }
        let (events, _) = broadcast::channel(LIVE);
        let writer = writer::start(store.clone(), shelves.clone(), events.clone());
        Ok(Self {
            inner: Arc::new(Inner {
                store,
                shelves,
                writer,
                events,
                sources: Mutex::default(),
                discovered: Mutex::default(),
            }),
        })
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    pub(crate) fn shelves(&self) -> &Arc<Shelves> {
        &self.inner.shelves
    }

    pub(crate) fn writer(&self) -> &mpsc::Sender<Message> {
        &self.inner.writer
    }

    pub(crate) fn events(&self) -> &broadcast::Sender<LiveEvent> {
        &self.inner.events
    }

    pub(crate) fn discovered(&self, source: &str) {
        self.inner.discovered.lock().insert(source.to_owned());
    }

    /// Every change as it is written, whoever may see it: for the hub's own controllers.
    pub fn changes(&self) -> broadcast::Receiver<LiveEvent> {
        self.events().subscribe()
    }

    /// Follows a source; one of the same name is followed anew, over the new endpoint.
    pub fn follow(&self, source: Source, resources: Resources) {
        self.shelves().hide(&source.name, source.hidden);
        let stop = CancellationToken::new();
        self.inner.discovered.lock().remove(&source.name);
        if let Some(old) = self.inner.sources.lock().insert(source.name.clone(), stop.clone()) {
            old.cancel();
        }
        let following = Following { index: self.clone(), source, resources, stop: stop.clone() };
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = following.run() => {}
            }
        });
    }

    /// Stops following a source and forgets what came from it.
    pub async fn unfollow(&self, name: &str) {
        if let Some(stop) = self.inner.sources.lock().remove(name) {
            stop.cancel();
        }
        for shelf in self.shelves().of_source(name) {
            self.drop_shelf(&shelf).await;
        }
        self.shelves().hide(name, false);
    }

    /// Stops following everything; what is known stays for the next start.
    pub async fn close(&self) {
        self.inner.sources.lock().drain().for_each(|(_, stop)| stop.cancel());
        self.flush().await;
    }

    /// Names of the sources that are followed, sorted.
    pub fn sources(&self) -> Vec<String> {
        let mut names: Vec<String> = self.inner.sources.lock().keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Names of sources something is known of, sorted.
    pub fn known_sources(&self) -> Vec<String> {
        let mut names: Vec<String> = self.shelves().list().iter().map(|shelf| shelf.key.source.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The shelf of a resource.
    pub fn shelf(&self, source: &str, group: &str, resource: &str) -> Option<Arc<Shelf>> {
        self.shelves().get(&ShelfKey { source: source.into(), group: group.into(), resource: resource.into() })
    }

    /// All shelves of a source, or of all sources.
    pub fn shelves_of(&self, source: Option<&str>) -> Vec<Arc<Shelf>> {
        match source {
            Some(source) => self.shelves().of_source(source),
            None => self.shelves().list(),
        }
    }

    /// How fresh what is known of a source is: its oldest shelf.
    pub fn freshness(&self, source: &str) -> Option<Freshness> {
        let now = jiff::Timestamp::now();
        self.shelves().of_source(source).iter().map(|shelf| shelf.freshness(now)).min_by_key(|fresh| fresh.as_of)
    }

    /// Waits until a write can be found: the shelf has reached its revision.
    pub async fn wait_for(
        &self,
        source: &str,
        group: &str,
        resource: &str,
        revision: &str,
        patience: Duration,
    ) -> Result<(), Status> {
        let late =
            || Status::timeout(format!("the index of {source} has not reached revision {revision} of {resource}"), 1);
        let wanted: u64 = revision
            .parse()
            .map_err(|_| Status::bad_request(format!("{revision:?} is not a revision that can be waited for")))?;
        let reached = async {
            loop {
                if let Some(shelf) = self.shelf(source, group, resource) {
                    let mut applied = shelf.applied.subscribe();
                    return applied.wait_for(|at| at.number >= wanted).await.is_ok();
                }
                // The resource may have been defined a moment ago.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(patience, reached).await {
            Ok(true) => Ok(()),
            _ => Err(late()),
        }
    }

    /// Waits until all resources of a source have been read whole.
    pub async fn synced(&self, source: &str, patience: Duration) -> Result<(), Status> {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let shelves = self.shelves().of_source(source);
            if self.inner.discovered.lock().contains(source) && shelves.iter().all(|shelf| shelf.state.lock().synced) {
                self.flush().await;
                return Ok(());
            }
            if tokio::time::Instant::now() > deadline {
                return Err(Status::timeout(format!("{source} has not been read whole yet"), 1));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until everything told so far has been written.
    pub async fn flush(&self) {
        let (done, finished) = oneshot::channel();
        if self.writer().send(Message::Flush(done)).await.is_ok() {
            let _ = finished.await;
        }
    }

    /// Puts objects of a source in directly, for imports and tests.
    pub async fn put(
        &self,
        source: &str,
        group: &str,
        version: &str,
        resource: &str,
        namespaced: bool,
        objects: Vec<Value>,
    ) -> Result<(), Status> {
        let kind = objects.first().and_then(|object| object["kind"].as_str()).unwrap_or_default().to_owned();
        let key = ShelfKey { source: source.into(), group: group.into(), resource: resource.into() };
        let shelf = self.ensure_shelf(Label { key, version: version.into(), kind, namespaced }).await?;
        for object in objects {
            if let Some(row) = Row::of(object) {
                self.writer()
                    .send(Message::Found(shelf.clone(), Arc::new(row)))
                    .await
                    .map_err(|_| Status::unavailable("the index is closing"))?;
            }
        }
        let synced = Message::Synced(shelf.clone(), shelf.applied.borrow().text.clone());
        self.writer().send(synced).await.map_err(|_| Status::unavailable("the index is closing"))?;
        self.flush().await;
        Ok(())
    }

    /// Takes one object of a source out directly.
    pub async fn remove(&self, shelf: &Arc<Shelf>, namespace: &str, name: &str) {
        let row = Arc::new(Row { namespace: namespace.into(), name: name.into(), ..Row::default() });
        if self.writer().send(Message::Remove(shelf.clone(), row)).await.is_ok() {
            self.flush().await;
        }
    }
}
