//! Clusters that are only searched: reached over proven connections or not at all, and imported by policies.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use atoll_apiserver::auth::Keys;
use atoll_apiserver::{ApiService, Hub, Identity, Options, Server};
use atoll_index::{Everything, Query};
use atoll_meta::Gvr;
use atoll_pki::{San, ServerCerts, Validity};
use atoll_store::MemoryEngine;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use support::{World, becomes};
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
    becomes(&root, &clusters(), name, |seen| seen["status"]["conditions"].is_array()).await["status"].clone()
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

fn secrets() -> Gvr {
    Gvr::new("", "v1", "secrets")
}

/// The Secret that leads to the external instance `far`.
fn way(url: &str, ca: &str, token: &str) -> Value {
    let cluster = json!({"server": url, "certificate-authority-data": STANDARD.encode(ca)});
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "c", "user": {"token": token}}],
        "clusters": [{"name": "c", "cluster": cluster}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "far"}, "stringData": {"kubeconfig": config.to_string()}})
}

/// Makes the external instance `far`.
async fn external(world: &World, way: &Value) {
    let root = world.endpoint("root");
    root.create(&secrets(), Some("kube-system"), way).await.unwrap();
    let spec = json!({"type": "External", "kubeconfigSecretRef": {"namespace": "kube-system", "name": "far"}});
    let instance = support::hub_object("Instance", json!({"metadata": {"name": "far"}, "spec": spec}));
    root.create(&Gvr::new("atoll.io", "v1alpha1", "instances"), None, &instance).await.unwrap();
}

#[tokio::test]
async fn an_external_instance_is_followed_with_the_credentials_and_at_the_server_its_secret_has_now() {
    let (world, far, other) = (World::new().await, Far::new().await, Far::new().await);
    let root = world.endpoint("root");
    external(&world, &way(&far.url, &far.ca, "an old one")).await;
    world.until("it was asked", async || far.asked.load(Ordering::SeqCst) > 0).await;
    root.update(&secrets(), Some("kube-system"), "far", &way(&far.url, &far.ca, TOKEN)).await.unwrap();
    world.index.synced("far", support::PATIENCE).await.unwrap();
    let uid = async || {
        let page = world.index.query(&Query::of("far", "", "namespaces"), &Everything).await.unwrap();
        page.items.iter().find(|item| item.name == "default").map(|item| item.uid.clone())
    };
    let first = uid().await;
    assert!(first.is_some());
    // Another server, at the same revisions: nothing of the old one is found any more, and what the new one has is.
    root.update(&secrets(), Some("kube-system"), "far", &way(&other.url, &other.ca, TOKEN)).await.unwrap();
    world.until("it is another", async || uid().await.is_some_and(|now| Some(now) != first)).await;
}

#[tokio::test]
async fn a_search_waits_for_a_silent_instance_once_and_a_short_time() {
    let (world, far) = (World::new().await, Far::new().await);
    // Connections are made, and nobody says a word.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    external(&world, &way(&format!("https://{}", silent.local_addr().unwrap()), &far.ca, TOKEN)).await;
    for number in 0..40 {
        let thing = json!({"kind": "Thing", "apiVersion": "v1", "metadata": {"name": "t"}});
        world.index.put("far", "", "v1", &format!("things{number}"), false, vec![thing]).await.unwrap();
    }
    let path = "/manage/v1alpha1/search?kinds=Thing";
    let (ann, admin) = (support::user("ann"), support::master());
    assert_eq!(world.ok(&admin, "GET", path, None).await["items"].as_array().unwrap().len(), 40);
    let asked = tokio::time::timeout(support::PATIENCE, world.ok(&ann, "GET", path, None));
    assert_eq!(asked.await.unwrap()["items"], json!([]));
}

fn policies() -> Gvr {
    Gvr::new("policy.clusterpedia.io", "v1alpha1", "clusterimportpolicies")
}

