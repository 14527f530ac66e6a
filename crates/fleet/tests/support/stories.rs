//! Stories that members of every make must tell alike. Each uses names of its own, so that they share a world.
#![allow(dead_code, clippy::unwrap_used)]

use std::time::Duration;

use atoll_runtime::Patch;
use serde_json::{Value, json};

use super::support::{
    NS, World, bindings, clusters, config_map, core, customization, customizations, definitions, deployment,
    deployments, gear, gear_definition, gears, map_policy, marked_map, overrides, policies, policy, rebalancer,
    rebalancers,
};

/// The names of the members.
pub const MEMBERS: [&str; 3] = ["m1", "m2", "m3"];

/// A world whose controllers leave tainted clusters.
pub async fn start(world: &mut World) {
    settings(world).await;
    for name in MEMBERS {
        world.join(name, json!({})).await;
    }
}

/// Starts the controllers.
async fn settings(world: &mut World) {
    world
        .run(|options| {
            options.failover = true;
            options.evict_on_taints = true;
            options.eviction_interval = Duration::from_millis(1);
            options.probe_interval = Duration::from_millis(500);
            options.probe_threshold = Duration::from_secs(1);
        })
        .await;
}

/// A policy for one Deployment.
fn policy_for(name: &str, more: Value) -> Value {
    let mut spec = json!({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}]});
    atoll_patch::merge_patch(&mut spec, &more);
    policy(name, spec)
}

async fn place(world: &World, name: &str, replicas: i64, more: Value) {
    world.instance.create(&policies(), NS, &policy_for(name, more)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment(name, replicas)).await.unwrap();
}

fn image(copy: &Value) -> &str {
    copy["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap()
}

/// Copies come, follow edits, report back and go.
pub async fn spread_edit_delete(world: &mut World) {
    place(world, "web", 2, json!({})).await;
    for member in MEMBERS {
        world.report(member, "web", 2).await;
    }
    world
        .eventually("the template counts six", async || {
            world.instance.get(&deployments(), NS, "web").await.unwrap()["status"]["readyReplicas"] == 6
        })
        .await;
    let newer = json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:2"}]);
    world.instance.patch(&deployments(), NS, "web", "", Patch::Json, &newer).await.unwrap();
    for member in MEMBERS {
        world.in_member(member, &deployments(), "web", |copy| image(copy) == "nginx:2").await;
    }
    world.instance.delete(&deployments(), NS, "web", &Value::Null).await.unwrap();
    for member in MEMBERS {
        world.not_in_member(member, &deployments(), "web").await;
    }
    world
        .eventually("no binding is left", async || {
            world.instance.get_opt(&bindings(), NS, "web-deployment").await.unwrap().is_none()
        })
        .await;
}

/// Replicas are divided by weight, also after scaling and after an edit of the weights.
pub async fn weights(world: &mut World) {
    let list = |weights: [i64; 3]| {
        let entry =
            |(member, weight): (&str, i64)| json!({"targetCluster": {"clusterNames": [member]}, "weight": weight});
        let list: Vec<Value> = MEMBERS.into_iter().zip(weights).map(entry).collect();
        json!({"placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": list}}}})
    };
    let shares = async |world: &World, wanted: [i64; 3]| {
        for (member, replicas) in MEMBERS.into_iter().zip(wanted) {
            world.in_member(member, &deployments(), "scales", |copy| copy["spec"]["replicas"] == replicas).await;
        }
    };
    place(world, "scales", 6, list([1, 2, 3])).await;
    shares(world, [1, 2, 3]).await;
    let more = json!({"spec": {"replicas": 12}});
    world.instance.patch(&deployments(), NS, "scales", "", Patch::Merge, &more).await.unwrap();
    shares(world, [2, 4, 6]).await;
    let spec = json!({"spec": list([2, 1, 1])});
    world.instance.patch(&policies(), NS, "scales", "", Patch::Merge, &spec).await.unwrap();
    shares(world, [6, 3, 3]).await;
}

