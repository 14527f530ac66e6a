//! What each field of PropagationPolicy and ClusterPropagationPolicy does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use atoll_fleet::binding::{self, Binding, Meaning};
use atoll_fleet::decision::{self, Surroundings};
use atoll_fleet::policy::{Policies, Policy};
use atoll_fleet::work::{Source, build};
use atoll_fleet::{claim, evict, merge};
use atoll_interpreter::Interpreter;
use atoll_meta::{Gvk, Head};
use atoll_runtime::Item;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::case::{Case, affinity, gone, other, selectors};
use crate::world::{clusters, object, template};

const ALL: &str = r#"[{"apiVersion": "apps/v1", "kind": "Deployment"}]"#;

fn policy(name: &str, spec: &Value, namespaced: bool) -> Policy {
    let mut spec = spec.clone();
    if spec.get("resourceSelectors").is_none() {
        spec["resourceSelectors"] = serde_json::from_str(ALL).unwrap();
    }
    Policy::of(&Item::of(&object(name, &spec, namespaced)).unwrap()).unwrap()
}

fn head() -> Head {
    Head::of(template()["metadata"].as_object().unwrap())
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000 + second).unwrap()
}

/// Which of two policies gets the template; the other one holds it already in `preempted`.
fn chosen(spec: &Value, namespaced: bool, held: bool) -> String {
    let all = Policies::default();
    let rival = all.put(policy("a", &json!({"priority": 1}), namespaced));
    all.put(policy("z", spec, namespaced));
    let claim: Option<claim::Claim> = held.then(|| rival.claim());
    let found = all.choose(&Gvk::new("apps", "v1", "Deployment"), &head(), claim.as_ref(), true);
    found.map(|policy| policy.key.name.to_string()).unwrap_or_default()
}

fn taken(spec: &Value, namespaced: bool) -> String {
    chosen(spec, namespaced, false)
}

fn preempted(spec: &Value, namespaced: bool) -> String {
    chosen(spec, namespaced, true)
}

/// The binding with its decision, if the policy selects the template.
fn bound(spec: &Value, namespaced: bool) -> Option<Binding> {
    let policy = policy("p", spec, namespaced);
    policy.fit(&Gvk::new("apps", "v1", "Deployment"), &head())?;
    let (template, interpreter) = (template(), Interpreter::default());
    let meaning = Meaning::of(&template, &interpreter).unwrap();
    let mut binding = binding::build(&template, &policy, &meaning, None, None, || "bid".to_owned());
    if policy.spec.propagate_deps {
        atoll_fleet::attach::announce(&mut binding, &interpreter.dependencies(&template));
    }
    let snapshot = clusters();
    let groups = binding.spec.workload_affinity_groups.clone().unwrap_or_default();
    // Another workload of group `tier=front` runs in m1.
    let hosts = |group: &str| (group == "tier=front").then(|| BTreeSet::from(["m1".to_owned()]));
    let (together, apart) = (hosts(&groups.affinity_group), hosts(&groups.anti_affinity_group));
    let around = Surroundings {
        snapshot: &snapshot,
        estimates: None,
        affinity_hosts: together.as_ref(),
        anti_affinity_hosts: apart.as_ref(),
        components: false,
        now: at(0),
    };
    decision::settle(&mut binding, &around);
    Some(binding)
}

/// Where the template goes, or why nowhere.
fn placed(spec: &Value, namespaced: bool) -> String {
    let Some(binding) = bound(spec, namespaced) else { return "not selected".to_owned() };
    let record = decision::Record::of(&binding);
    let error = record.as_ref().and_then(|record| record.error.clone()).unwrap_or_default().0;
    let affinity = record.map(|record| record.affinity).unwrap_or_default();
    let clusters = binding.spec.clusters.iter().map(|target| format!("{}={}", target.name, target.replicas));
    format!("{} {affinity} {error}", clusters.collect::<Vec<_>>().join(" "))
}

/// What goes to the clusters: held back or not, left behind or not, taking over or not.
fn sent(spec: &Value, namespaced: bool) -> String {
    let binding = bound(spec, namespaced).unwrap();
    let (template, snapshot) = (template(), clusters());
    let source = Source::new(&template, &binding, Vec::new());
    let mut lines = vec![format!("takes along {}", atoll_fleet::attach::announced(&binding).len())];
    for (name, replicas) in binding.targets() {
        let cluster = snapshot.get(name).unwrap();
        let work = build(&source, cluster, replicas, &Interpreter::default(), None, || "wid".to_owned()).unwrap();
        let (held, stays) = (work.spec.suspend_dispatching, work.spec.preserve_resources_on_deletion);
        let takes_over = merge::may_take_over(&work.spec.workload.manifests[0]);
        lines.push(format!("{name}: held {held:?}, stays {stays:?}, takes over {takes_over}"));
    }
    lines.join("\n")
}

