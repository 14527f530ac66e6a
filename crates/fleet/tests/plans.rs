//! A plan says what comes of a policy before it is applied, and a trace what has come of it.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;

use atoll_fleet::plan::{plan, plan_without};
use atoll_fleet::why::{trace, trace_with};
use atoll_meta::Gvr;
use atoll_runtime::Patch;
use jiff::Timestamp;
use serde_json::{Value, json};
use support::{
    NS, World, bindings, clusters, core, customization, customizations, definitions, deployment, deployments, gear,
    gear_definition, gears, only, overrides, policies, policy,
};

/// Replicas of the binding by cluster.
async fn shares(world: &World, binding: &str) -> BTreeMap<String, i32> {
    let binding = world.instance.get_opt(&bindings(), NS, binding).await.unwrap().unwrap_or_default();
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
        let moves = plan(&world.instance, &Value::Null, &changed, Timestamp::now()).await.unwrap();
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
        let refusal = plan(&world.instance, &Value::Null, &wrong, Timestamp::now()).await.unwrap_err();
        assert!(refusal.code == code && refusal.message.contains(why), "{wrong}: {refusal}");
    }
    // Without a namespace it would be applied in `default`.
    let moves =
        plan(&world.instance, &Value::Null, &with("metadata", json!({"name": "p"})), Timestamp::now()).await.unwrap();
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

