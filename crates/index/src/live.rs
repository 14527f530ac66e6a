//! Live changes of what a question finds.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::{Reason, Status};
use tokio::sync::broadcast;

use crate::index::Index;
use crate::query::Query;
use crate::rights::{Place, Rights};
use crate::row::Row;
use crate::search::Page;
use crate::shelf::Shelf;

/// How often the rights of a quiet watch are looked at.
const CHECK: Duration = Duration::from_millis(500);

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
    check: tokio::time::Interval,
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
        let events = self.events().subscribe();
        let page = self.query(&query, &*rights).await?;
        let shown = page.items.iter().map(|item| (item.shelf.id, item.namespace.clone(), item.name.clone())).collect();
        let allowed =
            page.items.iter().map(|item| ((item.shelf.id, item.namespace.clone()), item.shelf.clone())).collect();
        let mut check = tokio::time::interval(CHECK);
        check.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        Ok((page, Live { query, rights, index: self.clone(), events, shown, allowed, check }))
    }
}

impl Live {
    /// The next change; an error means the watch has to begin anew.
    pub async fn next(&mut self) -> Result<LiveEvent, Status> {
        loop {
            let event = tokio::select! {
                _ = self.check.tick() => {
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
            && self.query.matches(row)?
            && self.may_see(shelf, &row.namespace).await?;
        Ok(if wanted {
            self.allowed.insert((shelf.id, row.namespace.clone()), shelf.clone());
            self.shown.insert(key);
            Some(event)
        } else if self.shown.remove(&key) {
            Some(LiveEvent::Removed(shelf.clone(), row.clone()))
        } else {
            None
        })
    }

    /// Ends the watch of a caller who lost a right: nothing more is told, quiet or not.
    async fn still_allowed(&self) -> Result<(), Status> {
        for ((_, namespace), shelf) in &self.allowed {
            if !self.may_see(shelf, namespace).await? {
                return Err(Status::new(403, Reason::Forbidden, "rights have changed; begin the watch anew"));
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
