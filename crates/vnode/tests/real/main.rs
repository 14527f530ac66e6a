//! Leased nodes between real control planes: kube-apiserver, controllers and scheduler on both sides,
//! kwok as the worker's kubelets, and a manager with no more than the granted rights in the worker.
#![allow(clippy::unwrap_used)]

mod calls;
mod deployed;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use atoll_meta::Gvr;
use atoll_runtime::{Endpoint, Patch, WatchEvent};
use atoll_testkit::{Cluster, Parts, TestServer, peers};
use atoll_vnode::{Features, KubeconfigResolver, Manager, Options, ProxierOptions};
use base64::Engine as _;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const MOUNT: &str = "leased";
const NODES: usize = 2;
const WORKER: Parts = Parts { controllers: "*", scheduler: true, nodes: NODES, old: false };
const COMPUTING: Parts = Parts { controllers: "*", scheduler: true, nodes: 0, old: false };

fn core(plural: &str) -> Gvr {
    Gvr::new("", "v1", plural)
}

fn own(plural: &str) -> Gvr {
    Gvr::new("cloud.tencent.com", "v1beta1", plural)
}

fn deployments() -> Gvr {
    Gvr::new("apps", "v1", "deployments")
}

/// Waits until objects are as wanted, for at most two minutes.
async fn until(
    cluster: &Endpoint,
    gvr: &Gvr,
    namespace: Option<&str>,
    what: &str,
    wanted: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    let mut last = Vec::new();
    let seen = async {
        while !follow(cluster, gvr, namespace, &wanted, &mut last).await {
            // A server that is being restarted tells nobody when it answers.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    if tokio::time::timeout(Duration::from_secs(120), seen).await.is_err() {
        panic!("{what} never came about in {}; the last were {last:#?}", cluster.name());
    }
    last
}

/// Follows objects until they are as wanted; false when the server no longer tells.
async fn follow(
    cluster: &Endpoint,
    gvr: &Gvr,
    namespace: Option<&str>,
    wanted: impl Fn(&[Value]) -> bool,
    last: &mut Vec<Value>,
) -> bool {
    let Ok(list) = cluster.list(gvr, namespace, "").await else { return false };
    *last = list.items;
    let Ok(mut stream) = cluster.watch(gvr, namespace, "", &list.revision).await else { return false };
    while !wanted(last) {
        let Some(Ok(event)) = stream.next().await else { return false };
        let (object, stays) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
            WatchEvent::Deleted(object) => (object, false),
            WatchEvent::Bookmark(..) => continue,
            WatchEvent::Error(_) => return false,
        };
        let place = |own: &Value| (own["metadata"]["namespace"].clone(), own["metadata"]["name"].clone());
        last.retain(|own| place(own) != place(&object));
        last.extend(stays.then_some(object));
    }
    true
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let list = object["status"]["conditions"].as_array().into_iter().flatten();
    list.filter(|own| own["type"] == kind).filter_map(|own| own["status"].as_str()).next().unwrap_or_default()
}

fn virtual_nodes(nodes: &[Value]) -> Vec<&Value> {
    nodes.iter().filter(|node| node["metadata"]["labels"]["type"] == "virtual-kubelet").collect()
}

fn uids(pods: &[Value]) -> Vec<String> {
    let mut uids: Vec<String> = pods.iter().map(|pod| pod["metadata"]["uid"].as_str().unwrap().to_owned()).collect();
    uids.sort();
    uids
}

fn running(pods: &[Value]) -> usize {
    pods.iter()
        .filter(|pod| pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null())
        .count()
}

/// A clock that tests put forward.
#[derive(Clone, Default)]
struct Tide {
    ahead: Arc<AtomicI64>,
}

impl Tide {
    fn now(&self) -> Timestamp {
        let ahead = SignedDuration::from_secs(self.ahead.load(Ordering::SeqCst));
        Timestamp::now().checked_add(ahead).unwrap()
    }

    /// Puts the clock a few seconds before the next full minute and names that minute.
    fn ebb(&self) -> Timestamp {
        let minute = (self.now().as_second() + 10) / 60 * 60 + 60;
        self.ahead.fetch_add(minute - 4 - self.now().as_second(), Ordering::SeqCst);
        Timestamp::from_second(minute).unwrap()
    }
}

