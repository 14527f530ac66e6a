//! Live changes of what a question finds.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::{Reason, Status};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use crate::index::Index;
use crate::query::Query;
use crate::rights::{Place, Rights};
use crate::row::Row;
use crate::search::Page;
use crate::shelf::Shelf;

/// How often the rights of a quiet watch are looked at when nothing says that they changed: those of an
/// instance elsewhere change without a word.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// After a change, how long until most in the process have taken note of it.
const SOON: Duration = Duration::from_millis(50);
/// After a change, how long until everybody has.
const LATER: Duration = Duration::from_millis(400);

/// A change that is in the store.
#[derive(Clone, Debug)]
pub enum LiveEvent {
    /// An object is so now.
    Put(Arc<Shelf>, Arc<Row>),
    /// An object is gone, or no longer among what was asked for.
    Removed(Arc<Shelf>, Arc<Row>),
}

/// The changes of what a question finds, from the page it began with.
pub struct Live {
    query: Query,
    rights: Arc<dyn Rights>,
    index: Index,
    events: broadcast::Receiver<LiveEvent>,
    /// Shelf, namespace and name of what the caller has been told of.
    shown: HashSet<(i64, String, String)>,
    /// Where the caller was allowed to look when something was told.
    allowed: HashMap<(i64, String), Arc<Shelf>>,
    changes: Option<watch::Receiver<u64>>,
    /// When rights are looked at: the soonest is the last.
    looks: Vec<Instant>,
}

impl Index {
    /// Finds objects and then tells what changes among them. Rights are asked again for every
    /// change, so that nothing is told after they are gone.
    pub async fn watch(&self, query: Query, rights: Arc<dyn Rights>) -> Result<(Page, Live), Status> {
        if query.owner.as_ref().is_some_and(|owner| owner.uid.is_none() || owner.generations > 0) {
            return Err(Status::bad_request("a watch can only ask for the children of an owner given by uid"));
        }
        let query = Query { limit: None, offset: 0, token: None, ..query };
        // First listen, then read: what changes in between is told twice, never missed.
        let (events, changes) = (self.events().subscribe(), rights.changes());
        let page = self.query(&query, &*rights).await?;
        let shown = page.items.iter().map(|item| (item.shelf.id, item.namespace.clone(), item.name.clone())).collect();
        let allowed =
            page.items.iter().map(|item| ((item.shelf.id, item.namespace.clone()), item.shelf.clone())).collect();
        let looks = vec![Instant::now() + LOOK_AGAIN];
        Ok((page, Live { query, rights, index: self.clone(), events, shown, allowed, changes, looks }))
    }
}

impl Live {
    /// The next change; an error means the watch has to begin anew.
    pub async fn next(&mut self) -> Result<LiveEvent, Status> {
        loop {
            let soonest = self.looks.last().copied().unwrap_or_else(|| Instant::now() + LOOK_AGAIN);
            let event = tokio::select! {
                () = told(&mut self.changes) => {
                    // However often it is told: a look that is due stays due.
                    let now = Instant::now();
                    self.looks = vec![now + LATER, soonest.min(now + SOON)];
                    continue;
                }
                () = tokio::time::sleep_until(soonest) => {
                    self.looks.pop();
                    if self.looks.is_empty() {
                        self.looks.push(Instant::now() + LOOK_AGAIN);
                    }
                    self.still_allowed().await?;
                    continue;
                }
                event = self.events.recv() => event.map_err(|_| Status::expired("too many changes at once; begin the watch anew"))?,
            };
            if let Some(event) = self.filter(event).await? {
                return Ok(event);
            }
        }
    }

    async fn filter(&mut self, event: LiveEvent) -> Result<Option<LiveEvent>, Status> {
        let (shelf, row, gone) = match &event {
            LiveEvent::Put(shelf, row) => (shelf, row, false),
            LiveEvent::Removed(shelf, row) => (shelf, row, true),
        };
        let key = (shelf.id, row.namespace.clone(), row.name.clone());
        let wanted = !gone
            && self.query.wants(shelf, self.index.shelves().is_hidden(&shelf.key.source))
            && self.query.matches(row)?;
        let shown = self.shown.contains(&key);
        if !wanted && !shown {
            return Ok(None);
        }
        // What is told holds the new state, also of what is no longer wanted: the right to it comes first.
        if !self.may_see(shelf, &row.namespace).await? {
            return if shown { Err(lost()) } else { Ok(None) };
        }
        Ok(Some(if wanted {
            self.allowed.insert((shelf.id, row.namespace.clone()), shelf.clone());
            self.shown.insert(key);
            event
        } else {
            self.shown.remove(&key);
            LiveEvent::Removed(shelf.clone(), row.clone())
        }))
    }

    /// Ends the watch of a caller who lost a right: nothing more is told, quiet or not.
    async fn still_allowed(&self) -> Result<(), Status> {
        for ((_, namespace), shelf) in &self.allowed {
            if !self.may_see(shelf, namespace).await? {
                return Err(lost());
            }
        }
        Ok(())
    }

    async fn may_see(&self, shelf: &Shelf, namespace: &str) -> Result<bool, Status> {
        let key = &shelf.key;
        let whole = Place {
            source: &key.source,
            group: &key.group,
            version: &shelf.version,
            resource: &key.resource,
            namespace: None,
            name: None,
        };
        if self.rights.may_see(whole).await? {
            return Ok(true);
        }
        Ok(shelf.namespaced && self.rights.may_see(Place { namespace: Some(namespace), ..whole }).await?)
    }
}

fn lost() -> Status {
    Status::new(403, Reason::Forbidden, "rights have changed; begin the watch anew")
}

/// Waits for the next word of a change; for ever when nobody tells.
async fn told(changes: &mut Option<watch::Receiver<u64>>) {
    let known = match changes {
        Some(changes) => changes.changed().await.is_ok(),
        None => false,
    };
    if !known {
        std::future::pending::<()>().await;
    }
}
