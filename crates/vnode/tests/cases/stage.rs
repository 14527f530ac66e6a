//! Three clusters in one process: `compute`, `w1` and `w2`, with a manager between them.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::kubeocean::ClusterBinding;
use atoll_apiserver::auth::Keys;
use atoll_apiserver::{ApiService, Hub, Identity};
use atoll_meta::{Gvr, Status};
use atoll_runtime::{Endpoint, Patch, WatchEvent};
use atoll_store::MemoryEngine;
use atoll_vnode::{Manager, Options, ShortCut, Worker};
use base64::Engine as _;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// 2026-01-05 is a Monday.
pub const START: &str = "2026-01-05T12:00:00Z";
pub const MOUNT: &str = "kubeocean-worker";

/// The clusters.
pub struct Stage {
    pub hub: Arc<Hub>,
    pub compute: Endpoint,
    pub w1: Endpoint,
    pub w2: Endpoint,
    pub clock: atoll_vnode::Clock,
    pub stop: CancellationToken,
    /// Whether `w1` answers.
    pub line: Arc<std::sync::atomic::AtomicBool>,
}

/// A clock that follows tokio's, which tests can stop and wind.
fn clock() -> atoll_vnode::Clock {
    let (zero, start) = (tokio::time::Instant::now(), START.parse::<Timestamp>().unwrap());
    Arc::new(move || start.checked_add(jiff::SignedDuration::try_from(zero.elapsed()).unwrap()).unwrap())
}

async fn open_hub(clock: &atoll_vnode::Clock) -> Arc<Hub> {
    Hub::open(Arc::new(MemoryEngine::new()), Keys::default(), clock.clone(), atoll_apiserver::Options::default())
        .await
        .unwrap()
}

pub fn endpoint(hub: &Arc<Hub>, instance: &str) -> Endpoint {
    Endpoint::in_process(ApiService::new(hub.clone()), instance, "test", |extensions| {
        extensions.insert(Identity::master("test"));
    })
}

impl Stage {
    /// Opens the clusters, without a manager.
    pub async fn open() -> Self {
        // Shown with RUST_LOG=debug for tests that fail.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_test_writer()
            .try_init();
        let clock = clock();
        let hub = open_hub(&clock).await;
        hub.add_native(|_| true, atoll_vnode::definitions()).await.unwrap();
        for name in ["compute", "w1", "w2"] {
            hub.create_instance(name).await.unwrap();
        }
        let [compute, w1, w2] = ["compute", "w1", "w2"].map(|name| endpoint(&hub, name));
        for namespace in ["kubeocean-system", "kube-node-lease", "kubeocean-fake"] {
            make_namespace(&compute, namespace).await;
        }
        for worker in [&w1, &w2] {
            make_namespace(worker, MOUNT).await;
        }
        let stop = CancellationToken::new();
        Self { hub, compute, w1, w2, clock, stop, line: Arc::new(true.into()) }
    }

    /// Options of a manager that reaches the workers in process.
    pub fn options(&self) -> Options {
        let (hub, line) = (self.hub.clone(), self.line.clone());
        let workers = ShortCut::new(move |_: &ClusterBinding, kubeconfig: &str| {
            let name = kubeconfig.rsplit("/instances/").next()?.split_whitespace().next()?.trim_matches('"').to_owned();
            hub.instance(&name)?;
            let mut worker = Worker::in_process(&hub, &name, Identity::master("vnode"));
            let cut = Cut { through: worker.endpoint.clone(), line: (name == "w1").then(|| line.clone()) };
            worker.endpoint = Endpoint::new(&name, Arc::new(cut), "atoll-vnode");
            Some(worker)
        });
        let mut options = Options::new(self.compute.clone(), workers);
        options.clock = self.clock.clone();
        options.zone = jiff::tz::TimeZone::UTC;
        options.intranet_required = false;
        options
    }

    pub async fn start(&self) -> Manager {
        Manager::start(self.options(), self.stop.child_token()).await
    }

    /// Opens the clusters and starts a manager.
    pub async fn play() -> (Self, Manager) {
        let stage = Self::open().await;
        let manager = stage.start().await;
        (stage, manager)
    }

