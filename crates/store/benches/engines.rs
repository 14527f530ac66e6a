//! Rough speed of the embedded engines: `cargo bench -p atoll-store`.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::time::Instant;

use atoll_meta::{InstanceId, Key, Object};
use atoll_store::{Engine, Expect, MemoryEngine, Op, Options, RedbEngine, Scope, Write};
use serde_json::json;

const ROOT: InstanceId = InstanceId::ROOT;
const WRITERS: usize = 64;
const WRITES: usize = 200;

fn write(name: &str) -> Write {
    let tree = json!({"kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": "x".repeat(1024)}});
    let object = Arc::new(Object::encode(&tree).unwrap());
    Write { key: Key::new("", "configmaps", "default", name), expect: Expect::Any, op: Op::Put(object) }
}

fn report(what: &str, count: usize, since: Instant) {
    let seconds = since.elapsed().as_secs_f64();
    println!("{what:<28} {:>12.0} /s {:>10.2} us each", count as f64 / seconds, seconds / count as f64 * 1e6);
}

async fn measure(name: &str, engine: Arc<dyn Engine>) {
    println!("{name}");
    let mut watch = engine.watch(ROOT, Scope::All, engine.revision(ROOT).unwrap()).unwrap();
    let begun = Instant::now();
    let writers = (0..WRITERS).map(|writer| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for number in 0..WRITES {
                engine.commit(ROOT, vec![write(&format!("w{writer}-{number}"))]).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    report("create, 64 at once", WRITERS * WRITES, begun);
    let begun = Instant::now();
    let mut seen = 0;
    while seen < WRITERS * WRITES {
        seen += watch.next().await.unwrap().len();
    }
    report("watch, catching up", seen, begun);
    let begun = Instant::now();
    for number in 0..WRITES * 100 {
        engine.get(ROOT, &format!("configmaps./default/w1-{}", number % WRITES)).await.unwrap().unwrap();
    }
    report("get", WRITES * 100, begun);
    let begun = Instant::now();
    let snapshot = engine.snapshot(ROOT, None).await.unwrap();
    let bytes: usize = snapshot.range("configmaps./", None).map(|(_, entry)| entry.object.body.len()).sum();
    report("list, per object", WRITERS * WRITES, begun);
    assert!(bytes > WRITERS * WRITES * 1024);
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(measure("memory", Arc::new(MemoryEngine::new())));
    let dir = tempfile::tempdir().unwrap();
    runtime.block_on(measure("redb", Arc::new(RedbEngine::open(dir.path(), Options::default()).unwrap())));
}