fn lifecycles() -> Gvr {
    Gvr::new("policy.clusterpedia.io", "v1alpha1", "pediaclusterlifecycles")
}

fn sources() -> Gvr {
    Gvr::new("cluster.example.io", "v1", "clusters")
}

/// A platform whose clusters are objects of `root`, and the policy that imports them.
async fn platform(world: &World, far: &Far) {
    let root = world.endpoint("root");
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "clusters.cluster.example.io"},
        "spec": {"group": "cluster.example.io", "scope": "Namespaced", "names": {"kind": "Cluster", "plural": "clusters", "singular": "cluster"},
                 "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let definitions = Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    root.create(&definitions, None, &definition).await.unwrap();
    let served = async || root.get_path("/apis/cluster.example.io/v1").await.is_ok();
    world.until("the kind is served", served).await;
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "access"}, "stringData": {"ca": far.ca, "token": TOKEN}});
    root.create(&Gvr::new("", "v1", "secrets"), Some("default"), &secret).await.unwrap();
    let condition = "{{ if ne .source.spec.apiEndpoint \"\" }}{{ range .source.status.conditions }}{{ if eq .type \"Ready\" }}{{ if eq .status \"True\" }} true {{ end }}{{ end }}{{ end }}{{ end }}";
    let template = "spec:\n  apiserver: \"{{ .source.spec.apiEndpoint }}\"\n  caData: \"{{ .references.auth.data.ca }}\"\n  \
                    tokenData: \"{{ .references.auth.data.token }}\"\n  syncResources:\n    - group: \"\"\n      resources: [namespaces]\n";
    let reference = json!({"group": "", "resource": "secrets", "key": "auth", "namespaceTemplate": "{{ .source.spec.auth.namespace }}", "nameTemplate": "{{ .source.spec.auth.name }}"});
    let policy = json!({"apiVersion": "policy.clusterpedia.io/v1alpha1", "kind": "ClusterImportPolicy", "metadata": {"name": "example"},
        "spec": {"source": {"group": "cluster.example.io", "resource": "clusters", "versions": []}, "references": [reference],
                 "nameTemplate": "ex-{{ .source.metadata.namespace }}-{{ .source.metadata.name }}", "template": template, "creationCondition": condition}});
    root.create(&policies(), None, &policy).await.unwrap();
}

fn reason<'a>(object: &'a Value, ty: &str) -> &'a str {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .and_then(|all| all.iter().find(|condition| condition["type"] == ty))
        .and_then(|condition| condition["reason"].as_str())
        .unwrap_or_default()
}

