//! Clusters that are only searched are reached over proven connections, or not at all.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use atoll_apiserver::auth::Keys;
use atoll_apiserver::{ApiService, Hub, Identity, Options, Server};
use atoll_meta::Gvr;
use atoll_pki::{San, ServerCerts, Validity};
use atoll_store::MemoryEngine;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use support::World;
use tower::Service as _;

const TOKEN: &str = "token-of-the-far-cluster";

/// A Kubernetes API behind TLS that counts the requests it gets.
struct Far {
    url: String,
    ca: String,
    asked: Arc<AtomicUsize>,
    stop: tokio_util::sync::CancellationToken,
}

impl Far {
    async fn new() -> Self {
        let keys = Keys::default();
        keys.add_token(TOKEN, Identity::master("far"));
        let clock = Arc::new(jiff::Timestamp::now);
        let hub = Hub::open(Arc::new(MemoryEngine::new()), keys, clock, Options::default()).await.unwrap();
        let certs = Arc::new(ServerCerts::default());
        let serving = &hub.keys().own().serving;
        certs
            .set(None, &serving.issue_server(&[San::new("127.0.0.1")], Validity::days(hub.now(), 1)).unwrap())
            .unwrap();
        let tls = atoll_pki::server_config(certs, &[b"http/1.1"]).unwrap();
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), Arc::new(tls)).await.unwrap();
        let url = format!("https://{}", server.address().unwrap());
        let (asked, stop) = (Arc::<AtomicUsize>::default(), tokio_util::sync::CancellationToken::new());
        let (service, count) = (ApiService::new(hub.clone()), asked.clone());
        let counted = tower::service_fn(move |request| {
            count.fetch_add(1, Ordering::SeqCst);
            service.clone().call(request)
        });
        tokio::spawn(server.run(counted, stop.clone()));
        Self { url, ca: serving.cert_pem(), asked, stop }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn clusters() -> Gvr {
    Gvr::new("cluster.clusterpedia.io", "v1alpha2", "pediaclusters")
}

/// Makes a PediaCluster and waits for what is said about it.
async fn told(world: &World, name: &str, spec: Value) -> Value {
    let root = world.endpoint("root");
    let object = json!({"apiVersion": "cluster.clusterpedia.io/v1alpha2", "kind": "PediaCluster", "metadata": {"name": name}, "spec": spec});
    root.create(&clusters(), None, &object).await.unwrap();
    for _ in 0..1500 {
        let seen = root.get(&clusters(), None, name).await.unwrap();
        if seen["status"]["conditions"].is_array() {
            return seen["status"].clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("nothing is said about {name}");
}

fn condition<'a>(status: &'a Value, ty: &str) -> &'a Value {
    status["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == ty).unwrap()
}

#[tokio::test]
async fn a_cluster_that_cannot_prove_who_it_is_gets_neither_token_nor_request() {
    let (world, far) = (World::new().await, Far::new().await);
    let resources = json!([{"group": "", "resources": ["namespaces"]}]);
    let token = STANDARD.encode(TOKEN);
    let unproven =
        told(&world, "unproven", json!({"apiserver": far.url, "tokenData": token, "syncResources": resources})).await;
    assert_eq!(condition(&unproven, "Ready")["status"], "False", "{unproven}");
    let message = condition(&unproven, "ClusterHealthy")["message"].as_str().unwrap().to_lowercase();
    assert!(message.contains("certificate"), "{message}");

    let user = json!({"token": TOKEN});
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "c", "user": user}],
        "clusters": [{"name": "c", "cluster": {"server": far.url, "insecure-skip-tls-verify": true}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    let config = STANDARD.encode(config.to_string());
    let careless = told(&world, "careless", json!({"kubeconfig": config, "syncResources": resources})).await;
    assert_eq!(condition(&careless, "Validated")["status"], "False", "{careless}");
    assert!(condition(&careless, "Validated")["message"].as_str().unwrap().contains("check of certificates"));
    assert_eq!(far.asked.load(Ordering::SeqCst), 0, "no request was sent over an unproven connection");

    let spec = json!({"apiserver": far.url, "caData": STANDARD.encode(&far.ca), "tokenData": token, "syncResources": resources});
    let proven = told(&world, "proven", spec).await;
    assert_eq!(condition(&proven, "Ready")["status"], "True", "{proven}");
    world.index.synced("root/proven", support::PATIENCE).await.unwrap();
    assert!(world.index.shelf("root/proven", "", "namespaces").is_some());
    assert!(world.index.shelf("root/unproven", "", "namespaces").is_none());
}