/// Copies differ where overrides say so, and not elsewhere.
pub async fn overrides_per_cluster(world: &mut World) {
    place(world, "differs", 1, json!({})).await;
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": "differs", "namespace": "default"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "differs"}], "overrideRules": [
            {"targetCluster": {"clusterNames": ["m1"]}, "overriders": {"imageOverrider": [{"component": "Registry", "operator": "add", "value": "near.example"}]}},
            {"targetCluster": {"clusterNames": ["m2"]}, "overriders": {"labelsOverrider": [{"operator": "add", "value": {"tier": "gold"}}]}}]}});
    world.instance.create(&overrides(), NS, &rule).await.unwrap();
    world.in_member("m1", &deployments(), "differs", |copy| image(copy) == "near.example/nginx:1").await;
    world.in_member("m2", &deployments(), "differs", |copy| copy["metadata"]["labels"]["tier"] == "gold").await;
    let plain = world.in_member("m3", &deployments(), "differs", |_| true).await;
    assert_eq!((image(&plain), plain["metadata"]["labels"].get("tier")), ("nginx:1", None));
    world.instance.delete(&overrides(), NS, "differs", &Value::Null).await.unwrap();
    world.in_member("m1", &deployments(), "differs", |copy| image(copy) == "nginx:1").await;
    world.in_member("m2", &deployments(), "differs", |copy| copy["metadata"]["labels"].get("tier").is_none()).await;
}

/// What a template refers to goes where it goes.
pub async fn dependencies(world: &mut World) {
    let mut spec = super::support::only(&["m2"]);
    spec["propagateDeps"] = true.into();
    world.instance.create(&policies(), NS, &policy_for("needy", spec)).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &config_map("needed", json!({"k": "1"}))).await.unwrap();
    let mut needy = deployment("needy", 1);
    needy["spec"]["template"]["spec"]["volumes"] = json!([{"name": "v", "configMap": {"name": "needed"}}]);
    world.instance.create(&deployments(), NS, &needy).await.unwrap();
    world.in_member("m2", &core("configmaps"), "needed", |_| true).await;
    assert!(world.member("m1").get_opt(&core("configmaps"), NS, "needed").await.unwrap().is_none());
    world.instance.delete(&deployments(), NS, "needy", &Value::Null).await.unwrap();
    world.not_in_member("m2", &core("configmaps"), "needed").await;
}

