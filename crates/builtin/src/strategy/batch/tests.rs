#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use crate::strategy::{Context, default, prepare_create, validate_create, validate_update};

fn ctx(kind: &'static str) -> Context<'static> {
    Context { group: "batch", version: "v1", kind, now: "2026-01-02T03:04:05Z" }
}

fn job(spec: Value) -> Value {
    let mut object = json!({"metadata": {"name": "j", "namespace": "n", "uid": "u-1"}, "spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    default(&ctx("Job"), &mut object);
    prepare_create(&ctx("Job"), &mut object);
    object
}

fn cron(spec: Value) -> Value {
    let mut object = json!({"metadata": {"name": "c", "namespace": "n"}, "spec": {"schedule": "* * * * *",
        "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}}});
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    default(&ctx("CronJob"), &mut object);
    object
}

fn texts(kind: &'static str, object: &Value) -> Vec<String> {
    validate_create(&ctx(kind), object).iter().map(ToString::to_string).collect()
}

#[test]
fn a_job_selects_its_pods_by_its_uid() {
    let made = job(json!({}));
    assert_eq!(made["spec"]["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}}));
    assert_eq!(
        made["spec"]["template"]["metadata"]["labels"],
        json!({"batch.kubernetes.io/controller-uid": "u-1", "batch.kubernetes.io/job-name": "j", "controller-uid": "u-1", "job-name": "j"})
    );
    for (field, value) in [
        ("completions", json!(1)),
        ("parallelism", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
    ] {
        assert_eq!(made["spec"][field], value, "{field}");
    }
    assert_eq!(texts("Job", &made), Vec::<String>::new());
    assert_eq!(job(json!({"parallelism": 3}))["spec"].get("completions"), None);
}

#[test]
fn bad_jobs_are_refused_with_the_known_words() {
    let cases = [
        (json!({"backoffLimit": -1}), "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"),
        (
            json!({"completionMode": "Indexed", "parallelism": 1}),
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (json!({"manualSelector": true}), "spec.selector: Required value"),
        (
            json!({"podFailurePolicy": {"rules": [{"action": "Ignore"}]}}),
            "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(texts("Job", &job(spec))[0], expected);
    }
    let mut always = job(json!({}));
    always["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    assert_eq!(
        texts("Job", &always),
        ["spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""]
    );
}

#[test]
fn the_template_of_a_running_job_never_changes() {
    let old = job(json!({}));
    let mut new = old.clone();
    new["spec"]["parallelism"] = json!(2);
    assert!(validate_update(&ctx("Job"), &new, &old).is_empty());
    new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other");
    let found = validate_update(&ctx("Job"), &new, &old);
    assert_eq!(found.len(), 1);
    assert!(found[0].to_string().starts_with("spec.template: Invalid value: "));
    let waiting = job(json!({"suspend": true}));
    let mut moved = waiting.clone();
    moved["spec"]["template"]["spec"]["nodeSelector"] = json!({"a": "b"});
    assert!(validate_update(&ctx("Job"), &moved, &waiting).is_empty());
}

#[test]
fn cron_jobs_are_defaulted_and_judged() {
    let made = cron(json!({}));
    assert_eq!(made["spec"]["concurrencyPolicy"], "Allow");
    assert_eq!(made["spec"]["successfulJobsHistoryLimit"], 3);
    assert_eq!(made["spec"]["failedJobsHistoryLimit"], 1);
    assert_eq!(texts("CronJob", &made), Vec::<String>::new());
    let cases = [
        (
            json!({"schedule": "junk"}),
            "spec.schedule: Invalid value: \"junk\": expected exactly 5 fields, found 1: [junk]",
        ),
        (
            json!({"schedule": "TZ=UTC * * * * *"}),
            "spec.schedule: Invalid value: \"TZ=UTC * * * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        ),
        (json!({"timeZone": ""}), "spec.timeZone: Invalid value: \"\": timeZone must be nil or non-empty string"),
        (
            json!({"concurrencyPolicy": "Both"}),
            "spec.concurrencyPolicy: Unsupported value: \"Both\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(texts("CronJob", &cron(spec)), [expected]);
    }
}
