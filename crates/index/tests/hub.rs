//! The index over a running hub: following, resuming, and Clusterpedia's paths.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::auth::Keys;
use atoll_apiserver::{ApiService, Hub, Identity, Options};
use atoll_index::{ByRoles, Choice, Everything, Index, Pedia, Query, Resources, Rights, Source};
use atoll_meta::{Gvr, Status};
use atoll_runtime::{BodyStream, Endpoint, Transport};
use atoll_store::MemoryEngine;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

const PATIENCE: Duration = Duration::from_secs(20);

async fn hub() -> Arc<Hub> {
    let hub =
        Hub::open(Arc::new(MemoryEngine::new()), Keys::default(), Arc::new(jiff::Timestamp::now), Options::default())
            .await
            .unwrap();
    hub.create_instance("fleet").await.unwrap();
    hub.create_instance("m1").await.unwrap();
    hub
}

fn endpoint(hub: &Arc<Hub>, instance: &str, identity: Identity) -> Endpoint {
    Endpoint::in_process(ApiService::new(hub.clone()), instance, "test", move |extensions| {
        extensions.insert(identity.clone());
    })
}

fn master(hub: &Arc<Hub>, instance: &str) -> Endpoint {
    endpoint(hub, instance, Identity::master("test"))
}

fn config_map(name: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "labels": {"app": name}}})
}

fn maps() -> Gvr {
    Gvr::new("", "v1", "configmaps")
}

async fn follow(index: &Index, hub: &Arc<Hub>) {
    // The other instance of the hub plays the member of `fleet`.
    index.follow(Source { name: "fleet".into(), endpoint: master(hub, "fleet"), hidden: true }, Resources::All);
    index.follow(Source { name: "fleet/m1".into(), endpoint: master(hub, "m1"), hidden: false }, Resources::All);
    index.synced("fleet", PATIENCE).await.unwrap();
    index.synced("fleet/m1", PATIENCE).await.unwrap();
}

async fn names(index: &Index, source: &str) -> Vec<String> {
    let query = Query { namespaces: vec!["default".into()], ..Query::of(source, "", "configmaps") };
    let page = index.query(&query, &Everything).await.unwrap();
    page.items.into_iter().map(|item| item.name).collect()
}

