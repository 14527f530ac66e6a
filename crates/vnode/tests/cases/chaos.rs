//! Faults at random, from a seed: requests that fail, answers that are lost, managers that die.
//! In the end both sides agree.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use atoll_api::kubeocean::ClusterBinding;
use atoll_apiserver::Identity;
use atoll_meta::Status;
use atoll_runtime::{BodyStream, Endpoint, Transport};
use atoll_vnode::{Manager, ShortCut, Worker};
use serde_json::{Value, json};

use crate::stage::*;

/// A small generator with a seed, so that every run can be repeated.
pub struct Dice(AtomicU64);

impl Dice {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)))
    }

    pub fn roll(&self, sides: u64) -> u64 {
        let step = |mut x: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x
        };
        let before = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |x| Some(step(x))).unwrap();
        step(before) % sides
    }
}

/// Loses requests before or after they had their effect.
struct Faulty {
    through: Endpoint,
    dice: Arc<Dice>,
    on: Arc<AtomicBool>,
}

#[async_trait::async_trait]
impl Transport for Faulty {
    async fn send(&self, request: http::Request<bytes::Bytes>) -> Result<http::Response<BodyStream>, Status> {
        let faulty = self.on.load(Ordering::SeqCst) && request.uri().path() != "/version";
        if faulty && self.dice.roll(12) == 0 {
            return Err(Status::unavailable("lost on the way"));
        }
        let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let answer = self.through.transport().send(request).await?;
        if faulty && !watch && self.dice.roll(12) == 0 {
            return Err(Status::unavailable("the answer was lost"));
        }
        Ok(answer)
    }
}

fn options(stage: &Stage, dice: &Arc<Dice>, on: &Arc<AtomicBool>) -> atoll_vnode::Options {
    let (hub, own, switch) = (stage.hub.clone(), dice.clone(), on.clone());
    let workers = ShortCut::new(move |_: &ClusterBinding, kubeconfig: &str| {
        let name = kubeconfig.rsplit("/instances/").next()?.split_whitespace().next()?.to_owned();
        let mut worker = Worker::in_process(&hub, &name, Identity::master("vnode"));
        let faulty = Faulty { through: worker.endpoint.clone(), dice: own.clone(), on: switch.clone() };
        worker.endpoint = Endpoint::new(&name, Arc::new(faulty), "atoll-vnode");
        Some(worker)
    });
    let mut options = stage.options();
    options.workers = workers;
    let faulty = Faulty { through: stage.compute.clone(), dice: dice.clone(), on: on.clone() };
    options.computing = Endpoint::new("compute", Arc::new(faulty), "atoll-vnode");
    options
}

/// Plays the kubelets of a worker: runs what came, ends what goes.
pub async fn kubelets(worker: &Endpoint, dice: &Dice) {
    for pod in worker.list(&pods(), Some(MOUNT), "").await.unwrap().items {
        let name = pod["metadata"]["name"].as_str().unwrap();
        if pod["metadata"]["deletionTimestamp"].is_string() {
            if dice.roll(2) == 0 {
                kill(worker, MOUNT, name).await;
            }
        } else if pod["spec"]["nodeName"].is_null() {
            let terms = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
            run(worker, MOUNT, name, terms[0]["matchFields"][0]["values"][0].as_str().unwrap()).await;
        }
    }
}

fn uids(list: &[Value], key: &str) -> BTreeSet<String> {
    let text = |pod: &Value| {
        if key.is_empty() {
            pod["metadata"]["uid"].as_str().unwrap().to_owned()
        } else {
            annotation(pod, key).to_owned()
        }
    };
    list.iter().map(text).collect()
}