/// A kind nobody knows is divided and summed up by scripts.
pub async fn custom_resources(world: &mut World) {
    for endpoint in std::iter::once(&world.instance).chain(&world.members) {
        endpoint.create(&definitions(), None, &gear_definition()).await.unwrap();
    }
    let scripts = json!({
        "replicaResource": {"luaScript": "function GetReplicas(obj) return obj.spec.teeth, nil end"},
        "replicaRevision": {"luaScript": "function ReviseReplica(obj, n) obj.spec.teeth = n return obj end"},
        "healthInterpretation": {"luaScript": "function InterpretHealth(obj) return obj.status ~= nil and obj.status.turns > 0 end"},
        "statusAggregation": {"luaScript": "function AggregateStatus(obj, items) local n = 0 for i = 1, #items do n = n + items[i].status.turns end obj.status = {turns = n} return obj end"}});
    world
        .instance
        .create(&customizations(), None, &customization("gear", ("example.io/v1", "Gear"), scripts))
        .await
        .unwrap();
    let rule = policy(
        "gears",
        json!({"resourceSelectors": [{"apiVersion": "example.io/v1", "kind": "Gear"}],
        "placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}}}),
    );
    for name in MEMBERS {
        world
            .eventually(&format!("{name} is known to serve gears"), async || {
                let cluster = world.instance.get(&clusters(), None, name).await.unwrap();
                let groups = cluster["status"]["apiEnablements"].as_array().cloned().unwrap_or_default();
                groups.iter().any(|group| group["groupVersion"] == "example.io/v1")
            })
            .await;
    }
    world.instance.create(&policies(), NS, &rule).await.unwrap();
    world.instance.create(&gears(), NS, &gear("g", 9)).await.unwrap();
    for member in MEMBERS {
        world.in_member(member, &gears(), "g", |gear| gear["spec"]["teeth"] == 3).await;
        let turns = json!({"status": {"turns": 3}});
        world.member(member).patch(&gears(), NS, "g", "status", Patch::Merge, &turns).await.unwrap();
    }
    world
        .eventually("the template adds up and all are healthy", async || {
            let binding = world.instance.get(&bindings(), NS, "g-gear").await.unwrap();
            let items = binding["status"]["aggregatedStatus"].as_array().cloned().unwrap_or_default();
            let healthy = items.iter().filter(|item| item["health"] == "Healthy").count();
            healthy == 3 && world.instance.get(&gears(), NS, "g").await.unwrap()["status"]["turns"] == 9
        })
        .await;
}

/// A workload leaves a tainted cluster gently, and returns when asked.
pub async fn failover_and_return(world: &mut World) {
    let one = json!({"placement": {"clusterAffinities": [
        {"affinityName": "home", "clusterNames": ["m1"]}, {"affinityName": "away", "clusterNames": ["m2"]}]}});
    place(world, "mover", 1, one).await;
    world.report("m1", "mover", 1).await;
    let taints = |list: Value| json!({"spec": {"taints": list}});
    let broken = taints(json!([{"key": "broken", "effect": "NoExecute"}]));
    world.instance.patch(&clusters(), None, "m1", "", Patch::Merge, &broken).await.unwrap();
    world.in_member("m2", &deployments(), "mover", |_| true).await;
    assert!(world.member("m1").get_opt(&deployments(), NS, "mover").await.unwrap().is_some(), "the old copy waits");
    world.report("m2", "mover", 1).await;
    world.not_in_member("m1", &deployments(), "mover").await;
    world.instance.patch(&clusters(), None, "m1", "", Patch::Merge, &taints(json!([]))).await.unwrap();
    assert_eq!(world.targets("mover-deployment").await, ["m2"], "nothing returns unasked");
    world.instance.create(&rebalancers(), None, &rebalancer("home", "mover")).await.unwrap();
    world.in_member("m1", &deployments(), "mover", |_| true).await;
    world.report("m1", "mover", 1).await;
    world.not_in_member("m2", &deployments(), "mover").await;
}

/// A member that is away delays nobody, loses nothing, and catches up.
pub async fn a_member_dies(world: &mut World) {
    world.instance.create(&policies(), NS, &map_policy("absent", "absent", json!({}))).await.unwrap();
    for name in ["kept", "dropped"] {
        world.instance.create(&core("configmaps"), NS, &marked_map(name, "absent", "1")).await.unwrap();
    }
    let mut uids = Vec::new();
    for member in MEMBERS {
        world.in_member(member, &core("configmaps"), "dropped", |_| true).await;
        let copy = world.in_member(member, &core("configmaps"), "kept", |_| true).await;
        uids.push(copy["metadata"]["uid"].clone());
    }
    world.cut("m3", true);
    world.instance.create(&core("configmaps"), NS, &marked_map("fresh", "absent", "1")).await.unwrap();
    world.instance.delete(&core("configmaps"), NS, "dropped", &Value::Null).await.unwrap();
    let newer = json!({"data": {"value": "2"}});
    world.instance.patch(&core("configmaps"), NS, "kept", "", Patch::Merge, &newer).await.unwrap();
    for member in ["m1", "m2"] {
        world.in_member(member, &core("configmaps"), "fresh", |_| true).await;
        world.in_member(member, &core("configmaps"), "kept", |map| map["data"]["value"] == "2").await;
        world.not_in_member(member, &core("configmaps"), "dropped").await;
    }
    world.readiness("m3", "False").await;
    let there = world.member("m3").get(&core("configmaps"), NS, "kept").await.unwrap();
    assert_eq!(there["data"]["value"], "1", "nothing reached the member, and nothing was lost there");
    world.cut("m3", false);
    world.in_member("m3", &core("configmaps"), "fresh", |_| true).await;
    world.in_member("m3", &core("configmaps"), "kept", |map| map["data"]["value"] == "2").await;
    world.not_in_member("m3", &core("configmaps"), "dropped").await;
    world.readiness("m3", "True").await;
    for (member, uid) in MEMBERS.into_iter().zip(uids) {
        let copy = world.member(member).get(&core("configmaps"), NS, "kept").await.unwrap();
        assert_eq!(copy["metadata"]["uid"], uid, "what stayed wanted was never deleted in {member}");
    }
}

/// Controllers that die in the middle of work resume it.
pub async fn the_hub_dies(world: &mut World) {
    world.instance.create(&policies(), NS, &map_policy("mortal", "mortal", json!({}))).await.unwrap();
    for number in 0..20 {
        let map = marked_map(&format!("mortal-{number}"), "mortal", "1");
        world.instance.create(&core("configmaps"), NS, &map).await.unwrap();
    }
    world.crash();
    world.instance.delete(&core("configmaps"), NS, "mortal-0", &Value::Null).await.unwrap();
    let newer = json!({"data": {"value": "2"}});
    world.instance.patch(&core("configmaps"), NS, "mortal-1", "", Patch::Merge, &newer).await.unwrap();
    settings(world).await;
    for member in MEMBERS {
        for number in 2..20 {
            world.in_member(member, &core("configmaps"), &format!("mortal-{number}"), |_| true).await;
        }
        world.in_member(member, &core("configmaps"), "mortal-1", |map| map["data"]["value"] == "2").await;
        world.not_in_member(member, &core("configmaps"), "mortal-0").await;
    }
}

/// All of them, one after the other.
pub async fn all(world: &mut World) {
    start(world).await;
    spread_edit_delete(world).await;
    weights(world).await;
    overrides_per_cluster(world).await;
    dependencies(world).await;
    custom_resources(world).await;
    failover_and_return(world).await;
    a_member_dies(world).await;
    the_hub_dies(world).await;
}
