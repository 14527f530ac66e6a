//! Objects follow their owners, namespaces and definitions take what is in them along.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::{Bench, owner};

const MAPS: &str = "/v1/configmaps@default";

async fn map(bench: &Bench, name: &str, owners: Vec<Value>) -> Value {
    let mut made =
        bench.create(MAPS, json!({"kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owners}})).await;
    made["apiVersion"] = "v1".into();
    made["kind"] = "ConfigMap".into();
    made
}

#[tokio::test(start_paused = true)]
async fn dependents_go_when_their_last_owner_is_gone() {
    let bench = Bench::new().await;
    let (one, two) = (map(&bench, "one", vec![]).await, map(&bench, "two", vec![]).await);
    map(&bench, "both", vec![owner(&one, false), owner(&two, false)]).await;
    let only = map(&bench, "only", vec![owner(&one, false)]).await;
    map(&bench, "below", vec![owner(&only, false)]).await;
    bench.delete(MAPS, "one", "Background").await;
    bench.until("dependents went", async || !bench.has(MAPS, "only").await && !bench.has(MAPS, "below").await).await;
    bench.settled().await;
    let both = bench.find(MAPS, "both").await.unwrap();
    assert_eq!(both["metadata"]["ownerReferences"], json!([owner(&two, false)]));
    bench.delete(MAPS, "two", "Background").await;
    bench.until("the last dependent went", async || !bench.has(MAPS, "both").await).await;
}

#[tokio::test(start_paused = true)]
async fn a_dependent_made_after_its_owner_went_goes_too() {
    let bench = Bench::new().await;
    let one = map(&bench, "one", vec![]).await;
    bench.delete(MAPS, "one", "Background").await;
    map(&bench, "late", vec![owner(&one, false)]).await;
    bench.until("the late dependent went", async || !bench.has(MAPS, "late").await).await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_foreground_deletion_waits_for_those_that_block_it() {
    let bench = Bench::new().await;
    let one = map(&bench, "one", vec![]).await;
    let held = json!({"kind": "ConfigMap", "metadata": {"name": "blocks", "ownerReferences": [owner(&one, true)],
                      "finalizers": ["example.com/hold"]}});
    bench.create(MAPS, held).await;
    map(&bench, "goes", vec![owner(&one, false)]).await;
    bench.delete(MAPS, "one", "Foreground").await;
    bench.until("the free dependent went", async || !bench.has(MAPS, "goes").await).await;
    bench.idle().await;
    assert!(bench.has(MAPS, "one").await, "its blocking dependent is still there");
    bench.merge(MAPS, "blocks", "", json!({"metadata": {"finalizers": null}})).await.unwrap();
    bench.until("all went", async || !bench.has(MAPS, "one").await && !bench.has(MAPS, "blocks").await).await;
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_and_forget_their_owner() {
    let bench = Bench::new().await;
    let one = map(&bench, "one", vec![]).await;
    map(&bench, "orphan", vec![owner(&one, true)]).await;
    bench.settled().await;
    bench.delete(MAPS, "one", "Orphan").await;
    bench.until("the owner went", async || !bench.has(MAPS, "one").await).await;
    bench.settled().await;
    let orphan = bench.find(MAPS, "orphan").await.unwrap();
    assert!(orphan["metadata"].get("ownerReferences").is_none(), "{orphan}");
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_owners_can_be_deleted() {
    let bench = Bench::new().await;
    let one = map(&bench, "one", vec![]).await;
    let two = map(&bench, "two", vec![owner(&one, true)]).await;
    let circle = json!({"metadata": {"ownerReferences": [owner(&two, true)]}});
    bench.merge(MAPS, "one", "", circle).await.unwrap();
    bench.delete(MAPS, "one", "Foreground").await;
    bench.until("both went", async || !bench.has(MAPS, "one").await && !bench.has(MAPS, "two").await).await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_its_content_and_says_what_keeps_it() {
    let bench = Bench::new().await;
    bench.create("/v1/namespaces", json!({"kind": "Namespace", "metadata": {"name": "team"}})).await;
    bench.until("it is furnished", async || bench.has("/v1/configmaps@team", "kube-root-ca.crt").await).await;
    let held = json!({"kind": "Secret", "metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    bench.create("/v1/secrets@team", held).await;
    bench.delete("/v1/namespaces", "team", "Background").await;
    bench
        .until("it says why", async || {
            let team = bench.find("/v1/namespaces", "team").await.unwrap();
            team["status"]["conditions"].to_string().contains("example.com/hold in 1 resource instances")
        })
        .await;
    bench.merge("/v1/secrets@team", "held", "", json!({"metadata": {"finalizers": null}})).await.unwrap();
    bench.until("it went", async || !bench.has("/v1/namespaces", "team").await).await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_takes_its_objects_along() {
    let bench = Bench::new().await;
    let definitions = "apiextensions.k8s.io/v1/customresourcedefinitions";
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let definition = json!({"kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    bench.create(definitions, definition).await;
    bench.create("example.com/v1/things@default", json!({"kind": "Thing", "metadata": {"name": "one"}})).await;
    bench.delete(definitions, "things.example.com", "Background").await;
    bench.until("it went", async || !bench.has(definitions, "things.example.com").await).await;
    let snapshot = bench.hub.snapshot(&bench.hub.root()).await.unwrap();
    assert_eq!(snapshot.range("things.example.com/", None).count(), 0);
}
