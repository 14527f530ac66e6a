//! Follows everything in an instance: its present state, then every change, in order.
//!
//! The simulator lives in the process of its hub, so it reads the log of the store itself: objects
//! are shared with the store, not copied, and one reader serves all controllers.

use std::collections::HashSet;
use std::sync::Arc;

use atoll_apiserver::{Instance, store_status};
use atoll_meta::{Key, Revision, Status};
use atoll_runtime::{Change, Item};
use atoll_store::{Entry, Event, Scope, StoreError, Watch};

use crate::kind::Kind;
use crate::route;
use crate::world::World;

/// A reader of one instance.
pub struct Follower {
    world: Arc<World>,
    instance: Arc<Instance>,
    watch: Box<dyn Watch>,
}

fn item(entry: &Entry, revision: Revision) -> Item {
    Item { object: entry.object.clone(), revision: revision.to_string().into() }
}

impl Follower {
    /// Reads the present state; nothing is missed between it and the first change.
    pub async fn start(world: Arc<World>, instance: Arc<Instance>) -> Result<Self, Status> {
        let watch = read_all(&world, &instance).await.map_err(|error| store_status(&error))?;
        Ok(Self { world, instance, watch })
    }

    /// Follows changes until the world or the instance ends.
    pub async fn run(mut self) {
        let stop = self.world.stop.clone();
        loop {
            let next = tokio::select! {
                () = stop.cancelled() => return,
                next = self.watch.next() => next,
            };
            match next {
                Ok(events) => events.iter().for_each(|event| self.tell(event)),
                Err(StoreError::NoInstance) => return,
                Err(error) => {
                    // Fell behind what the log keeps: begin again from the present state.
                    tracing::debug!(instance = %self.world.name, %error, "reads everything again");
                    match read_all(&self.world, &self.instance).await {
                        Ok(watch) => self.watch = watch,
                        Err(StoreError::NoInstance) => return,
                        Err(_) => tokio::time::sleep(std::time::Duration::from_secs(1)).await,
                    }
                }
            }
        }
    }

    fn tell(&self, event: &Event) {
        self.world.saw(event.revision);
        let Some(kind) = Kind::stored(event.key.resource()) else { return };
        match (&event.current, &event.previous) {
            (Some(entry), _) => put(&self.world, kind, item(entry, event.revision)),
            (None, Some(last)) => {
                let gone = item(last, event.revision);
                self.world.cache(kind).remove(&gone.key());
                route::changed(&self.world, kind, &Change::Deleted(gone));
            }
            (None, None) => {}
        }
    }
}

fn put(world: &World, kind: Kind, item: Item) {
    match world.cache(kind).put(item.clone()) {
        Some(old) if old.revision == item.revision => {}
        Some(old) => route::changed(world, kind, &Change::Updated(old, item)),
        None => route::changed(world, kind, &Change::Added(item)),
    }
}

/// Reads the whole state; what vanished since the last time is told as deleted.
async fn read_all(world: &World, instance: &Instance) -> Result<Box<dyn Watch>, StoreError> {
    let engine = world.hub.engine();
    let snapshot = engine.snapshot(instance.id, None).await?;
    for kind in Kind::ALL {
        let gvr = kind.gvr();
        let mut present = HashSet::new();
        for (_, entry) in snapshot.range(&Key::prefix(&gvr.group, &gvr.resource, ""), None) {
            let item = item(entry, entry.modified);
            present.insert(item.key());
            put(world, kind, item);
        }
        let cache = world.cache(kind);
        for gone in cache.keys().into_iter().filter(|key| !present.contains(key)) {
            if let Some(item) = cache.remove(&gone) {
                route::changed(world, kind, &Change::Deleted(item));
            }
        }
    }
    world.saw(snapshot.revision);
    engine.watch(instance.id, Scope::All, snapshot.revision)
}
