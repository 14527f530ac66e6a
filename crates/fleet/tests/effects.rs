//! Fields of policies whose effect only shows when everything runs together.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use atoll_meta::Gvr;
use atoll_runtime::Patch;
use serde_json::{Value, json};
use support::{
    NS, World, bindings, clusters, config_map, core, deployment, deployments, map_policy, marked_map, only, overrides,
    policies, policy,
};

fn cluster_policies() -> Gvr {
    Gvr::new("policy.karmada.io", "v1alpha1", "clusterpropagationpolicies")
}

fn cluster_overrides() -> Gvr {
    Gvr::new("policy.karmada.io", "v1alpha1", "clusteroverridepolicies")
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_choose_by_name_label_expression_and_namespace() {
    let world = World::start(1).await;
    for name in ["shop", "other"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        world.instance.create(&core("namespaces"), None, &namespace).await.unwrap();
    }
    let selectors = json!([
        {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "named"},
        {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "labelSelector": {"matchLabels": {"go": "yes"}}},
        {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop",
         "labelSelector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}]}},
    ]);
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy", "metadata": {"name": "p"},
        "spec": {"resourceSelectors": selectors, "placement": {}}});
    world.instance.create(&cluster_policies(), None, &rule).await.unwrap();
    for (namespace, name, labels) in [
        ("shop", "named", json!({})),
        ("shop", "labelled", json!({"go": "yes"})),
        ("shop", "tiered", json!({"tier": "b"})),
        ("shop", "neither", json!({"tier": "c"})),
        ("other", "named", json!({"go": "yes"})),
    ] {
        let mut map = config_map(name, json!({"k": "v"}));
        map["metadata"]["namespace"] = namespace.into();
        map["metadata"]["labels"] = labels;
        world.instance.create(&core("configmaps"), Some(namespace), &map).await.unwrap();
    }
    let held = async |namespace: &str| {
        let list = world
            .member("m1")
            .list(&core("configmaps"), Some(namespace), "labelSelector=karmada.io%2Fmanaged%3Dtrue")
            .await
            .unwrap();
        let mut names: Vec<String> =
            list.items.iter().map(|map| map["metadata"]["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    world.eventually("the chosen ones are there", async || held("shop").await == ["labelled", "named", "tiered"]).await;
    assert!(held("other").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_waits_for_the_overrides_it_depends_on() {
    let world = World::start(1).await;
    let mut spec = only(&["m1"]);
    spec["dependentOverrides"] = json!(["first"]);
    world.instance.create(&policies(), NS, &policy("p", spec)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    // Another template under another policy shows that the controllers have been by.
    world.instance.create(&policies(), NS, &map_policy("q", "s", json!({}))).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &marked_map("later", "s", "1")).await.unwrap();
    world.in_member("m1", &core("configmaps"), "later", |_| true).await;
    assert!(world.instance.get_opt(&bindings(), NS, "web-deployment").await.unwrap().is_none());
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": "first", "namespace": "default"},
        "spec": {"overrideRules": [{"overriders": {"labelsOverrider": [{"operator": "add", "value": {"from": "first"}}]}}]}});
    world.instance.create(&overrides(), NS, &rule).await.unwrap();
    let copy = world.in_member("m1", &deployments(), "web", |_| true).await;
    assert_eq!(copy["metadata"]["labels"]["from"], "first", "the first copy already has it");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_most_important_are_decided_on_first() {
    let mut world = World::start(1).await;
    world.crash();
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000});
    world.instance.create(&Gvr::new("scheduling.k8s.io", "v1", "priorityclasses"), None, &class).await.unwrap();
    let mut last = map_policy("last", "last", json!({}));
    last["spec"]["schedulePriority"] = json!({"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"});
    world.instance.create(&policies(), NS, &last).await.unwrap();
    world.instance.create(&policies(), NS, &map_policy("first", "first", json!({}))).await.unwrap();
    for (name, label) in [("a", "first"), ("b", "first"), ("c", "first"), ("z", "last")] {
        world.instance.create(&core("configmaps"), NS, &marked_map(name, label, "1")).await.unwrap();
    }
    // One after the other, so that there is an order.
    world.run(|options| options.workers = 1).await;
    let mut made = Vec::new();
    for name in ["a", "b", "c", "z"] {
        world.in_member("m1", &core("configmaps"), name, |_| true).await;
        // The record of its decision tells when it was made, to the microsecond.
        let seen = world.instance.get(&bindings(), NS, &format!("{name}-configmap")).await.unwrap();
        let record: Value =
            serde_json::from_str(seen["metadata"]["annotations"]["atoll.io/decision"].as_str().unwrap()).unwrap();
        made.push((record["at"].as_str().unwrap().to_owned(), name));
    }
    made.sort();
    assert_eq!(made[0].1, "z", "{made:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_priority_class_orders_bindings_and_another_scheduler_decides_alone() {
    let world = World::start(1).await;
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000});
    world.instance.create(&Gvr::new("scheduling.k8s.io", "v1", "priorityclasses"), None, &class).await.unwrap();
    let spec = json!({"schedulePriority": {"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"}});
    world.instance.create(&policies(), NS, &policy("p", spec)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    let binding = world.instance.get(&bindings(), NS, "web-deployment").await.unwrap();
    assert_eq!(binding["spec"]["schedulePriority"]["priority"], 1000);
    let elsewhere = json!({"schedulerName": "another", "association": true});
    world.instance.create(&policies(), NS, &map_policy("q", "s", elsewhere)).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &marked_map("m", "s", "1")).await.unwrap();
    world
        .eventually("the binding is there", async || {
            world.instance.get_opt(&bindings(), NS, "m-configmap").await.unwrap().is_some()
        })
        .await;
    let chosen = json!({"spec": {"clusters": [{"name": "m1"}]}});
    assert!(world.targets("m-configmap").await.is_empty(), "our scheduler leaves it alone");
    world.instance.patch(&bindings(), NS, "m-configmap", "", Patch::Merge, &chosen).await.unwrap();
    world.in_member("m1", &core("configmaps"), "m", |_| true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_bindings_are_decided_on_whatever_their_templates_say() {
    let mut world = World::start(1).await;
    let classes = Gvr::new("scheduling.k8s.io", "v1", "priorityclasses");
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000});
    world.instance.create(&classes, None, &class).await.unwrap();
    let spec = json!({"schedulePriority": {"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"}});
    world.instance.create(&policies(), NS, &policy("p", spec)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    world.crash();
    // The template of one cannot be understood any more; another has a name of its own, as other controllers give it.
    world.instance.delete(&classes, None, "high", &Value::Null).await.unwrap();
    let nowhere = json!({"spec": {"clusters": []}});
    world.instance.patch(&bindings(), NS, "web-deployment", "", Patch::Merge, &nowhere).await.unwrap();
    let map = world.instance.create(&core("configmaps"), NS, &marked_map("m", "none", "1")).await.unwrap();
    let odd = json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": "odd", "namespace": "default", "labels": {"binding.karmada.io/managed-by": "someone"},
                     "finalizers": ["karmada.io/binding-controller"]},
        "spec": {"placement": {}, "resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "m", "uid": map["metadata"]["uid"]}}});
    world.instance.create(&bindings(), NS, &odd).await.unwrap();
    world.run(|_| {}).await;
    world.in_member("m1", &core("configmaps"), "m", |_| true).await;
    for name in ["odd", "web-deployment"] {
        world.eventually(&format!("{name} has its place"), async || world.targets(name).await == ["m1"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dispatching_is_suspended_everywhere_or_in_named_clusters() {
    let world = World::start(1).await;
    let spec = json!({"suspension": {"dispatching": true}});
    world.instance.create(&policies(), NS, &policy("p", spec)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world
        .eventually("the work is held back", async || {
            let works = world.instance.list(&support::works(), Some("karmada-es-m1"), "").await.unwrap().items;
            works.iter().any(|work| work["spec"]["suspendDispatching"] == true)
        })
        .await;
    assert!(world.member("m1").get_opt(&deployments(), NS, "web").await.unwrap().is_none());
    let go = json!({"spec": {"suspension": {"dispatching": false}}});
    world.instance.patch(&policies(), NS, "p", "", Patch::Merge, &go).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
}

async fn with_failover() -> World {
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
    world
}

fn one() -> Value {
    json!({"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_failover_purges_directly_and_hands_over_state() {
    let world = with_failover().await;
    let spec = json!({"placement": one(), "failover": {"cluster": {"purgeMode": "Directly",
        "statePreservation": {"rules": [{"aliasLabelName": "seen", "jsonPath": "{.replicas}"}]}}}});
    world.instance.create(&policies(), NS, &policy("p", spec)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 2)).await.unwrap();
    world.report("m1", "web", 2).await;
    world
        .eventually("the status is known", async || {
            let binding = world.instance.get(&bindings(), NS, "web-deployment").await.unwrap();
            binding["status"]["aggregatedStatus"][0]["status"]["replicas"] == 2
        })
        .await;
    let taint = json!({"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}});
    world.instance.patch(&clusters(), None, "m1", "", Patch::Merge, &taint).await.unwrap();
    let copy = world.in_member("m2", &deployments(), "web", |_| true).await;
    assert_eq!(copy["metadata"]["labels"]["seen"], "2");
    assert!(world.member("m1").get_opt(&deployments(), NS, "web").await.unwrap().is_none(), "the old one went first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taint_is_borne_as_long_as_tolerations_say() {
    let world = with_failover().await;
    let tolerant = json!({"placement": {"clusterAffinity": {"clusterNames": ["m1"]}, "clusterTolerations": [
        {"key": "broken", "operator": "Equal", "value": "yes", "effect": "NoExecute"},
        {"key": "brief", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}]}});
    world.instance.create(&policies(), NS, &policy("p", tolerant)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    let taints = |list: Value| json!({"spec": {"taints": list}});
    let borne = taints(json!([{"key": "broken", "value": "yes", "effect": "NoExecute"}]));
    world.instance.patch(&clusters(), None, "m1", "", Patch::Merge, &borne).await.unwrap();
    world.instance.create(&policies(), NS, &map_policy("q", "s", only(&["m2"]))).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &marked_map("later", "s", "1")).await.unwrap();
    world.in_member("m2", &core("configmaps"), "later", |_| true).await;
    assert_eq!(world.targets("web-deployment").await, ["m1"]);
    let brief = taints(json!([{"key": "brief", "effect": "NoExecute"}]));
    world.instance.patch(&clusters(), None, "m1", "", Patch::Merge, &brief).await.unwrap();
    world.eventually("the second is over", async || world.targets("web-deployment").await.is_empty()).await;
}

/// Puts a condition into the status of a Cluster.
async fn set_condition(world: &World, cluster: &str, condition: Value) {
    let found = world.instance.get(&clusters(), None, cluster).await.unwrap();
    let mut conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.push(condition);
    let patch = json!({"status": {"conditions": conditions}});
    world.instance.patch(&clusters(), None, cluster, "status", Patch::Merge, &patch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn taint_policies_evict_only_where_the_instance_allows_it() {
    let mut world = World::new(2).await;
    let definitions = atoll_api::crds(atoll_api::CrdSet::Atoll);
    world.hub.add_native(|instance| &*instance.name == "root", definitions).await.unwrap();
    let taint_policies = Gvr::new("policy.karmada.io", "v1alpha1", "clustertaintpolicies");
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy", "metadata": {"name": "drain"},
        "spec": {"addOnConditions": [{"conditionType": "Draining", "operator": "In", "statusValues": ["True"]}],
                 "taints": [{"key": "draining", "effect": "NoExecute"}]}});
    let refused = world.instance.create(&taint_policies, None, &rule).await.unwrap_err();
    assert!(refused.code == 422 && refused.message.contains("allow-no-execute-taint-policy"), "{}", refused.message);
    let settings = json!({"fleet.atoll.io/failover": "true", "fleet.atoll.io/no-execute-taint-eviction": "true",
        "fleet.atoll.io/eviction-interval-seconds": "0", "fleet.atoll.io/allow-no-execute-taint-policy": "true"});
    let described = json!({"apiVersion": "atoll.io/v1alpha1", "kind": "Instance",
        "metadata": {"name": "fleet", "annotations": settings}, "spec": {"type": "Hosted"}});
    let root = support::endpoint(&world.hub, "root");
    let instances = Gvr::new("atoll.io", "v1alpha1", "instances");
    root.create(&instances, None, &described).await.unwrap();
    world.instance.create(&taint_policies, None, &rule).await.unwrap();
    // What is stored can be kept when it is no more allowed, but not made worse.
    let allow =
        |value: Value| json!({"metadata": {"annotations": {"fleet.atoll.io/allow-no-execute-taint-policy": value}}});
    root.patch(&instances, None, "fleet", "", Patch::Merge, &allow(Value::Null)).await.unwrap();
    let edit =
        async |patch: Value| world.instance.patch(&taint_policies, None, "drain", "", Patch::Merge, &patch).await;
    edit(json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
    let worse = json!({"spec": {"taints": [{"key": "other", "effect": "NoExecute"}]}});
    assert_eq!(edit(worse).await.unwrap_err().code, 422);
    root.patch(&instances, None, "fleet", "", Patch::Merge, &allow("true".into())).await.unwrap();
    world.run(|options| options.configure(&settings).unwrap()).await;
    for name in ["m1", "m2"] {
        world.join(name, json!({})).await;
    }
    let bears = json!([{"key": "draining", "operator": "Exists", "effect": "NoExecute"}]);
    for (name, tolerations) in [("mover", json!([])), ("stayer", bears)] {
        let spec = json!({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}],
            "placement": {"clusterTolerations": tolerations, "clusterAffinities": [
                {"affinityName": "home", "clusterNames": ["m1"]}, {"affinityName": "away", "clusterNames": ["m2"]}]}});
        world.instance.create(&policies(), NS, &policy(name, spec)).await.unwrap();
        world.instance.create(&deployments(), NS, &deployment(name, 1)).await.unwrap();
        world.report("m1", name, 1).await;
    }
    let draining = json!({"type": "Draining", "status": "True", "reason": "Asked", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    set_condition(&world, "m1", draining).await;
    world.in_member("m2", &deployments(), "mover", |_| true).await;
    let taints = world.instance.get(&clusters(), None, "m1").await.unwrap()["spec"]["taints"].clone();
    assert_eq!((&taints[0]["key"], &taints[0]["effect"]), (&json!("draining"), &json!("NoExecute")));
    assert!(world.member("m1").get_opt(&deployments(), NS, "mover").await.unwrap().is_some(), "the old copy waits");
    world.report("m2", "mover", 1).await;
    world.not_in_member("m1", &deployments(), "mover").await;
    assert_eq!(world.targets("stayer-deployment").await, ["m1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn application_failover_never_purges_unless_told_to() {
    let world = with_failover().await;
    let spec = json!({"propagateDeps": true, "placement": one(), "failover": {"application": {
        "decisionConditions": {"tolerationSeconds": 1}, "purgeMode": "Never"}}});
    world.instance.create(&policies(), NS, &policy("p", spec)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 2)).await.unwrap();
    world.report("m1", "web", 1).await;
    world.report("m2", "web", 2).await;
    let binding = world.instance.get(&bindings(), NS, "web-deployment").await.unwrap();
    assert_eq!(binding["spec"]["gracefulEvictionTasks"][0]["suppressDeletion"], true);
    assert!(world.member("m1").get_opt(&deployments(), NS, "web").await.unwrap().is_some());
    let decided = json!([{"op": "replace", "path": "/spec/gracefulEvictionTasks/0/suppressDeletion", "value": false}]);
    world.instance.patch(&bindings(), NS, "web-deployment", "", Patch::Json, &decided).await.unwrap();
    world.not_in_member("m1", &deployments(), "web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_of_the_instance_and_the_old_form_of_rules_still_count() {
    let world = World::start(2).await;
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    let label = |value: &str| json!({"labelsOverrider": [{"operator": "add", "value": {"by": value}}]});
    let old = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": "old"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "labelSelector": {"matchLabels": {"app": "web"}}}],
                 "targetCluster": {"clusterNames": ["m1"]}, "overriders": label("instance")}});
    world.instance.create(&cluster_overrides(), None, &old).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| copy["metadata"]["labels"]["by"] == "instance").await;
    let own = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": "own", "namespace": "default"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
                 "overrideRules": [{"targetCluster": {"exclude": ["m2"]}, "overriders": label("namespace")}]}});
    world.instance.create(&overrides(), NS, &own).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| copy["metadata"]["labels"]["by"] == "namespace").await;
    let plain = world.in_member("m2", &deployments(), "web", |_| true).await;
    assert!(plain["metadata"]["labels"].get("by").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_outside_namespaces_are_spread_by_policies_of_the_instance() {
    let world = World::start(1).await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "viewer"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    let roles = Gvr::new("rbac.authorization.k8s.io", "v1", "clusterroles");
    world.instance.create(&roles, None, &role).await.unwrap();
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy", "metadata": {"name": "p"},
        "spec": {"resourceSelectors": [{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "viewer"}], "placement": {}}});
    world.instance.create(&cluster_policies(), None, &rule).await.unwrap();
    world
        .eventually("the role is in the member", async || {
            world.member("m1").get_opt(&roles, None, "viewer").await.unwrap().is_some()
        })
        .await;
    let bindings = Gvr::new("work.karmada.io", "v1alpha2", "clusterresourcebindings");
    assert!(world.instance.get_opt(&bindings, None, "viewer-clusterrole").await.unwrap().is_some());
    world.instance.delete(&roles, None, "viewer", &Value::Null).await.unwrap();
    world
        .eventually("it went with its template", async || {
            world.member("m1").get_opt(&roles, None, "viewer").await.unwrap().is_none()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_found_no_room_is_placed_when_room_comes() {
    let world = World::start(1).await;
    let node = |pods: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": pods}, "conditions": [{"type": "Ready", "status": "True"}]}})
    };
    let nodes = core("nodes");
    world.member("m1").create(&nodes, None, &node("1")).await.unwrap();
    world.member("m1").patch(&nodes, None, "n1", "status", Patch::Merge, &node("1")).await.unwrap();
    let room = async |pods: &str| {
        let cluster = world.instance.get(&clusters(), None, "m1").await.unwrap();
        cluster["status"]["resourceSummary"]["allocatable"]["pods"] == pods
    };
    world.eventually("the node is counted", async || room("1").await).await;
    let divided = json!({"placement": {"replicaScheduling": {"replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted", "weightPreference": {"dynamicWeight": "AvailableReplicas"}}}});
    world.instance.create(&policies(), NS, &policy("p", divided)).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 5)).await.unwrap();
    world
        .eventually("there is no room", async || {
            world.condition("web-deployment", "Scheduled").await["status"] == "False"
        })
        .await;
    world.member("m1").patch(&nodes, None, "n1", "status", Patch::Merge, &node("50")).await.unwrap();
    world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == 5).await;
}

/// A Deployment of a team.
fn of_team(name: &str, team: &str) -> Value {
    let mut template = deployment(name, 1);
    template["metadata"]["labels"]["team"] = team.into();
    template
}

/// A policy for the Deployments of a name that go along with their team, or keep away from it, each in one cluster.
fn team_policy(name: &str, team: &str, affinity: &str, among: &[&str]) -> Value {
    let placement = json!({
        "clusterAffinity": {"clusterNames": among},
        "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
        "workloadAffinity": {affinity: {"groupByLabelKey": "team"}},
    });
    let mut rule = policy(name, json!({"placement": placement}));
    rule["spec"]["resourceSelectors"][0]["labelSelector"] = json!({"matchLabels": {"team": team, "of": name}});
    rule
}

#[tokio::test(flavor = "multi_thread")]
async fn workloads_that_keep_apart_never_meet_and_take_the_place_of_one_that_goes() {
    let mut world = World::new(5).await;
    // News of members are a reason to look again at all that found no place; here there are none.
    world.run(|options| options.probe_interval = Duration::from_secs(3600)).await;
    let members = ["m1", "m2", "m3", "m4", "m5"];
    for member in members {
        world.join(member, json!({})).await;
    }
    let names: Vec<String> = (1..=6).map(|number| format!("w{number}")).collect();
    for name in &names {
        let mut template = of_team(name, "a");
        template["metadata"]["labels"]["of"] = "p".into();
        world.instance.create(&deployments(), NS, &template).await.unwrap();
    }
    // All of them are looked at in one moment.
    world.instance.create(&policies(), NS, &team_policy("p", "a", "antiAffinity", &members)).await.unwrap();
    let places = async || {
        let mut places = Vec::new();
        for name in &names {
            places.push((world.targets(&format!("{name}-deployment")).await, name.clone()));
        }
        places.sort();
        places
    };
    world
        .eventually("one found no place and all others have one", async || {
            let mut refused = 0;
            for name in &names {
                let condition = world.condition(&format!("{name}-deployment"), "Scheduled").await;
                refused += usize::from(condition["reason"] == "NoClusterFit");
            }
            refused == 1 && places().await.iter().filter(|(targets, _)| targets.len() == 1).count() == 5
        })
        .await;
    let found = places().await;
    let taken: Vec<&str> = found.iter().flat_map(|(targets, _)| targets).map(String::as_str).collect();
    assert_eq!(taken, members, "{found:?}");
    let (waiting, leaving) = (found[0].1.clone(), found[3].clone());
    world.instance.delete(&deployments(), NS, &leaving.1, &json!({})).await.unwrap();
    let waiting = format!("{waiting}-deployment");
    world.eventually("the free place is taken", async || world.targets(&waiting).await == leaving.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workloads_that_go_together_never_start_apart() {
    let world = World::start(3).await;
    for number in 0..6 {
        let mut template = of_team(&format!("w{number}"), "a");
        template["metadata"]["labels"]["of"] = if number % 2 == 0 { "p" } else { "q" }.into();
        world.instance.create(&deployments(), NS, &template).await.unwrap();
    }
    // Each of the two would start in another cluster, and one is open to both.
    let (p, q) = (team_policy("p", "a", "affinity", &["m1", "m2"]), team_policy("q", "a", "affinity", &["m2", "m3"]));
    let (policies, made) = (policies(), &world.instance);
    let (p, q) = tokio::join!(made.create(&policies, NS, &p), made.create(&policies, NS, &q));
    assert!(p.is_ok() && q.is_ok());
    let places = async || {
        let mut places = std::collections::BTreeSet::new();
        for number in 0..6 {
            let name = format!("w{number}-deployment");
            if world.condition(&name, "Scheduled").await.is_null() {
                return None;
            }
            places.extend(world.targets(&name).await);
        }
        Some(places)
    };
    world.eventually("all are decided on", async || places().await.is_some()).await;
    let places = places().await.unwrap();
    assert_eq!(places.len(), 1, "{places:?}");
}
