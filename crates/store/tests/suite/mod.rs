//! What the tests of all engines share.
#![allow(dead_code, missing_docs, reason = "each test binary uses its part")]

pub mod cases;
pub mod etcd;
pub mod history;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::{InstanceId, Key, Object, Revision};
use atoll_store::{Engine, Entry, Event, Expect, MemoryEngine, Op, Options, RedbEngine, StoreError, Watch, Write};
use serde_json::json;

/// An engine and what must live as long as it.
pub struct Fixture {
    pub engine: Arc<dyn Engine>,
    _guard: Box<dyn Any + Send>,
}

impl Fixture {
    pub fn new(engine: impl Engine, guard: impl Any + Send) -> Self {
        Self { engine: Arc::new(engine), _guard: Box::new(guard) }
    }

    /// A fresh instance on the engine.
    pub async fn instance(&self) -> InstanceId {
        self.engine.create_instance("fresh").await.unwrap()
    }
}

pub async fn memory(options: Options) -> Option<Fixture> {
    Some(Fixture::new(MemoryEngine::with(options), ()))
}

pub async fn redb(options: Options) -> Option<Fixture> {
    let dir = tempfile::tempdir().unwrap();
    Some(Fixture::new(RedbEngine::open(dir.path(), options).unwrap(), dir))
}

/// A ConfigMap that carries a value.
pub fn object(name: &str, value: &str) -> Arc<Object> {
    let tree = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"value": value}});
    Arc::new(Object::encode(&tree).unwrap())
}

/// The value an entry's object carries.
pub fn value(entry: &Entry) -> String {
    let tree: serde_json::Value = serde_json::from_slice(&entry.object.body).unwrap();
    tree["data"]["value"].as_str().unwrap().to_owned()
}

pub fn key(name: &str) -> Key {
    Key::new("", "configmaps", "default", name)
}

pub fn pod(name: &str) -> Key {
    Key::new("", "pods", "default", name)
}

pub const CONFIGMAPS: &str = "configmaps.";

pub fn put(key: Key, expect: Expect, value: &str) -> Write {
    let op = Op::Put(object("x", value));
    Write { key, expect, op }
}

pub fn delete(key: Key, expect: Expect) -> Write {
    Write { key, expect, op: Op::Delete(None) }
}

pub fn check(key: Key, expect: Expect) -> Write {
    Write { key, expect, op: Op::Check }
}

/// Puts a value whatever is there and says the revision.
pub async fn set(engine: &dyn Engine, instance: InstanceId, key: Key, value: &str) -> Revision {
    engine.commit(instance, vec![put(key, Expect::Any, value)]).await.unwrap().revision
}

/// Reads from a watch until it has given so many events.
pub async fn take(watch: &mut Box<dyn Watch>, count: usize) -> Vec<Arc<Event>> {
    let mut events = Vec::new();
    while events.len() < count {
        let next = within(watch.next()).await.unwrap();
        assert!(!next.is_empty(), "a watch never gives an empty batch");
        events.extend(next);
    }
    assert_eq!(events.len(), count, "more events than expected: {events:?}");
    events
}

/// A future that must end soon.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("nothing happened for 30 seconds")
}

/// The shape of an event: key, revision, new value, previous value.
pub fn shape(event: &Event) -> (String, Revision, Option<String>, Option<String>) {
    let current = event.current.as_ref().map(value);
    let previous = event.previous.as_ref().map(value);
    (event.key.to_string(), event.revision, current, previous)
}

pub fn is_compacted<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Compacted { .. }))
}