/// The hour and minute, some minutes from a time.
fn minute(at: Timestamp, later: i64) -> String {
    let at = at.checked_add(SignedDuration::from_mins(later)).unwrap();
    at.to_zoned(jiff::tz::TimeZone::UTC).strftime("%H:%M").to_string()
}

/// The real worker with an account of the least rights, and its kubeconfig.
async fn lessor(worker: &Cluster) -> (Endpoint, String) {
    let endpoint = worker.endpoint().await.unwrap();
    atoll_vnode::define(&endpoint, "resourceleasingpolicies").await.unwrap();
    let token =
        atoll_vnode::grant(&endpoint, "lessee", MOUNT, &Features::new(), Duration::from_secs(86_400)).await.unwrap();
    (endpoint, as_holder(worker, token))
}

/// A kubeconfig of a real cluster with a token.
fn as_holder(cluster: &Cluster, token: String) -> String {
    let admin = atoll_pki::Kubeconfig::read(cluster.kubeconfig()).unwrap();
    let mut access = admin.access(None).unwrap();
    access.auth = atoll_pki::Auth::Token(token);
    let mut config = atoll_pki::Kubeconfig::new();
    config.add("cluster", &access);
    config.to_yaml().unwrap()
}

async fn bind(computing: &Endpoint, name: &str, kubeconfig: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubeocean-system"}});
    computing.ensure(&core("namespaces"), None, &namespace).await.unwrap();
    let data = base64::engine::general_purpose::STANDARD.encode(kubeconfig);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "kubeocean-system"}, "data": {"kubeconfig": data}});
    computing.create(&core("secrets"), Some("kubeocean-system"), &secret).await.unwrap();
    let binding = json!({"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ClusterBinding", "metadata": {"name": name},
        "spec": {"clusterID": name, "mountNamespace": MOUNT, "secretRef": {"name": name, "namespace": "kubeocean-system"}}});
    computing.create(&own("clusterbindings"), None, &binding).await.unwrap();
}

async fn lend(worker: &Endpoint, policy: &str, binding: &str) {
    let policy = json!({"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ResourceLeasingPolicy", "metadata": {"name": policy}, "spec": {"cluster": binding}});
    worker.create(&own("resourceleasingpolicies"), None, &policy).await.unwrap();
}

async fn manage(computing: &Endpoint, tide: &Tide, stop: &CancellationToken) -> Manager {
    manage_with(computing, tide, None, stop).await
}

async fn manage_with(
    computing: &Endpoint,
    tide: &Tide,
    proxier: Option<ProxierOptions>,
    stop: &CancellationToken,
) -> Manager {
    atoll_vnode::define(computing, "clusterbindings").await.unwrap();
    let mut options = Options::new(computing.clone(), Arc::new(KubeconfigResolver::default()));
    options.intranet_required = false;
    options.probe = Duration::from_secs(1);
    options.zone = jiff::tz::TimeZone::UTC;
    options.proxier = proxier;
    let tide = tide.clone();
    options.clock = Arc::new(move || tide.now());
    Manager::start(options, stop.child_token()).await
}

fn deployment(replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "nodeSelector": {"type": "virtual-kubelet"}, "terminationGracePeriodSeconds": 1,
                "tolerations": [{"key": "kubeocean.io/vnode", "operator": "Exists"}],
                "containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}],
            },
        }},
    })
}

/// Kills the worker's API server as a crash would.
fn crash(worker: &Cluster) {
    let text = std::fs::read_to_string(worker.directory().join("pids/kube-apiserver")).unwrap();
    let pid = text.split_whitespace().next().unwrap().to_owned();
    peers::run(Command::new("kill").args(["-9", &pid])).ok();
}