#[tokio::test]
async fn clusters_of_a_platform_are_imported_by_policy_and_leave_with_their_source() {
    let (world, far) = (World::new().await, Far::new().await);
    let root = world.endpoint("root");
    platform(&world, &far).await;
    let source = |ready: &str| {
        json!({"kind": "Cluster", "apiVersion": "cluster.example.io/v1", "metadata": {"name": "one"},
        "spec": {"apiEndpoint": far.url, "auth": {"namespace": "default", "name": "access"}}, "status": {"conditions": [{"type": "Ready", "status": ready}]}})
    };
    root.create(&sources(), Some("default"), &source("False")).await.unwrap();
    becomes(&root, &policies(), "example", |seen| reason(seen, "Reconciling") == "Reconciling").await;
    let name = "ex-default-one";
    becomes(&root, &lifecycles(), name, |seen| reason(seen, "Created") == "ConditionNotMet").await;
    assert!(root.get_opt(&clusters(), None, name).await.unwrap().is_none(), "it is not ready yet");

    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    root.patch(&sources(), Some("default"), "one", "", atoll_runtime::Patch::Merge, &ready).await.unwrap();
    let imported = becomes(&root, &clusters(), name, |seen| reason(seen, "Ready") == "Ready").await;
    assert_eq!(imported["spec"]["apiserver"], far.url.as_str());
    assert_eq!(imported["metadata"]["ownerReferences"][0]["kind"], "PediaClusterLifecycle");
    let source_name = format!("root/{name}");
    world.index.synced(&source_name, support::PATIENCE).await.unwrap();
    assert!(world.index.shelf(&source_name, "", "namespaces").is_some());

    // New credentials reach the cluster; what is collected stays as it was made.
    let wider = json!({"spec": {"syncResources": [{"group": "", "resources": ["configmaps"]}]}});
    root.patch(&clusters(), None, name, "", atoll_runtime::Patch::Merge, &wider).await.unwrap();
    let secrets = Gvr::new("", "v1", "secrets");
    let fresh = json!({"stringData": {"token": "fresh"}});
    root.patch(&secrets, Some("default"), "access", "", atoll_runtime::Patch::Merge, &fresh).await.unwrap();
    let token = STANDARD.encode("fresh");
    let renewed = becomes(&root, &clusters(), name, |seen| seen["spec"]["tokenData"] == token.as_str()).await;
    assert_eq!(renewed["spec"]["syncResources"], wider["spec"]["syncResources"]);

    root.delete(&sources(), Some("default"), "one", &Value::Null).await.unwrap();
    let gone = async || {
        root.get_opt(&clusters(), None, name).await.unwrap().is_none()
            && root.get_opt(&lifecycles(), None, name).await.unwrap().is_none()
            && world.index.shelf(&source_name, "", "namespaces").is_none()
    };
    world.until("everything goes with the source", gone).await;
}

#[tokio::test]
async fn a_policy_that_cannot_work_says_why_and_one_that_is_deleted_takes_its_clusters_along() {
    let (world, far) = (World::new().await, Far::new().await);
    let root = world.endpoint("root");
    platform(&world, &far).await;
    let source = json!({"kind": "Cluster", "apiVersion": "cluster.example.io/v1", "metadata": {"name": "two"},
        "spec": {"apiEndpoint": far.url, "auth": {"namespace": "default", "name": "access"}}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    root.create(&sources(), Some("default"), &source).await.unwrap();
    becomes(&root, &clusters(), "ex-default-two", |seen| seen["spec"].is_object()).await;
    for (field, text, why) in [
        ("template", "{{ env \"HOME\" }}", "\"env\" is not known"),
        ("creationCondition", "{{ if .source }}", "has no end"),
        ("nameTemplate", "{{ .source.metadata.name", "not closed"),
    ] {
        let mut wrong = root.get(&policies(), None, "example").await.unwrap();
        wrong["metadata"] = json!({"name": field.to_lowercase()});
        wrong["spec"][field] = text.into();
        wrong.as_object_mut().unwrap().remove("status");
        root.create(&policies(), None, &wrong).await.unwrap();
        let told =
            becomes(&root, &policies(), &field.to_lowercase(), |seen| !reason(seen, "Validated").is_empty()).await;
        let message = condition(&told["status"], "Validated")["message"].as_str().unwrap();
        assert!(message.starts_with(field) && message.contains(why), "{message}");
    }
    let mut unknown = root.get(&policies(), None, "example").await.unwrap();
    unknown["metadata"] = json!({"name": "unknown"});
    unknown["spec"]["source"]["group"] = "nothing.example.io".into();
    unknown.as_object_mut().unwrap().remove("status");
    root.create(&policies(), None, &unknown).await.unwrap();
    becomes(&root, &policies(), "unknown", |seen| reason(seen, "Reconciling") == "NotServed").await;

    root.delete(&policies(), None, "example", &Value::Null).await.unwrap();
    let gone = async || root.get_opt(&clusters(), None, "ex-default-two").await.unwrap().is_none();
    world.until("the cluster goes with its policy", gone).await;
    assert!(root.get_opt(&sources(), Some("default"), "two").await.unwrap().is_some(), "the source stays");
}