async fn get(hub: &Arc<Hub>, who: &Identity, path: &str, accept: &str) -> (u16, Value) {
    let mut request =
        http::Request::builder().uri(path).header("accept", accept).body(Full::new(bytes::Bytes::new())).unwrap();
    request.extensions_mut().insert(who.clone());
    let answer = ApiService::new(hub.clone()).oneshot(request).await.unwrap();
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

#[tokio::test]
async fn a_write_is_found_and_a_restart_resumes_where_it_stopped() {
    let hub = hub().await;
    let directory = tempfile::tempdir().unwrap();
    let choice = Choice::Sqlite(directory.path().join("index.db"));
    let m1 = master(&hub, "m1");
    m1.create(&maps(), Some("default"), &config_map("before")).await.unwrap();
    {
        let index = Index::open(&choice).await.unwrap();
        follow(&index, &hub).await;
        assert!(names(&index, "fleet/m1").await.contains(&"before".to_owned()));
        let made = m1.create(&maps(), Some("default"), &config_map("after")).await.unwrap();
        let revision = made["metadata"]["resourceVersion"].as_str().unwrap();
        index.wait_for("fleet/m1", "", "configmaps", revision, PATIENCE).await.unwrap();
        assert!(names(&index, "fleet/m1").await.contains(&"after".to_owned()));
        index.close().await;
    }
    m1.delete(&maps(), Some("default"), "before", &Value::Null).await.unwrap();
    let made = m1.create(&maps(), Some("default"), &config_map("meanwhile")).await.unwrap();
    let index = Index::open(&choice).await.unwrap();
    assert!(names(&index, "fleet/m1").await.contains(&"before".to_owned()), "what was known is there before contact");
    follow(&index, &hub).await;
    index
        .wait_for("fleet/m1", "", "configmaps", made["metadata"]["resourceVersion"].as_str().unwrap(), PATIENCE)
        .await
        .unwrap();
    let found = names(&index, "fleet/m1").await;
    assert!(found.contains(&"meanwhile".to_owned()) && !found.contains(&"before".to_owned()), "{found:?}");
}

#[tokio::test]
async fn new_kinds_are_followed() {
    let hub = hub().await;
    let index = Index::open(&Choice::Memory).await.unwrap();
    follow(&index, &hub).await;
    let m1 = master(&hub, "m1");
    let definitions = Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let definition = json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "boats.sea.io"},
        "spec": {"group": "sea.io", "scope": "Namespaced", "names": {"kind": "Boat", "plural": "boats", "singular": "boat", "listKind": "BoatList"},
                 "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    m1.create(&definitions, None, &definition).await.unwrap();
    let boats = Gvr::new("sea.io", "v1", "boats");
    let boat = json!({"kind": "Boat", "apiVersion": "sea.io/v1", "metadata": {"name": "b"}});
    let made = m1.create(&boats, Some("default"), &boat).await.unwrap();
    index
        .wait_for("fleet/m1", "sea.io", "boats", made["metadata"]["resourceVersion"].as_str().unwrap(), PATIENCE)
        .await
        .unwrap();
    assert_eq!(index.query(&Query::of("fleet/m1", "sea.io", "boats"), &Everything).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn clusterpedia_paths_answer_like_a_cluster_within_the_callers_rights() {
    let hub = hub().await;
    let index = Index::open(&Choice::Memory).await.unwrap();
    let rights_hub = hub.clone();
    let rights =
        Arc::new(move |who: &Identity| -> Arc<dyn Rights> { Arc::new(ByRoles::new(rights_hub.clone(), who.clone())) });
    hub.add_mount(Arc::new(Pedia::new(index.clone(), rights)));
    follow(&index, &hub).await;
    let (fleet, m1) = (master(&hub, "fleet"), master(&hub, "m1"));
    m1.create(&Gvr::new("", "v1", "namespaces"), None, &json!({"metadata": {"name": "closed"}})).await.unwrap();
    m1.create(&maps(), Some("closed"), &config_map("hidden")).await.unwrap();
    let made = m1.create(&maps(), Some("default"), &config_map("open")).await.unwrap();
    index
        .wait_for("fleet/m1", "", "configmaps", made["metadata"]["resourceVersion"].as_str().unwrap(), PATIENCE)
        .await
        .unwrap();

    let base = "/instances/fleet/apis/clusterpedia.io/v1beta1/resources";
    let all = Identity::master("admin");
    let (code, list) =
        get(&hub, &all, &format!("{base}/api/v1/configmaps?names=open,hidden"), "application/json").await;
    assert_eq!((code, list["kind"].as_str()), (200, Some("ConfigMapList")), "{list}");
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    assert_eq!(list["items"][0]["metadata"]["annotations"]["shadow.clusterpedia.io/cluster-name"], "m1");
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let (_, shown) =
        get(&hub, &all, &format!("{base}/clusters/m1/api/v1/namespaces/default/configmaps/open"), table).await;
    assert_eq!(shown["columnDefinitions"][0]["name"], "Cluster", "{shown}");
    assert_eq!(shown["rows"][0]["cells"][1], "open");
    let (_, groups) = get(&hub, &all, &format!("{base}/clusters/m1/apis"), "application/json").await;
    assert!(groups["groups"].as_array().unwrap().iter().any(|group| group["name"] == "apps"));
    let (code, _) = get(&hub, &all, &format!("{base}/api/v1/configmaps?orderby=body"), "application/json").await;
    assert_eq!(code, 400);

    // A caller with rights in one namespace of the instance sees only that namespace of its members.
    let rbac = |resource: &str| Gvr::new("rbac.authorization.k8s.io", "v1", resource);
    let search = json!({"metadata": {"name": "search"}, "rules": [{"apiGroups": ["clusterpedia.io"], "resources": ["*"], "verbs": ["get", "list"]}]});
    fleet.create(&rbac("clusterroles"), None, &search).await.unwrap();
    let subjects = json!([{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}]);
    let bind = |role: &str| json!({"metadata": {"name": role}, "subjects": subjects, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}});
    fleet.create(&rbac("clusterrolebindings"), None, &bind("search")).await.unwrap();
    fleet.create(&rbac("rolebindings"), Some("default"), &bind("view")).await.unwrap();
    let ann = Identity { user: "ann".into(), groups: vec!["system:authenticated".into()], ..Identity::default() };
    let (code, list) = get(
        &hub,
        &ann,
        &format!("{base}/api/v1/configmaps?names=open,hidden&withRemainingCount=true&limit=1"),
        "application/json",
    )
    .await;
    assert_eq!(code, 200, "{list}");
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(list["items"][0]["metadata"]["name"], "open");
    assert_eq!(list["metadata"].get("continue"), None);
    assert_eq!(list["metadata"]["remainingItemCount"], 0);
    let (code, _) =
        get(&hub, &ann, &format!("{base}/clusters/m1/api/v1/namespaces/closed/configmaps/hidden"), "application/json")
            .await;
    assert_eq!(code, 404);
}

#[tokio::test]
async fn an_index_kept_live_equals_one_rebuilt_from_nothing() {
    for seed in [7, rand::random(), rand::random()] {
        println!("the walk of seed {seed}");
        walk(seed).await;
    }
}

/// Follows a walk over twelve names: made, changed, deleted, made again.
async fn walk(seed: u32) {
    let hub = hub().await;
    let live = Index::open(&Choice::Memory).await.unwrap();
    follow(&live, &hub).await;
    let m1 = master(&hub, "m1");
    let mut state = seed;
    for step in 0..400u32 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let name = format!("c{}", (state >> 16) % 12);
        let object = json!({"metadata": {"name": name, "labels": {"app": format!("a{}", (state >> 8) % 3)}}, "data": {"step": step.to_string()}});
        let answer = match (state >> 24) % 3 {
            0 => m1.delete(&maps(), Some("default"), &name, &Value::Null).await.map(|()| Value::Null),
            1 => m1.create(&maps(), Some("default"), &object).await,
            _ => m1.patch(&maps(), Some("default"), &name, "", atoll_runtime::Patch::Merge, &object).await,
        };
        // Some meet an object that is there already, or is not: that is part of the walk.
        drop(answer);
    }
    let end = m1.create(&maps(), Some("default"), &config_map("end")).await.unwrap();
    live.wait_for("fleet/m1", "", "configmaps", end["metadata"]["resourceVersion"].as_str().unwrap(), PATIENCE)
        .await
        .unwrap();
    let rebuilt = Index::open(&Choice::Memory).await.unwrap();
    follow(&rebuilt, &hub).await;
    let all = async |index: &Index| {
        let page = index.query(&Query::of("fleet/m1", "", "configmaps"), &Everything).await.unwrap();
        page.items.into_iter().map(|item| (item.name, item.revision, item.body)).collect::<Vec<_>>()
    };
    assert_eq!(all(&live).await, all(&rebuilt).await, "seed {seed}");
    let by_label = async |index: &Index| {
        index
            .facet(&Query::of("fleet/m1", "", "configmaps"), &atoll_index::Facet::Label("app".into()), 99, &Everything)
            .await
            .unwrap()
    };
    assert_eq!(by_label(&live).await, by_label(&rebuilt).await);
}

/// A way that can be cut and mended; it counts who reads the whole of a collection.
struct Wire {
    inner: Arc<dyn Transport>,
    cut: tokio::sync::watch::Sender<bool>,
    refused: tokio::sync::watch::Sender<usize>,
    lists: std::sync::atomic::AtomicUsize,
}

#[async_trait::async_trait]
impl Transport for Wire {
    async fn send(&self, request: http::Request<bytes::Bytes>) -> Result<http::Response<BodyStream>, Status> {
        let target = request.uri().to_string();
        let maps = target.contains("/configmaps");
        if *self.cut.borrow() {
            self.refused.send_modify(|count| *count += usize::from(maps));
            return Err(Status::unavailable("the wire is cut"));
        }
        let whole = maps && (!target.contains("watch=true") || target.contains("sendInitialEvents=true"));
        self.lists.fetch_add(usize::from(whole), std::sync::atomic::Ordering::SeqCst);
        let answer = self.inner.send(request).await?;
        let mut cut = self.cut.subscribe();
        Ok(answer.map(|body| -> BodyStream {
            Box::pin(futures::StreamExt::take_until(body, async move {
                let _ = cut.wait_for(|cut| *cut).await;
            }))
        }))
    }
}

#[tokio::test]
async fn a_member_that_is_lost_stays_known_and_is_followed_on_without_being_read_again() {
    let hub = hub().await;
    let m1 = master(&hub, "m1");
    m1.create(&maps(), Some("default"), &config_map("before")).await.unwrap();
    let wire = Arc::new(Wire {
        inner: m1.transport().clone(),
        cut: tokio::sync::watch::Sender::new(false),
        refused: tokio::sync::watch::Sender::new(0),
        lists: Default::default(),
    });
    let index = Index::open(&Choice::Memory).await.unwrap();
    let endpoint = Endpoint::new("m1", wire.clone(), "test");
    index.follow(Source { name: "fleet/m1".into(), endpoint, hidden: false }, Resources::All);
    index.synced("fleet/m1", PATIENCE).await.unwrap();
    let read = wire.lists.load(std::sync::atomic::Ordering::SeqCst);
    assert!(read > 0);

    let mut refused = wire.refused.subscribe();
    wire.cut.send_replace(true);
    tokio::time::timeout(PATIENCE, refused.wait_for(|count| *count > 0)).await.unwrap().unwrap();
    m1.delete(&maps(), Some("default"), "before", &Value::Null).await.unwrap();
    let made = m1.create(&maps(), Some("default"), &config_map("meanwhile")).await.unwrap();
    assert!(names(&index, "fleet/m1").await.contains(&"before".to_owned()), "what was known is still found");

    wire.cut.send_replace(false);
    let revision = made["metadata"]["resourceVersion"].as_str().unwrap();
    index.wait_for("fleet/m1", "", "configmaps", revision, Duration::from_secs(60)).await.unwrap();
    let found = names(&index, "fleet/m1").await;
    assert!(found.contains(&"meanwhile".to_owned()) && !found.contains(&"before".to_owned()), "{found:?}");
    assert_eq!(wire.lists.load(std::sync::atomic::Ordering::SeqCst), read, "it was followed on from where it stopped");
}
