//! How members' statuses are collected, judged and put together, for the built-in kinds.
#![allow(clippy::unwrap_used, missing_docs)]

use atoll_interpreter::{Health, Interpreter};
use serde_json::{Value, json};

type Items = Vec<(String, Option<Value>)>;

fn items(list: &[Value]) -> Items {
    let item = |(index, status): (usize, &Value)| {
        (format!("member{}", index + 1), Some(status.clone()).filter(|status| !status.is_null()))
    };
    list.iter().enumerate().map(item).collect()
}

/// The status that results, and whether it is new.
fn aggregated(mut template: Value, list: &[Value]) -> (Value, bool) {
    let it = Interpreter::new();
    let changed = it.aggregate(&mut template, &items(list));
    let again = it.aggregate(&mut template, &items(list));
    assert!(!again, "the same statuses change nothing: {template}");
    (template["status"].clone(), changed)
}

#[test]
fn numbers_of_workloads_add_up() {
    let member = |count: i64| {
        json!({"replicas": count, "readyReplicas": count, "updatedReplicas": count, "availableReplicas": count - 1, "unavailableReplicas": 1,
        "currentReplicas": count, "fullyLabeledReplicas": count, "conditions": [{"type": "Available"}],
        "currentNumberScheduled": count, "desiredNumberScheduled": count, "numberReady": count, "numberAvailable": count, "updatedNumberScheduled": count,
        "generation": 5, "observedGeneration": 5, "resourceTemplateGeneration": 2})
    };
    let cases = [
        (
            "Deployment",
            json!({"replicas": 5, "readyReplicas": 5, "updatedReplicas": 5, "availableReplicas": 3, "unavailableReplicas": 2}),
        ),
        (
            "StatefulSet",
            json!({"replicas": 5, "readyReplicas": 5, "updatedReplicas": 5, "availableReplicas": 3, "currentReplicas": 5}),
        ),
        ("ReplicaSet", json!({"replicas": 5, "readyReplicas": 5, "availableReplicas": 3})),
        (
            "DaemonSet",
            json!({"currentNumberScheduled": 5, "desiredNumberScheduled": 5, "numberReady": 5, "numberAvailable": 5, "updatedNumberScheduled": 5, "numberMisscheduled": 0}),
        ),
    ];
    for (kind, mut wanted) in cases {
        wanted["observedGeneration"] = json!(2);
        let template = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"generation": 2}});
        assert_eq!(aggregated(template, &[member(2), member(3)]), (wanted, true), "{kind}");
    }
}

#[test]
fn a_template_is_observed_when_every_member_saw_it() {
    let fresh = json!({"replicas": 1, "generation": 9, "observedGeneration": 9, "resourceTemplateGeneration": 4});
    let old_template =
        json!({"replicas": 1, "generation": 9, "observedGeneration": 9, "resourceTemplateGeneration": 3});
    let behind = json!({"replicas": 1, "generation": 9, "observedGeneration": 8, "resourceTemplateGeneration": 4});
    let ahead = json!({"replicas": 1, "generation": 9, "observedGeneration": 10, "resourceTemplateGeneration": 5});
    let cases = [
        (vec![fresh.clone(), fresh.clone()], 4),
        (vec![fresh.clone(), ahead], 4),
        (vec![fresh.clone(), old_template], 3),
        (vec![fresh.clone(), behind], 3),
        (vec![fresh, Value::Null], 3),
    ];
    for (list, wanted) in cases {
        let template = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 4}, "status": {"observedGeneration": 3}});
        assert_eq!(aggregated(template, &list).0["observedGeneration"], wanted, "{list:?}");
    }
}

#[test]
fn addresses_are_joined_once_and_in_order() {
    let member = |list: Value| json!({"loadBalancer": {"ingress": list}});
    let list = [
        member(json!([{"ip": "2.2.2.2", "ports": [{"port": 443}]}, {"hostname": "b", "ip": "3.3.3.3"}])),
        Value::Null,
        member(
            json!([{"ip": "1.1.1.1"}, {"hostname": "a"}, {"ip": "2.2.2.2", "ports": [{"port": 80}, {"port": 443}]}]),
        ),
    ];
    let both = json!([{"port": 80}, {"port": 443}]);
    let wanted = member(
        json!([{"hostname": "a"}, {"hostname": "b", "ip": "3.3.3.3"}, {"ip": "1.1.1.1"}, {"ip": "2.2.2.2", "ports": both}]),
    );
    for template in [
        json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "LoadBalancer"}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"}),
    ] {
        assert_eq!(aggregated(template, &list), (wanted.clone(), true));
    }
    let inside = json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "ClusterIP"}});
    assert_eq!(aggregated(inside, &list), (Value::Null, false));
}

