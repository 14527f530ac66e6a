#![allow(clippy::unwrap_used)]
use super::*;
use serde_json::json;

fn pod(more: Value) -> Value {
    let mut pod = json!({"metadata": {"name": "p", "namespace": "ns", "uid": "u1"}});
    json_patch(&mut pod, &more);
    pod
}

fn physical(more: Value) -> Value {
    let mut pod = json!({"metadata": {
        "name": "p-hash", "namespace": "mount", "uid": "x1",
        "labels": {"kubeocean.io/managed-by": "kubeocean", OWNER: "me"},
        "annotations": {
            "kubeocean.io/virtual-pod-namespace": "ns", "kubeocean.io/virtual-pod-name": "p", "kubeocean.io/virtual-pod-uid": "u1",
        },
    }});
    json_patch(&mut pod, &more);
    pod
}

/// RFC 7386, as far as needed here.
fn json_patch(target: &mut Value, patch: &Value) {
    match patch {
        Value::Object(map) => map.iter().for_each(|(key, value)| json_patch(&mut target[key], value)),
        other => *target = other.clone(),
    }
}

fn next(pod: Option<&Value>, physical: Option<&Value>, on_our_node: bool) -> Step {
    step(pod, physical, &Context { owner: "me", binding: &Binding::default(), on_our_node })
}

const GONE: &str = "2026-01-05T12:00:00Z";

#[test]
fn a_new_pod_gets_a_physical_one_and_a_known_one_is_kept() {
    assert_eq!(next(Some(&pod(json!({}))), None, true), Step::Create);
    assert_eq!(next(Some(&pod(json!({}))), Some(&physical(json!({}))), true), Step::Keep);
    assert_eq!(next(Some(&pod(json!({}))), None, false), Step::Ignore, "not on our node");
    let over = pod(json!({"status": {"phase": "Succeeded"}}));
    assert_eq!(next(Some(&over), None, true), Step::Ignore, "what ended is not run again");
}

#[test]
fn a_physical_pod_that_vanished_is_lost_unless_the_pod_had_ended() {
    let mapped = json!({"metadata": {"annotations": {"kubeocean.io/physical-pod-uid": "x1"}}});
    assert_eq!(next(Some(&pod(mapped.clone())), None, true), Step::Lost);
    let mut over = pod(mapped);
    over["status"]["phase"] = "Succeeded".into();
    assert_eq!(next(Some(&over), None, true), Step::Ignore);
}

#[test]
fn deletion_waits_for_the_physical_pod_and_carries_the_grace_period_over() {
    let deleting = pod(json!({"metadata": {"deletionTimestamp": GONE, "deletionGracePeriodSeconds": 7}}));
    assert_eq!(next(Some(&deleting), None, true), Step::Finish);
    assert_eq!(next(Some(&deleting), Some(&physical(json!({}))), true), Step::Delete(Some(7)));
    let going =
        |seconds| physical(json!({"metadata": {"deletionTimestamp": GONE, "deletionGracePeriodSeconds": seconds}}));
    assert_eq!(next(Some(&deleting), Some(&going(7)), true), Step::Wait);
    assert_eq!(next(Some(&deleting), Some(&going(30)), true), Step::Delete(Some(7)), "the shorter one counts");
    let foreign = physical(json!({"metadata": {"labels": {OWNER: "other"}}}));
    assert_eq!(next(Some(&deleting), Some(&foreign), true), Step::Finish, "not ours to delete");
    let daemon = pod(json!({"metadata": {"deletionTimestamp": GONE, "ownerReferences": [{"kind": "DaemonSet"}]}}));
    assert_eq!(next(Some(&daemon), None, true), Step::Finish, "whatever it is");
}

#[test]
fn orphans_of_this_cluster_go_and_those_of_others_stay() {
    assert_eq!(next(None, Some(&physical(json!({}))), false), Step::Delete(None));
    assert_eq!(next(None, Some(&physical(json!({"metadata": {"labels": {OWNER: "other"}}}))), false), Step::Ignore);
    assert_eq!(
        next(None, Some(&physical(json!({"metadata": {"labels": {OWNER: ""}}}))), false),
        Step::Ignore,
        "unmarked"
    );
    assert_eq!(
        next(None, Some(&physical(json!({"metadata": {"labels": {"kubeocean.io/managed-by": ""}}}))), false),
        Step::Ignore
    );
    assert_eq!(next(None, None, false), Step::Ignore);
    let stale = physical(json!({"metadata": {"annotations": {"kubeocean.io/virtual-pod-uid": "u0"}}}));
    assert_eq!(next(Some(&pod(json!({}))), Some(&stale), true), Step::Delete(None), "of an earlier pod of the name");
    assert_eq!(
        next(Some(&pod(json!({}))), Some(&stale), false),
        Step::Delete(None),
        "also when the new one runs elsewhere"
    );
    let other = physical(json!({"metadata": {"annotations": {"kubeocean.io/virtual-pod-name": "q"}}}));
    assert_eq!(next(Some(&pod(json!({}))), Some(&other), true), Step::Conflict);
    assert_eq!(next(Some(&pod(json!({}))), Some(&json!({"metadata": {"name": "p-hash"}})), true), Step::Conflict);
}

#[test]
fn pods_of_the_original_are_taken_over() {
    let unmarked = physical(json!({"metadata": {"labels": {OWNER: ""}}}));
    assert_eq!(next(Some(&pod(json!({}))), Some(&unmarked), true), Step::Keep);
}

#[test]
fn daemon_sets_run_only_where_wanted_and_system_pods_never() {
    let daemon = |value: &str| {
        pod(
            json!({"metadata": {"ownerReferences": [{"kind": "DaemonSet"}], "annotations": {"kubeocean.io/running-daemonset": value}}}),
        )
    };
    for (value, expected) in [("true", Step::Create), ("false", Step::Ignore), ("", Step::Ignore)] {
        assert_eq!(next(Some(&daemon(value)), None, true), expected, "{value:?}");
    }
    let binding = Binding { daemon_sets: true, ..Binding::default() };
    let context = Context { owner: "me", binding: &binding, on_our_node: true };
    assert_eq!(step(Some(&daemon("")), None, &context), Step::Create);
    for namespace in SYSTEM_NAMESPACES {
        let system = pod(json!({"metadata": {"namespace": namespace}}));
        assert_eq!(next(Some(&system), None, true), Step::Ignore, "{namespace}");
    }
    let fake = pod(json!({"metadata": {"labels": {"kubeocean.io/hostport-fake-pod": "true"}}}));
    assert_eq!(next(Some(&fake), None, true), Step::Ignore);
}
