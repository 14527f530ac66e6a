//! Works: how they are built for each cluster, and in which order members get what they say.
#![allow(clippy::unwrap_used)]

mod support;

use atoll_meta::Gvr;
use atoll_runtime::Patch;
use serde_json::{Value, json};
use support::{NS, World, bindings, core, deployment, deployments, overrides, policies, policy};

/// A rule that fits no Deployment, for one cluster.
fn wrong_rule(cluster: &str) -> Value {
    json!([{"targetCluster": {"clusterNames": [cluster]},
        "overriders": {"plaintext": [{"path": "/spec/none/here", "operator": "replace", "value": 1}]}}])
}

/// Waits for the event about an object of this name, and gives what it says.
async fn event(world: &World, reason: &str, name: &str) -> String {
    let mut message = String::new();
    world
        .eventually(&format!("{reason} is told of {name}"), async || {
            let events = world.instance.list(&core("events"), None, "").await.unwrap().items;
            let found = events.iter().find(|one| one["reason"] == reason && one["involvedObject"]["name"] == name);
            message = found.and_then(|event| event["message"].as_str()).unwrap_or_default().to_owned();
            !message.is_empty()
        })
        .await;
    message
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_fails_for_one_cluster_keeps_no_other_from_its_copy() {
    let world = World::start(3).await;
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"name": "wrong", "namespace": "default"}, "spec": {"overrideRules": wrong_rule("m1")}});
    world.instance.create(&overrides(), NS, &rule).await.unwrap();
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    for member in ["m2", "m3"] {
        world.in_member(member, &deployments(), "web", |_| true).await;
    }
    let message = event(&world, "ApplyOverridePolicyFailed", "web").await;
    assert!(message.starts_with("cluster m1: override policy wrong: "), "{message}");
    assert!(world.member("m1").get_opt(&deployments(), NS, "web").await.unwrap().is_none());
    // Changes go on reaching the others, and the cluster is tried again until it can be served.
    let more = json!({"spec": {"replicas": 2}});
    world.instance.patch(&deployments(), NS, "web", "", Patch::Merge, &more).await.unwrap();
    for member in ["m2", "m3"] {
        world.in_member(member, &deployments(), "web", |copy| copy["spec"]["replicas"] == 2).await;
    }
    world.instance.delete(&overrides(), NS, "wrong", &Value::Null).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_fails_for_one_cluster_keeps_no_other_from_its_namespace() {
    let world = World::start(2).await;
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": "wrong"},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "Namespace"}], "overrideRules": wrong_rule("m1")}});
    let cluster_overrides = Gvr::new("policy.karmada.io", "v1alpha1", "clusteroverridepolicies");
    world.instance.create(&cluster_overrides, None, &rule).await.unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    world.instance.create(&core("namespaces"), None, &namespace).await.unwrap();
    let there = async |member: &str| world.member(member).get_opt(&core("namespaces"), None, "shop").await.unwrap();
    world.eventually("m2 has it", async || there("m2").await.is_some()).await;
    let message = event(&world, "ApplyOverridePolicyFailed", "shop").await;
    assert!(message.starts_with("cluster m1: override policy wrong: "), "{message}");
    assert!(there("m1").await.is_none());
    world.instance.delete(&cluster_overrides, None, "wrong", &Value::Null).await.unwrap();
    world.eventually("m1 has it", async || there("m1").await.is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_keep_the_number_that_was_decided_on_while_scheduling_is_suspended() {
    let world = World::start(1).await;
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 2)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == 2).await;
    let hold = |yes: bool| json!({"spec": {"suspension": {"scheduling": yes}}});
    world.instance.patch(&bindings(), NS, "web-deployment", "", Patch::Merge, &hold(true)).await.unwrap();
    // The second change shows that the copy follows the template in all else.
    let scaled = json!({"spec": {"replicas": 5, "minReadySeconds": 7}});
    world.instance.patch(&deployments(), NS, "web", "", Patch::Merge, &scaled).await.unwrap();
    let copy = world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["minReadySeconds"] == 7).await;
    assert_eq!(copy["spec"]["replicas"], 2);
    let binding = world.instance.get(&bindings(), NS, "web-deployment").await.unwrap();
    assert_eq!((&binding["spec"]["replicas"], &binding["spec"]["clusters"][0]["replicas"]), (&json!(5), &json!(2)));
    world.instance.patch(&bindings(), NS, "web-deployment", "", Patch::Merge, &hold(false)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == 5).await;
}