    /// Binds a worker under its own name.
    pub async fn bind(&self, worker: &str, more: Value) -> Value {
        let kubeconfig = format!("server: https://hub/instances/{worker}\n");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": worker, "namespace": "kubeocean-system"},
            "data": {"kubeconfig": base64::engine::general_purpose::STANDARD.encode(kubeconfig)},
        });
        self.compute.ensure(&secrets(), Some("kubeocean-system"), &secret).await.unwrap();
        let mut spec = json!({
            "clusterID": worker, "mountNamespace": MOUNT, "secretRef": {"name": worker, "namespace": "kubeocean-system"},
        });
        merge(&mut spec, &more);
        let binding = json!({"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ClusterBinding", "metadata": {"name": worker}, "spec": spec});
        self.compute.create(&bindings(), None, &binding).await.unwrap()
    }

    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Lets time pass.
    pub async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

/// A worker that can be cut off.
struct Cut {
    through: Endpoint,
    line: Option<Arc<std::sync::atomic::AtomicBool>>,
}

#[async_trait::async_trait]
impl atoll_runtime::Transport for Cut {
    async fn send(
        &self,
        request: http::Request<bytes::Bytes>,
    ) -> Result<http::Response<atoll_runtime::BodyStream>, Status> {
        use futures::StreamExt as _;
        let Some(line) = self.line.clone() else { return self.through.transport().send(request).await };
        let up = move || line.load(std::sync::atomic::Ordering::SeqCst);
        if !up() {
            return Err(Status::unavailable("the line is cut"));
        }
        let answer = self.through.transport().send(request).await?;
        Ok(answer.map(|body| -> atoll_runtime::BodyStream {
            // A stream notices the cut at its next piece, or when asked to.
            let watched = futures::stream::unfold((body, up), |(mut body, up)| async move {
                loop {
                    tokio::select! {
                        piece = body.next() => return piece.map(|piece| (piece, (body, up))),
                        () = tokio::time::sleep(Duration::from_secs(1)) => {
                            if !up() {
                                return Some((Err(std::io::Error::other("the line is cut")), (futures::stream::empty().boxed(), up)));
                            }
                        }
                    }
                }
            });
            Box::pin(watched)
        }))
    }
}

pub fn merge(target: &mut Value, patch: &Value) {
    match patch {
        Value::Object(map) => map.iter().for_each(|(key, value)| merge(&mut target[key], value)),
        other => *target = other.clone(),
    }
}

macro_rules! resources {
    ($($name:ident = $group:literal $version:literal $plural:literal;)*) => {
        $(pub fn $name() -> Gvr { Gvr::new($group, $version, $plural) })*
    };
}

resources! {
    bindings = "cloud.tencent.com" "v1beta1" "clusterbindings";
    policies = "cloud.tencent.com" "v1beta1" "resourceleasingpolicies";
    nodes = "" "v1" "nodes";
    pods = "" "v1" "pods";
    namespaces = "" "v1" "namespaces";
    secrets = "" "v1" "secrets";
    configs = "" "v1" "configmaps";
    claims = "" "v1" "persistentvolumeclaims";
    volumes = "" "v1" "persistentvolumes";
    services = "" "v1" "services";
    slices = "discovery.k8s.io" "v1" "endpointslices";
    leases = "coordination.k8s.io" "v1" "leases";
    classes = "scheduling.k8s.io" "v1" "priorityclasses";
    csi_nodes = "storage.k8s.io" "v1" "csinodes";
    events = "" "v1" "events";
}

pub async fn make_namespace(cluster: &Endpoint, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    cluster.ensure(&namespaces(), None, &object).await.unwrap();
}

/// Makes a ready node.
pub async fn make_node(cluster: &Endpoint, name: &str, cpu: &str, memory: &str) -> Value {
    let resources = json!({"cpu": cpu, "memory": memory, "pods": "110"});
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": resources, "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": START, "lastTransitionTime": START}],
            "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
        },
    });
    cluster.create(&nodes(), None, &node).await.unwrap()
}

pub async fn make_policy(cluster: &Endpoint, name: &str, binding: &str, more: Value) -> Value {
    let mut spec = json!({"cluster": binding});
    merge(&mut spec, &more);
    let policy = json!({"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ResourceLeasingPolicy", "metadata": {"name": name}, "spec": spec});
    cluster.create(&policies(), None, &policy).await.unwrap()
}

pub fn pod(name: &str, node: &str, cpu: &str) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}]},
    });
    if !node.is_empty() {
        pod["spec"]["nodeName"] = node.into();
    }
    pod
}

