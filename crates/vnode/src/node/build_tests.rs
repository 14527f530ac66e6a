#![allow(clippy::unwrap_used)]
use super::*;
use atoll_lease::{State, read_amounts};

fn physical() -> Value {
    json!({
        "metadata": {"name": "n1", "uid": "u1", "labels": {"zone": "a", "kubernetes.io/hostname": "n1"}, "annotations": {"note": "x"}},
        "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "MemoryPressure", "status": "False"}],
            "nodeInfo": {"kubeletVersion": "v1.35.0"},
            "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
        },
    })
}

fn loan() -> Loan {
    let amounts = read_amounts(&json!({"cpu": "2", "memory": "4Gi"}));
    Loan { policy: "p1".into(), amounts, state: State::Open, next_edge: None }
}

fn build(physical: &Value, existing: Option<&Value>, reachable: bool) -> Value {
    let binding = Binding { name: "b".into(), cluster_id: "w".into(), default_taint: true, ..Binding::default() };
    let spec = json!({"cluster": "b", "resourceLimits": [{"resource": "cpu", "quantity": "2", "percent": 50}, {"resource": "memory"}]});
    let policy = Policy { name: "p1".into(), spec: serde_json::from_value(spec).unwrap(), ..Policy::default() };
    Draft {
        name: "vnode-w-n1",
        binding: &binding,
        physical,
        loan: &loan(),
        policy: Some(&policy),
        existing,
        address: Address::Is("10.9.0.1".parse().unwrap()),
        port: 20_000,
        reachable,
        now: "2026-01-05T12:00:00Z".parse().unwrap(),
    }
    .node()
}

#[test]
fn a_virtual_node_looks_like_the_leased_one_under_its_own_name() {
    let node = build(&physical(), None, true);
    for (key, value) in [
        ("zone", "a"),
        ("kubernetes.io/hostname", "vnode-w-n1"),
        ("kubeocean.io/cluster-binding", "b"),
        ("kubeocean.io/physical-cluster-id", "w"),
        ("kubeocean.io/physical-node-name", "n1"),
        ("kubeocean.io/physical-node-uid", "u1"),
        ("kubeocean.io/managed-by", "kubeocean"),
        ("kubeocean.io/physical-node-innerip", "10.1.0.1"),
        ("kubeocean.io/proxier_port", "20000"),
        ("kubeocean.io/policy-applied", "p1"),
        ("type", "virtual-kubelet"),
        ("node.kubernetes.io/instance-type", "vnode"),
    ] {
        assert_eq!(tree::label(&node, key), value, "{key}");
    }
    assert_eq!(tree::annotation(&node, "note"), "x");
    assert_eq!(tree::annotation(&node, annotation::POLICY_DETAILS), "p1(cpu=2/50%,memory=/)");
    assert_eq!(tree::annotation(&node, annotation::PROMETHEUS_URL), "10.9.0.1:9006/vnode-w-n1");
    assert_eq!(node["metadata"]["finalizers"], json!(["kubeocean.io/vnode"]));
    let keys: Vec<_> = taints(&node).iter().map(|taint| taint["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["gpu", "kubeocean.io/vnode"]);
    assert_eq!(node["status"]["allocatable"], json!({"cpu": "2", "memory": "4Gi"}));
    assert_eq!(node["status"]["capacity"], node["status"]["allocatable"]);
    assert_eq!(
        node["status"]["addresses"],
        json!([{"type": "InternalIP", "address": "10.9.0.1"}, {"type": "Hostname", "address": "vnode-w-n1"}])
    );
    assert!(is_ready(&node));
}

#[test]
fn nothing_changes_when_nothing_changed() {
    let node = build(&physical(), None, true);
    assert_eq!(build(&physical(), Some(&node), true), node);
    let silent = build(&physical(), Some(&node), false);
    assert_eq!(build(&physical(), Some(&silent), false), silent);
}

#[test]
fn edits_of_people_survive_and_what_the_leased_node_loses_goes() {
    let mut node = build(&physical(), None, true);
    node["metadata"]["labels"]["mine"] = "x".into();
    node["metadata"]["annotations"]["mine"] = "x".into();
    node["spec"]["taints"].as_array_mut().unwrap().push(json!({"key": "mine", "effect": "NoSchedule"}));
    let mut changed = physical();
    changed["metadata"]["labels"] = json!({"zone": "b"});
    changed["metadata"]["annotations"] = json!({});
    changed["spec"]["taints"] = json!([]);
    let node = build(&changed, Some(&node), true);
    assert_eq!((tree::label(&node, "zone"), tree::label(&node, "mine")), ("b", "x"));
    assert_eq!((tree::annotation(&node, "note"), tree::annotation(&node, "mine")), ("", "x"));
    let keys: Vec<_> = taints(&node).iter().map(|taint| taint["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["kubeocean.io/vnode", "mine"]);
}

#[test]
fn a_withdrawal_that_did_not_come_about_leaves_no_trace() {
    let mut node = build(&physical(), None, true);
    let clean = node.clone();
    node["spec"]["taints"].as_array_mut().unwrap().push(taint::deleting());
    node["spec"]["unschedulable"] = true.into();
    node["metadata"]["annotations"][annotation::DELETION_TAINT_TIME] = "2026-01-05T11:00:00Z".into();
    assert_eq!(build(&physical(), Some(&node), true)["spec"], clean["spec"]);
    let mut cordoned = clean;
    cordoned["spec"]["unschedulable"] = true.into();
    assert_eq!(build(&physical(), Some(&cordoned), true)["spec"]["unschedulable"], true, "people's own cordon stays");
}

#[test]
fn a_node_whose_cluster_is_silent_is_not_ready_and_is_again() {
    let node = build(&physical(), None, true);
    let silent = build(&physical(), Some(&node), false);
    let ready = list(&silent["status"]["conditions"]).iter().find(|condition| condition["type"] == "Ready").unwrap();
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("Unknown"), &json!(UNREACHABLE)));
    assert!(is_ready(&build(&physical(), Some(&silent), true)));
}
