//! Whatever people change in a template reaches its members, and nothing they leave alone goes.
#![allow(clippy::unwrap_used)]

mod support;

use atoll_runtime::Patch;
use serde_json::{Value, json};
use support::{NS, World, bindings, config_map, core, deployment, deployments, overrides, policies, policy};

fn only_m1(more: Value) -> Value {
    let mut spec = json!({"placement": {"clusterAffinity": {"clusterNames": ["m1"]}}});
    atoll_patch::merge_patch(&mut spec, &more);
    spec
}

/// A policy of the maps, which the usual one does not select.
fn of_maps(name: &str, more: Value) -> Value {
    let mut rule = policy(name, only_m1(more));
    rule["spec"]["resourceSelectors"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]);
    rule
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_under_a_lazy_policy_go_on_reaching_the_members() {
    let world = World::start(1).await;
    let lazy = json!({"activationPreference": "Lazy"});
    world.instance.create(&policies(), NS, &policy("p", only_m1(lazy.clone()))).await.unwrap();
    world.instance.create(&policies(), NS, &of_maps("q", lazy)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &config_map("settings", json!({"k": "0"}))).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    world.in_member("m1", &core("configmaps"), "settings", |_| true).await;
    // Neither changes anything in the binding but the note of what activated it.
    for round in ["1", "2"] {
        let image = json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": format!("web:{round}")}]);
        world.instance.patch(&deployments(), NS, "web", "", Patch::Json, &image).await.unwrap();
        let data = json!({"data": {"k": round}});
        world.instance.patch(&core("configmaps"), NS, "settings", "", Patch::Merge, &data).await.unwrap();
        let image = |copy: &Value| copy["spec"]["template"]["spec"]["containers"][0]["image"] == format!("web:{round}");
        world.in_member("m1", &deployments(), "web", image).await;
        world.in_member("m1", &core("configmaps"), "settings", |copy| copy["data"]["k"] == round).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_template_comes_to_need_goes_along() {
    let world = World::start(1).await;
    let along = json!({"propagateDeps": true});
    world.instance.create(&policies(), NS, &policy("p", only_m1(along))).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &config_map("settings", json!({"k": "1"}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    let volumes = json!([{"name": "v", "configMap": {"name": "settings"}}]);
    let patch = json!({"spec": {"template": {"spec": {"volumes": volumes}}}});
    world.instance.patch(&deployments(), NS, "web", "", Patch::Merge, &patch).await.unwrap();
    world.in_member("m1", &core("configmaps"), "settings", |_| true).await;
    let mounted = |copy: &Value| copy["spec"]["template"]["spec"]["volumes"][0]["name"] == "v";
    world.in_member("m1", &deployments(), "web", mounted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_policy_that_is_gone_has_placed_stays_when_its_user_goes() {
    let world = World::start(2).await;
    let along = json!({"propagateDeps": true});
    world.instance.create(&policies(), NS, &policy("p", only_m1(along))).await.unwrap();
    let both = json!({"placement": {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}});
    world.instance.create(&policies(), NS, &of_maps("q", both)).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &config_map("settings", json!({"k": "1"}))).await.unwrap();
    let mut web = deployment("web", 1);
    web["spec"]["template"]["spec"]["volumes"] = json!([{"name": "v", "configMap": {"name": "settings"}}]);
    world.instance.create(&deployments(), NS, &web).await.unwrap();
    let first = world.in_member("m2", &core("configmaps"), "settings", |_| true).await;
    let binding = async || world.instance.get(&bindings(), NS, "settings-configmap").await.unwrap();
    let tied = async || binding().await["spec"]["requiredBy"].as_array().is_some_and(|list| !list.is_empty());
    world.eventually("the map goes along with its user", tied).await;
    world.instance.delete(&policies(), NS, "q", &Value::Null).await.unwrap();
    let label = "propagationpolicy.karmada.io/permanent-id";
    world
        .eventually("no policy has the map", async || {
            let map = world.instance.get(&core("configmaps"), NS, "settings").await.unwrap();
            map["metadata"]["labels"].get(label).is_none()
        })
        .await;
    world.instance.delete(&deployments(), NS, "web", &Value::Null).await.unwrap();
    world.not_in_member("m1", &deployments(), "web").await;
    let untied = async || binding().await["spec"]["requiredBy"].as_array().is_none_or(Vec::is_empty);
    world.eventually("its user has let go of it", untied).await;
    for member in ["m1", "m2"] {
        world.in_member(member, &core("configmaps"), "settings", |_| true).await;
    }
    let last = world.in_member("m2", &core("configmaps"), "settings", |_| true).await;
    assert_eq!(first["metadata"]["uid"], last["metadata"]["uid"], "it was never gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_takes_everything_away_stops_only_what_it_is_for() {
    let mut world = World::new(1).await;
    // Whoever breaks the only worker breaks everything.
    world.run(|options| options.workers = 1).await;
    world.join("m1", json!({})).await;
    let selector = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "bad"}]);
    let plain = json!([{"path": "/metadata", "operator": "replace", "value": "x"}]);
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": "o", "namespace": "default"},
        "spec": {"resourceSelectors": selector, "overrideRules": [{"overriders": {"plaintext": plain}}]}});
    world.instance.create(&overrides(), NS, &rule).await.unwrap();
    world.instance.create(&policies(), NS, &policy("p", only_m1(json!({})))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("bad", 1)).await.unwrap();
    let told = async || {
        let events = world.instance.list(&core("events"), NS, "").await.unwrap().items;
        events
            .iter()
            .any(|event| event["reason"] == "ApplyOverridePolicyFailed" && event["involvedObject"]["name"] == "bad")
    };
    world.eventually("the mistake is told", told).await;
    world.instance.create(&deployments(), NS, &deployment("good", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "good", |_| true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_that_comes_back_with_its_claim_is_spread_under_a_lazy_policy() {
    let world = World::start(1).await;
    let lazy = json!({"activationPreference": "Lazy"});
    world.instance.create(&policies(), NS, &policy("p", only_m1(lazy))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    let read = world.instance.get(&deployments(), NS, "web").await.unwrap();
    world.instance.delete(&deployments(), NS, "web", &Value::Null).await.unwrap();
    let gone = async || world.instance.get_opt(&bindings(), NS, "web-deployment").await.unwrap().is_none();
    world.eventually("its binding is gone", gone).await;
    let mut again = deployment("web", 2);
    for field in ["labels", "annotations"] {
        again["metadata"][field] = read["metadata"][field].clone();
    }
    world.instance.create(&deployments(), NS, &again).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == 2).await;
}
