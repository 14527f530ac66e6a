//! Follows a source: finds its resources, keeps a follower for each, forgets what it no longer has.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Status;
use atoll_runtime::Endpoint;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::discover::discover;
use crate::follower::Follower;
use crate::index::Index;
use crate::query::ResourceName;
use crate::shelf::{Shelf, ShelfKey};
use crate::store::Label;
use crate::writer::Message;

/// How many resources of a source are read whole at the same time.
const PARALLEL_READS: usize = 4;
/// How often resources are looked for when nothing says that they changed.
const LOOK_AGAIN: Duration = Duration::from_secs(120);
/// Definitions come in groups; wait for the rest of the group.
const SETTLE: Duration = Duration::from_millis(300);

/// Something to keep a copy of.
#[derive(Clone)]
pub struct Source {
    /// `instance` or `instance/member`.
    pub name: String,
    /// The way to it.
    pub endpoint: Endpoint,
    /// Whether questions that name no source leave it out, as they do virtual clusters.
    pub hidden: bool,
}

/// Which resources of a source to keep.
#[derive(Clone, Debug, Default)]
pub enum Resources {
    /// All that can be listed and watched.
    #[default]
    All,
    /// Only these.
    Only(Vec<ResourceName>),
}

impl Resources {
    fn wants(&self, label: &Label) -> bool {
        match self {
            Self::All => true,
            Self::Only(list) => list.iter().any(|wanted| {
                wanted.group.as_ref().is_none_or(|group| *group == label.key.group)
                    && (wanted.resource == "*" || wanted.resource == label.key.resource)
            }),
        }
    }
}

/// A running source. Ends when `stop` is cancelled.
pub(crate) struct Following {
    pub index: Index,
    pub source: Source,
    pub resources: Resources,
    pub stop: CancellationToken,
}

struct Running {
    version: String,
    stop: CancellationToken,
}

impl Following {
    pub async fn run(self) {
        let definitions = Arc::new(Notify::new());
        let reads = Arc::new(Semaphore::new(PARALLEL_READS));
        let mut running: HashMap<ShelfKey, Running> = HashMap::new();
        let mut failures = 0u32;
        loop {
            let pause = match self.look(&mut running, &definitions, &reads).await {
                Ok(()) => {
                    failures = 0;
                    self.index.discovered(&self.source.name);
                    LOOK_AGAIN
                }
                Err(status) => {
                    tracing::debug!(source = self.source.name, %status, "index: discovery failed");
                    failures = (failures + 1).min(7);
                    Duration::from_millis(100u64 << failures)
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
                () = definitions.notified() => tokio::time::sleep(SETTLE).await,
            }
        }
    }

    async fn look(
        &self,
        running: &mut HashMap<ShelfKey, Running>,
        definitions: &Arc<Notify>,
        reads: &Arc<Semaphore>,
    ) -> Result<(), Status> {
        let labels = discover(&self.source.endpoint, &self.source.name).await?;
        let wanted: Vec<Label> = labels.into_iter().filter(|label| self.resources.wants(label)).collect();
        let known = self.index.shelves().of_source(&self.source.name);
        for shelf in known {
            if !wanted.iter().any(|label| label.key == shelf.key && label.version == shelf.version) {
                if let Some(old) = running.remove(&shelf.key) {
                    old.stop.cancel();
                }
                self.index.drop_shelf(&shelf).await;
            }
        }
        for label in wanted {
            if running.get(&label.key).is_some_and(|known| known.version == label.version) {
                continue;
            }
            let shelf = self.index.ensure_shelf(label).await?;
            let stop = self.stop.child_token();
            running.insert(shelf.key.clone(), Running { version: shelf.version.clone(), stop: stop.clone() });
            self.start(shelf, definitions, reads, stop);
        }
        Ok(())
    }

    fn start(&self, shelf: Arc<Shelf>, definitions: &Arc<Notify>, reads: &Arc<Semaphore>, stop: CancellationToken) {
        let defines = shelf.key.resource == "customresourcedefinitions";
        let follower = Follower {
            endpoint: self.source.endpoint.clone(),
            shelf,
            store: self.index.store().clone(),
            writer: self.index.writer().clone(),
            reads: reads.clone(),
            definitions: defines.then(|| definitions.clone()),
        };
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = follower.run() => {}
            }
        });
    }
}

impl Index {
    /// The shelf of a resource, made when there is none.
    pub(crate) async fn ensure_shelf(&self, label: Label) -> Result<Arc<Shelf>, Status> {
        if let Some(shelf) = self.shelves().get(&label.key).filter(|shelf| shelf.version == label.version) {
            return Ok(shelf);
        }
        let shelf = Arc::new(self.store().add_shelf(label).await?);
        self.shelves().put(shelf.clone());
        Ok(shelf)
    }

    /// Takes a shelf away with everything on it.
    pub(crate) async fn drop_shelf(&self, shelf: &Arc<Shelf>) {
        self.shelves().remove(&shelf.key);
        let (done, finished) = oneshot::channel();
        if self.writer().send(Message::Drop(shelf.clone(), done)).await.is_ok() {
            let _ = finished.await;
        }
    }
}
