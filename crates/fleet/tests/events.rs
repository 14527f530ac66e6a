//! What happens to templates and bindings is told in events, each thing once.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use atoll_fleet::keys::TemplateKey;
use atoll_meta::{Gvk, Gvr};
use atoll_runtime::Patch;
use serde_json::{Value, json};
use support::{
    NS, World, bindings, clusters, config_map, core, customization, customizations, deployment, deployments, only,
    overrides, policies, policy,
};

/// The events with a reason, once all that were told are sent.
async fn events(world: &World, reason: &str) -> Vec<Value> {
    world.fleet.as_ref().unwrap().core().queues.events.rest().await;
    let events = world.instance.list(&core("events"), None, "").await.unwrap().items;
    events.into_iter().filter(|event| event["reason"] == reason).collect()
}

/// What the events with a reason are about, and what they say.
async fn told(world: &World, reason: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut told: Vec<_> = events(world, reason)
        .await
        .iter()
        .map(|event| (text(&event["involvedObject"]["kind"]), text(&event["message"])))
        .collect();
    told.sort();
    told
}

fn key(kind: (&str, &str), name: &str) -> TemplateKey {
    TemplateKey { gvk: Arc::new(Gvk::of(kind.0, kind.1)), namespace: "default".into(), name: name.into() }
}

