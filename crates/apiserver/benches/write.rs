//! What a write costs the API server: processor time of creates and changes, object by object.
//!
//! `cargo bench -p atoll-apiserver --bench write -- [objects] [rounds]`; 2,000 and 5 unless told. One hub in this
//! process with everything in memory and no background work, so nothing but the requests themselves is measured.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::sync::Arc;

use atoll_apiserver::auth::Keys;
use atoll_apiserver::{ApiService, Hub, Identity, Options};
use atoll_store::MemoryEngine;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const CORE: &str = "/instances/one/api/v1/namespaces";
const APPS: &str = "/instances/one/apis/apps/v1/namespaces/bench";
const WORKS: &str = "/instances/one/apis/work.karmada.io/v1alpha1/namespaces/bench/works";

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let bench = Bench {
        objects: numbers.first().copied().unwrap_or(2_000),
        rounds: numbers.get(1).copied().unwrap_or(5),
        who: Identity::master("bench"),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(bench.run());
}

struct Bench {
    objects: usize,
    rounds: usize,
    who: Identity,
}

impl Bench {
    async fn run(&self) {
        let engine = Arc::new(MemoryEngine::new());
        let clock = Arc::new(jiff::Timestamp::now);
        let hub = Hub::open(engine, Keys::default(), clock, Options::default()).await.unwrap();
        hub.add_native(|instance| &*instance.name != "root", atoll_api::crds(atoll_api::CrdSet::Karmada))
            .await
            .unwrap();
        hub.create_instance("one").await.unwrap();
        self.call(&hub, "POST", CORE, &json!({"metadata": {"name": "bench"}})).await;
        let account = json!({"metadata": {"name": "default"}});
        self.call(&hub, "POST", &format!("{CORE}/bench/serviceaccounts"), &account).await;
        println!("{} objects of each kind, {} rounds; processor time of one request, µs", self.objects, self.rounds);
        let pods = format!("{CORE}/bench/pods");
        let kinds: [(&str, &str, fn(usize) -> Value, fn(usize) -> Value); 4] = [
            ("Deployment", &format!("{APPS}/deployments"), deployment, deployment_status),
            ("ReplicaSet", &format!("{APPS}/replicasets"), replica_set, replica_set_status),
            ("Pod", &pods, pod, pod_status),
            ("Work", WORKS, work, work_status),
        ];
        for (kind, path, object, status) in kinds {
            let started = processor_micros();
            for number in 0..self.objects {
                self.call(&hub, "POST", &format!("{path}?fieldManager=maker"), &object(number)).await;
            }
            let created = self.each(started, self.objects);
            let started = processor_micros();
            for round in 0..self.rounds {
                for number in 0..self.objects {
                    let path = format!("{path}/{}/status?fieldManager=reporter", name(number));
                    self.call(&hub, "PATCH", &path, &status(round)).await;
                }
            }
            let reported = self.each(started, self.objects * self.rounds);
            let started = processor_micros();
            for number in 0..self.objects {
                let change = json!({"metadata": {"labels": {"round": number.to_string()}}});
                self.call(&hub, "PATCH", &format!("{path}/{}?fieldManager=changer", name(number)), &change).await;
            }
            let changed = self.each(started, self.objects);
            println!("{kind:11} create {created:6.1}   status patch {reported:6.1}   label patch {changed:6.1}");
        }
    }

    fn each(&self, started: u64, count: usize) -> f64 {
        (processor_micros() - started) as f64 / count.max(1) as f64
    }

    async fn call(&self, hub: &Arc<Hub>, method: &str, path: &str, body: &Value) {
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", media);
        let mut request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
        request.extensions_mut().insert(self.who.clone());
        let answer = ApiService::new(hub.clone()).oneshot(request).await.unwrap();
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.map_err(|_| "body").unwrap().to_bytes();
        assert!((200..300).contains(&code), "{method} {path}: {}", String::from_utf8_lossy(&body));
    }
}

fn name(number: usize) -> String {
    format!("app-{number}")
}

fn pod_spec() -> Value {
    json!({"containers": [{"name": "web", "image": "nginx:1.27", "ports": [{"containerPort": 80, "name": "http"}],
        "env": [{"name": "MODE", "value": "production"}, {"name": "LEVEL", "value": "info"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}}}]})
}

fn workload(number: usize, kind: &str) -> Value {
    let labels = json!({"app": name(number)});
    json!({"apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": name(number), "labels": labels, "annotations": {"example.com/owner": "team-one"}},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec()}}})
}

fn deployment(number: usize) -> Value {
    workload(number, "Deployment")
}

fn replica_set(number: usize) -> Value {
    workload(number, "ReplicaSet")
}

fn pod(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name(number), "labels": {"app": name(number)}},
        "spec": pod_spec()})
}

fn work(number: usize) -> Value {
    json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {"name": name(number), "finalizers": ["karmada.io/execution-controller"]},
        "spec": {"workload": {"manifests": [deployment(number)]}}})
}

fn condition(ty: &str, round: usize) -> Value {
    let time = "2026-01-01T00:00:00Z";
    json!({"type": ty, "status": "True", "reason": "Reported", "message": format!("round {round}"),
        "lastTransitionTime": time})
}

fn deployment_status(round: usize) -> Value {
    json!({"status": {"replicas": 3, "updatedReplicas": 3, "readyReplicas": round % 4, "availableReplicas": round % 4,
        "observedGeneration": 1, "conditions": [condition("Available", round), condition("Progressing", round)]}})
}

fn replica_set_status(round: usize) -> Value {
    json!({"status": {"replicas": 3, "readyReplicas": round % 4, "fullyLabeledReplicas": 3,
        "observedGeneration": 1, "conditions": [condition("Reported", round)]}})
}

fn pod_status(round: usize) -> Value {
    json!({"status": {"phase": "Running", "podIP": format!("10.0.0.{}", round % 250), "podIPs": [{"ip": format!("10.0.0.{}", round % 250)}],
        "conditions": [condition("Ready", round), condition("ContainersReady", round)],
        "containerStatuses": [{"name": "web", "image": "nginx:1.27", "imageID": "", "ready": true, "started": true,
            "restartCount": round, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}})
}

fn work_status(round: usize) -> Value {
    json!({"status": {"conditions": [condition("Applied", round)], "manifestStatuses": [{
        "identifier": {"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments",
            "namespace": "bench", "name": "app"},
        "health": "Healthy", "status": {"replicas": 3, "readyReplicas": round}}]}})
}

/// Processor time of this process so far.
fn processor_micros() -> u64 {
    const TICK: u64 = 10_000;
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * TICK
}
