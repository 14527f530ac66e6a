#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use crate::strategy::{
    Context, default, prepare_create, prepare_status, prepare_update, validate_create, validate_update,
};

fn ctx(kind: &'static str) -> Context<'static> {
    Context { group: "apps", version: "v1", kind, now: "2026-01-02T03:04:05Z" }
}

fn workload(kind: &'static str, spec: Value) -> Value {
    let mut object = json!({"metadata": {"name": "w", "namespace": "n"}, "spec": {
        "selector": {"matchLabels": {"app": "w"}},
        "template": {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}});
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    default(&ctx(kind), &mut object);
    object
}

fn texts(kind: &'static str, object: &Value) -> Vec<String> {
    validate_create(&ctx(kind), object).iter().map(ToString::to_string).collect()
}

#[test]
fn defaults_are_filled_in() {
    let cases = [
        (
            "Deployment",
            "/spec/strategy",
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}),
        ),
        ("Deployment", "/spec/replicas", json!(1)),
        ("Deployment", "/spec/progressDeadlineSeconds", json!(600)),
        ("Deployment", "/spec/revisionHistoryLimit", json!(10)),
        ("Deployment", "/status", json!({})),
        ("Deployment", "/spec/template/spec/restartPolicy", json!("Always")),
        ("ReplicaSet", "/status", json!({"replicas": 0})),
        ("StatefulSet", "/spec/updateStrategy", json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})),
        ("StatefulSet", "/spec/podManagementPolicy", json!("OrderedReady")),
        (
            "StatefulSet",
            "/spec/persistentVolumeClaimRetentionPolicy",
            json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
        ),
        (
            "DaemonSet",
            "/spec/updateStrategy",
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
        ),
    ];
    for (kind, path, expected) in cases {
        assert_eq!(workload(kind, json!({})).pointer(path), Some(&expected), "{kind} {path}");
    }
}

#[test]
fn good_workloads_pass() {
    for kind in ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"] {
        assert_eq!(texts(kind, &workload(kind, json!({}))), Vec::<String>::new(), "{kind}");
    }
    let claims = json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}}],
        "template": {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [
            {"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]}}});
    assert_eq!(texts("StatefulSet", &workload("StatefulSet", claims)), Vec::<String>::new());
}

#[test]
fn bad_workloads_are_refused_with_the_known_words() {
    let cases = [
        ("Deployment", json!({"replicas": -1}), "spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
        (
            "Deployment",
            json!({"strategy": {"rollingUpdate": {"maxSurge": -1}}}),
            "spec.strategy.rollingUpdate.maxSurge: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "Deployment",
            json!({"selector": {"matchLabels": {"app": "other"}}}),
            "spec.template.metadata.labels: Invalid value: {\"app\":\"w\"}: `selector` does not match template `labels`",
        ),
        (
            "Deployment",
            json!({"selector": {}}),
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
        ),
        (
            "Deployment",
            json!({"strategy": {"type": "Recreate", "rollingUpdate": {}}}),
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            "Deployment",
            json!({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}),
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
        ),
        (
            "Deployment",
            json!({"strategy": {"rollingUpdate": {"maxUnavailable": "101%"}}}),
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%",
        ),
        (
            "Deployment",
            json!({"minReadySeconds": 600}),
            "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds",
        ),
        (
            "StatefulSet",
            json!({"podManagementPolicy": "Odd"}),
            "spec.podManagementPolicy: Invalid value: \"Odd\": must be 'OrderedReady' or 'Parallel'",
        ),
        (
            "DaemonSet",
            json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}),
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
        ),
        ("ControllerRevision", json!({}), "data: Required value: data is mandatory"),
    ];
    for (kind, spec, expected) in cases {
        assert_eq!(texts(kind, &workload(kind, spec)), [expected]);
    }
    let mut never = workload("Deployment", json!({}));
    never["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    assert_eq!(
        texts("Deployment", &never),
        ["spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\""]
    );
}

#[test]
fn selectors_and_most_of_a_stateful_set_never_change() {
    let old = workload("Deployment", json!({}));
    let mut new = old.clone();
    new["spec"]["selector"]["matchLabels"] = json!({"app": "w", "x": "y"});
    new["spec"]["template"]["metadata"]["labels"] = json!({"app": "w", "x": "y"});
    let found = validate_update(&ctx("Deployment"), &new, &old);
    assert_eq!(
        found[0].to_string(),
        "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"w\",\"x\":\"y\"}}: field is immutable"
    );
    let old = workload("StatefulSet", json!({"serviceName": "a"}));
    let mut new = old.clone();
    new["spec"]["replicas"] = json!(5);
    assert!(validate_update(&ctx("StatefulSet"), &new, &old).is_empty());
    new["spec"]["serviceName"] = json!("b");
    assert!(
        validate_update(&ctx("StatefulSet"), &new, &old)[0]
            .to_string()
            .starts_with("spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals',")
    );
}

#[test]
fn a_daemon_set_counts_changes_of_its_template() {
    let mut first = workload("DaemonSet", json!({}));
    prepare_create(&ctx("DaemonSet"), &mut first);
    let count = |object: &Value| object["metadata"]["annotations"]["deprecated.daemonset.template.generation"].clone();
    assert_eq!(count(&first), "1");
    let mut second = first.clone();
    second["spec"]["template"]["spec"]["containers"][0]["image"] = json!("i:2");
    prepare_update(&ctx("DaemonSet"), &mut second, &first);
    assert_eq!(count(&second), "2");
}

#[test]
fn updates_keep_the_status_and_status_updates_the_spec() {
    let mut old = workload("Deployment", json!({}));
    old["status"] = json!({"replicas": 3});
    let mut new = old.clone();
    new["status"] = json!({"replicas": 9});
    new["spec"]["replicas"] = json!(7);
    prepare_update(&ctx("Deployment"), &mut new, &old);
    assert_eq!(new["status"], json!({"replicas": 3}));
    new["status"] = json!({"replicas": 9});
    prepare_status(&ctx("Deployment"), &mut new, &old);
    assert_eq!((&new["spec"]["replicas"], &new["status"]["replicas"]), (&json!(1), &json!(9)));
}
