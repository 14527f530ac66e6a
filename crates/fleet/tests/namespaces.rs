//! Namespaces in members: those we make are ours, those that were there before are used and never changed or deleted.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use atoll_api::names;
use atoll_api::words::{OVERWRITE, annotation, label};
use atoll_runtime::{Endpoint, Patch};
use serde_json::{Value, json};
use support::{World, config_map, core, policies, policy, works};

const SHOP: Option<&str> = Some("shop");

fn shop(labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}})
}

fn in_shop(mut object: Value) -> Value {
    object["metadata"]["namespace"] = "shop".into();
    object
}

/// A member has the namespace with something in it before the fleet has heard of either.
async fn there_before(member: &Endpoint, namespace: Value) {
    member.create(&core("namespaces"), None, &namespace).await.unwrap();
    let theirs = in_shop(config_map("theirs", json!({"k": "v"})));
    member.create(&core("configmaps"), SHOP, &theirs).await.unwrap();
}

/// The instance has the namespace, and sends a map into it; waits until it is in these members.
async fn spread(world: &World, namespace: Value, members: &[&str]) {
    world.instance.create(&core("namespaces"), None, &namespace).await.unwrap();
    let rule =
        policy("p", json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]}));
    world.instance.create(&policies(), SHOP, &in_shop(rule)).await.unwrap();
    let map = in_shop(config_map("settings", json!({"k": "v"})));
    world.instance.create(&core("configmaps"), SHOP, &map).await.unwrap();
    for member in members {
        holds(world, member, "settings", true).await;
    }
}

async fn holds(world: &World, member: &str, map: &str, wanted: bool) {
    let endpoint = world.member(member);
    world
        .eventually(&format!("{member} holds {map}: {wanted}"), async || {
            endpoint.get_opt(&core("configmaps"), SHOP, map).await.unwrap().is_some() == wanted
        })
        .await;
}

async fn work_of(world: &World, member: &str) -> Option<Value> {
    let name = names::work("Namespace", "shop", "");
    world.instance.get_opt(&works(), Some(&names::execution_namespace(member)), &name).await.unwrap()
}

/// What the work of the namespace says of its present generation, once it does.
async fn applied(world: &World, member: &str) -> Value {
    let mut condition = Value::Null;
    world
        .eventually("the namespace was carried out", async || {
            let work = work_of(world, member).await.unwrap_or_default();
            let conditions = work["status"]["conditions"].as_array().cloned().unwrap_or_default();
            condition = conditions.into_iter().find(|one| one["type"] == "Applied").unwrap_or_default();
            condition["observedGeneration"].is_i64()
                && condition["observedGeneration"] == work["metadata"]["generation"]
        })
        .await;
    condition
}

/// A namespace that is left as it is: no mark of ours, and what was in it still is.
async fn is_untouched(world: &World, member: &str, labels: &Value) {
    let endpoint = world.member(member);
    let there = endpoint.get(&core("namespaces"), None, "shop").await.unwrap();
    let meta = &there["metadata"];
    assert_eq!(meta["deletionTimestamp"], Value::Null);
    assert!(!meta["annotations"].to_string().contains("karmada.io/"), "{meta}");
    for (key, value) in labels.as_object().unwrap() {
        assert_eq!(meta["labels"][key], *value, "{meta}");
    }
    assert!(!meta["labels"].to_string().contains("karmada.io/"), "{meta}");
    assert!(endpoint.get_opt(&core("configmaps"), SHOP, "theirs").await.unwrap().is_some());
}