/// What a plan says of the only template that would move.
async fn planned(world: &World, settings: &Value, policy: &Value) -> Vec<String> {
    let moves = plan(&world.instance, settings, policy, Timestamp::now()).await.unwrap();
    moves.iter().map(ToString::to_string).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_regards_the_settings_of_the_instance() {
    let world = World::start(2).await;
    world.instance.create(&policies(), NS, &policy("first", only(&["m1"]))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    let mut taker = policy("second", only(&["m2"]));
    taker["spec"]["priority"] = 5.into();
    taker["spec"]["preemption"] = "Always".into();
    taker["spec"]["resourceSelectors"][0]["name"] = "web".into();
    let said = planned(&world, &Value::Null, &taker).await;
    assert_eq!(said, ["Deployment default/web: m1 1→gone m2 new→1 (taken from default/first)"]);
    for settings in [
        json!({"fleet.atoll.io/preemption": "false"}),
        json!({"fleet.atoll.io/feature-gates": "PropagationPolicyPreemption=false"}),
        json!({"fleet.atoll.io/skipped-propagating-apis": "apps"}),
    ] {
        assert!(planned(&world, &settings, &taker).await.is_empty(), "{settings}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_keeps_groups_of_workloads_together_and_apart() {
    let world = World::start(2).await;
    let rule = |name: &str, affinity: &str, placement: Value| {
        let mut rule = policy(name, json!({"placement": placement}));
        rule["spec"]["resourceSelectors"][0]["name"] = name.into();
        if !affinity.is_empty() {
            rule["spec"]["placement"]["workloadAffinity"] = json!({affinity: {"groupByLabelKey": "team"}});
        }
        rule
    };
    let group = |name: &str| {
        let mut template = deployment(name, 1);
        template["metadata"]["labels"]["team"] = "a".into();
        template
    };
    let there = json!({"clusterAffinity": {"clusterNames": ["m2"]}});
    for affinity in ["affinity", "antiAffinity"] {
        let name = format!("old-{}", affinity.to_lowercase());
        world.instance.create(&policies(), NS, &rule(&name, affinity, there.clone())).await.unwrap();
        world.instance.create(&deployments(), NS, &group(&name)).await.unwrap();
        world.in_member("m2", &deployments(), &name, |_| true).await;
        let name = format!("new-{}", affinity.to_lowercase());
        world.instance.create(&deployments(), NS, &group(&name)).await.unwrap();
        let cluster = if affinity == "affinity" { "m2" } else { "m1" };
        let next = rule(&name, affinity, json!({}));
        let said = planned(&world, &Value::Null, &next).await;
        assert_eq!(said, [format!("Deployment default/{name}: {cluster} new→1")]);
        world.instance.create(&policies(), NS, &next).await.unwrap();
        world.in_member(cluster, &deployments(), &name, |_| true).await;
        assert_eq!(world.targets(&format!("{name}-deployment")).await, [cluster]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_of_one_plan_heed_each_other() {
    let world = World::start(2).await;
    for name in ["a", "b", "c"] {
        let mut template = deployment(name, 1);
        template["metadata"]["labels"]["team"] = "x".into();
        world.instance.create(&deployments(), NS, &template).await.unwrap();
    }
    let one = json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]);
    for (affinity, shares) in [("antiAffinity", ["m1 new→1", "m2 new→1", "no place"]), ("affinity", ["m1 new→1"; 3])]
    {
        let rule = policy(
            "p",
            json!({"placement": {
                "spreadConstraints": one, "workloadAffinity": {affinity: {"groupByLabelKey": "team"}},
            }}),
        );
        let said = planned(&world, &Value::Null, &rule).await;
        assert_eq!(said.len(), 3);
        for (said, share) in said.iter().zip(shares) {
            assert!(said.contains(share), "{affinity}: {said}");
        }
    }
}

async fn add_node(world: &World, member: &str, name: &str, disk: &str) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"disk": disk}}, "status": {
        "allocatable": {"cpu": "4", "memory": "64Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}]}});
    let made = world.member(member).create(&core("nodes"), None, &node).await.unwrap();
    let status = json!({"status": node["status"]});
    let name = made["metadata"]["name"].as_str().unwrap();
    world.member(member).patch(&core("nodes"), None, name, "status", Patch::Merge, &status).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_counts_nodes_as_the_hub_does_or_says_that_it_could_not() {
    let world = World::start_with_proxy(2).await;
    // As much in one as in the other, but here only half of it is what is wanted.
    for (member, name, disk) in [("m1", "a", "old"), ("m1", "b", "new"), ("m2", "a", "new"), ("m2", "b", "new")] {
        add_node(&world, member, name, disk).await;
    }
    world
        .eventually("the room is known", async || {
            let clusters = world.instance.list(&clusters(), None, "").await.unwrap().items;
            clusters.iter().all(|one| one["status"]["resourceSummary"]["allocatable"]["cpu"] == "8")
        })
        .await;
    let mut template = deployment("web", 12);
    template["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    template["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "new"});
    world.instance.create(&deployments(), NS, &template).await.unwrap();
    let rule = policy(
        "p",
        json!({"placement": {"replicaScheduling": {"replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted", "weightPreference": {"dynamicWeight": "AvailableReplicas"}}}}),
    );
    let moves = plan(&world.instance, &Value::Null, &rule, Timestamp::now()).await.unwrap();
    assert_eq!(moves[0].to_string(), "Deployment default/web: m1 new→4 m2 new→8");
    // Somebody who may read policies and clusters, but ask no member.
    let rbac = |plural: &str| Gvr::new("rbac.authorization.k8s.io", "v1", plural);
    world.instance.delete(&rbac("clusterrolebindings"), None, "callers", &Value::Null).await.unwrap();
    world
        .eventually("what could not be counted is told", async || {
            let moves = plan(&world.instance, &Value::Null, &rule, Timestamp::now()).await.unwrap();
            moves[0].approximate == ["m1", "m2"]
                && moves[0].to_string().contains("nodes of m1, m2 could not be counted")
        })
        .await;
    world.instance.create(&policies(), NS, &rule).await.unwrap();
    world.eventually("it is as planned", async || shares(&world, "web-deployment").await == moves[0].after).await;
}

/// A policy for one Deployment.
fn policy_for(name: &str, more: Value) -> Value {
    let mut rule = policy(name, more);
    rule["spec"]["resourceSelectors"][0]["name"] = name.into();
    rule
}

/// What stands in the way of a template first.
async fn obstacle(world: &World, settings: &Value, kind: &str, name: &str) -> String {
    trace_with(&world.instance, settings, kind, "default", name).await.unwrap().obstacle.unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_names_what_the_controllers_stumble_over() {
    let world = World::start(1).await;
    for endpoint in [&world.instance, world.member("m1")] {
        endpoint.create(&definitions(), None, &gear_definition()).await.unwrap();
    }
    let usual = Value::Null;
    for (name, activation) in [("ranked", Value::Null), ("lazy", json!("Lazy"))] {
        let class = json!({"priorityClassSource": "KubePriorityClass", "priorityClassName": "gold"});
        let more = json!({"schedulePriority": class, "activationPreference": activation});
        world.instance.create(&policies(), NS, &policy_for(name, more)).await.unwrap();
        world.instance.create(&deployments(), NS, &deployment(name, 1)).await.unwrap();
        let wanted = format!("PropagationPolicy default/{name} names PriorityClass gold, which does not exist.");
        assert_eq!(obstacle(&world, &usual, "deployment", name).await, wanted);
    }

    let script = json!({"replicaResource": {"luaScript": "function GetReplicas(obj) error('no idea') end"}});
    let custom = customization("gear", ("example.io/v1", "Gear"), script);
    world.instance.create(&customizations(), None, &custom).await.unwrap();
    let gear_kind = json!({"resourceSelectors": [{"apiVersion": "example.io/v1", "kind": "Gear"}]});
    world.instance.create(&policies(), NS, &policy("gears", gear_kind)).await.unwrap();
    world.instance.create(&gears(), NS, &gear("g", 1)).await.unwrap();
    let found = obstacle(&world, &usual, "gear", "g").await;
    assert!(found.starts_with("The interpreter cannot read Gear default/g: script failed in GetReplicas"), "{found}");

    world.instance.create(&policies(), NS, &policy_for("differs", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("differs", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "differs", |_| true).await;
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": "o", "namespace": "default"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "differs"}],
            "overrideRules": [{"overriders": {"plaintext": [{"path": "/spec/none/of/it", "operator": "replace", "value": 1}]}}]}});
    world.instance.create(&overrides(), NS, &rule).await.unwrap();
    let found = obstacle(&world, &usual, "deployment", "differs").await;
    assert!(found.starts_with("The copy for cluster m1 cannot be made: override policy o: "), "{found}");

    world.instance.create(&deployments(), NS, &deployment("nobodys", 1)).await.unwrap();
    for (settings, expected) in [
        (Value::Null, "No policy selects Deployment default/nobodys; 3 policies select its kind but not it."),
        (
            json!({"fleet.atoll.io/skipped-propagating-apis": "apps"}),
            "Deployment default/nobodys is never propagated: kind Deployment is left out by fleet.atoll.io/skipped-propagating-apis.",
        ),
        (
            json!({"fleet.atoll.io/skipped-propagating-namespaces": "def.*"}),
            "Deployment default/nobodys is never propagated: namespace default is left out by fleet.atoll.io/skipped-propagating-namespaces.",
        ),
    ] {
        assert_eq!(obstacle(&world, &settings, "deployment", "nobodys").await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_without_a_cluster_says_what_has_to_happen_before_anything_moves() {
    let world = World::start(2).await;
    // Whoever wants taints that evict has to allow them.
    let definitions = atoll_api::crds(atoll_api::CrdSet::Atoll);
    world.hub.add_native(|instance| &*instance.name == "root", definitions).await.unwrap();
    let settings = json!({"fleet.atoll.io/failover": "true", "fleet.atoll.io/no-execute-taint-eviction": "true",
        "fleet.atoll.io/allow-no-execute-taint-policy": "true"});
    let described = json!({"apiVersion": "atoll.io/v1alpha1", "kind": "Instance",
        "metadata": {"name": "fleet", "annotations": settings}, "spec": {"type": "Hosted"}});
    let root = support::endpoint(&world.hub, "root");
    root.create(&Gvr::new("atoll.io", "v1alpha1", "instances"), None, &described).await.unwrap();
    let bears = |seconds: Value| json!([{"key": "away", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]);
    for (name, tolerations) in [("mover", json!([])), ("patient", bears(json!(300))), ("stayer", bears(Value::Null))] {
        let home = json!({"placement": {"clusterTolerations": tolerations, "clusterAffinities": [
            {"affinityName": "home", "clusterNames": ["m2"]}, {"affinityName": "away", "clusterNames": ["m1"]}]}});
        world.instance.create(&policies(), NS, &policy_for(name, home)).await.unwrap();
        world.instance.create(&deployments(), NS, &deployment(name, 1)).await.unwrap();
        world.in_member("m2", &deployments(), name, |_| true).await;
    }
    let lost = async |settings: &Value| {
        let loss = plan_without(&world.instance, settings, "m2", Timestamp::now()).await.unwrap();
        let when: Vec<Value> =
            loss.moves.iter().map(|step| serde_json::to_value(step).unwrap()["when"].clone()).collect();
        (loss.to_string(), when)
    };
    let goes = |name: &str| format!("Deployment default/{name}: m1 new→1 m2 1→gone");
    let (text, when) = lost(&Value::Null).await;
    let head = "Failover is off in this instance: losing contact with m2 moves nothing. If m2 is unjoined, this moves:";
    assert_eq!(text, format!("{head}\n{}\n{}\n{}\n", goes("mover"), goes("patient"), goes("stayer")));
    assert_eq!(when, ["Unjoined"; 3]);
    let (text, _) = lost(&settings).await;
    assert!(text.starts_with("No ClusterTaintPolicy gives it a NoExecute taint for being silent: "), "{text}");
    let rule = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy", "metadata": {"name": "drain"},
        "spec": {"addOnConditions": [{"conditionType": "Ready", "operator": "NotIn", "statusValues": ["True"]}],
                 "taints": [{"key": "away", "effect": "NoExecute"}]}});
    let taint_policies = Gvr::new("policy.karmada.io", "v1alpha1", "clustertaintpolicies");
    world.instance.create(&taint_policies, None, &rule).await.unwrap();
    let (text, when) = lost(&settings).await;
    let head = "If contact with m2 is lost, it gets the NoExecute taint away, and this moves:";
    assert_eq!(text, format!("{head}\n{}\n{} (after 300 s)\n", goes("mover"), goes("patient")));
    assert_eq!(when, ["ContactLost"; 2]);
    let none = plan_without(&world.instance, &settings, "m9", Timestamp::now()).await.unwrap_err();
    assert_eq!(none.code, 404);
}