/// Starts what is not running of the worker.
fn revive(worker: &Cluster) {
    let mut up = Command::new(peers::checkout().join("tests/peers/up"));
    up.arg(worker.directory())
        .arg("--no-fsync")
        .arg(format!("--controllers={}", WORKER.controllers))
        .arg("--scheduler");
    up.arg("--kwok").arg(NODES.to_string());
    peers::run(&mut up).ok();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_lives_on_leased_nodes_of_a_real_cluster_through_reclaim_and_outage() {
    let started = [COMPUTING, WORKER].map(|parts| std::thread::spawn(move || Cluster::start(parts)));
    let [compute, worker] = started.map(|thread| thread.join().unwrap().unwrap());
    let (Some(compute), Some(worker)) = (compute, worker) else { return };
    let computing = compute.endpoint().await.unwrap();
    let (below, kubeconfig) = lessor(&worker).await;
    lend(&below, "all", "w").await;
    let stop = CancellationToken::new();
    let tide = Tide::default();
    let proxier = calls::serving(&computing).await;
    let manager = manage_with(&computing, &tide, Some(proxier), &stop).await;
    bind(&computing, "w", &kubeconfig).await;
    until(&computing, &core("nodes"), None, "two ready virtual nodes", |nodes| {
        virtual_nodes(nodes).iter().filter(|node| condition(node, "Ready") == "True").count() == NODES
    })
    .await;

    refusals(&computing, &below).await;
    computing.create(&deployments(), Some("default"), &deployment(6)).await.unwrap();
    until(&computing, &deployments(), Some("default"), "six available replicas", |list| {
        list[0]["status"]["availableReplicas"] == 6
    })
    .await;
    let physical = until(&below, &core("pods"), Some(MOUNT), "six physical pods", |pods| running(pods) == 6).await;

    reclaim(&tide, &computing, &below).await;
    let physical_again = until(&below, &core("pods"), Some(MOUNT), "six physical pods again", |pods| {
        pods.len() == 6 && running(pods) == 6
    })
    .await;
    assert!(uids(&physical).iter().all(|uid| !uids(&physical_again).contains(uid)), "reclaimed pods are gone");

    outage(&computing, &worker, &below).await;
    shared(&kubeconfig, &below).await;
    calls::come_through(&compute, &computing).await;

    computing
        .delete(&deployments(), Some("default"), "web", &json!({"propagationPolicy": "Foreground"}))
        .await
        .unwrap();
    until(&below, &core("pods"), Some(MOUNT), "no physical pods", <[Value]>::is_empty).await;
    until(&computing, &core("pods"), Some("default"), "no pods", <[Value]>::is_empty).await;
    computing.delete(&own("clusterbindings"), None, "w", &json!({})).await.unwrap();
    until(&computing, &own("clusterbindings"), None, "no binding", <[Value]>::is_empty).await;
    for kind in ["pods", "configmaps", "secrets", "services"] {
        let query = "labelSelector=kubeocean.io%2Fmanaged-by";
        let left = below.list(&core(kind), Some(MOUNT), query).await.unwrap().items;
        assert!(left.is_empty(), "{kind} left behind: {left:#?}");
    }
    let nodes = below.list(&core("nodes"), None, "").await.unwrap().items;
    assert!(nodes.iter().all(|node| node["metadata"]["labels"]["kubeocean.io/policy-applied"].is_null()));
    stop.cancel();
    manager.ended().await;
    deployed::in_processes_of_their_own(&compute, &below, &kubeconfig).await;
}

/// What can never work is refused by the servers themselves.
async fn refusals(computing: &Endpoint, below: &Endpoint) {
    let id = json!({"spec": {"clusterID": "other"}});
    let status = computing.patch(&own("clusterbindings"), None, "w", "", Patch::Merge, &id).await.unwrap_err();
    assert!(status.code == 422 && status.message.contains("field is immutable"), "{status}");
    for spec in [
        json!({"resourceLimits": [{"resource": "cpu", "percent": 101}]}),
        json!({"timeWindows": [{"start": "24:00", "end": "01:00"}]}),
        json!({"gracefulReclaimPeriodSeconds": -1}),
    ] {
        let patch = json!({"spec": spec});
        let status = below.patch(&own("resourceleasingpolicies"), None, "all", "", Patch::Merge, &patch).await;
        assert_eq!(status.unwrap_err().code, 422, "{patch}");
    }
}

/// The window closes while everything runs, and the next one opens: by the clock alone, nobody touches the policy then.
async fn reclaim(tide: &Tide, computing: &Endpoint, below: &Endpoint) {
    let set = |spec: Value| async move {
        let patch = json!({"spec": spec});
        below.patch(&own("resourceleasingpolicies"), None, "all", "", Patch::Merge, &patch).await.unwrap();
    };
    let edge = tide.ebb();
    // The last minute of a window belongs to it.
    set(json!({"timeWindows": [{"start": minute(edge, -60), "end": minute(edge, -1)}], "forceReclaim": true})).await;
    until(below, &core("pods"), Some(MOUNT), "an empty worker", <[Value]>::is_empty).await;
    until(computing, &core("pods"), Some("default"), "pods that wait", |pods| {
        pods.len() == 6 && pods.iter().all(|pod| pod["spec"]["nodeName"].is_null())
    })
    .await;
    assert!(tide.now() >= edge, "nothing is taken back before the window closes");
    let edge = tide.ebb();
    set(json!({"timeWindows": [{"start": minute(edge, 0), "end": minute(edge, 60)}]})).await;
    until(computing, &deployments(), Some("default"), "six replicas after the reclaim", |list| {
        list[0]["status"]["availableReplicas"] == 6
    })
    .await;
    assert!(tide.now() >= edge, "nothing is lent before the window opens");
    set(json!({"timeWindows": null, "forceReclaim": false})).await;
}

/// The worker's API server dies and comes back; nothing is deleted.
async fn outage(computing: &Endpoint, worker: &Cluster, below: &Endpoint) {
    let before = (
        uids(&computing.list(&core("pods"), Some("default"), "").await.unwrap().items),
        uids(&below.list(&core("pods"), Some(MOUNT), "").await.unwrap().items),
    );
    crash(worker);
    until(computing, &core("nodes"), None, "nodes that are not ready", |nodes| {
        virtual_nodes(nodes).iter().all(|node| condition(node, "Ready") == "Unknown")
    })
    .await;
    until(computing, &own("clusterbindings"), None, "a failed binding", |list| list[0]["status"]["phase"] == "Failed")
        .await;
    let pods = computing.list(&core("pods"), Some("default"), "").await.unwrap().items;
    assert!(pods.iter().all(|pod| pod["metadata"]["deletionTimestamp"].is_null()), "pods stay");
    revive(worker);
    until(computing, &core("nodes"), None, "nodes that are ready again", |nodes| {
        virtual_nodes(nodes).iter().filter(|node| condition(node, "Ready") == "True").count() == NODES
    })
    .await;
    until(computing, &own("clusterbindings"), None, "a ready binding", |list| list[0]["status"]["phase"] == "Ready")
        .await;
    let after = (
        uids(&computing.list(&core("pods"), Some("default"), "").await.unwrap().items),
        uids(&below.list(&core("pods"), Some(MOUNT), "").await.unwrap().items),
    );
    assert_eq!(after, before, "the same pods as before, above and below");
}

/// A second computing cluster, an instance of Atoll, leases the same nodes into the same namespace and leaves again.
async fn shared(kubeconfig: &str, below: &Endpoint) {
    let before = uids(&below.list(&core("pods"), Some(MOUNT), "").await.unwrap().items);
    let server = TestServer::memory().unwrap();
    let hub = server.hub().clone();
    server.wait(async move { hub.add_native(|_| true, atoll_vnode::definitions()).await }).unwrap().unwrap();
    server.create_instance("second").unwrap();
    let second = server.endpoint("second");
    for name in ["kube-node-lease", "kubeocean-fake"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        second.ensure(&core("namespaces"), None, &namespace).await.unwrap();
    }
    let stop = CancellationToken::new();
    let manager = manage(&second, &Tide::default(), &stop).await;
    lend(below, "second", "s").await;
    bind(&second, "s", kubeconfig).await;
    let nodes = until(&second, &core("nodes"), None, "virtual nodes of the second", |nodes| nodes.len() == NODES).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job", "namespace": "default"}, "spec": {
        "nodeName": nodes[0]["metadata"]["name"], "terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "nginx"}]}});
    second.create(&core("pods"), Some("default"), &pod).await.unwrap();
    until(&second, &core("pods"), Some("default"), "a running pod of the second", |pods| running(pods) == 1).await;
    second.delete(&own("clusterbindings"), None, "s", &json!({})).await.unwrap();
    until(&second, &own("clusterbindings"), None, "no binding of the second", <[Value]>::is_empty).await;
    below.delete(&own("resourceleasingpolicies"), None, "second", &json!({})).await.unwrap();
    stop.cancel();
    manager.ended().await;
    let after = uids(&below.list(&core("pods"), Some(MOUNT), "").await.unwrap().items);
    assert_eq!(after, before, "the first one's pods are as they were");
}