/// Ends the namespace of a member as its own controller would once nothing is left in it.
async fn finalize(member: &Endpoint) {
    let mut there = member.get(&core("namespaces"), None, "shop").await.unwrap();
    there["spec"]["finalizers"] = json!([]);
    member.update_sub(&core("namespaces"), None, "shop", "finalize", &there).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_was_there_before_is_used_and_outlives_its_deletion_in_the_instance() {
    let world = World::start(2).await;
    there_before(world.member("m1"), shop(json!({"team": "theirs"}))).await;
    spread(&world, shop(json!({"team": "ours"})), &["m1", "m2"]).await;
    let told = applied(&world, "m1").await;
    assert_eq!(told["status"], "True");
    let message = told["message"].as_str().unwrap();
    assert_eq!(message, "Namespace shop was in cluster m1 before and is left as it is");
    is_untouched(&world, "m1", &json!({"team": "theirs"})).await;
    let made = world.member("m2").get(&core("namespaces"), None, "shop").await.unwrap();
    assert_eq!(made["metadata"]["labels"]["team"], "ours");
    assert_eq!(made["metadata"]["labels"][label::MANAGED], "true");
    // What either side says of it from now on concerns only what we made.
    let label = |team: &str| json!({"metadata": {"labels": {"team": team}}});
    world.member("m1").patch(&core("namespaces"), None, "shop", "", Patch::Merge, &label("others")).await.unwrap();
    world.instance.patch(&core("namespaces"), None, "shop", "", Patch::Merge, &label("all")).await.unwrap();
    world
        .eventually("what we made follows", async || {
            let made = world.member("m2").get(&core("namespaces"), None, "shop").await.unwrap();
            made["metadata"]["labels"]["team"] == "all"
        })
        .await;
    world
        .eventually("the change has reached the work", async || {
            let work = work_of(&world, "m1").await.unwrap();
            work["spec"]["workload"]["manifests"][0]["metadata"]["labels"]["team"] == "all"
        })
        .await;
    applied(&world, "m1").await;
    is_untouched(&world, "m1", &json!({"team": "others"})).await;
    // What we sent goes; the namespace goes only where we made it.
    world.instance.delete(&core("configmaps"), SHOP, "settings", &Value::Null).await.unwrap();
    world.instance.delete(&core("namespaces"), None, "shop", &Value::Null).await.unwrap();
    for member in ["m1", "m2"] {
        holds(&world, member, "settings", false).await;
    }
    world
        .eventually("what we made is being deleted", async || {
            let made = world.member("m2").get(&core("namespaces"), None, "shop").await.unwrap();
            made["metadata"]["deletionTimestamp"].is_string()
        })
        .await;
    world.eventually("the work is gone", async || work_of(&world, "m1").await.is_none()).await;
    is_untouched(&world, "m1", &json!({"team": "others"})).await;
    finalize(world.member("m2")).await;
    world.eventually("the other work is gone", async || work_of(&world, "m2").await.is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_was_there_before_survives_when_a_reachable_member_leaves() {
    let world = World::start(2).await;
    there_before(world.member("m1"), shop(json!({"team": "theirs"}))).await;
    spread(&world, shop(json!({"team": "ours"})), &["m1", "m2"]).await;
    atoll_fleet::unjoin(&world.instance, None, "m1", Duration::from_secs(20)).await.unwrap();
    holds(&world, "m1", "settings", false).await;
    is_untouched(&world, "m1", &json!({"team": "theirs"})).await;
    holds(&world, "m2", "settings", true).await;
}

/// As earlier releases left each namespace, those they made and those they found.
fn as_earlier_releases_left_it() -> Value {
    let mut namespace = shop(json!({"team": "theirs", label::MANAGED: "true", label::WORK_ID: "former"}));
    let labels = [label::MANAGED, label::WORK_ID].join(",");
    let annotations = [annotation::CONFLICT_RESOLUTION, annotation::WORK_NAMESPACE, annotation::WORK_NAME].join(",");
    namespace["metadata"]["annotations"] = json!({
        annotation::CONFLICT_RESOLUTION: OVERWRITE,
        annotation::WORK_NAMESPACE: names::execution_namespace("m1"),
        annotation::WORK_NAME: names::work("Namespace", "shop", ""),
        annotation::MANAGED_LABELS: labels,
        annotation::MANAGED_ANNOTATIONS: annotations,
    });
    namespace
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_was_or_may_have_been_taken_over_is_released_and_never_deleted() {
    let mut asked = shop(json!({"team": "ours"}));
    asked["metadata"]["annotations"] = json!({annotation::CONFLICT_RESOLUTION: OVERWRITE});
    let cases =
        [(as_earlier_releases_left_it(), shop(json!({"team": "ours"}))), (shop(json!({"team": "theirs"})), asked)];
    for (present, wanted) in cases {
        let world = World::start(1).await;
        there_before(world.member("m1"), present).await;
        spread(&world, wanted, &["m1"]).await;
        assert_eq!(applied(&world, "m1").await["message"], "Manifest has been successfully applied");
        let there = world.member("m1").get(&core("namespaces"), None, "shop").await.unwrap();
        assert_eq!(there["metadata"]["labels"]["team"], "ours");
        assert_eq!(there["metadata"]["labels"][label::MANAGED], "true");
        atoll_fleet::unjoin(&world.instance, None, "m1", Duration::from_secs(20)).await.unwrap();
        holds(&world, "m1", "settings", false).await;
        is_untouched(&world, "m1", &json!({"team": "ours"})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_of_an_earlier_release_goes_on_saying_that_the_namespace_may_be_shared() {
    let world = World::start(1).await;
    there_before(world.member("m1"), shop(json!({"team": "theirs"}))).await;
    let home = names::execution_namespace("m1");
    let former = json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {"name": names::work("Namespace", "shop", ""), "namespace": home},
        "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "shop", "annotations": {annotation::CONFLICT_RESOLUTION: OVERWRITE}}}]}}});
    world.instance.create(&works(), Some(&home), &former).await.unwrap();
    spread(&world, shop(json!({"team": "ours"})), &["m1"]).await;
    world
        .eventually("the namespace follows", async || {
            let there = world.member("m1").get(&core("namespaces"), None, "shop").await.unwrap();
            there["metadata"]["labels"]["team"] == "ours"
        })
        .await;
    let work = work_of(&world, "m1").await.unwrap();
    let manifest = &work["spec"]["workload"]["manifests"][0]["metadata"];
    assert_eq!(manifest["annotations"][annotation::CONFLICT_RESOLUTION], OVERWRITE);
    atoll_fleet::unjoin(&world.instance, None, "m1", Duration::from_secs(20)).await.unwrap();
    is_untouched(&world, "m1", &json!({"team": "ours"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_whose_owner_deletes_it_is_made_for_what_we_send() {
    let world = World::start(1).await;
    let member = world.member("m1");
    there_before(member, shop(json!({"team": "theirs"}))).await;
    spread(&world, shop(json!({"team": "ours"})), &["m1"]).await;
    applied(&world, "m1").await;
    // As the controllers of the member do it.
    member.delete(&core("namespaces"), None, "shop", &Value::Null).await.unwrap();
    for map in ["settings", "theirs"] {
        member.delete(&core("configmaps"), SHOP, map, &Value::Null).await.unwrap();
    }
    finalize(member).await;
    holds(&world, "m1", "settings", true).await;
    let made = member.get(&core("namespaces"), None, "shop").await.unwrap();
    assert_eq!(
        (&made["metadata"]["labels"]["team"], &made["metadata"]["labels"][label::MANAGED]),
        (&json!("ours"), &json!("true"))
    );
    world
        .eventually("the work knows", async || {
            let work = work_of(&world, "m1").await.unwrap();
            work["status"]["conditions"].to_string().contains("Manifest has been successfully applied")
        })
        .await;
}
