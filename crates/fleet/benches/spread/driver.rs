//! One control plane and three members: latency, throughput and what an idle minute costs.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use atoll_fleet::JoinOptions;
use atoll_meta::Gvr;
use atoll_runtime::{Endpoint, WatchEvent};
use futures::StreamExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::Words;
use crate::figures::{Figures, Idle, Latency, Mass};
use crate::process::{Hub, Server, Usage, usage};
use crate::support::{clusters, deployment, deployments, policies, policy};

/// What is measured.
struct Side {
    hub: Endpoint,
    members: Vec<Endpoint>,
    /// The processes of the control plane.
    control: Vec<u32>,
    /// The processes of the members, where they are others.
    below: Vec<u32>,
}

async fn way(name: &str, path: &Path, context: Option<&str>) -> (Endpoint, kube::Config) {
    let read = Kubeconfig::read_from(path).unwrap();
    let options = KubeConfigOptions { context: context.map(ToOwned::to_owned), ..KubeConfigOptions::default() };
    let config = kube::Config::from_custom_kubeconfig(read, &options).await.unwrap();
    (Endpoint::remote(name, config.clone(), "atoll-bench").unwrap(), config)
}

/// A hub with three simulated members in its own process.
pub async fn demo(words: &Words) {
    let program = words.text("atoll").expect("--atoll PATH");
    let hub = Hub::start(program, &["up", "--demo", "--members", "3"]);
    let kubeconfig = hub.directory.path().join("kubeconfig");
    let mut members = Vec::new();
    for name in ["member1", "member2", "member3"] {
        members.push(way(name, &kubeconfig, Some(name)).await.0);
    }
    let fleet = way("fleet", &kubeconfig, Some("fleet")).await.0;
    // The demonstration's own policy would claim everything.
    fleet.delete(&policies(), Some("default"), "everywhere", &Value::Null).await.unwrap();
    println!("simulated members in the hub's process");
    measure(&Side { hub: fleet, members, control: vec![hub.number()], below: Vec::new() }, words).await;
}

/// Three real API servers, started at the same time.
fn servers() -> Vec<Server> {
    let starting: Vec<_> = (0..3).map(|_| std::thread::spawn(Server::start)).collect();
    starting.into_iter().map(|one| one.join().unwrap()).collect()
}

/// Joins real API servers to a control plane and measures it.
async fn with_members(hub: Endpoint, servers: &[Server], control: Vec<u32>, words: &Words) -> Figures {
    let mut members = Vec::new();
    for (name, server) in ["m1", "m2", "m3"].into_iter().zip(servers) {
        let (member, config) = way(name, &server.kubeconfig(), None).await;
        let options = JoinOptions {
            api_endpoint: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
            insecure: true,
            ..JoinOptions::default()
        };
        atoll_fleet::join(&hub, &member, name, options).await.unwrap();
        members.push(member);
    }
    ready(&hub, servers.len()).await;
    let below = servers.iter().flat_map(Server::numbers).collect();
    measure(&Side { hub, members, control, below }, words).await
}

/// A hub with three real API servers as members.
pub async fn real(words: &Words) -> Figures {
    let program = words.text("atoll").expect("--atoll PATH");
    println!("Atoll, real members: three kube-apiservers with their etcds, synced to disk");
    let servers = servers();
    let hub = Hub::start(program, &["up"]);
    let kubeconfig = hub.directory.path().join("kubeconfig");
    let root = way("root", &kubeconfig, None).await.0;
    let instance = json!({"apiVersion": "atoll.io/v1alpha1", "kind": "Instance", "metadata": {"name": "fleet"}, "spec": {"type": "Hosted"}});
    root.create(&Gvr::new("atoll.io", "v1alpha1", "instances"), None, &instance).await.unwrap();
    let fleet = wait_for_fleet(&kubeconfig).await;
    with_members(fleet, &servers, vec![hub.number()], words).await
}

/// Karmada, at its best, with members of the same kind.
pub async fn karmada(words: &Words) -> Figures {
    println!("Karmada, real members: three kube-apiservers with their etcds, synced to disk");
    let servers = servers();
    let karmada = Server::karmada();
    let hub = way("karmada", &karmada.kubeconfig(), None).await.0;
    with_members(hub, &servers, karmada.numbers(), words).await
}

/// Both, one after the other, and how they compare.
pub async fn beside(words: &Words) {
    let ours = real(words).await;
    let theirs = karmada(words).await;
    crate::figures::compare(&ours, &theirs);
}

/// The way to an instance that was just asked for.
async fn wait_for_fleet(kubeconfig: &Path) -> Endpoint {
    let mut read = Kubeconfig::read_from(kubeconfig).unwrap();
    for cluster in read.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.server = cluster.server.as_ref().map(|server| format!("{server}/instances/fleet"));
    }
    let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
    let fleet = Endpoint::remote("fleet", config, "atoll-bench").unwrap();
    while fleet.list(&clusters(), None, "").await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    fleet
}

