//! How fast pods are mapped, and what a binding costs: `cargo bench -p atoll-vnode -- [NODES [PODS]]`.
//!
//! First everything in one process: the store, a computing cluster, a simulated worker with its
//! scheduler and kubelets, and the manager. Then the manager in a process of its own over TLS, whose
//! memory and idle time are what a binding costs.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_meta::Gvr;
use atoll_runtime::{Endpoint, WatchEvent};
use atoll_sim::{Sim, Spec};
use atoll_testkit::TestServer;
use atoll_vnode::{KubeconfigResolver, Manager, Options, ShortCut, Worker};
use base64::Engine as _;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// That of the binary, so that memory is what the binary would take.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const MOUNT: &str = "leased";
/// Pods measured one by one.
const SINGLE: usize = 200;
/// How long pods are left alone before memory is read: what rests is packed, and freed pages are given back.
const REST: Duration = Duration::from_secs(30);
/// How long an idle manager is looked at.
const IDLE: Duration = Duration::from_secs(20);

fn core(plural: &str) -> Gvr {
    Gvr::new("", "v1", plural)
}

fn own(plural: &str) -> Gvr {
    Gvr::new("cloud.tencent.com", "v1beta1", plural)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [flag, kubeconfig] = words.as_slice()
        && flag == "--manager"
    {
        return manage(Path::new(kubeconfig));
    }
    let mut numbers = words.iter().filter_map(|word| word.parse::<usize>().ok());
    let (nodes, pods) = (numbers.next().unwrap_or(100), numbers.next().unwrap_or(5000));
    println!("{nodes} worker nodes, {pods} pods");
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let scene = Scene::open(nodes);
    println!("in one process:");
    runtime().block_on(inside(&scene, pods));
    drop(scene);
    let scene = Scene::open(nodes);
    println!("the manager in a process of its own, over TLS:");
    runtime().block_on(outside(&scene, pods));
}

/// A computing cluster and a simulated worker.
struct Scene {
    server: TestServer,
    nodes: usize,
    stop: CancellationToken,
    _sim: Sim,
}

impl Scene {
    fn open(nodes: usize) -> Self {
        let server = TestServer::memory().unwrap();
        let hub = server.hub().clone();
        server.wait(async move { hub.add_native(|_| true, atoll_vnode::definitions()).await }).unwrap().unwrap();
        for name in ["compute", "worker"] {
            server.create_instance(name).unwrap();
        }
        let worker = server.hub().instance("worker").unwrap();
        worker.set_features(atoll_apiserver::Features::member());
        let stop = CancellationToken::new();
        let spec = Spec {
            pods: 250,
            cpu: "64".into(),
            memory: "256Gi".into(),
            verbose_events: false,
            ..Spec::with_nodes(nodes)
        };
        let (hub, way, token) = (server.hub().clone(), server.endpoint("worker"), stop.clone());
        let sim = server.wait(async move { Sim::start(hub, way, "worker", spec, token).await }).unwrap().unwrap();
        Self { server, nodes, stop, _sim: sim }
    }

    fn compute(&self) -> Endpoint {
        self.server.endpoint("compute")
    }

    fn worker(&self) -> Endpoint {
        self.server.endpoint("worker")
    }

