//! Live changes of what a question finds.

use std::collections::HashSet;
use std::sync::Arc;

use atoll_meta::Status;
use tokio::sync::broadcast;

use crate::index::Index;
use crate::query::Query;
use crate::rights::{Place, Rights};
use crate::row::Row;
use crate::search::Page;
use crate::shelf::Shelf;

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
        Ok((page, Live { query, rights, index: self.clone(), events, shown }))
    }
}

impl Live {
    /// The next change; an error means the watch has to begin anew.
    pub async fn next(&mut self) -> Result<LiveEvent, Status> {
        loop {
            let event = self.events.recv().await.map_err(|_| Status::expired("too many changes at once; begin the watch anew"))?;
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
            && self.may_see(shelf, row).await?;
        Ok(if wanted {
            self.shown.insert(key);
            Some(event)
        } else if self.shown.remove(&key) {
            Some(LiveEvent::Removed(shelf.clone(), row.clone()))
        } else {
            None
        })
    }

    async fn may_see(&self, shelf: &Shelf, row: &Row) -> Result<bool, Status> {
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
        Ok(shelf.namespaced && self.rights.may_see(Place { namespace: Some(&row.namespace), ..whole }).await?)
    }
}
