//! How many instances fit into one hub, and how they bear each other.
//!
//! `cargo bench -p atoll-apiserver --bench density -- [instances] [deleted]`; 5,000 and 1,000 unless told.
//! Everything a hub does for its instances runs: roles, accounts, certificates, background work. Prints what
//! was measured next to what is demanded, and fails when that is missed (in release builds only).
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_apiserver::auth::Keys;
use atoll_apiserver::{ApiService, Hub, Identity, Options};
use atoll_background::Background;
use atoll_store::MemoryEngine;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What is demanded.
const KIB_EACH: f64 = 256.0;
const PER_SECOND: f64 = 100.0;
const DELETION: Duration = Duration::from_secs(2);
const KIB_IN_USE: f64 = 1024.0;

struct Bench {
    hub: Arc<Hub>,
    background: Arc<Background>,
    missed: Vec<String>,
}

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let instances = numbers.first().copied().unwrap_or(5_000);
    let deleted = numbers.get(1).copied().unwrap_or(1_000).min(instances);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let missed = runtime.block_on(async {
        let mut bench = Bench::open().await;
        bench.fill(instances).await;
        bench.use_some(instances.min(100)).await;
        bench.empty(instances, deleted).await;
        bench.missed
    });
    for what in &missed {
        println!("MISSED: {what}");
    }
    assert!(missed.is_empty() || cfg!(debug_assertions), "{} demands missed", missed.len());
}

impl Bench {
    async fn open() -> Self {
        let options = Options::default();
        let engine = Arc::new(MemoryEngine::new());
        let hub = Hub::open(engine, Keys::default(), Arc::new(jiff::Timestamp::now), options).await.unwrap();
        hub.add_native(|instance| &*instance.name != "root", atoll_api::crds(atoll_api::CrdSet::Karmada))
            .await
            .unwrap();
        let authority = hub.keys().own().serving.cert_pem();
        let background = Background::start(hub.clone(), &authority, CancellationToken::new());
        let own = Self { hub, background, missed: Vec::new() };
        own.settled().await;
        own
    }

    fn demand(&mut self, what: &str, met: bool) {
        println!("{} {what}", if met { "ok    " } else { "MISSED" });
        if !met {
            self.missed.push(what.to_owned());
        }
    }

