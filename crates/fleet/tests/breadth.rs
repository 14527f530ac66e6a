//! Stories of what policies can ask for beyond spreading.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use atoll_meta::Gvr;
use atoll_runtime::Patch;
use serde_json::{Value, json};
use support::{World, bindings, clusters, config_map, core, deployment, deployments, policies, policy};

const NS: Option<&str> = Some("default");

fn only(names: &[&str]) -> Value {
    json!({"placement": {"clusterAffinity": {"clusterNames": names}}})
}

/// What a controller of the member would report once all replicas run.
async fn report(world: &World, member: &str, name: &str, ready: i64) {
    let copy = world.in_member(member, &deployments(), name, |_| true).await;
    let status = json!({"status": {"observedGeneration": copy["metadata"]["generation"], "replicas": ready, "updatedReplicas": ready,
                                   "readyReplicas": ready, "availableReplicas": ready}});
    world.member(member).patch(&deployments(), NS, name, "status", Patch::Merge, &status).await.unwrap();
}

async fn targets(world: &World, name: &str) -> Vec<String> {
    let binding = world.instance.get_opt(&bindings(), NS, name).await.unwrap().unwrap_or_default();
    let names = binding["spec"]["clusters"].as_array().into_iter().flatten();
    names.map(|cluster| cluster["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_template_refers_to_goes_along_and_leaves_with_it() {
    let world = World::start(2).await;
    let mut spec = only(&["m1"]);
    spec["propagateDeps"] = true.into();
    world.instance.create(&policies(), NS, &policy("p", spec)).await.unwrap();
    let mut web = deployment("web", 1);
    web["spec"]["template"]["spec"]["volumes"] = json!([{"name": "v", "configMap": {"name": "settings"}}]);
    world.instance.create(&deployments(), NS, &web).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    // The map may come later than the one that needs it.
    world.instance.create(&core("configmaps"), NS, &config_map("settings", json!({"k": "1"}))).await.unwrap();
    world.in_member("m1", &core("configmaps"), "settings", |map| map["data"]["k"] == "1").await;
    world
        .instance
        .patch(&core("configmaps"), NS, "settings", "", Patch::Merge, &json!({"data": {"k": "2"}}))
        .await
        .unwrap();
    world.in_member("m1", &core("configmaps"), "settings", |map| map["data"]["k"] == "2").await;
    assert!(world.member("m2").get_opt(&core("configmaps"), NS, "settings").await.unwrap().is_none());
    world.instance.patch(&policies(), NS, "p", "", Patch::Merge, &json!({"spec": only(&["m2"])})).await.unwrap();
    world.in_member("m2", &core("configmaps"), "settings", |_| true).await;
    world.not_in_member("m1", &core("configmaps"), "settings").await;
    world.instance.delete(&deployments(), NS, "web", &Value::Null).await.unwrap();
    world.not_in_member("m2", &core("configmaps"), "settings").await;
    world
        .eventually("no binding of the map is left", async || {
            world.instance.get_opt(&bindings(), NS, "settings-configmap").await.unwrap().is_none()
        })
        .await;
    assert!(
        world.instance.get_opt(&core("configmaps"), NS, "settings").await.unwrap().is_some(),
        "the template itself stays"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lazy_policy_waits_for_a_change_of_the_template() {
    let world = World::start(2).await;
    let lazy = |names: &[&str]| {
        let mut spec = only(names);
        spec["activationPreference"] = "Lazy".into();
        spec
    };
    world.instance.create(&deployments(), NS, &deployment("early", 1)).await.unwrap();
    world.instance.create(&policies(), NS, &policy("p", lazy(&["m1"]))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("late", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "late", |_| true).await;
    assert!(targets(&world, "early-deployment").await.is_empty(), "what was there before waits");
    world.instance.patch(&policies(), NS, "p", "", Patch::Merge, &json!({"spec": lazy(&["m2"])})).await.unwrap();
    world
        .instance
        .patch(&deployments(), NS, "early", "", Patch::Merge, &json!({"metadata": {"labels": {"x": "y"}}}))
        .await
        .unwrap();
    world.in_member("m2", &deployments(), "early", |_| true).await;
    assert_eq!(targets(&world, "late-deployment").await, ["m1"], "untouched templates stay where they are");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_that_is_made_anew_under_a_lazy_policy_is_spread_anew() {
    let mut world = World::start(1).await;
    let mut spec = only(&["m1"]);
    spec["activationPreference"] = "Lazy".into();
    world.instance.create(&policies(), NS, &policy("p", spec)).await.unwrap();
    let mut copies = Vec::new();
    for name in ["written", "read"] {
        world.instance.create(&deployments(), NS, &deployment(name, 1)).await.unwrap();
        copies.push(world.in_member("m1", &deployments(), name, |_| true).await);
    }
    // While nobody looks, so that the bindings of the former ones are still there when the new ones are seen.
    world.crash();
    let mut read = deployment("read", 3);
    let claimed = world.instance.get(&deployments(), NS, "read").await.unwrap();
    for field in ["labels", "annotations"] {
        read["metadata"][field] = claimed["metadata"][field].clone();
    }
    for again in [deployment("written", 3), read] {
        let name = again["metadata"]["name"].as_str().unwrap();
        world.instance.delete(&deployments(), NS, name, &Value::Null).await.unwrap();
        world.instance.create(&deployments(), NS, &again).await.unwrap();
    }
    world.run(|_| {}).await;
    for (name, former) in ["written", "read"].into_iter().zip(copies) {
        let uid = &former["metadata"]["uid"];
        let anew = |copy: &Value| copy["spec"]["replicas"] == 3 && copy["metadata"]["uid"] != *uid;
        world.in_member("m1", &deployments(), name, anew).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_under_a_lazy_policy_is_remembered_while_an_override_is_missing() {
    let world = World::start(1).await;
    let mut spec = only(&["m1"]);
    spec["activationPreference"] = "Lazy".into();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.instance.create(&policies(), NS, &policy("p", spec)).await.unwrap();
    let label = "propagationpolicy.karmada.io/permanent-id";
    world
        .eventually("it is claimed", async || {
            let template = world.instance.get(&deployments(), NS, "web").await.unwrap();
            template["metadata"]["labels"].get(label).is_some()
        })
        .await;
    let waits = json!({"spec": {"dependentOverrides": ["first"]}});
    world.instance.patch(&policies(), NS, "p", "", Patch::Merge, &waits).await.unwrap();
    let touch = json!({"spec": {"replicas": 2}});
    world.instance.patch(&deployments(), NS, "web", "", Patch::Merge, &touch).await.unwrap();
    // Another template under another policy shows that the controllers have been by.
    world.instance.create(&policies(), NS, &support::map_policy("q", "s", json!({}))).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &support::marked_map("later", "s", "1")).await.unwrap();
    world.in_member("m1", &core("configmaps"), "later", |_| true).await;
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": "first", "namespace": "default"},
        "spec": {"overrideRules": [{"overriders": {"labelsOverrider": [{"operator": "add", "value": {"from": "first"}}]}}]}});
    world.instance.create(&support::overrides(), NS, &rule).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_policy_sends_nothing_until_it_is_resumed() {
    let world = World::start(2).await;
    world
        .instance
        .create(
            &policies(),
            NS,
            &policy("p", json!({"suspension": {"dispatchingOnClusters": {"clusterNames": ["m2"]}}})),
        )
        .await
        .unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    world
        .eventually("the work says it is held back", async || {
            let works = world.instance.list(&support::works(), Some("karmada-es-m2"), "").await.unwrap().items;
            works
                .iter()
                .flat_map(|work| work["status"]["conditions"].as_array().into_iter().flatten())
                .any(|c| c["type"] == "Dispatching" && c["status"] == "False")
        })
        .await;
    assert!(world.member("m2").get_opt(&deployments(), NS, "web").await.unwrap().is_none());
    world.instance.patch(&policies(), NS, "p", "", Patch::Merge, &json!({"spec": {"suspension": null}})).await.unwrap();
    world.in_member("m2", &deployments(), "web", |_| true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_affinity_group_is_used_when_the_first_does_not_fit() {
    let world = World::start(2).await;
    let groups = json!({"placement": {"clusterAffinities": [
        {"affinityName": "first", "clusterNames": ["absent"]}, {"affinityName": "second", "clusterNames": ["m2"]}]}});
    world.instance.create(&policies(), NS, &policy("p", groups)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m2", &deployments(), "web", |_| true).await;
    world
        .eventually("the group in use is told", async || {
            world.instance.get(&bindings(), NS, "web-deployment").await.unwrap()["status"]["schedulerObservingAffinityName"] == "second"
        })
        .await;
    assert_eq!(targets(&world, "web-deployment").await, ["m2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_better_policy_takes_over_only_if_it_says_so() {
    let world = World::start(2).await;
    world.instance.create(&policies(), NS, &policy("low", only(&["m1"]))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    let mut high = only(&["m2"]);
    high["priority"] = 5.into();
    high["resourceSelectors"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]);
    world.instance.create(&policies(), NS, &policy("high", high)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("other", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "other", |_| true).await;
    assert_eq!(targets(&world, "web-deployment").await, ["m1"], "a claim stays");
    world
        .instance
        .patch(&policies(), NS, "high", "", Patch::Merge, &json!({"spec": {"preemption": "Always"}}))
        .await
        .unwrap();
    world.in_member("m2", &deployments(), "web", |_| true).await;
    world.not_in_member("m1", &deployments(), "web").await;
}

async fn with_failover(members: usize) -> World {
    let mut world = World::new(members).await;
    world
        .run(|options| {
            options.failover = true;
            options.evict_on_taints = true;
            options.eviction_interval = Duration::from_millis(1);
        })
        .await;
    for number in 1..=members {
        world.join(&format!("m{number}"), json!({})).await;
    }
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untolerated_taint_moves_a_workload_and_the_old_copy_waits_for_the_new() {
    let world = with_failover(2).await;
    let spread =
        json!({"placement": {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}});
    world.instance.create(&policies(), NS, &policy("p", spread)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    let taint = json!({"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}});
    world.instance.patch(&clusters(), None, "m1", "", Patch::Merge, &taint).await.unwrap();
    world.in_member("m2", &deployments(), "web", |_| true).await;
    assert!(
        world.member("m1").get_opt(&deployments(), NS, "web").await.unwrap().is_some(),
        "the old copy stays until the new one is well"
    );
    let binding = world.instance.get(&bindings(), NS, "web-deployment").await.unwrap();
    assert_eq!(binding["spec"]["gracefulEvictionTasks"][0]["reason"], "TaintUntolerated");
    report(&world, "m2", "web", 1).await;
    world.not_in_member("m1", &deployments(), "web").await;
    // The taint goes: nothing moves back on its own, but does when asked.
    world.instance.patch(&clusters(), None, "m1", "", Patch::Merge, &json!({"spec": {"taints": []}})).await.unwrap();
    assert_eq!(targets(&world, "web-deployment").await, ["m2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unhealthy_application_moves_with_its_state() {
    let world = with_failover(2).await;
    let mut spec = json!({"propagateDeps": true,
        "placement": {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]},
        "failover": {"application": {"decisionConditions": {"tolerationSeconds": 1}, "purgeMode": "Directly",
                     "statePreservation": {"rules": [{"aliasLabelName": "seen", "jsonPath": "{.replicas}"}]}}}});
    spec["resourceSelectors"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    world.instance.create(&policies(), NS, &policy("p", spec)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 3)).await.unwrap();
    report(&world, "m1", "web", 2).await;
    let copy = world.in_member("m2", &deployments(), "web", |_| true).await;
    assert_eq!(copy["metadata"]["labels"]["seen"], "2");
    world.not_in_member("m1", &deployments(), "web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebalancer_asks_for_a_new_decision() {
    let world = World::start(2).await;
    world
        .instance
        .patch(
            &clusters(),
            None,
            "m1",
            "",
            Patch::Merge,
            &json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
        )
        .await
        .unwrap();
    let weights = json!({"placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}}});
    world.instance.create(&policies(), NS, &policy("p", weights)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 4)).await.unwrap();
    world.in_member("m2", &deployments(), "web", |copy| copy["spec"]["replicas"] == 4).await;
    world.instance.patch(&clusters(), None, "m1", "", Patch::Merge, &json!({"spec": {"taints": []}})).await.unwrap();
    let gvr = Gvr::new("apps.karmada.io", "v1alpha1", "workloadrebalancers");
    let rebalancer = json!({"apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer", "metadata": {"name": "again"},
        "spec": {"workloads": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"},
                               {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "none"}], "ttlSecondsAfterFinished": 1}});
    world.instance.create(&gvr, None, &rebalancer).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == 2).await;
    world.in_member("m2", &deployments(), "web", |copy| copy["spec"]["replicas"] == 2).await;
    world
        .eventually("the request goes after its time", async || {
            world.instance.get_opt(&gvr, None, "again").await.unwrap().is_none()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_leaves_takes_its_copies_and_workloads_move() {
    let world = World::start(2).await;
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    for member in ["m1", "m2"] {
        world.in_member(member, &deployments(), "web", |_| true).await;
    }
    atoll_fleet::unjoin(&world.instance, None, "m1", Duration::from_secs(20)).await.unwrap();
    assert!(world.member("m1").get_opt(&deployments(), NS, "web").await.unwrap().is_none());
    assert_eq!(targets(&world, "web-deployment").await, ["m2"]);
    assert!(world.member("m2").get_opt(&deployments(), NS, "web").await.unwrap().is_some());
    let left = world.instance.list(&support::works(), Some("karmada-es-m1"), "").await.unwrap();
    assert!(left.items.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taint_policy_follows_conditions() {
    let world = World::start(1).await;
    let gvr = Gvr::new("policy.karmada.io", "v1alpha1", "clustertaintpolicies");
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy", "metadata": {"name": "t"},
        "spec": {"addOnConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["True"]}],
                 "taints": [{"key": "fine", "effect": "NoSchedule"}]}});
    world.instance.create(&gvr, None, &rule).await.unwrap();
    world
        .eventually("the taint is there", async || {
            let cluster = world.instance.get(&clusters(), None, "m1").await.unwrap();
            cluster["spec"]["taints"].as_array().into_iter().flatten().any(|taint| taint["key"] == "fine")
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customisation_teaches_a_new_kind() {
    let world = World::start(2).await;
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gears.example.io"},
        "spec": {"group": "example.io", "names": {"kind": "Gear", "plural": "gears", "singular": "gear", "listKind": "GearList"}, "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let definitions = Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    for endpoint in [&world.instance, world.member("m1"), world.member("m2")] {
        endpoint.create(&definitions, None, &crd).await.unwrap();
    }
    for name in ["m1", "m2"] {
        world
            .eventually("the members are known to serve the kind", async || {
                let cluster = world.instance.get(&clusters(), None, name).await.unwrap();
                cluster["status"]["apiEnablements"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|group| group["groupVersion"] == "example.io/v1")
            })
            .await;
    }
    let custom = json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization", "metadata": {"name": "gear"},
        "spec": {"target": {"apiVersion": "example.io/v1", "kind": "Gear"}, "customizations": {
            "replicaResource": {"luaScript": "function GetReplicas(obj) return obj.spec.teeth, nil end"},
            "replicaRevision": {"luaScript": "function ReviseReplica(obj, n) obj.spec.teeth = n return obj end"},
            "statusAggregation": {"luaScript": "function AggregateStatus(obj, items) local n = 0 for i = 1, #items do n = n + items[i].status.turns end obj.status = {turns = n} return obj end"}}}});
    world
        .instance
        .create(&Gvr::new("config.karmada.io", "v1alpha1", "resourceinterpretercustomizations"), None, &custom)
        .await
        .unwrap();
    let rule = policy(
        "p",
        json!({"resourceSelectors": [{"apiVersion": "example.io/v1", "kind": "Gear"}],
        "placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", "weightPreference": {"staticWeightList": [
            {"targetCluster": {"clusterNames": ["m1"]}, "weight": 1}, {"targetCluster": {"clusterNames": ["m2"]}, "weight": 3}]}}}}),
    );
    let gears = Gvr::new("example.io", "v1", "gears");
    let gear = json!({"apiVersion": "example.io/v1", "kind": "Gear", "metadata": {"name": "g", "namespace": "default"}, "spec": {"teeth": 8}});
    world.instance.create(&gears, NS, &gear).await.unwrap();
    let moves = atoll_fleet::plan::plan(&world.instance, &Value::Null, &rule, jiff::Timestamp::now()).await.unwrap();
    let told: Vec<String> = moves.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["Gear default/g: m1 new→2 m2 new→6"], "a plan divides as the script says");
    world.instance.create(&policies(), NS, &rule).await.unwrap();
    for (member, teeth) in [("m1", 2), ("m2", 6)] {
        world.in_member(member, &gears, "g", |gear| gear["spec"]["teeth"] == teeth).await;
        world
            .member(member)
            .patch(&gears, NS, "g", "status", Patch::Merge, &json!({"status": {"turns": teeth}}))
            .await
            .unwrap();
    }
    world
        .eventually("the template adds up", async || {
            world.instance.get(&gears, NS, "g").await.unwrap()["status"]["turns"] == 8
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_pulls_is_served_by_its_agent_and_silence_deletes_nothing() {
    let mut world = World::new(1).await;
    world.run(|options| options.lease_grace = Duration::from_secs(2)).await;
    let stop = tokio_util::sync::CancellationToken::new();
    let options = atoll_fleet::AgentOptions {
        instance: world.instance.clone(),
        member: world.member("m1").clone(),
        name: "m1".into(),
        spec: json!({"region": "north"}),
        clock: std::sync::Arc::new(jiff::Timestamp::now),
        workers: 4,
        probe_interval: Duration::from_millis(500),
        probe_threshold: Duration::from_secs(30),
    };
    let agent = atoll_fleet::Agent::start(options, stop.clone()).await.unwrap();
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    let cluster = world.instance.get(&clusters(), None, "m1").await.unwrap();
    assert_eq!((&cluster["spec"]["syncMode"], &cluster["spec"]["region"]), (&json!("Pull"), &json!("north")));
    stop.cancel();
    drop(agent);
    world
        .eventually("silence is noticed", async || {
            let cluster = world.instance.get(&clusters(), None, "m1").await.unwrap();
            cluster["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|c| c["type"] == "Ready" && c["status"] == "Unknown")
                && cluster["spec"]["taints"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .any(|taint| taint["key"] == "cluster.karmada.io/unreachable")
        })
        .await;
    assert_eq!(targets(&world, "web-deployment").await, ["m1"]);
    assert!(world.member("m1").get_opt(&deployments(), NS, "web").await.unwrap().is_some());
}