/// What is left, how and when, by someone who looks every ten seconds for a minute and a half.
fn watched(spec: &Value, namespaced: bool, leave: impl Fn(&mut Binding, Timestamp)) -> String {
    let mut binding = bound(spec, namespaced).unwrap();
    let item = |cluster: &str, health: &str| json!({"clusterName": cluster, "health": health, "status": {"job": "17", "step": 4}});
    binding.status =
        serde_json::from_value(json!({"aggregatedStatus": [item("m1", "Unhealthy"), item("m2", "Unhealthy")]}))
            .unwrap();
    let mut lines = Vec::new();
    for second in (0..90).step_by(10) {
        leave(&mut binding, at(second));
        evict::settle(&mut binding, true, Duration::from_secs(600), at(second));
        let names = binding.spec.clusters.iter().map(|target| target.name.clone()).collect::<Vec<_>>();
        let tasks = serde_json::to_string(&binding.spec.graceful_eviction_tasks).unwrap();
        lines.push(format!("{second}: {names:?} {tasks}"));
    }
    lines.join("\n")
}

/// The application is unhealthy in m1 and m2.
fn ill(spec: &Value, namespaced: bool) -> String {
    let since = std::cell::RefCell::new(evict::Unhealthy::new());
    watched(spec, namespaced, |binding, now| {
        evict::by_health(binding, &mut since.borrow_mut(), now);
    })
}

/// m1 has a taint that drives workloads away.
fn tainted(spec: &Value, namespaced: bool) -> String {
    let taint = Taint {
        key: "gone".into(),
        effect: "NoExecute".into(),
        value: Some("yes".into()),
        time_added: Some(Time(at(0))),
    };
    let taints = |name: &str| (name == "m1").then(|| vec![taint.clone()]);
    watched(spec, namespaced, |binding, now| {
        evict::by_taints(binding, taints, || None, now);
    })
}

fn with_term(term: Value) -> Value {
    let mut first = json!({"affinityName": "first"});
    atoll_patch::merge_patch(&mut first, &term);
    json!({"placement": {"clusterAffinities": [first, {"affinityName": "second", "clusterNames": ["m3"]}],
        "replicaScheduling": {"replicaSchedulingType": "Duplicated"}}})
}

