//! A watch from a revision that another replica has seen and this one has not yet.

use std::sync::Arc;

use atoll_meta::Revision;

use super::shared::Shared;
use crate::mvcc::Cursor;
use crate::{Event, StoreError, Watch};

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
        if let Some(after) = self.doubtful {
            let newest = self.shared.sync().await?;
            if after > newest {
                return Err(StoreError::Future { newest });
            }
            self.doubtful = None;
        }
        self.cursor.next().await
    }

    fn progress(&self) -> Revision {
        self.cursor.progress()
    }
}
