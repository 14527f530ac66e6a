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

    /// Whoever waits for a revision finds it in the caches and in the book; whoever is called for it finds it seen.
    fn tell(&self, event: &Event) {
        let world = &self.world;
        let change = Kind::stored(event.key.resource()).and_then(|kind| Some((kind, take(world, kind, event)?)));
        let pods = change.as_ref().map(|(kind, change)| route::note(world, *kind, change));
        world.saw(event.revision);
        if let (Some((kind, change)), Some(pods)) = (change, pods) {
            route::call(world, kind, &change, pods);
        }
    }
}

/// Takes an event into the cache; how that changed, if it did.
fn take(world: &World, kind: Kind, event: &Event) -> Option<Change> {
    match (&event.current, &event.previous) {
        (Some(entry), _) => put(world, kind, item(entry, event.revision)),
        (None, Some(last)) => {
            let gone = item(last, event.revision);
            world.cache(kind).remove(&gone.key());
            Some(Change::Deleted(gone))
        }
        (None, None) => None,
    }
}

fn put(world: &World, kind: Kind, item: Item) -> Option<Change> {
    match world.cache(kind).put(item.clone()) {
        Some(old) if old.revision == item.revision => None,
        Some(old) => Some(Change::Updated(old, item)),
        None => Some(Change::Added(item)),
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
            if let Some(change) = put(world, kind, item) {
                route::changed(world, kind, &change);
            }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::{Duration, Instant};

    use atoll_apiserver::{ApiService, Hub, Identity, auth::Keys};
    use atoll_meta::Gvr;
    use atoll_runtime::Endpoint;
    use serde_json::json;

    use super::*;
    use crate::spec::Spec;
    use crate::world::{Task, Work};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_change_counts_as_seen_only_when_it_is_in_the_book() {
        let engine = Arc::new(atoll_store::MemoryEngine::new());
        let clock = Arc::new(jiff::Timestamp::now);
        let hub = Hub::open(engine, Keys::default(), clock, atoll_apiserver::Options::default()).await.unwrap();
        hub.create_instance("sim").await.unwrap();
        let endpoint = Endpoint::in_process(ApiService::new(hub.clone()), "sim", "kubectl", |extensions| {
            extensions.insert(Identity::master("system:test"));
        });
        let instance = hub.instance("sim").unwrap();
        let world = Arc::new(World::new(hub, &endpoint, "sim", Spec::default(), Default::default()));
        let follower = Follower::start(world.clone(), instance.clone()).await.unwrap();
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                         "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let made = endpoint.create(&Gvr::new("", "v1", "pods"), Some("default"), &pod).await.unwrap();
        let work = Work::new(Task::Pod, "default/p");
        world.expect(&work, made["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap());

        // While somebody reads the book the follower cannot write in it.
        let reader = world.book.read();
        tokio::spawn(follower.run());
        let begun = Instant::now();
        while world.cache(Kind::Pod).get("default", "p").is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the follower never came to the pod");
            std::thread::yield_now();
        }
        assert!(!world.caught_up(&work), "it is not in the book yet");
        drop(reader);
        world.catch_up(&instance).await;
        assert!(world.book.read().pod("default/p").is_some());
        assert!(world.caught_up(&work));
        world.stop.cancel();
    }
}
