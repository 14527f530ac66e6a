//! Decisions over many clusters, and a start over many workloads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use atoll_api::policy::{Placement, ReplicaDivisionPreference, ReplicaSchedulingStrategy, ReplicaSchedulingType};
use atoll_api::work::ResourceBindingSpec;
use atoll_placement::{Cluster, Request, Snapshot, decide};
use futures::StreamExt as _;
use serde_json::json;

use crate::Words;
use crate::process::usage;
use crate::support::{
    NS, World, bindings, clusters as support_clusters, core, deployment, deployments, policies, policy, works,
};

fn clusters(count: usize) -> Snapshot {
    let build = |at: usize| {
        let tree = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": format!("member{at:03}")},
            "spec": {"syncMode": "Push", "region": format!("r{}", at % 10), "zones": [format!("z{}", at % 20)], "provider": format!("p{}", at % 3)},
            "status": {"apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}],
                "resourceSummary": {"allocatable": {"cpu": "400", "memory": "800Gi", "pods": "5000"}, "allocated": {"cpu": format!("{}", at * 3)}}}});
        let cluster: atoll_api::cluster::Cluster = serde_json::from_value(tree).unwrap();
        Cluster::from(&cluster)
    };
    Snapshot::new((0..count).map(build))
}

fn binding(number: usize) -> ResourceBindingSpec {
    let strategy = ReplicaSchedulingStrategy {
        replica_scheduling_type: ReplicaSchedulingType::Divided,
        replica_division_preference: Some(ReplicaDivisionPreference::Weighted),
        ..ReplicaSchedulingStrategy::default()
    };
    let mut spec = ResourceBindingSpec {
        replicas: 80,
        placement: Some(Placement { replica_scheduling: Some(strategy), ..Placement::default() }),
        ..ResourceBindingSpec::default()
    };
    spec.resource.api_version = "apps/v1".to_owned();
    spec.resource.kind = "Deployment".to_owned();
    spec.resource.uid = format!("uid-{number}");
    spec
}

/// Decisions per second: all bindings over a hundred clusters, on one core and on all.
pub fn schedule(words: &Words) {
    let (count, over) = (words.number("workloads", 10_000), words.number("clusters", 100));
    let snapshot = Arc::new(clusters(over));
    let bindings: Arc<Vec<ResourceBindingSpec>> = Arc::new((0..count).map(binding).collect());
    for threads in [1, std::thread::available_parallelism().map_or(1, usize::from)] {
        let (next, placed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let begin = Instant::now();
        let run = || {
            let (snapshot, bindings, next, placed) = (snapshot.clone(), bindings.clone(), next.clone(), placed.clone());
            std::thread::spawn(move || {
                while let Some(spec) = bindings.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let decision = decide(&snapshot, &Request::of(spec, None));
                    placed.fetch_add(decision.clusters.len(), Ordering::Relaxed);
                }
            })
        };
        let workers: Vec<_> = (0..threads).map(|_| run()).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert!(placed.load(Ordering::Relaxed) >= count, "every binding has a place");
        let rate = count as f64 / begin.elapsed().as_secs_f64();
        println!("{count} bindings over {over} clusters, {threads} thread(s): {rate:.0} decisions per second");
    }
}

/// Controllers that start over many workloads: until nothing is left to do, and nothing was written.
pub async fn restart(words: &Words) {
    let count = words.number("workloads", 10_000);
    let mut world = World::start(3).await;
    let duplicated = json!({"placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}});
    world.instance.create(&policies(), NS, &policy("p", duplicated)).await.unwrap();
    let begin = Instant::now();
    let create = |index: usize| {
        let instance = world.instance.clone();
        async move { drop(instance.create(&deployments(), NS, &deployment(&format!("w-{index}"), 1)).await.unwrap()) }
    };
    futures::stream::iter((0..count).map(create)).buffer_unordered(32).collect::<Vec<()>>().await;
    settle(&world).await;
    println!("{count} workloads to three members from nothing: {:.2} s until steady", begin.elapsed().as_secs_f64());
    world.crash();
    let before = revision(&world).await;
    let own = [std::process::id()];
    let (begin, cpu) = (Instant::now(), usage(&own).cpu);
    world.run(|_| {}).await;
    let started = begin.elapsed().as_secs_f64();
    settle(&world).await;
    let steady = begin.elapsed().as_secs_f64() - QUIET.as_secs_f64();
    let Usage { cpu: after, memory } = usage(&own);
    println!(
        "restart with {count} workloads: controllers run after {started:.2} s, steady after {steady:.2} s; {:.2} CPU s, {memory:.0} MiB with members; {} writes",
        after - cpu,
        revision(&world).await - before,
    );
    for gvr in [deployments(), bindings(), works(), support_clusters(), core("events")] {
        let newer = |object: &&serde_json::Value| {
            object["metadata"]["resourceVersion"]
                .as_str()
                .and_then(|text| text.parse().ok())
                .is_some_and(|at: u64| at > before)
        };
        let changed = world.instance.list(&gvr, None, "").await.unwrap().items.iter().filter(newer).count();
        if changed > 0 {
            println!("  {changed} {} were written", gvr.resource);
        }
    }
    world.crash();
}

use crate::process::Usage;

/// Nothing must happen for this long.
const QUIET: Duration = Duration::from_millis(500);

async fn revision(world: &World) -> u64 {
    world.instance.list(&policies(), NS, "").await.unwrap().revision.parse().unwrap()
}

/// Waits until no controller has anything to do and nothing is written.
async fn settle(world: &World) {
    let core = world.fleet.as_ref().unwrap().core();
    let busy = || {
        let queues = &core.queues;
        queues.templates.len()
            + queues.decisions.len()
            + queues.works.len()
            + queues.reports.len()
            + core.members.list().iter().map(|member| member.queue.len()).sum::<usize>()
    };
    let (mut last, mut since) = (revision(world).await, Instant::now());
    while since.elapsed() < QUIET {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = revision(world).await;
        if now != last || busy() > 0 {
            (last, since) = (now, Instant::now());
        }
    }
}