/// Waits until a template was tried in vain for some times.
async fn tried(world: &World, key: &TemplateKey) {
    let queue = &world.fleet.as_ref().unwrap().core().queues.templates;
    world.eventually("it was tried again and again", async || queue.failures(key) > 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn how_decisions_come_out_is_told_when_it_changes() {
    let world = World::start(2).await;
    world.instance.create(&policies(), NS, &policy("p", only(&["nowhere"]))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 2)).await.unwrap();
    world.eventually("the failure is told", async || world.told_about("ScheduleBindingFailed", "web").await).await;
    let failed = events(&world, "ScheduleBindingFailed").await;
    assert_eq!(failed.len(), 2, "{failed:?}");
    for event in &failed {
        let about = &event["involvedObject"];
        let object = match about["kind"].as_str().unwrap() {
            "ResourceBinding" => world.instance.get(&bindings(), NS, "web-deployment").await.unwrap(),
            _ => world.instance.get(&deployments(), NS, "web").await.unwrap(),
        };
        assert_eq!(about["uid"], object["metadata"]["uid"], "{event}");
        assert_eq!((event["type"].as_str(), &event["metadata"]["namespace"]), (Some("Warning"), &json!("default")));
        assert!(event["message"].as_str().unwrap().starts_with("0/2 clusters"), "{event}");
    }

    // It finds a place, which is told once, however often it is looked at then.
    world.instance.patch(&policies(), NS, "p", "", Patch::Merge, &json!({"spec": only(&["m1"])})).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    for value in ["a", "b", "c"] {
        let label = json!({"metadata": {"labels": {"touched": value}}});
        world.instance.patch(&clusters(), None, "m2", "", Patch::Merge, &label).await.unwrap();
        world.instance.patch(&deployments(), NS, "web", "", Patch::Merge, &label).await.unwrap();
        world.in_member("m1", &deployments(), "web", |copy| copy["metadata"]["labels"]["touched"] == value).await;
    }
    let place = "placed in m1 (2 replicas)".to_owned();
    let both =
        |message: &String| vec![("Deployment".into(), message.clone()), ("ResourceBinding".into(), message.clone())];
    assert_eq!(told(&world, "ScheduleBindingSucceed").await, both(&place));
    assert_eq!(events(&world, "ScheduleBindingFailed").await.len(), 2);

    // A first decision that finds a place is told to nobody: there is one for everything that is made.
    world.instance.create(&deployments(), NS, &deployment("more", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "more", |_| true).await;
    assert_eq!(events(&world, "ScheduleBindingSucceed").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_condition_of_a_binding_follows_the_clusters_that_are_refused() {
    let mut world = World::new(2).await;
    world.run(|_| {}).await;
    world.join("m1", json!({})).await;
    world.instance.create(&policies(), NS, &policy("p", only(&["nowhere"]))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    let says = async |part: &str| {
        let condition = world.condition("web-deployment", "Scheduled").await;
        condition["message"].as_str().is_some_and(|message| message.contains(part))
    };
    world.eventually("of one cluster none fits", async || says("0/1 clusters").await).await;
    world.join("m2", json!({})).await;
    world.eventually("of two clusters none fits", async || says("0/2 clusters").await).await;
    let trace = async || atoll_fleet::why::trace(&world.instance, "deployment", "default", "web").await.unwrap();
    let refused = async || trace().await.to_string().contains("○ m2  refused by ClusterAffinity");
    world.eventually("it is told why the second does not do", refused).await;
    assert_eq!(events(&world, "ScheduleBindingFailed").await.len(), 2, "the outcome is the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_cannot_be_applied_is_told_once_however_often_it_is_tried() {
    let world = World::start(1).await;
    let class = json!({"priorityClassSource": "KubePriorityClass", "priorityClassName": "gold"});
    world.instance.create(&policies(), NS, &policy("p", json!({"schedulePriority": class}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    tried(&world, &key(("apps/v1", "Deployment"), "web")).await;
    let message = "PropagationPolicy default/p cannot be applied: PriorityClass gold does not exist".to_owned();
    assert_eq!(told(&world, "ApplyPolicyFailed").await, [("Deployment".to_owned(), message)]);
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gold"}, "value": 7});
    let classes = Gvr::new("scheduling.k8s.io", "v1", "priorityclasses");
    world.instance.create(&classes, None, &class).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;

    // An override that does not fit.
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": "o", "namespace": "default"},
        "spec": {"overrideRules": [{"overriders": {"plaintext": [{"path": "/spec/none/of/it", "operator": "replace", "value": 1}]}}]}});
    world.instance.create(&overrides(), NS, &rule).await.unwrap();
    let binding = key(("apps/v1", "Deployment"), "web").binding();
    let works = &world.fleet.as_ref().unwrap().core().queues.works;
    world.eventually("it was tried again and again", async || works.failures(&binding) > 5).await;
    assert_eq!(events(&world, "ApplyOverridePolicyFailed").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependency_that_cannot_go_along_is_told_of_its_binding() {
    let world = World::start(1).await;
    let script = json!({"replicaResource": {"luaScript": "function GetReplicas(obj) error('no idea') end"}});
    let custom = customization("maps", ("v1", "ConfigMap"), script);
    world.instance.create(&customizations(), None, &custom).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &config_map("settings", json!({}))).await.unwrap();
    let mut template = deployment("web", 1);
    template["spec"]["template"]["spec"]["volumes"] = json!([{"name": "v", "configMap": {"name": "settings"}}]);
    world.instance.create(&policies(), NS, &policy("p", json!({"propagateDeps": true}))).await.unwrap();
    world.instance.create(&deployments(), NS, &template).await.unwrap();
    let reason = "SyncScheduleResultToDependenciesFailed";
    world.eventually("the failure is told", async || world.told_about(reason, "web-deployment").await).await;
    let told = told(&world, reason).await;
    assert!(told.len() == 1 && told[0].1.starts_with("ConfigMap default/settings cannot go along"), "{told:?}");
}

/// Two members, controllers that leave what fails, and a Deployment in the first member.
async fn with_failover(failover: Value) -> World {
    let mut world = World::new(2).await;
    world
        .run(|options| {
            options.failover = true;
            options.evict_on_taints = true;
            options.eviction_interval = Duration::from_millis(1);
        })
        .await;
    for name in ["m1", "m2"] {
        world.join(name, json!({})).await;
    }
    let one = json!({"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]});
    let spec = json!({"propagateDeps": true, "placement": one, "failover": failover});
    world.instance.create(&policies(), NS, &policy("p", spec)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 2)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn evictions_are_told_when_they_begin_and_when_they_are_over() {
    let state = json!({"rules": [{"aliasLabelName": "seen", "jsonPath": "{.nothing}"}]});
    let world = with_failover(json!({"cluster": {"statePreservation": state}})).await;
    let taint = json!({"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}});
    world.instance.patch(&clusters(), None, "m1", "", Patch::Merge, &taint).await.unwrap();
    world.report("m2", "web", 2).await;
    world.not_in_member("m1", &deployments(), "web").await;
    let reason = "EvictWorkloadFromClusterSucceed";
    world.eventually("both steps are told", async || events(&world, reason).await.len() == 4).await;
    let began = "eviction from cluster m1 began: cluster m1 has a NoExecute taint that is not tolerated";
    let over = "eviction from cluster m1 is over";
    let wanted = [("Deployment", began), ("Deployment", over), ("ResourceBinding", began), ("ResourceBinding", over)];
    assert_eq!(told(&world, reason).await, wanted.map(|(kind, message)| (kind.to_owned(), message.to_owned())));
    let lost = told(&world, "EvictWorkloadFromClusterFailed").await;
    let sentence = "evicted from cluster m1 without its state, which cannot be preserved: {.nothing} finds nothing";
    assert!(lost.len() == 2 && lost.iter().all(|(_, message)| message == sentence), "{lost:?}");
    assert_eq!(told(&world, "ScheduleBindingSucceed").await[0].1, "placed in m2 (2 replicas)");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_whose_state_cannot_be_preserved_stays_and_that_is_told() {
    let state = json!({"rules": [{"aliasLabelName": "seen", "jsonPath": "{.nothing}"}]});
    let patience = json!({"tolerationSeconds": 1});
    let world =
        with_failover(json!({"application": {"decisionConditions": patience, "statePreservation": state}})).await;
    world.report("m1", "web", 1).await;
    let reason = "EvictWorkloadFromClusterFailed";
    world.eventually("it is told", async || events(&world, reason).await.len() == 2).await;
    let sentence = "not evicted from cluster m1: its state cannot be preserved: {.nothing} finds nothing";
    let told = told(&world, reason).await;
    assert!(told.iter().all(|(_, message)| message == sentence), "{told:?}");
    assert_eq!(world.targets("web-deployment").await, ["m1"]);
}