fn job(status: Value) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {}, "status": status})
}

fn ended(kind: &str, at: &str) -> Value {
    json!({"succeeded": 1, "startTime": "2026-01-01T00:00:00Z", "completionTime": at,
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": at, "lastProbeTime": at}]})
}

#[test]
fn a_job_is_complete_when_it_is_complete_everywhere() {
    let (first, last) = ("2026-01-01T00:05:00Z", "2026-01-01T00:07:00Z");
    let (status, _) = aggregated(job(json!({})), &[ended("Complete", first), ended("Complete", last)]);
    let condition = json!({"type": "Complete", "status": "True", "reason": "Completed", "message": "Job completed", "lastTransitionTime": last, "lastProbeTime": last});
    let wanted =
        json!({"succeeded": 2, "startTime": "2026-01-01T00:00:00Z", "completionTime": last, "conditions": [condition]});
    assert_eq!(status, wanted);
    let (status, _) = aggregated(job(json!({})), &[ended("Complete", first), json!({"active": 1, "startTime": last})]);
    assert_eq!(status, json!({"active": 1, "succeeded": 1, "startTime": "2026-01-01T00:00:00Z"}));
    let (status, _) = aggregated(job(json!({})), &[ended("Complete", first), Value::Null]);
    assert_eq!(status, json!({"succeeded": 1}), "who has not reported has not started");
}

#[test]
fn a_job_that_failed_somewhere_failed_and_then_stays_so() {
    let mut failure = ended("Failed", "2026-01-01T00:05:00Z");
    failure["conditions"].as_array_mut().unwrap().push(json!({"type": "FailureTarget", "status": "True"}));
    let (status, _) = aggregated(job(json!({})), &[failure, ended("Complete", "2026-01-01T00:06:00Z")]);
    let types: Vec<&str> =
        status["conditions"].as_array().unwrap().iter().map(|condition| condition["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["FailureTarget", "Failed"]);
    assert_eq!(status["conditions"][1]["message"], "Job executed failed in member clusters member1");
    let (after, changed) = aggregated(job(status.clone()), &[json!({"active": 3})]);
    assert_eq!((after, changed), (status, false));
}

#[test]
fn success_criteria_count_when_met_everywhere() {
    let mut done = ended("Complete", "2026-01-01T00:05:00Z");
    done["conditions"].as_array_mut().unwrap().push(json!({"type": "SuccessCriteriaMet", "status": "True"}));
    let (status, _) = aggregated(job(json!({})), &[done.clone(), done.clone()]);
    assert_eq!(status["conditions"][1]["reason"], "CompletionsReached");
    let (status, _) = aggregated(job(json!({})), &[done, ended("Complete", "2026-01-01T00:05:00Z")]);
    assert_eq!(status["conditions"].as_array().unwrap().len(), 1);
}

#[test]
fn cron_jobs_show_all_runs_and_the_newest_times() {
    let template = json!({"apiVersion": "batch/v1", "kind": "CronJob"});
    let list = [
        json!({"active": [{"name": "a"}], "lastScheduleTime": "2026-01-02T00:00:00Z", "lastSuccessfulTime": "2026-01-01T00:00:00Z"}),
        json!({"active": [{"name": "b"}], "lastScheduleTime": "2026-01-01T23:00:00Z"}),
    ];
    let wanted = json!({"active": [{"name": "a"}, {"name": "b"}], "lastScheduleTime": "2026-01-02T00:00:00Z", "lastSuccessfulTime": "2026-01-01T00:00:00Z"});
    assert_eq!(aggregated(template, &list), (wanted, true));
}

#[test]
fn phases_follow_the_member_that_is_worst_off() {
    let cases = [
        ("Pod", vec!["Running", "Failed", "Pending"], "Failed"),
        ("Pod", vec!["Running", "", "Succeeded"], "Pending"),
        ("Pod", vec!["Running", "Succeeded"], "Running"),
        ("Pod", vec!["Succeeded", "Succeeded"], "Succeeded"),
        ("PersistentVolume", vec!["Bound", "Failed"], "Failed"),
        ("PersistentVolume", vec!["Bound", ""], "Pending"),
        ("PersistentVolume", vec!["Bound", "Available"], "Available"),
        ("PersistentVolume", vec!["Released", "Bound"], "Bound"),
        ("PersistentVolume", vec!["Released"], "Released"),
        ("PersistentVolumeClaim", vec!["Bound", ""], "Bound"),
        ("PersistentVolumeClaim", vec!["Bound", "Pending"], "Pending"),
        ("PersistentVolumeClaim", vec!["Lost", "Pending"], "Lost"),
        ("PersistentVolumeClaim", vec!["Pending", "Lost"], "Lost"),
    ];
    for (kind, phases, wanted) in cases {
        let list: Vec<Value> =
            phases.iter().map(|phase| if phase.is_empty() { Value::Null } else { json!({"phase": phase}) }).collect();
        let (status, changed) = aggregated(json!({"apiVersion": "v1", "kind": kind}), &list);
        assert_eq!((status["phase"].as_str(), changed), (Some(wanted), true), "{kind} {phases:?}");
    }
    for kind in ["Pod", "PersistentVolume", "PersistentVolumeClaim"] {
        assert_eq!(aggregated(json!({"apiVersion": "v1", "kind": kind}), &[]), (Value::Null, false), "{kind}");
    }
}

#[test]
fn a_pod_shows_the_containers_of_all_members() {
    let report = json!({"phase": "Running", "containerStatuses": [{"name": "web", "image": "i", "imageID": "id", "ready": true, "restartCount": 2,
        "containerID": "c", "state": {"running": {}}, "lastState": {"terminated": {}}}]});
    let (status, _) = aggregated(json!({"apiVersion": "v1", "kind": "Pod"}), &[report.clone(), report]);
    let one = json!({"name": "web", "image": "i", "imageID": "id", "ready": true, "restartCount": 2, "state": {"running": {}}, "lastState": {}});
    assert_eq!(status, json!({"phase": "Running", "containerStatuses": [one, one]}));
}

#[test]
fn budgets_and_autoscalers_add_up() {
    let member = json!({"currentHealthy": 1, "desiredHealthy": 2, "expectedPods": 3, "disruptionsAllowed": 0, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}});
    let (status, _) =
        aggregated(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}), &[member.clone(), member]);
    let pods = json!({"member1/p": "2026-01-01T00:00:00Z", "member2/p": "2026-01-01T00:00:00Z"});
    assert_eq!(
        status,
        json!({"currentHealthy": 2, "desiredHealthy": 4, "expectedPods": 6, "disruptionsAllowed": 0, "disruptedPods": pods})
    );
    let scaler =
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "status": {"currentMetrics": []}});
    let (status, _) =
        aggregated(scaler, &[json!({"currentReplicas": 1, "desiredReplicas": 2}), json!({"desiredReplicas": 1})]);
    assert_eq!(status, json!({"currentReplicas": 1, "desiredReplicas": 3}));
}

