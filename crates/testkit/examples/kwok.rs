//! The same pods in a simulated cluster of the product and in a real one with kwok: how long until all are available, and
//! what it costs.
//!
//! `cargo run -p atoll-testkit --example kwok -- target/release/atoll PODS NODES` (1000 and 100 unless said otherwise).
//! The real side is etcd without fsync, kube-apiserver, kube-controller-manager, kube-scheduler and kwok; its memory and
//! processor time are those of all five, and of the last three alone. Its controllers may ask 200 times a second, ten
//! times as often as by default. Ours is one process with everything and a durable store. Both are asked over TLS by the
//! same observer. Kubelets of both tell no ordinary steps as events, since kwok's do not; `ATOLL_SIM_EVENTS=all` has ours
//! tell them.
#![allow(clippy::unwrap_used, reason = "a failure here is a failure of the measurement")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use atoll_meta::Gvr;
use atoll_runtime::{Endpoint, WatchEvent};
use atoll_testkit::{Cluster, Parts, remote};
use serde_json::json;

/// How long both sides have to come to rest before memory and processor time are read.
const SETTLE: Duration = Duration::from_secs(15);

/// What running the pods took.
struct Cost {
    seconds: f64,
    processor: f64,
    /// KiB more than before.
    memory: usize,
    /// KiB in all.
    total: usize,
}

fn main() -> anyhow::Result<()> {
    let program = std::env::args().nth(1).unwrap_or_else(|| "target/release/atoll".into());
    let numbers: Vec<usize> = std::env::args().skip(2).filter_map(|word| word.parse().ok()).collect();
    let (pods, nodes) = (*numbers.first().unwrap_or(&1000), *numbers.get(1).unwrap_or(&100));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ours = simulated(&program, &runtime, pods, nodes)?;
    show("simulated", pods, &ours);
    let Some(cluster) = Cluster::start(Parts { controllers: "*", scheduler: true, nodes, old: false })? else {
        return Ok(());
    };
    let all = processes(
        cluster.directory(),
        &["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"],
    );
    let few = processes(cluster.directory(), &["kube-controller-manager", "kube-scheduler", "kwok"]);
    let before = (measure(&all), measure(&few));
    let api = runtime.block_on(remote("real", cluster.kubeconfig()))?;
    let start = Instant::now();
    runtime.block_on(fill(&api, pods));
    let seconds = start.elapsed().as_secs_f64();
    std::thread::sleep(SETTLE);
    let mut costs = Vec::new();
    for (name, list, (memory, processor)) in
        [("all five", &all, before.0), ("controllers, scheduler and kwok", &few, before.1)]
    {
        let after = measure(list);
        let (memory, total) = (after.0.saturating_sub(memory), after.0);
        let cost = Cost { seconds, processor: after.1 - processor, memory, total };
        show(name, pods, &cost);
        costs.push(cost);
    }
    println!(
        "simulated is {:.1} times faster and takes 1/{:.1} of the memory of all five (1/{:.1} of what the pods added)",
        costs[0].seconds / ours.seconds,
        costs[0].total as f64 / ours.total.max(1) as f64,
        costs[0].memory as f64 / ours.memory.max(1) as f64
    );
    Ok(())
}

/// A hub with one simulated cluster, in a process of its own.
fn simulated(program: &str, runtime: &tokio::runtime::Runtime, pods: usize, nodes: usize) -> anyhow::Result<Cost> {
    let directory = tempfile::tempdir()?;
    let mut hub = Command::new(program)
        .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(directory.path())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(hub.stderr.take().unwrap()).lines().map_while(Result::ok);
    anyhow::ensure!(lines.any(|line| line.contains("is ready at")), "{program} ended before it was ready");
    std::thread::spawn(move || lines.for_each(drop));
    let atoll = |words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).env("KUBECONFIG", directory.path().join("kubeconfig")).output()
    };
    // kwok's kubelets tell no events, and its pods start without delay, as ours do unless asked otherwise.
    let events = std::env::var("ATOLL_SIM_EVENTS").unwrap_or_else(|_| "controllers".into());
    let words = ["sim", "create", "bench", "--nodes", &nodes.to_string(), "--events", &events];
    anyhow::ensure!(atoll(&words)?.status.success(), "no cluster");
    let kubeconfig = directory.path().join("bench");
    std::fs::write(&kubeconfig, atoll(&["instance", "kubeconfig", "bench"])?.stdout)?;
    let own = [hub.id()];
    let before = measure(&own);
    let api = runtime.block_on(remote("simulated", &kubeconfig))?;
    let start = Instant::now();
    runtime.block_on(fill(&api, pods));
    let seconds = start.elapsed().as_secs_f64();
    std::thread::sleep(SETTLE);
    let after = measure(&own);
    Command::new(program).args(["down", "--data-dir"]).arg(directory.path()).output()?;
    hub.wait()?;
    let memory = after.0.saturating_sub(before.0);
    Ok(Cost { seconds, processor: after.1 - before.1, memory, total: after.0 })
}

fn show(name: &str, pods: usize, cost: &Cost) {
    println!(
        "{name}: {pods} pods available after {:.2} s ({:.0} per second), {:.2} s of processor time, {:.1} MiB in all, {:.1} MiB more ({:.1} KiB for each pod)",
        cost.seconds,
        pods as f64 / cost.seconds,
        cost.processor,
        cost.total as f64 / 1024.0,
        cost.memory as f64 / 1024.0,
        cost.memory as f64 / pods as f64
    );
}

/// Makes Deployments of a hundred pods and waits until all are available.
async fn fill(api: &Endpoint, pods: usize) {
    let gvr = Gvr::new("apps", "v1", "deployments");
    let mut watch = api.watch(&gvr, Some("default"), "", "").await.unwrap();
    let sizes: Vec<usize> = (0..pods.div_ceil(100)).map(|number| 100.min(pods - number * 100)).collect();
    for (number, replicas) in sizes.iter().enumerate() {
        let name = format!("web-{number}");
        let labels = json!({"app": name});
        let object = json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                     "spec": {"containers": [{"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]}}}});
        api.create(&gvr, Some("default"), &object).await.unwrap();
    }
    let mut done = std::collections::HashSet::new();
    while done.len() < sizes.len() {
        match watch.next().await {
            Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                if object["status"]["availableReplicas"] == object["spec"]["replicas"] {
                    done.insert(object["metadata"]["name"].to_string());
                }
            }
            Some(Ok(WatchEvent::Error(_)) | Err(_)) | None => {
                watch = api.watch(&gvr, Some("default"), "", "").await.unwrap();
            }
            Some(Ok(_)) => {}
        }
    }
}

/// Numbers of the processes of a control plane.
fn processes(directory: &Path, names: &[&str]) -> Vec<u32> {
    let read = |name: &&str| std::fs::read_to_string(directory.join("pids").join(name)).ok();
    names.iter().filter_map(read).filter_map(|text| text.split_whitespace().next()?.parse().ok()).collect()
}

/// KiB of memory and seconds of processor time of processes.
fn measure(processes: &[u32]) -> (usize, f64) {
    let mut sum = (0, 0.0);
    for process in processes {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
        sum.0 += read("statm").split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4;
        let stat = read("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        sum.1 += (ticks(11) + ticks(12)) / 100.0;
    }
    sum
}