pub async fn make_pod(cluster: &Endpoint, pod: &Value) -> Value {
    cluster.create(&pods(), Some(pod["metadata"]["namespace"].as_str().unwrap()), pod).await.unwrap()
}

pub async fn patch(
    cluster: &Endpoint,
    gvr: &Gvr,
    namespace: Option<&str>,
    name: &str,
    sub: &str,
    patch: Value,
) -> Value {
    cluster.patch(gvr, namespace, name, sub, Patch::Merge, &patch).await.unwrap()
}

/// Waits until an object is as wanted; time passes by itself while nobody works.
pub async fn until(
    cluster: &Endpoint,
    gvr: &Gvr,
    namespace: Option<&str>,
    name: &str,
    wanted: impl Fn(Option<&Value>) -> bool,
) -> Option<Value> {
    let mut last = None;
    let seen = tokio::time::timeout(PATIENCE, follow(cluster, gvr, namespace, name, wanted, &mut last)).await;
    if seen.is_err() {
        panic!("{} {name} in {} never was as wanted; it is {last:#?}", gvr.resource, cluster.name());
    }
    last
}

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(2400);

/// Follows an object until it is as wanted.
async fn follow(
    cluster: &Endpoint,
    gvr: &Gvr,
    namespace: Option<&str>,
    name: &str,
    wanted: impl Fn(Option<&Value>) -> bool,
    last: &mut Option<Value>,
) {
    let query = format!("fieldSelector=metadata.name%3D{name}");
    loop {
        let from = cluster.list(gvr, namespace, &query).await.unwrap().revision;
        *last = cluster.get_opt(gvr, namespace, name).await.unwrap();
        if wanted(last.as_ref()) {
            return;
        }
        let mut stream = cluster.watch(gvr, namespace, &query, &from).await.unwrap();
        while let Some(Ok(event)) = stream.next().await {
            *last = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => Some(object),
                WatchEvent::Deleted(_) => None,
                WatchEvent::Bookmark(..) => continue,
                WatchEvent::Error(_) => break,
            };
            if wanted(last.as_ref()) {
                return;
            }
        }
    }
}

/// Waits until something is so of which nobody tells, such as an open port.
pub async fn until_so(what: &str, is_so: impl AsyncFn() -> bool) {
    let asked = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), asked).await.is_ok(), "{what}: never");
}

pub async fn until_there(cluster: &Endpoint, gvr: &Gvr, namespace: Option<&str>, name: &str) -> Value {
    until(cluster, gvr, namespace, name, |object| object.is_some()).await.unwrap()
}

pub async fn until_gone(cluster: &Endpoint, gvr: &Gvr, namespace: Option<&str>, name: &str) {
    until(cluster, gvr, namespace, name, |object| object.is_none()).await;
}

/// Plays the kubelet for a pod that was asked to go.
pub async fn kill(cluster: &Endpoint, namespace: &str, name: &str) {
    cluster.delete(&pods(), Some(namespace), name, &json!({"gracePeriodSeconds": 0})).await.unwrap();
}

/// Plays the scheduler and kubelet of a worker: places a pod and says it runs.
pub async fn run(cluster: &Endpoint, namespace: &str, name: &str, node: &str) {
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}});
    cluster.create_sub(&pods(), Some(namespace), name, "binding", &binding).await.unwrap();
    let status = json!({"status": {"phase": "Running", "podIP": "10.2.0.7", "podIPs": [{"ip": "10.2.0.7"}], "hostIP": "10.1.0.1", "hostIPs": [{"ip": "10.1.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}]}});
    patch(cluster, &pods(), Some(namespace), name, "status", status).await;
}

pub fn below(namespace: &str, name: &str) -> String {
    atoll_api::kubeocean_names::physical(namespace, name)
}

pub fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"]["annotations"][format!("kubeocean.io/{key}")].as_str().unwrap_or_default()
}

pub fn label<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"]["labels"][format!("kubeocean.io/{key}")].as_str().unwrap_or_default()
}

pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    object["status"]["conditions"]
        .as_array()
        .and_then(|list| list.iter().find(|own| own["type"] == kind))
        .unwrap_or(&Value::Null)
}

pub fn taint_keys(node: &Value) -> Vec<String> {
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints.iter().map(|taint| taint["key"].as_str().unwrap().to_owned()).collect()
}
