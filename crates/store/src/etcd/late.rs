//! A watch from a revision that another replica has seen and this one has not yet.

use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Revision;

use super::shared::Shared;
use crate::mvcc::Cursor;
use crate::{Event, StoreError, Watch};

/// How long to wait before asking an unreachable etcd again.
const PAUSE: Duration = Duration::from_millis(200);

/// Makes sure with its first read that the revision exists.
pub(super) struct LateWatch {
    cursor: Cursor,
    doubtful: Option<Revision>,
    shared: Arc<Shared>,
}

impl LateWatch {
    pub fn new(cursor: Cursor, after: Revision, shared: Arc<Shared>) -> Self {
        Self { cursor, doubtful: Some(after), shared }
    }
}

#[async_trait::async_trait]
impl Watch for LateWatch {
    async fn next(&mut self) -> Result<Vec<Arc<Event>>, StoreError> {
        while let Some(after) = self.doubtful {
            match self.shared.sync().await {
                Ok(newest) if after > newest => return Err(StoreError::Future { newest }),
                Ok(_) => self.doubtful = None,
                // A watch waits anyway, so it may as well wait for etcd.
                Err(StoreError::Unavailable(_)) => tokio::time::sleep(PAUSE).await,
                Err(other) => return Err(other),
            }
        }
        self.cursor.next().await
    }

    fn progress(&self) -> Revision {
        self.cursor.progress()
    }
}