#[test]
fn a_volume_without_members_has_no_phase() {
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "status": {"phase": "Bound"}});
    assert_eq!(aggregated(volume, &[]), (json!({}), true));
}

#[test]
fn kinds_without_a_rule_keep_their_status() {
    for kind in ["ConfigMap", "Secret", "ServiceAccount"] {
        assert_eq!(aggregated(json!({"apiVersion": "v1", "kind": kind}), &[json!({"a": 1})]), (Value::Null, false));
    }
}

#[test]
fn only_what_is_needed_of_a_status_is_collected() {
    let meta = json!({"generation": 3, "annotations": {"resourcetemplate.karmada.io/generation": "7"}});
    let noise = json!({"conditions": [1], "replicas": 2, "readyReplicas": 0, "collisionCount": 4, "observedGeneration": 3, "currentReplicas": 2,
        "desiredReplicas": 0, "currentNumberScheduled": 1, "active": 1, "startTime": "t", "disruptionsAllowed": 1, "loadBalancer": {}});
    let cases = [
        (
            "apps/v1",
            "Deployment",
            json!({"replicas": 2, "generation": 3, "resourceTemplateGeneration": 7, "observedGeneration": 3}),
        ),
        (
            "apps/v1",
            "ReplicaSet",
            json!({"replicas": 2, "generation": 3, "resourceTemplateGeneration": 7, "observedGeneration": 3}),
        ),
        (
            "apps/v1",
            "StatefulSet",
            json!({"replicas": 2, "availableReplicas": 0, "currentReplicas": 2, "generation": 3, "resourceTemplateGeneration": 7, "observedGeneration": 3}),
        ),
        (
            "apps/v1",
            "DaemonSet",
            json!({"currentNumberScheduled": 1, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0, "generation": 3, "resourceTemplateGeneration": 7, "observedGeneration": 3}),
        ),
        ("batch/v1", "Job", json!({"active": 1, "startTime": "t", "conditions": [1]})),
        ("autoscaling/v2", "HorizontalPodAutoscaler", json!({"currentReplicas": 2, "desiredReplicas": 0})),
        (
            "policy/v1",
            "PodDisruptionBudget",
            json!({"disruptionsAllowed": 1, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}),
        ),
        ("networking.k8s.io/v1", "Ingress", noise.clone()),
        ("example.io/v1", "Other", noise.clone()),
    ];
    for (api_version, kind, wanted) in cases {
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": meta, "status": noise});
        assert_eq!(Interpreter::new().reflect(&object), Some(wanted), "{kind}");
        let silent = json!({"apiVersion": api_version, "kind": kind, "metadata": meta});
        assert_eq!(Interpreter::new().reflect(&silent), None, "{kind}");
        for other in [json!(true), json!("fine"), json!([1]), json!(null)] {
            let odd = json!({"apiVersion": api_version, "kind": kind, "metadata": meta, "status": other});
            assert_eq!(Interpreter::new().reflect(&odd), None, "{kind} {other}");
        }
    }
    let unseen = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "status": {}});
    assert_eq!(Interpreter::new().reflect(&unseen), None);
    let service = |kind: &str| json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": kind}, "status": {"loadBalancer": {}, "conditions": []}});
    assert_eq!(Interpreter::new().reflect(&service("LoadBalancer")), Some(json!({"loadBalancer": {}})));
    assert_eq!(Interpreter::new().reflect(&service("ClusterIP")), None);
}