/// Whether both sides agree: each pod above has exactly its pod below, with the same phase, and nothing is left over.
async fn agree(stage: &Stage) -> Result<(), String> {
    let above = stage.compute.list(&pods(), Some("default"), "").await.unwrap().items;
    let mut below_all = Vec::new();
    for worker in [&stage.w1, &stage.w2] {
        below_all.extend(worker.list(&pods(), Some(MOUNT), "").await.unwrap().items);
    }
    if above.iter().chain(&below_all).any(|pod| pod["metadata"]["deletionTimestamp"].is_string()) {
        return Err("somebody still goes".into());
    }
    if below_all.len() != above.len() || uids(&above, "") != uids(&below_all, "virtual-pod-uid") {
        return Err(format!("{} above, {} below", above.len(), below_all.len()));
    }
    if let Some(pod) = above.iter().find(|pod| pod["status"]["phase"] != "Running") {
        return Err(format!("{} is {}", pod["metadata"]["name"], pod["status"]["phase"]));
    }
    let configs = stage.w1.list(&configs(), Some(MOUNT), "labelSelector=kubeocean.io/managed-by").await.unwrap().items;
    if configs.len() > 1 {
        return Err(format!("{} copies", configs.len()));
    }
    Ok(())
}

async fn churn(seed: u64, names: u64, rounds: u64) {
    let stage = Stage::open().await;
    let (dice, on) = (Dice::new(seed), Arc::new(AtomicBool::new(true)));
    for (worker, endpoint) in [("w1", &stage.w1), ("w2", &stage.w2)] {
        for node in ["n1", "n2"] {
            make_node(endpoint, node, "64", "256Gi").await;
        }
        make_policy(endpoint, "p1", worker, json!({})).await;
        stage.bind(worker, json!({})).await;
    }
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}, "data": {"k": "v"}});
    stage.compute.create(&configs(), Some("default"), &config).await.unwrap();
    let mut stop = stage.stop.child_token();
    let mut manager = Manager::start(options(&stage, &dice, &on), stop.clone()).await;
    let nodes_above = ["vnode-w1-n1", "vnode-w1-n2", "vnode-w2-n1", "vnode-w2-n2"];
    for node in nodes_above {
        until_there(&stage.compute, &nodes(), None, node).await;
    }
    // Lists and restarts touch every pod: with many pods they are as many as with few, so that the work grows with
    // the number of pods and not with its square.
    let (beat, lives) = ((rounds / 50).max(3), (rounds / 30).max(20));
    for round in 0..rounds {
        let name = format!("pod-{}", dice.roll(names));
        match dice.roll(5) {
            0..=2 => {
                let mut pod = pod(&name, nodes_above[dice.roll(4) as usize], "100m");
                if dice.roll(2) == 0 {
                    pod["spec"]["volumes"] = json!([{"name": "c", "configMap": {"name": "c"}}]);
                }
                let _ = stage.compute.create(&pods(), Some("default"), &pod).await;
            }
            3 => stage.compute.delete(&pods(), Some("default"), &name, &json!({})).await.unwrap(),
            _ => kill(&stage.compute, "default", &name).await,
        }
        if dice.roll(lives) == 0 {
            // Killed without warning: tasks end where they are.
            stop.cancel();
            stop = stage.stop.child_token();
            manager = Manager::start(options(&stage, &dice, &on), stop.clone()).await;
        }
        if round % beat == 0 {
            for worker in [&stage.w1, &stage.w2] {
                kubelets(worker, &dice).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(dice.roll(2000))).await;
        }
    }
    on.store(false, Ordering::SeqCst);
    let mut last = Ok(());
    for _ in 0..300 {
        for worker in [&stage.w1, &stage.w2] {
            kubelets(worker, &dice).await;
        }
        stage.pass(5).await;
        last = agree(&stage).await;
        if last.is_ok() {
            break;
        }
    }
    assert_eq!(last, Ok(()), "seed {seed}");
    drop(manager);
}

#[tokio::test(start_paused = true)]
async fn both_sides_agree_after_faults_and_deaths() {
    for seed in 1..=3 {
        churn(seed, 25, 150).await;
    }
}

/// `ATOLL_CHURN=1000` plays it with a thousand pods, which takes some minutes.
#[tokio::test(start_paused = true)]
async fn many_pods_churned_with_faults_leave_no_orphan_and_no_duplicate() {
    let pods = std::env::var("ATOLL_CHURN").ok().and_then(|text| text.parse().ok()).unwrap_or(50);
    churn(7, pods, pods * 3).await;
}