    /// Binds the worker and waits until all its nodes are there.
    async fn bind(&self) {
        let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        for name in ["kubeocean-system", "kube-node-lease", "kubeocean-fake"] {
            self.compute().ensure(&core("namespaces"), None, &namespace(name)).await.unwrap();
        }
        self.worker().ensure(&core("namespaces"), None, &namespace(MOUNT)).await.unwrap();
        let policy = json!({"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ResourceLeasingPolicy", "metadata": {"name": "all"}, "spec": {"cluster": "w"}});
        self.worker().create(&own("resourceleasingpolicies"), None, &policy).await.unwrap();
        let hub = self.server.hub();
        let credentials = hub.credentials(&hub.instance("worker").unwrap()).await.unwrap();
        let year = jiff::SignedDuration::from_hours(24 * 365);
        let config = credentials.kubeconfig("lessor", &["system:masters".to_owned()], year).unwrap();
        let data = base64::engine::general_purpose::STANDARD.encode(config.to_yaml().unwrap());
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "w", "namespace": "kubeocean-system"}, "data": {"kubeconfig": data}});
        self.compute().create(&core("secrets"), Some("kubeocean-system"), &secret).await.unwrap();
        let binding = json!({"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ClusterBinding", "metadata": {"name": "w"},
            "spec": {"clusterID": "w", "mountNamespace": MOUNT, "secretRef": {"name": "w", "namespace": "kubeocean-system"}}});
        let started = Instant::now();
        self.compute().create(&own("clusterbindings"), None, &binding).await.unwrap();
        while self.compute().list(&core("nodes"), None, "").await.unwrap().items.len() < self.nodes {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        println!("  nodes leased after                 {:>10.2?}", started.elapsed());
    }

    fn pod(&self, name: &str, index: usize) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": {"app": "bench"}},
            "spec": {"nodeName": format!("vnode-w-worker-node-{}", index % self.nodes + 1), "containers": [
                {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]},
        })
    }

    /// Makes pods and waits until all of them are mapped, then until all of them run.
    async fn load(&self, pods: usize) {
        let started = Instant::now();
        let make = |maker: usize| {
            let compute = self.compute();
            let own: Vec<Value> = (maker..pods).step_by(8).map(|at| self.pod(&format!("p{at}"), at)).collect();
            tokio::spawn(async move {
                for pod in own {
                    compute.create(&core("pods"), Some("default"), &pod).await.unwrap();
                }
            })
        };
        // Started before anybody waits for what they make.
        let makers: Vec<_> = (0..8).map(make).collect();
        let (mapped, running) = tokio::join!(
            seen(self.worker(), MOUNT, pods, |_| true),
            seen(self.compute(), "default", pods, |pod| pod["status"]["phase"] == "Running"),
        );
        futures::future::join_all(makers).await;
        let rate = |at: Instant| pods as f64 / at.duration_since(started).as_secs_f64();
        println!("  mapped into the worker             {:>10.2?}  {:>7.0} pods/s", mapped - started, rate(mapped));
        println!("  running above, end to end          {:>10.2?}  {:>7.0} pods/s", running - started, rate(running));
    }

    /// Pods one by one, from bind to physical pod.
    async fn one_by_one(&self) {
        let (compute, worker) = (self.compute(), self.worker());
        let list = worker.list(&core("pods"), Some(MOUNT), "limit=1").await.unwrap();
        let mut stream = worker.watch(&core("pods"), Some(MOUNT), "", &list.revision).await.unwrap();
        let mut times = Vec::new();
        for at in 0..SINGLE {
            let name = format!("single-{at}");
            let below = atoll_api::kubeocean_names::physical("default", &name);
            let started = Instant::now();
            compute.create(&core("pods"), Some("default"), &self.pod(&name, at)).await.unwrap();
            while let Some(event) = stream.next().await {
                if let WatchEvent::Added(pod) = event.unwrap()
                    && pod["metadata"]["name"] == *below
                {
                    break;
                }
            }
            times.push(started.elapsed());
        }
        times.sort_unstable();
        println!(
            "  bind to physical pod               p50 {:>9.2?}  p99 {:>9.2?}",
            times[SINGLE / 2],
            times[SINGLE * 99 / 100]
        );
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// When so many pods of a namespace have been as wanted.
async fn seen(cluster: Endpoint, namespace: &str, count: usize, wanted: impl Fn(&Value) -> bool) -> Instant {
    let mut known = std::collections::HashSet::new();
    let mut stream = cluster.watch(&core("pods"), Some(namespace), "", "").await.unwrap();
    while known.len() < count {
        match stream.next().await.expect("the watch goes on").unwrap() {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) if wanted(&pod) => {
                known.insert(pod["metadata"]["name"].to_string());
            }
            _ => {}
        }
    }
    Instant::now()
}

async fn inside(scene: &Scene, pods: usize) {
    let hub = scene.server.hub().clone();
    let workers = ShortCut::new(move |_: &_, kubeconfig: &str| Worker::in_process_by(&hub, "worker", kubeconfig).ok());
    let mut options = Options::new(scene.compute(), workers);
    options.intranet_required = false;
    let stop = CancellationToken::new();
    let manager = Manager::start(options, stop.clone()).await;
    scene.bind().await;
    scene.load(pods).await;
    scene.one_by_one().await;
    stop.cancel();
    manager.ended().await;
}

/// A manager in a process of its own; it ends when dropped.
struct Apart(Child);

impl Apart {
    fn start(kubeconfig: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("--manager").arg(kubeconfig).stdin(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Its resident memory in MiB.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
    }

    /// Processor time it used so far, in seconds.
    fn time(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        // User and system time in hundredths of a second.
        (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
    }

    async fn idle(&self) -> f64 {
        let (before, started) = (self.time(), Instant::now());
        tokio::time::sleep(IDLE).await;
        (self.time() - before) / started.elapsed().as_secs_f64() * 100.0
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn outside(scene: &Scene, pods: usize) {
    let apart = Apart::start(&scene.server.kubeconfig());
    tokio::time::sleep(Duration::from_secs(3)).await;
    let empty = apart.memory();
    println!("  memory without a binding           {empty:>10.1} MiB");
    scene.bind().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let bound = apart.memory();
    println!("  memory of an empty binding         {:>10.1} MiB", bound - empty);
    println!("  idle, no pods                      {:>10.2} % of a core", apart.idle().await);
    scene.load(pods).await;
    println!("  memory of a binding just loaded    {:>10.1} MiB", apart.memory() - empty);
    scene.one_by_one().await;
    tokio::time::sleep(REST).await;
    let (all, count) = (apart.memory(), pods + SINGLE);
    println!("  memory of a binding with its pods  {:>10.1} MiB", all - empty);
    println!("  for each pod                       {:>10.1} KiB", (all - bound) * 1024.0 / count as f64);
    println!("  idle, all pods                     {:>10.2} % of a core", apart.idle().await);
}

/// The other process.
fn manage(kubeconfig: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let config = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
        let choice = kube::config::KubeConfigOptions { context: Some("compute".into()), ..Default::default() };
        let config = kube::Config::from_custom_kubeconfig(config, &choice).await.unwrap();
        let computing = Endpoint::remote("compute", config, "atoll-vnode").unwrap();
        let mut options = Options::new(computing, Arc::new(KubeconfigResolver::default()));
        options.intranet_required = false;
        let _manager = Manager::start(options, CancellationToken::new()).await;
        // Until the parent ends or kills us.
        let mut end = tokio::io::stdin();
        let _ = tokio::io::copy(&mut end, &mut tokio::io::sink()).await;
    });
}
