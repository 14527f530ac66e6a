//! How fast simulated clusters run many pods, and what a pod costs.
//!
//! `cargo run -p atoll-sim --example scale -- CLUSTERS NODES PODS` makes one Deployment for every
//! hundred pods of each cluster, waits until all pods run, and then watches what idleness costs. With 0
//! pods it only does the latter.
#![allow(clippy::unwrap_used, reason = "a failure here is a failure of the measurement")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_apiserver::{ApiService, Hub, Identity};
use atoll_meta::Gvr;
use atoll_runtime::{Endpoint, WatchEvent};
use atoll_sim::{Sim, Spec};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// As the product has it: memory that is freed goes back.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[tokio::main]
async fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [clusters, nodes, pods] = numbers.as_slice() else { panic!("usage: scale CLUSTERS NODES PODS") };
    let hub = open().await;
    let mut running = Vec::new();
    for number in 0..*clusters {
        let name = format!("sim{number}");
        hub.create_instance(&name).await.unwrap();
        let api = endpoint(&hub, &name);
        let spec = Spec { nodes: *nodes, verbose_events: false, ..Spec::default() };
        let sim = Sim::start(hub.clone(), api.clone(), &name, spec, CancellationToken::new()).await.unwrap();
        running.push((api, sim));
    }
    let (idle, cpu, before) = (resident(), processor(), writes(&running).await);
    println!("{clusters} clusters of {nodes} nodes: {} MiB", idle / 1024);
    let start = Instant::now();
    let waits = running.iter().map(|(api, _)| fill(api, pods / clusters));
    futures::future::join_all(waits).await;
    let total = pods / clusters * clusters;
    println!(
        "{total} pods running after {:.1} s, {:.1} s of processor time",
        start.elapsed().as_secs_f64(),
        processor() - cpu
    );
    if total > 0 {
        let memory = resident().saturating_sub(idle) as f64 / total as f64;
        println!(
            "{memory:.1} KiB and {:.1} writes for each pod",
            (writes(&running).await - before) as f64 / total as f64
        );
    }
    let cpu = processor();
    tokio::time::sleep(Duration::from_secs(5)).await;
    println!("idle: {:.1} % of a processor", (processor() - cpu) / 5.0 * 100.0);
}

async fn open() -> Arc<Hub> {
    let engine = Arc::new(atoll_store::MemoryEngine::new());
    let clock = Arc::new(jiff::Timestamp::now);
    Hub::open(engine, atoll_apiserver::auth::Keys::default(), clock, atoll_apiserver::Options::default()).await.unwrap()
}

fn endpoint(hub: &Arc<Hub>, name: &str) -> Endpoint {
    Endpoint::in_process(ApiService::new(hub.clone()), name, "scale", |extensions| {
        extensions.insert(Identity::master("scale"));
    })
}

/// Makes Deployments and waits until all their pods run.
async fn fill(api: &Endpoint, pods: usize) {
    let deployments = Gvr::new("apps", "v1", "deployments");
    for number in 0..pods.div_ceil(100) {
        let replicas = 100.min(pods - number * 100);
        let name = format!("web-{number}");
        let labels = json!({"app": name});
        let object = json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                     "spec": {"containers": [{"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]}}}});
        api.create(&deployments, Some("default"), &object).await.unwrap();
    }
    let gvr = Gvr::new("", "v1", "pods");
    let mut seen = std::collections::HashSet::new();
    let mut watch = api.watch(&gvr, None, "", "").await.unwrap();
    while seen.len() < pods {
        match watch.next().await.unwrap().unwrap() {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) if pod["status"]["phase"] == "Running" => {
                seen.insert(pod["metadata"]["uid"].to_string());
            }
            _ => {}
        }
    }
}

/// Writes to all clusters so far.
async fn writes(running: &[(Endpoint, Sim)]) -> u64 {
    let mut sum = 0;
    for (api, _) in running {
        let list = api.list(&Gvr::new("", "v1", "nodes"), None, "limit=1").await.unwrap();
        sum += list.revision.parse::<u64>().unwrap_or_default();
    }
    sum
}

/// Memory of this process in KiB.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4
}

/// Processor time of this process in seconds.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}
