//! Which instances of which hub are simulated at present.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use atoll_apiserver::Hub;
use parking_lot::RwLock;

use crate::world::World;

type Key = (usize, Arc<str>);

/// One for the process: connectors are installed in a hub before its clusters start.
static ALL: LazyLock<RwLock<HashMap<Key, Weak<World>>>> = LazyLock::new(RwLock::default);

/// Hubs are told apart by where they are; a world keeps its hub there.
fn key(hub: &Hub, name: &str) -> Key {
    (std::ptr::from_ref(hub).addr(), name.into())
}

/// Registers a cluster.
pub fn add(world: &Arc<World>) {
    ALL.write().insert(key(&world.hub, &world.name), Arc::downgrade(world));
}

/// Forgets a cluster, unless another one took its place.
pub fn remove(world: &Arc<World>) {
    let mut all = ALL.write();
    let key = key(&world.hub, &world.name);
    if all.get(&key).is_some_and(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(world))) {
        all.remove(&key);
    }
}

/// The cluster in an instance of a hub.
pub fn find(hub: &Hub, name: &str) -> Option<Arc<World>> {
    ALL.read().get(&key(hub, name))?.upgrade()
}
