use super::*;
use crate::testing::{Builder, pod};

fn job(spec: Value, status: Value) -> Value {
    json!({"metadata": {"name": "j", "namespace": "d", "uid": "u", "generation": 1}, "spec": spec, "status": status})
}

fn held(name: &str) -> Builder {
    pod(name).set(&["metadata", "finalizers"], json!([FINALIZER]))
}

fn ended(name: &str, phase: &str, at: &str) -> Builder {
    pod(name).phase(phase).set(&["status", "containerStatuses"], json!([
        {"name": "c", "restartCount": 0, "state": {"terminated": {"exitCode": i32::from(phase == "Failed"), "finishedAt": at}}}]))
}

fn run(tree: &Value, pods: Vec<Builder>) -> Plan {
    let pods: Vec<_> = pods.into_iter().map(Builder::build).collect();
    decide(tree, &pods, "2026-01-01T00:10:00Z".parse().expect("a moment"))
}

fn conditions(plan: &Plan) -> Vec<&str> {
    plan.status["conditions"].as_array().into_iter().flatten().filter_map(|c| c["type"].as_str()).collect()
}

#[test]
fn as_many_pods_run_as_may_and_must() {
    let table = [
        (json!({"parallelism": 3, "completions": 5}), json!({}), 3),
        (json!({"parallelism": 3, "completions": 5}), json!({"succeeded": 4}), 1),
        (json!({"parallelism": 3, "completions": 5}), json!({"succeeded": 5}), 0),
        (json!({"parallelism": 2}), json!({}), 2),
        (json!({"parallelism": 2}), json!({"succeeded": 1}), 0),
        (json!({"parallelism": 2, "suspend": true}), json!({}), 0),
    ];
    for (spec, status, expected) in table {
        assert_eq!(run(&job(spec.clone(), status), vec![]).create.len(), expected, "{spec}");
    }
}

#[test]
fn a_finished_pod_is_counted_once_in_two_steps() {
    let spec = json!({"parallelism": 1, "completions": 1});
    let first = run(&job(spec.clone(), json!({})), vec![held("a").phase("Succeeded")]);
    assert_eq!(first.status["uncountedTerminatedPods"]["succeeded"], json!(["uid-a"]));
    assert_eq!(first.release, ["a"]);
    assert_eq!(first.create.len(), 0);
    let again = run(&job(spec.clone(), first.status.clone()), vec![held("a").phase("Succeeded")]);
    assert_eq!(again.status["uncountedTerminatedPods"]["succeeded"], json!(["uid-a"]));
    assert_eq!(again.release, ["a"]);
    let last = run(&job(spec, again.status), vec![pod("a").phase("Succeeded")]);
    assert_eq!(last.status["succeeded"], 1);
    assert_eq!(last.status["uncountedTerminatedPods"], json!({}));
    assert_eq!(conditions(&last), ["SuccessCriteriaMet", "Complete"]);
    assert!(last.status["completionTime"].is_string());
}

#[test]
fn too_many_failures_end_it_and_the_others_stop() {
    let spec = json!({"parallelism": 2, "completions": 4, "backoffLimit": 1});
    let plan = run(&job(spec.clone(), json!({"failed": 2})), vec![held("a")]);
    assert_eq!(conditions(&plan), ["FailureTarget"]);
    assert_eq!(plan.delete.len(), 1);
    let plan = run(&job(spec, plan.status), vec![]);
    assert_eq!(conditions(&plan), ["FailureTarget", "Failed"]);
    assert_eq!(plan.status["conditions"][1]["reason"], "BackoffLimitExceeded");
}

#[test]
fn after_a_failure_it_waits_longer_each_time() {
    let spec = json!({"parallelism": 1, "completions": 1});
    let once = run(&job(spec.clone(), json!({"failed": 1})), vec![ended("a", "Failed", "2026-01-01T00:09:55Z")]);
    assert_eq!((once.create.len(), once.again), (0, Some(Duration::from_secs(5))));
    let twice = vec![ended("a", "Failed", "2026-01-01T00:09:00Z"), ended("b", "Failed", "2026-01-01T00:09:45Z")];
    assert_eq!(run(&job(spec.clone(), json!({"failed": 2})), twice).again, Some(Duration::from_secs(5)));
    let long_ago = vec![ended("a", "Failed", "2026-01-01T00:09:45Z")];
    assert_eq!(run(&job(spec, json!({"failed": 1})), long_ago).create.len(), 1);
}

#[test]
fn every_index_runs_until_it_succeeded() {
    let spec = json!({"parallelism": 2, "completions": 3, "completionMode": "Indexed"});
    assert_eq!(run(&job(spec.clone(), json!({})), vec![]).create, [Some(0), Some(1)]);
    let one = vec![held("a").label(INDEX, "0").phase("Succeeded"), held("b").label(INDEX, "1")];
    let plan = run(&job(spec.clone(), json!({})), one);
    assert_eq!(plan.create, [Some(2)]);
    assert_eq!((&plan.status["completedIndexes"], &plan.status["succeeded"]), (&json!("0"), &json!(1)));
    let held_back = vec![held("a").label(INDEX, "2").phase("Succeeded")];
    let last = run(&job(spec.clone(), json!({"completedIndexes": "0-1"})), held_back);
    assert_eq!(conditions(&last), ["SuccessCriteriaMet"]);
    let done = run(&job(spec, json!({"completedIndexes": "0-2"})), vec![]);
    assert_eq!(conditions(&done), ["SuccessCriteriaMet", "Complete"]);
}

#[test]
fn a_deadline_ends_it() {
    let spec = json!({"parallelism": 1, "activeDeadlineSeconds": 60});
    let plan = run(&job(spec.clone(), json!({"startTime": "2026-01-01T00:08:00Z"})), vec![]);
    assert_eq!(plan.status["conditions"][0]["reason"], "DeadlineExceeded");
    let plan = run(&job(spec, json!({"startTime": "2026-01-01T00:09:30Z"})), vec![held("a")]);
    assert_eq!(plan.again, Some(Duration::from_secs(30)));
}

#[test]
fn a_suspended_job_stops_its_pods() {
    let spec = json!({"parallelism": 1, "suspend": true});
    let plan = run(&job(spec, json!({"startTime": "2026-01-01T00:00:00Z"})), vec![held("a")]);
    assert_eq!(plan.delete.len(), 1);
    assert_eq!(conditions(&plan), ["Suspended"]);
    assert!(plan.status.get("startTime").is_none());
}

#[test]
fn rules_say_what_a_failure_means() {
    let rule = |action: &str| {
        json!({"parallelism": 1, "backoffLimit": 0, "podFailurePolicy": {"rules": [
        {"action": action, "onExitCodes": {"operator": "In", "values": [1]}}]}})
    };
    let failed =
        || vec![ended("a", "Failed", "2026-01-01T00:00:01Z").set(&["metadata", "finalizers"], json!([FINALIZER]))];
    let plan = run(&job(rule("FailJob"), json!({})), failed());
    assert_eq!(plan.status["conditions"][0]["reason"], "PodFailurePolicy");
    let plan = run(&job(rule("Ignore"), json!({})), failed());
    assert_eq!(plan.status["uncountedTerminatedPods"], json!({}));
    assert_eq!(plan.release, ["a"]);
    let plan = run(&job(rule("Count"), json!({})), failed());
    assert_eq!(plan.status["conditions"][0]["reason"], "BackoffLimitExceeded");
}
