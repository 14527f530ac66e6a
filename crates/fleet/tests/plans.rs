//! A plan says what comes of a policy before it is applied, and a trace what has come of it.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;

use atoll_fleet::plan::plan;
use atoll_fleet::why::trace;
use jiff::Timestamp;
use serde_json::{Value, json};
use support::{
    NS, World, bindings, customization, customizations, definitions, deployment, deployments, gear, gear_definition,
    gears, policies, policy,
};

/// Replicas of the binding by cluster.
async fn shares(world: &World, binding: &str) -> BTreeMap<String, i32> {
    let binding = world.instance.get(&bindings(), NS, binding).await.unwrap();
    let clusters = binding["spec"]["clusters"].as_array().cloned().unwrap_or_default();
    clusters
        .iter()
        .map(|cluster| {
            let replicas = cluster["replicas"].as_i64().unwrap_or_default();
            (cluster["name"].as_str().unwrap().to_owned(), i32::try_from(replicas).unwrap())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plan_says_is_what_comes_of_the_policy() {
    let world = World::start(3).await;
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 6)).await.unwrap();
    world.in_member("m3", &deployments(), "web", |_| true).await;
    let next = json!({"placement": {"clusterAffinity": {"clusterNames": ["m3"]}}});
    world.instance.create(&policies(), NS, &policy("q", next)).await.unwrap();
    let each = |more: Value| json!({"replicaSchedulingType": more});
    for (spec, said) in [
        (json!({"placement": {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}}), "m1 6 m2 6 m3 6→gone"),
        // Left out: what divides them.
        (json!({"placement": {"replicaScheduling": each(json!("Divided"))}}), "m1 6→2 m2 6→2 m3 new→2"),
        // Left out: by what it is spread.
        (
            json!({"placement": {"spreadConstraints": [{"maxGroups": 1}], "replicaScheduling": each(json!("Duplicated"))}}),
            "→gone",
        ),
        // It lets go of what it has, and the next policy takes it.
        (json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}]}), "(taken from default/p)"),
    ] {
        let mut changed = policy("p", spec);
        let moves = plan(&world.instance, &changed, Timestamp::now()).await.unwrap();
        assert_eq!(moves.len(), 1, "{moves:?}");
        assert!(moves[0].to_string().contains(said), "{}", moves[0]);
        let before = world.instance.get(&policies(), NS, "p").await.unwrap();
        changed["metadata"] = before["metadata"].clone();
        world.instance.update(&policies(), NS, "p", &changed).await.unwrap();
        world
            .eventually("it is decided as planned", async || shares(&world, "web-deployment").await == moves[0].after)
            .await;
    }
    assert_eq!(world.targets("web-deployment").await, ["m3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_be_refused_is_refused_when_planned() {
    let world = World::start(1).await;
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    let spread =
        json!({"placement": {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 3, "maxGroups": 2}]}});
    let with = |field: &str, value: Value| {
        let mut changed = policy("p", json!({}));
        changed[field] = value;
        changed
    };
    for (wrong, code, why) in [
        (deployment("web", 1), 400, "neither a PropagationPolicy"),
        (with("kind", json!("OverridePolicy")), 400, "neither a PropagationPolicy"),
        (with("apiVersion", json!("policy.karmada.io/v9")), 400, "neither a PropagationPolicy"),
        (with("metadata", json!("web")), 400, "metadata.name"),
        (with("spec", json!("everything")), 400, "spec"),
        (with("spec", json!({"resourceSelectors": ["everything"]})), 400, "spec"),
        (policy("p", spread), 422, "maxGroups"),
    ] {
        let refusal = plan(&world.instance, &wrong, Timestamp::now()).await.unwrap_err();
        assert!(refusal.code == code && refusal.message.contains(why), "{wrong}: {refusal}");
    }
    // Without a namespace it would be applied in `default`.
    let moves = plan(&world.instance, &with("metadata", json!({"name": "p"})), Timestamp::now()).await.unwrap();
    assert_eq!(moves[0].to_string(), "Deployment default/web: m1 new→1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_judges_by_scripts_and_says_nothing_of_what_is_somebody_elses() {
    let world = World::start_with_proxy(1).await;
    for endpoint in [&world.instance, world.member("m1")] {
        endpoint.create(&definitions(), None, &gear_definition()).await.unwrap();
    }
    let script =
        json!({"healthInterpretation": {"luaScript": "function InterpretHealth(obj) return obj.spec.teeth > 5 end"}});
    let target = ("example.io/v1", "Gear");
    world.instance.create(&customizations(), None, &customization("gear", target, script)).await.unwrap();
    world.member("m1").create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    let both =
        json!([{"apiVersion": "example.io/v1", "kind": "Gear"}, {"apiVersion": "apps/v1", "kind": "Deployment"}]);
    world.instance.create(&policies(), NS, &policy("p", json!({"resourceSelectors": both}))).await.unwrap();
    world.instance.create(&gears(), NS, &gear("blunt", 3)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    for (kind, name, object, obstacle) in [
        ("gear", "blunt", "object unhealthy", "It is unhealthy in cluster m1"),
        ("deployment", "web", "object of somebody else", "already exists in cluster m1"),
    ] {
        world
            .eventually(&format!("the trace of {name} says so"), async || {
                let trace = trace(&world.instance, kind, "default", name).await.unwrap();
                trace.to_string().contains(object) && trace.obstacle.is_some_and(|text| text.contains(obstacle))
            })
            .await;
    }
}