async fn ready(hub: &Endpoint, wanted: usize) {
    loop {
        let list = hub.list(&clusters(), None, "").await.unwrap().items;
        let is_ready = |cluster: &&Value| {
            let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
        };
        if list.iter().filter(is_ready).count() >= wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn measure(side: &Side, words: &Words) -> Figures {
    let idle = words.number("idle", 30);
    println!("before anything: {:.0} MiB", usage(&side.control).memory);
    // What starts is not idle yet.
    tokio::time::sleep(Duration::from_secs(words.number("warm-up", 20) as u64)).await;
    let idle_before = rest(side, idle).await;
    let rounds = words.number("rounds", 50);
    let first = latency(side, rounds, "warm").await;
    let second = latency(side, rounds, "measured").await;
    let mass = mass(side, words.number("count", 1000)).await;
    let idle_after = rest(side, idle).await;
    Figures { idle_before, first, second, mass, idle_after }
}

async fn rest(side: &Side, seconds: usize) -> Idle {
    let before = usage(&side.control);
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    let after = usage(&side.control);
    // Told as nothing where nothing was waited for.
    let share = (after.cpu - before.cpu) / seconds.max(1) as f64 * 100.0;
    println!("idle for {seconds} s: {share:.2} % of a core, {:.0} MiB", after.memory);
    Idle { share, memory: after.memory }
}

/// Tells of every Deployment that a member's own watch shows, with the moment.
fn follow(members: &[Endpoint]) -> mpsc::UnboundedReceiver<(usize, String, Instant)> {
    let (sender, receiver) = mpsc::unbounded_channel();
    for (at, member) in members.iter().enumerate() {
        let (member, sender) = (member.clone(), sender.clone());
        tokio::spawn(async move {
            let mut stream = member.watch(&deployments(), Some("default"), "", "").await.unwrap();
            while let Some(Ok(event)) = stream.next().await {
                if let WatchEvent::Added(object) = event {
                    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                    if sender.send((at, name, Instant::now())).is_err() {
                        return;
                    }
                }
            }
        });
    }
    receiver
}

fn one_policy(name: &str) -> Value {
    policy(
        name,
        json!({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}],
        "placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}}),
    )
}

/// Deployment, then policy, until each member's own watch shows the copy; one at a time.
async fn latency(side: &Side, rounds: usize, word: &str) -> Latency {
    let mut seen = follow(&side.members);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = usage(&side.control);
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let name = format!("{word}-{round}");
        let begin = Instant::now();
        side.hub.create(&deployments(), Some("default"), &deployment(&name, 1)).await.unwrap();
        side.hub.create(&policies(), Some("default"), &one_policy(&name)).await.unwrap();
        let mut times = HashMap::new();
        while times.len() < side.members.len() {
            let waiting = tokio::time::timeout(Duration::from_secs(60), seen.recv()).await;
            let (member, found, at) = waiting.expect("a copy within a minute").unwrap();
            if found == name {
                times.insert(member, at.duration_since(begin).as_secs_f64() * 1000.0);
            }
        }
        first.push(times.values().copied().fold(f64::MAX, f64::min));
        last.push(times.values().copied().fold(0.0, f64::max));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let cpu = (usage(&side.control).cpu - before.cpu) / rounds as f64;
    Latency::of(first, cpu).tell(&format!("{word}: first of {} members", side.members.len()));
    let last = Latency::of(last, cpu);
    last.tell(&format!("{word}: last of {} members", side.members.len()));
    println!("{word}: control plane {cpu:.3} CPU s per run, pauses included");
    for round in 0..rounds {
        let name = format!("{word}-{round}");
        side.hub.delete(&deployments(), Some("default"), &name, &Value::Null).await.unwrap();
        side.hub.delete(&policies(), Some("default"), &name, &Value::Null).await.unwrap();
    }
    last
}

/// Many Deployments under one policy until all copies exist.
async fn mass(side: &Side, count: usize) -> Mass {
    let mut seen = follow(&side.members);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let rule = policy(
        "mass",
        json!({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment",
        "labelSelector": {"matchLabels": {"mass": "yes"}}}], "placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}}),
    );
    side.hub.create(&policies(), Some("default"), &rule).await.unwrap();
    let (before, before_below) = (usage(&side.control), usage(&side.below));
    let begin = Instant::now();
    let create = |index: usize| {
        let hub = side.hub.clone();
        async move {
            let mut template = deployment(&format!("mass-{index}"), 1);
            template["metadata"]["labels"]["mass"] = "yes".into();
            hub.create(&deployments(), Some("default"), &template).await.unwrap();
        }
    };
    let creating = tokio::spawn(
        futures::stream::iter((0..count).map(create).collect::<Vec<_>>()).buffer_unordered(16).collect::<Vec<()>>(),
    );
    let mut there = HashSet::new();
    let wanted = count * side.members.len();
    while there.len() < wanted {
        let waiting = tokio::time::timeout(Duration::from_secs(1200), seen.recv()).await;
        let (member, name, _) = waiting.expect("all copies in time").unwrap();
        if name.starts_with("mass-") {
            there.insert((member, name));
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    creating.await.unwrap();
    let Usage { cpu, memory } = usage(&side.control);
    let mass = Mass { seconds, cpu: cpu - before.cpu, memory };
    println!(
        "{count} Deployments: {wanted} copies after {seconds:.2} s ({:.0} per second); control plane {:.2} CPU s, {memory:.0} MiB; members {:.2} CPU s",
        wanted as f64 / seconds,
        mass.cpu,
        usage(&side.below).cpu - before_below.cpu,
    );
    mass
}