    /// Waits until every namespace of every instance has what namespaces have.
    async fn settled(&self) {
        for instance in self.hub.instances() {
            for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
                let key = format!("configmaps./{namespace}/kube-root-ca.crt");
                while self.hub.read(&instance, &key).await.unwrap().is_none() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
        self.background.rest().await;
    }

    async fn call(&self, who: &Identity, method: &str, path: &str, body: Value) -> (u16, String) {
        let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let mut request = request.body(Full::new(bytes)).unwrap();
        request.extensions_mut().insert(who.clone());
        let answer = ApiService::new(self.hub.clone()).oneshot(request).await.unwrap();
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.map_err(|_| "body").unwrap().to_bytes();
        (code, String::from_utf8_lossy(&body).into_owned())
    }

    /// Lines of the metrics that are series.
    async fn series(&self) -> usize {
        let (code, text) = self.call(&Identity::master("bench"), "GET", "/metrics", Value::Null).await;
        assert_eq!(code, 200, "{text}");
        text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count()
    }

    async fn fill(&mut self, instances: usize) {
        self.hub.create_instance("first").await.unwrap();
        self.settled().await;
        self.probe("first").await;
        let quiet = self.latency("first").await;
        self.series().await; // the first look makes the series of looking
        let (series, before, started) = (self.series().await, resident(), Instant::now());
        let mut tasks = tokio::task::JoinSet::new();
        for lane in 0..4 {
            let hub = self.hub.clone();
            tasks.spawn(async move {
                for number in (lane..instances).step_by(4) {
                    hub.create_instance(&format!("i{number}")).await.unwrap();
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        let served = started.elapsed();
        self.settled().await;
        let settled = started.elapsed();
        let each = kib(before) / instances as f64;
        let rate = instances as f64 / settled.as_secs_f64();
        println!("{instances} empty instances: served after {served:.2?}, furnished after {settled:.2?}");
        self.demand(&format!("{each:.1} KiB each (at most {KIB_EACH})"), each <= KIB_EACH);
        self.demand(&format!("{rate:.0} created each second (at least {PER_SECOND})"), rate >= PER_SECOND);
        let full = self.latency("first").await;
        println!("latency of another instance (get, update): {quiet} before, {full} with all of them");
        let same = full.p50 <= quiet.p50 * 3 / 2 + Duration::from_micros(200);
        self.demand(&format!("latency unchanged: p50 {:.2?}", full.p50), same);
        let now = self.series().await;
        self.demand(&format!("{now} series of metrics ({series} before)"), now == series);
    }

    /// Karmada's kinds and some of their objects, users with rights, a certificate: an instance in use.
    async fn use_some(&mut self, count: usize) {
        let before = resident();
        for number in 0..count {
            self.use_one(&format!("i{number}")).await;
        }
        self.settled().await;
        let each = kib(before) / count as f64;
        self.demand(&format!("{each:.1} KiB more for an instance in use (at most {KIB_IN_USE})"), each <= KIB_IN_USE);
    }

    async fn use_one(&self, name: &str) {
        let (base, master) = (format!("/instances/{name}"), Identity::master("bench"));
        let policies = format!("{base}/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies");
        let deployments = format!("{base}/apis/apps/v1/namespaces/default/deployments");
        let bindings = format!("{base}/apis/rbac.authorization.k8s.io/v1/clusterrolebindings");
        let group = "rbac.authorization.k8s.io";
        let binding = json!({"metadata": {"name": "jane"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "jane"}]});
        assert_eq!(self.call(&master, "POST", &bindings, binding).await.0, 201);
        for number in 0..10 {
            let app = format!("app-{number}");
            let labels = json!({"app": app});
            let deployment = json!({"metadata": {"name": app}, "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
            let policy = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": app}, "spec": {
                "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": app}],
                "placement": {"clusterAffinity": {"clusterNames": ["one", "two"]}}}});
            assert_eq!(self.call(&master, "POST", &deployments, deployment).await.0, 201);
            let (code, text) = self.call(&master, "POST", &policies, policy).await;
            assert_eq!(code, 201, "{text}");
        }
        let jane = Identity { user: "jane".into(), groups: vec!["system:authenticated".into()], ..Identity::default() };
        assert_eq!(self.call(&jane, "GET", &deployments, Value::Null).await.0, 200);
        let instance = self.hub.instance(name).unwrap();
        self.hub.authority(&instance).await.unwrap();
    }

    async fn empty(&mut self, instances: usize, deleted: usize) {
        let quiet = self.latency("first").await;
        let hub = self.hub.clone();
        let dropping = tokio::spawn(async move {
            let started = Instant::now();
            for number in (instances - deleted)..instances {
                hub.drop_instance(&format!("i{number}")).await.unwrap();
            }
            started.elapsed()
        });
        let meanwhile = self.latency("first").await;
        let took = dropping.await.unwrap();
        self.demand(&format!("{deleted} deleted in {took:.2?} (at most {DELETION:?})"), took <= DELETION);
        println!("latency of another instance: {quiet} before, {meanwhile} meanwhile");
        let same = meanwhile.p50 <= quiet.p50 * 2 + Duration::from_micros(500);
        self.demand(&format!("latency of the others meanwhile: p50 {:.2?}", meanwhile.p50), same);
    }

    /// Makes the object whose latency is measured. Made twice it would be refused, and a code that was never
    /// answered before is a new series.
    async fn probe(&self, name: &str) {
        let path = format!("/instances/{name}/api/v1/namespaces/default/configmaps");
        let map = json!({"metadata": {"name": "probe"}});
        assert_eq!(self.call(&Identity::master("bench"), "POST", &path, map).await.0, 201);
    }

    async fn latency(&self, name: &str) -> Latency {
        let master = Identity::master("bench");
        let path = format!("/instances/{name}/api/v1/namespaces/default/configmaps/probe");
        let mut times = Vec::new();
        for number in 0..500 {
            let started = Instant::now();
            let map = json!({"metadata": {"name": "probe"}, "data": {"number": number.to_string()}});
            assert_eq!(self.call(&master, "PUT", &path, map).await.0, 200);
            assert_eq!(self.call(&master, "GET", &path, Value::Null).await.0, 200);
            times.push(started.elapsed());
        }
        times.sort();
        Latency { p50: times[times.len() / 2], p99: times[times.len() * 99 / 100] }
    }
}

struct Latency {
    p50: Duration,
    p99: Duration,
}

impl std::fmt::Display for Latency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p50 {:.2?} p99 {:.2?}", self.p50, self.p99)
    }
}

/// Memory of the process.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4096
}

fn kib(before: u64) -> f64 {
    resident().saturating_sub(before) as f64 / 1024.0
}
