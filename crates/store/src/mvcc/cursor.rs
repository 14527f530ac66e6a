//! A watch: a place in an instance's log.

use std::sync::Arc;

use atoll_meta::Revision;
use tokio::sync::Notify;

use super::Instance;
use crate::{Event, Scope, StoreError, Watch};

/// A watch that holds nothing but how far it has read.
pub(crate) struct Cursor {
    instance: Arc<Instance>,
    scope: Scope,
    after: Revision,
    bell: Arc<Notify>,
}

impl Cursor {
    /// A watch of what comes after a revision that must be known already.
    pub fn new(instance: Arc<Instance>, scope: Scope, after: Revision) -> Result<Self, StoreError> {
        let bell = instance.subscribe(&scope, after, false)?;
        Ok(Self { instance, scope, after, bell })
    }

    /// A watch that may begin at a revision this process has not heard of yet.
    pub fn ahead(instance: Arc<Instance>, scope: Scope, after: Revision) -> Result<Self, StoreError> {
        let bell = instance.subscribe(&scope, after, true)?;
        Ok(Self { instance, scope, after, bell })
    }
}

#[async_trait::async_trait]
impl Watch for Cursor {
    async fn next(&mut self) -> Result<Vec<Arc<Event>>, StoreError> {
        let bell = self.bell.clone();
        loop {
            // Listening begins before looking, or a change in between would be slept through.
            let mut rung = std::pin::pin!(bell.notified());
            rung.as_mut().enable();
            let events = self.instance.since(&self.scope, self.after)?;
            if let Some(last) = events.last() {
                self.after = last.revision;
                return Ok(events);
            }
            rung.await;
        }
    }

    fn progress(&self) -> Revision {
        self.instance.progress(&self.scope, self.after)
    }
}