/// No cluster fits first, so all goes where the overflow says.
fn with_overflow(affinity: Value) -> Value {
    let mut overflow = json!({"affinityName": "more"});
    atoll_patch::merge_patch(&mut overflow, &affinity);
    json!({"placement": {"clusterAffinities": [{"affinityName": "first", "clusterNames": ["none"], "overflowAffinities": [overflow]}],
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": {"dynamicWeight": "AvailableReplicas"}}}})
}

fn divided(more: Value) -> Value {
    let mut strategy = json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"});
    atoll_patch::merge_patch(&mut strategy, &more);
    json!({"placement": {"replicaScheduling": strategy}})
}

fn weights(affinity: &Value) -> Value {
    let all = json!({"clusterNames": ["m1", "m2", "m3"]});
    divided(json!({"weightPreference": {"staticWeightList": [
        {"targetCluster": affinity, "weight": 4}, {"targetCluster": all, "weight": 1}]}}))
}

fn placement() -> Vec<Case> {
    let spread = |more: Value| {
        let mut constraint = json!({"spreadByField": "region", "minGroups": 1, "maxGroups": 1});
        atoll_patch::merge_patch(&mut constraint, &more);
        json!({"placement": {"spreadConstraints": [constraint]}})
    };
    let by_label = || spread(json!({"spreadByField": null, "spreadByLabel": "env"}));
    let bears = || json!({"placement": {"clusterTolerations": [{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}]}});
    let group = |kind: &str| json!({"placement": {"workloadAffinity": {kind: {"groupByLabelKey": "tier"}}}});
    let path = "placement.replicaScheduling";
    let mut cases = vec![
        other(
            "placement.clusterAffinities.affinityName",
            with_term(json!({"clusterNames": ["m1"]})),
            json!("z"),
            placed,
        ),
        other("placement.clusterTolerations.key", bears(), json!("none"), placed),
        other("placement.clusterTolerations.operator", bears(), json!("Exists"), refused_without_value),
        other("placement.clusterTolerations.value", bears(), json!("no"), placed),
        other("placement.clusterTolerations.effect", bears(), json!("NoExecute"), placed),
        gone(
            "placement.clusterTolerations.tolerationSeconds",
            json!({"placement": {"clusterTolerations": [{"key": "gone", "operator": "Exists", "tolerationSeconds": 30}]}}),
            tainted,
        ),
        other(&format!("{path}.replicaSchedulingType"), divided(json!({})), json!("Duplicated"), placed),
        other(&format!("{path}.replicaDivisionPreference"), divided(json!({})), json!("Aggregated"), placed),
        gone(
            &format!("{path}.weightPreference.dynamicWeight"),
            divided(json!({"weightPreference": {"dynamicWeight": "AvailableReplicas"}})),
            placed,
        ),
        other(
            &format!("{path}.weightPreference.staticWeightList.weight"),
            weights(&json!({"clusterNames": ["m1"]})),
            json!(1),
            placed,
        ),
        other("placement.spreadConstraints.spreadByField", spread(json!({})), json!("cluster"), placed),
        other("placement.spreadConstraints.maxGroups", spread(json!({"spreadByField": "cluster"})), json!(2), placed),
        other(
            "placement.spreadConstraints.minGroups",
            spread(json!({"minGroups": 3, "maxGroups": 3})),
            json!(1),
            placed,
        ),
        other("placement.spreadConstraints.spreadByLabel", by_label(), json!("rack"), placed),
        other("placement.workloadAffinity.affinity.groupByLabelKey", group("affinity"), json!("app"), placed),
        other("placement.workloadAffinity.antiAffinity.groupByLabelKey", group("antiAffinity"), json!("app"), placed),
    ];
    cases.extend(affinity("placement.clusterAffinity", |own| json!({"placement": {"clusterAffinity": own}}), placed));
    cases.extend(affinity("placement.clusterAffinities", with_term, placed));
    cases.extend(affinity("placement.clusterAffinities.overflowAffinities", with_overflow, placed));
    let weighted = format!("{path}.weightPreference.staticWeightList.targetCluster");
    cases.extend(affinity(&weighted, |own| weights(&own), placed));
    cases
}

/// Where the template goes when the toleration names no value: only `Exists` bears every value.
fn refused_without_value(spec: &Value, namespaced: bool) -> String {
    let mut spec = spec.clone();
    spec["placement"]["clusterTolerations"][0]["value"] = Value::Null;
    placed(&spec, namespaced)
}

fn failover() -> Vec<Case> {
    let state = json!({"rules": [{"aliasLabelName": "job", "jsonPath": "{.job}"}]});
    let application = || {
        json!({"failover": {"application": {"decisionConditions": {"tolerationSeconds": 20}, "purgeMode": "Gracefully",
            "gracePeriodSeconds": 30, "statePreservation": state.clone()}}})
    };
    let cluster = || json!({"failover": {"cluster": {"purgeMode": "Directly", "statePreservation": state.clone()}}});
    let own = |name: &str| format!("failover.application.{name}");
    vec![
        other(&own("decisionConditions.tolerationSeconds"), application(), json!(60), ill),
        other(&own("purgeMode"), application(), json!("Directly"), ill),
        gone(&own("gracePeriodSeconds"), application(), ill),
        other(&own("statePreservation.rules.aliasLabelName"), application(), json!("step"), ill),
        other(&own("statePreservation.rules.jsonPath"), application(), json!("{.step}"), ill),
        other("failover.cluster.purgeMode", cluster(), json!("Gracefully"), tainted),
        other("failover.cluster.statePreservation.rules.aliasLabelName", cluster(), json!("step"), tainted),
        other("failover.cluster.statePreservation.rules.jsonPath", cluster(), json!("{.step}"), tainted),
    ]
}

/// All fields that pure decisions show.
pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        gone("priority", json!({"priority": 2}), taken),
        gone("preemption", json!({"priority": 2, "preemption": "Always"}), preempted),
        gone("schedulerName", json!({"schedulerName": "another"}), placed),
        gone("conflictResolution", json!({"conflictResolution": "Overwrite"}), sent),
        gone("preserveResourcesOnDeletion", json!({"preserveResourcesOnDeletion": true}), sent),
        gone("propagateDeps", json!({"propagateDeps": true}), sent),
        gone("suspension.dispatching", json!({"suspension": {"dispatching": true}}), sent),
        other(
            "suspension.dispatchingOnClusters.clusterNames",
            json!({"suspension": {"dispatchingOnClusters": {"clusterNames": ["m1"]}}}),
            json!(["m2"]),
            sent,
        ),
    ];
    cases.extend(selectors(|own| json!({"resourceSelectors": own}), placed));
    cases.extend(placement());
    cases.extend(failover());
    cases
}

/// What the outcomes say in words, so that a difference is not just any.
#[test]
fn outcomes_say_what_happens() {
    let map: BTreeMap<&str, String> = BTreeMap::from([
        ("plain", placed(&json!({}), true)),
        ("term", placed(&with_term(json!({"clusterNames": ["m1"]})), true)),
        ("overflow", placed(&with_overflow(json!({"clusterNames": ["m1"]})), true)),
        ("weights", placed(&weights(&json!({"clusterNames": ["m1"]})), true)),
    ]);
    assert_eq!(map["plain"].trim(), "m1=6 m2=6 m3=6");
    assert_eq!(map["term"].trim(), "m1=6 first");
    assert_eq!(map["overflow"].trim(), "m1=6 first");
    assert_eq!(map["weights"].trim(), "m1=4 m2=1 m3=1");
}