#[test]
fn health_is_judged_by_kind() {
    let workload = |status: Value| json!({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": status});
    let address =
        |entry: Value| json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [entry]}}});
    let pod = |phase: &str, ready: &str| json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}});
    let cases = [
        (
            "apps/v1",
            "Deployment",
            workload(json!({"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 2})),
            true,
        ),
        (
            "apps/v1",
            "Deployment",
            workload(json!({"observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 2})),
            false,
        ),
        (
            "apps/v1",
            "Deployment",
            workload(json!({"observedGeneration": 2, "updatedReplicas": 1, "availableReplicas": 2})),
            false,
        ),
        (
            "apps/v1",
            "Deployment",
            workload(json!({"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 1})),
            false,
        ),
        (
            "apps/v1",
            "StatefulSet",
            workload(json!({"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 2})),
            true,
        ),
        ("apps/v1", "StatefulSet", workload(json!({})), false),
        ("apps/v1", "ReplicaSet", workload(json!({"observedGeneration": 2, "availableReplicas": 2})), true),
        ("apps/v1", "ReplicaSet", workload(json!({"observedGeneration": 2, "availableReplicas": 1})), false),
        (
            "apps/v1",
            "DaemonSet",
            workload(
                json!({"observedGeneration": 2, "desiredNumberScheduled": 1, "updatedNumberScheduled": 1, "numberAvailable": 1}),
            ),
            true,
        ),
        ("apps/v1", "DaemonSet", workload(json!({"observedGeneration": 2, "desiredNumberScheduled": 1})), false),
        ("apps/v1", "DaemonSet", workload(json!({"observedGeneration": 2, "updatedNumberScheduled": 1})), false),
        ("v1", "Service", json!({"spec": {"type": "ClusterIP"}}), true),
        ("v1", "Service", address(json!({"ip": "1.1.1.1"})), true),
        ("v1", "Service", address(json!({"hostname": "h"})), true),
        ("v1", "Service", address(json!({"ip": ""})), false),
        ("networking.k8s.io/v1", "Ingress", address(json!({"ip": "1.1.1.1"})), true),
        ("networking.k8s.io/v1", "Ingress", json!({"status": {}}), false),
        ("v1", "PersistentVolumeClaim", json!({"status": {"phase": "Bound"}}), true),
        ("v1", "PersistentVolumeClaim", json!({"status": {"phase": "Pending"}}), false),
        ("v1", "Pod", pod("Running", "True"), true),
        ("v1", "Pod", pod("Running", "False"), false),
        ("v1", "Pod", pod("Pending", "True"), false),
        ("v1", "Pod", pod("Succeeded", "False"), true),
        ("policy/v1", "PodDisruptionBudget", json!({"status": {"currentHealthy": 1, "desiredHealthy": 1}}), true),
        ("policy/v1", "PodDisruptionBudget", json!({"status": {"desiredHealthy": 1}}), false),
        ("batch/v1", "Job", json!({}), true),
        ("v1", "ConfigMap", json!({}), true),
    ];
    for (api_version, kind, mut object, healthy) in cases {
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
        assert_eq!(Interpreter::new().health(&object), Health::from(healthy), "{object}");
    }
}
