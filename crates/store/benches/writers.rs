//! What durable writes cost with many writers at once: `cargo bench -p atoll-store --bench writers`;
//! numbers behind `--` say how many writers.
//!
//! Each writer waits for its commit before it writes again, in one of five instances that are
//! watched, as the controllers of a hub do. CPU time counts more than the clock here: a hub shares
//! its cores with the store. A second round lets the writers compute between their writes, because
//! a busy machine makes other batches than an idle one.
#![allow(clippy::unwrap_used, missing_docs)]
#![cfg(target_os = "linux")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_meta::{InstanceId, Key, Object};
use atoll_store::{Engine, Expect, Op, Options, RedbEngine, Scope, Write};
use serde_json::json;

const INSTANCES: usize = 5;
const RESOURCES: [&str; 3] = ["deployments", "resourcebindings", "works"];
const WRITERS: [usize; 5] = [1, 4, 16, 32, 64];
const THOUGHT: [Duration; 2] = [Duration::ZERO, Duration::from_micros(300)];
const LENGTH: Duration = Duration::from_secs(3);

/// Objects of 2 to 4 KB, encoded beforehand: only the store is to be measured.
fn objects() -> Vec<Arc<Object>> {
    let tree = |size: usize| json!({"kind": "Work", "metadata": {"name": "w"}, "spec": "x".repeat(size)});
    (0..8).map(|n| Arc::new(Object::encode(&tree(2000 + n * 280)).unwrap())).collect()
}

/// CPU seconds of this process.
fn process() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    ticks as f64 / 100.0
}

/// CPU seconds of the store's writing thread.
fn thread() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let named =
        |task: &Path| std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.starts_with("atoll-store"));
    let writer = tasks.into_iter().find(|task| named(task)).unwrap();
    let used = std::fs::read_to_string(writer.join("schedstat")).unwrap();
    used.split(' ').next().unwrap().parse::<u64>().unwrap() as f64 / 1e9
}

/// Number of the newest commit, as noted beside the data file.
fn commits(dir: &Path) -> u64 {
    let mark = std::fs::read(dir.join("store.redb.mark")).unwrap();
    u64::from_le_bytes(mark[8..16].try_into().unwrap())
}

fn think(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

async fn write(engine: Arc<RedbEngine>, id: InstanceId, writer: usize, thought: Duration) -> Vec<Duration> {
    let objects = objects();
    let (begun, mut took) = (Instant::now(), Vec::new());
    for number in 0.. {
        // Each object is made once and changed three times.
        let resource = RESOURCES[number / 4 % RESOURCES.len()];
        let key = Key::new("apps", resource, "default", &format!("w{writer}-{}", number / 4));
        let op = Op::Put(objects[number % objects.len()].clone());
        let asked = Instant::now();
        engine.commit(id, vec![Write { key, expect: Expect::Any, op }]).await.unwrap();
        took.push(asked.elapsed());
        if begun.elapsed() > LENGTH {
            break;
        }
        think(thought);
        tokio::task::yield_now().await;
    }
    took
}

async fn watch(engine: Arc<RedbEngine>, id: InstanceId, scope: Scope) {
    let mut watch = engine.watch(id, scope, engine.revision(id).unwrap()).unwrap();
    while watch.next().await.is_ok() {}
}

async fn measure(writers: usize, thought: Duration) {
    let dir = tempfile::tempdir().unwrap();
    let engine = Arc::new(RedbEngine::open(dir.path(), Options::default()).unwrap());
    let mut ids = Vec::new();
    for number in 0..INSTANCES {
        ids.push(engine.create_instance(&format!("i{number}")).await.unwrap());
    }
    let scopes = RESOURCES.map(|resource| Scope::Resource(format!("{resource}.apps").into()));
    let watches: Vec<_> = (ids.iter())
        .flat_map(|id| scopes.iter().map(|scope| tokio::spawn(watch(engine.clone(), *id, scope.clone()))))
        .collect();
    let (begun, process_before, thread_before, commits_before) =
        (Instant::now(), process(), thread(), commits(dir.path()));
    let tasks: Vec<_> = (0..writers)
        .map(|writer| tokio::spawn(write(engine.clone(), ids[writer % INSTANCES], writer, thought)))
        .collect();
    let mut took = Vec::new();
    for task in tasks {
        took.extend(task.await.unwrap());
    }
    let (seconds, process, thread) =
        (begun.elapsed().as_secs_f64(), process() - process_before, thread() - thread_before);
    let batches = (commits(dir.path()) - commits_before) as f64;
    for watch in watches {
        watch.abort();
        let _ = watch.await;
    }
    took.sort_unstable();
    let count = took.len() as f64;
    let store = (process - thought.as_secs_f64() * count).max(0.0);
    println!(
        "{writers:>7} {:>8} {:>9.0} {:>8.1} {:>8.2} {:>8.2} {:>12.1} {:>12.1}",
        thought.as_micros(),
        count / seconds,
        count / batches,
        took[took.len() / 2].as_secs_f64() * 1e3,
        took[took.len() * 99 / 100].as_secs_f64() * 1e3,
        thread / count * 1e6,
        store / count * 1e6,
    );
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let asked: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let counts = if asked.is_empty() { WRITERS.to_vec() } else { asked };
    println!("writers  think us  writes/s  per commit  p50 ms  p99 ms  thread us/write  all us/write");
    for thought in THOUGHT {
        for writers in &counts {
            runtime.block_on(measure(*writers, thought));
        }
    }
}
