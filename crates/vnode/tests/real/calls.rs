//! kubectl through a real API server to a pod that runs in a simulated worker cluster.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use atoll_runtime::Endpoint;
use atoll_sim::{Sim, Spec};
use atoll_testkit::{Cluster, TestServer, peers};
use atoll_vnode::ProxierOptions;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{MOUNT, bind, condition, core, lend, own, running, until, virtual_nodes};

const NODE: &str = "vnode-c-sim-node-1";

/// How the kubelet API is served to a real API server: by an address it can reach.
pub async fn serving(computing: &Endpoint) -> ProxierOptions {
    let address = "127.0.0.92".parse().unwrap();
    let ca = Arc::new(atoll_vnode::kubelet_ca(computing, jiff::Timestamp::now()).await.unwrap());
    ProxierOptions { listen: address, advertise: address, names: Vec::new(), ca, clients: None, audiences: Vec::new() }
}

/// A simulated worker cluster with one node, and a kubeconfig for it.
async fn simulated(server: &TestServer, stop: &CancellationToken) -> (Sim, String) {
    let hub = server.hub().clone();
    atoll_sim::install(&hub);
    server.wait(async move { hub.add_native(|_| true, atoll_vnode::definitions()).await }).unwrap().unwrap();
    server.create_instance("sim").unwrap();
    let instance = server.hub().instance("sim").unwrap();
    instance.set_features(atoll_apiserver::Features::member());
    let (hub, way, token) = (server.hub().clone(), server.endpoint("sim"), stop.clone());
    let sim = async move { Sim::start(hub, way, "sim", Spec::with_nodes(1), token).await };
    let sim = server.wait(sim).unwrap().unwrap();
    let credentials = server.hub().credentials(&instance).await.unwrap();
    let day = jiff::SignedDuration::from_hours(24);
    let config = credentials.kubeconfig("lessor", &["system:masters".to_owned()], day).unwrap();
    (sim, config.to_yaml().unwrap())
}

pub async fn come_through(cluster: &Cluster, computing: &Endpoint) {
    let Some(kubectl) = peers::find("kubectl") else { return };
    let server = TestServer::memory().unwrap();
    let stop = CancellationToken::new();
    let (sim, kubeconfig) = simulated(&server, &stop).await;
    let worker = server.endpoint("sim");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MOUNT}});
    worker.ensure(&core("namespaces"), None, &namespace).await.unwrap();
    lend(&worker, "calls", "c").await;
    bind(computing, "c", &kubeconfig).await;
    until(computing, &core("nodes"), None, "a node of the simulated worker", |nodes| {
        virtual_nodes(nodes).iter().any(|node| node["metadata"]["name"] == NODE && condition(node, "Ready") == "True")
    })
    .await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "calls"}});
    computing.ensure(&core("namespaces"), None, &namespace).await.unwrap();
    until(computing, &core("serviceaccounts"), Some("calls"), "an account for pods", |list| !list.is_empty()).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "called", "namespace": "calls"}, "spec": {
        "nodeName": NODE, "terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "nginx"}]}});
    computing.create(&core("pods"), Some("calls"), &pod).await.unwrap();
    until(computing, &core("pods"), Some("calls"), "a pod in the simulated worker", |pods| running(pods) == 1).await;
    // kubectl is answered by this very process.
    tokio::task::block_in_place(|| call(&kubectl, cluster));
    computing.delete(&own("clusterbindings"), None, "c", &json!({})).await.unwrap();
    until(computing, &own("clusterbindings"), None, "only the other binding", |list| list.len() == 1).await;
    stop.cancel();
    drop(sim);
}

/// Logs, a command and a forwarded port, as people ask for them.
fn call(kubectl: &Path, cluster: &Cluster) {
    let command = |arguments: &[&str]| {
        let mut command = Command::new(kubectl);
        command.env("KUBECONFIG", cluster.kubeconfig()).args(["--namespace", "calls"]).args(arguments);
        command
    };
    assert!(!peers::run(&mut command(&["logs", "called"])).ok().trim().is_empty(), "logs");
    assert_eq!(peers::run(&mut command(&["exec", "called", "--", "echo", "here"])).ok().trim(), "here");
    let mut forward = command(&["port-forward", "called", ":80"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    // Kept: kubectl ends when nobody reads what it says.
    let mut words = BufReader::new(forward.stdout.take().unwrap());
    words.read_line(&mut line).unwrap();
    let answer = peers::through_forward(&line);
    forward.kill().unwrap();
    forward.wait().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}
