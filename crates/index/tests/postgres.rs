//! PostgreSQL as the place of the index: proven connections, and restarts under load.
#![allow(clippy::unwrap_used)]

mod server;

use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::auth::Keys;
use atoll_apiserver::{ApiService, Hub, Identity, Options};
use atoll_index::{Choice, Everything, Index, Query, Resources, Source};
use atoll_meta::Gvr;
use atoll_meta::selector::{FieldSelector, LabelSelector};
use atoll_runtime::Endpoint;
use atoll_store::MemoryEngine;
use serde_json::{Value, json};
use server::Postgres;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_database_must_prove_itself_when_asked_to() {
    let Some(server) = Postgres::start() else { return };
    let proven = format!("{}?sslmode=require&sslrootcert={}", server.url(), server.ca.display());
    Index::open(&Choice::Postgres(proven)).await.unwrap();
    // The authority of this certificate is none the system knows.
    let unproven = Index::open(&Choice::Postgres(format!("{}?sslmode=require", server.url()))).await;
    assert!(unproven.is_err());
}

async fn names(index: &Index) -> Vec<String> {
    let query = Query { namespaces: vec!["default".into()], ..Query::of("m", "", "configmaps") };
    let page = index.query(&query, &Everything).await.unwrap();
    let mut names: Vec<String> =
        page.items.into_iter().map(|item| format!("{} {}", item.name, item.revision)).collect();
    names.sort();
    names
}

/// Text that no index of the database can make small enough.
fn noise(words: u64) -> String {
    use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    (0..words).map(|number| format!("{:016x}", hasher.hash_one(number))).collect()
}

#[tokio::test]
async fn no_object_stops_the_index_for_the_others() {
    let Some(server) = Postgres::start() else { return };
    let index = Index::open(&Choice::Postgres(server.url())).await.unwrap();
    let object = |name: &str, app: &str, data: Value| {
        json!({"kind": "ConfigMap", "apiVersion": "v1", "data": data, "type": "t\u{0}",
            "metadata": {"name": name, "namespace": "default", "resourceVersion": "1", "labels": {"app": app}}})
    };
    let put = async |objects: Vec<Value>| {
        let written = index.put("m", "", "v1", "configmaps", true, objects);
        tokio::time::timeout(PATIENCE, written).await.expect("the writer goes on").unwrap();
    };
    put(vec![
        object("first", "web", json!({})),
        // These six characters, and the one that they name.
        object("spelled", "web", json!({"a": "\\u0000"})),
        object("zero", "w\u{0}eb", json!({"a\u{0}": "b\u{0}c"})),
        object("endless", &noise(1000), json!({})),
        object("last", "web", json!({})),
    ])
    .await;
    assert_eq!(names(&index).await, ["first 1", "last 1", "spelled 1", "zero 1"]);
    let labels = LabelSelector::parse("app=web").unwrap();
    let fields = FieldSelector::parse("type=t").unwrap();
    let query = Query { labels, fields, ..Query::of("m", "", "configmaps") };
    let found = index.query(&query, &Everything).await.unwrap().items;
    let mut data: Vec<String> = found.iter().map(|item| item.tree()["data"].to_string()).collect();
    data.sort();
    assert_eq!(data, [r#"{"a":"\\u0000"}"#, r#"{"a":"bc"}"#, "{}", "{}"]);
    put(vec![object("later", "web", json!({}))]).await;
    assert_eq!(names(&index).await.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_the_database_restarts_under_load() {
    let Some(mut server) = Postgres::start() else { return };
    let clock = Arc::new(jiff::Timestamp::now);
    let hub = Hub::open(Arc::new(MemoryEngine::new()), Keys::default(), clock, Options::default()).await.unwrap();
    let endpoint = Endpoint::in_process(ApiService::new(hub.clone()), "root", "test", |extensions| {
        extensions.insert(Identity::master("test"));
    });
    let choice = Choice::Postgres(server.url());
    let index = Index::open(&choice).await.unwrap();
    index.follow(Source { name: "m".into(), endpoint: endpoint.clone(), hidden: false }, Resources::All);
    index.synced("m", PATIENCE).await.unwrap();

    let maps = Gvr::new("", "v1", "configmaps");
    let write = {
        let (endpoint, maps) = (endpoint.clone(), maps.clone());
        tokio::spawn(async move {
            let mut last = Value::Null;
            for round in 0..600 {
                let name = format!("c{}", round % 150);
                let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "labels": {"round": round.to_string()}}});
                last = match (round / 150) % 4 {
                    0 | 3 => endpoint.create(&maps, Some("default"), &object).await.unwrap(),
                    1 => endpoint.update(&maps, Some("default"), &name, &object).await.unwrap(),
                    _ => {
                        endpoint.delete(&maps, Some("default"), &name, &Value::Null).await.unwrap();
                        last
                    }
                };
                tokio::task::yield_now().await;
            }
            last
        })
    };
    for _ in 0..3 {
        server.kill();
        server.again();
    }
    let last = write.await.unwrap();
    let revision = last["metadata"]["resourceVersion"].as_str().unwrap();
    index.wait_for("m", "", "configmaps", revision, PATIENCE).await.unwrap();
    let list = endpoint.list(&maps, Some("default"), "").await.unwrap();
    let mut real: Vec<String> = list
        .items
        .iter()
        .map(|item| {
            let text = |key: &str| item["metadata"][key].as_str().unwrap();
            format!("{} {}", text("name"), text("resourceVersion"))
        })
        .collect();
    real.sort();
    assert!(real.len() >= 150);
    // A reader's connection may still be the broken one: it is made again by the next question.
    for _ in 0..8 {
        let _ = index.count(&Query::of("m", "", "configmaps"), &Everything).await;
    }
    assert_eq!(names(&index).await, real);
    index.close().await;
    // What was written is still there for the next start.
    assert_eq!(names(&Index::open(&choice).await.unwrap()).await, real);
}
