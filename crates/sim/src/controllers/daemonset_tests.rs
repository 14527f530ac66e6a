use super::*;
use crate::testing::{Builder, node, pod as some_pod};

fn set(more: Value) -> Value {
    let mut tree = json!({"metadata": {"name": "s", "namespace": "d", "uid": "u", "generation": 1},
                          "spec": {"template": {"metadata": {"labels": {"app": "a"}}, "spec": {}}}});
    for (key, value) in more.as_object().into_iter().flatten() {
        tree["spec"][key] = value.clone();
    }
    tree
}

fn run(tree: &Value, nodes: Vec<Arc<Node>>, pods: Vec<Builder>) -> Plan {
    let pods: Vec<_> = pods.into_iter().map(Builder::build).collect();
    decide(tree, &nodes, &pods, "new", "2026-01-01T00:10:00Z".parse().expect("a moment"))
}

fn names(list: &[(String, String)]) -> Vec<&str> {
    list.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn every_fitting_node_gets_a_pod() {
    let master = node("m", json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), json!({}));
    let plain = || node("a", json!({}), json!({"gpu": "yes"}));
    assert_eq!(
        run(&set(json!({})), vec![plain(), master.clone(), node("b", json!({}), json!({}))], vec![]).create,
        ["a", "b"]
    );
    let tolerant = set(json!({"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}));
    assert_eq!(run(&tolerant, vec![plain(), master], vec![]).create, ["a", "m"]);
    let picky = set(json!({"template": {"spec": {"nodeSelector": {"gpu": "yes"}}}}));
    assert_eq!(run(&picky, vec![plain(), node("b", json!({}), json!({}))], vec![]).create, ["a"]);
    let cordoned = node(
        "c",
        json!({"unschedulable": true, "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]}),
        json!({}),
    );
    assert_eq!(run(&set(json!({})), vec![cordoned], vec![]).create, ["c"]);
}

#[test]
fn a_failed_pod_goes_and_a_second_one_too() {
    let nodes = || vec![node("a", json!({}), json!({}))];
    let plan = run(&set(json!({})), nodes(), vec![some_pod("x").node("a").phase("Failed")]);
    assert_eq!(names(&plan.delete), ["x"]);
    let twice =
        vec![some_pod("x").node("a").label(LABEL, "new").ready(), some_pod("y").node("a").label(LABEL, "new").ready()];
    assert_eq!(run(&set(json!({})), nodes(), twice).delete.len(), 1);
}

#[test]
fn a_rollout_takes_down_one_pod_at_a_time() {
    let nodes = || ["a", "b", "c"].map(|name| node(name, json!({}), json!({}))).to_vec();
    let old = |name: &str| some_pod(name).node(name).label(LABEL, "old").ready();
    let new = |name: &str| some_pod(name).node(name).label(LABEL, "new").ready();
    assert_eq!(run(&set(json!({})), nodes(), vec![old("a"), old("b"), old("c")]).delete.len(), 1);
    let broken = vec![some_pod("a").node("a").label(LABEL, "new"), old("b"), old("c")];
    assert_eq!(run(&set(json!({})), nodes(), broken).delete.len(), 0);
    let plan = run(&set(json!({})), nodes(), vec![new("a"), new("b"), new("c")]);
    assert_eq!(plan.delete.len(), 0);
    assert_eq!(plan.status["updatedNumberScheduled"], 3);
    assert_eq!(plan.status["numberAvailable"], 3);
    let surging = set(json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}));
    let plan = run(&surging, nodes(), vec![old("a"), old("b"), old("c")]);
    assert_eq!((plan.create.len(), plan.delete.len()), (1, 0));
}

#[test]
fn a_pod_is_tied_to_its_node() {
    let made = pod(&set(json!({})), "a", "h");
    let terms = &made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    assert_eq!(terms[0]["matchFields"][0]["values"], json!(["a"]));
    assert_eq!(made["spec"]["tolerations"].as_array().map(Vec::len), Some(6));
}
