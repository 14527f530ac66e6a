//! What goes to a member.

use atoll_fleet::prune::prune;
use atoll_testkit::ask_original;
use serde_json::{Value, json};

use crate::{Accepted, Said, judge, strip};

pub const ACCEPTED: &[Accepted<Value>] = &[
    Accepted {
        why: "of several token Secrets of an account none goes to a member; the original passes over every second",
        is: |object, _, _| {
            object["secrets"].as_array().is_some_and(|list| list.len() == 2)
                && object["secrets"][1]["name"] == "it-token-b"
        },
    },
    Accepted {
        why: "addresses of a Service do not go to members, also where only the list is there",
        is: |object, _, _| object["kind"] == "Service" && object["spec"]["clusterIP"].is_null(),
    },
];

fn objects() -> Vec<Value> {
    let meta = json!({"name": "it", "namespace": "ns", "uid": "u", "generation": 3, "resourceVersion": "7", "selfLink": "/x", "finalizers": ["f"],
        "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 30,
        "ownerReferences": [{"kind": "X"}], "managedFields": [{"manager": "m"}], "generateName": "it-",
        "labels": {"app": "it"}, "annotations": {"deployment.kubernetes.io/revision": "1", "deployment.kubernetes.io/revision-history": "1,2",
            "volume.kubernetes.io/selected-node": "n", "kubernetes.io/service-account.uid": "u", "keep": "me"}});
    let object = |api_version: &str, kind: &str, more: Value| {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": meta, "status": {"phase": "x"}});
        for (key, value) in more.as_object().unwrap() {
            object[key] = value.clone();
        }
        object
    };
    let labels = json!({"controller-uid": "u", "job-name": "it", "batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "it", "own": "x"});
    let job = |manual: Value, selector: Value| {
        object(
            "batch/v1",
            "Job",
            json!({"spec": {"manualSelector": manual, "ttlSecondsAfterFinished": 5, "selector": selector, "template": {"metadata": {"labels": labels}}}}),
        )
    };
    let account = |names: &[&str]| {
        let secrets: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        object("v1", "ServiceAccount", json!({"secrets": secrets, "imagePullSecrets": [{"name": "pull"}]}))
    };
    let service = |spec: Value| object("v1", "Service", json!({"spec": spec}));
    let secret = |kind: &str| object("v1", "Secret", json!({"type": kind, "data": {"token": "eA=="}}));
    vec![
        object("apps/v1", "Deployment", json!({"spec": {"replicas": 1}})),
        object("apps/v1", "StatefulSet", json!({"spec": {"replicas": 1}})),
        object("v1", "PersistentVolumeClaim", json!({"spec": {"volumeName": "v"}})),
        object("v1", "ConfigMap", json!({"data": {"a": "b"}})),
        object("v1", "Namespace", json!({})),
        object("example.io/v1", "Thing", json!({"spec": {"status": "kept"}})),
        job(json!(null), json!({"matchLabels": {"controller-uid": "u", "batch.kubernetes.io/controller-uid": "u"}})),
        job(json!(false), json!({"matchLabels": {"controller-uid": "u", "own": "x"}})),
        job(json!(true), json!({"matchLabels": {"controller-uid": "u", "own": "x"}})),
        job(json!(false), json!(null)),
        job(json!(false), json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]})),
        account(&["own", "it-token-abc"]),
        account(&["it-token-abc", "own"]),
        account(&["it-token-abc"]),
        account(&["own"]),
        account(&["other-token-abc"]),
        account(&["it-token-a", "it-token-b"]),
        account(&[]),
        service(
            json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "nodePort": 30000}]}),
        ),
        service(json!({"clusterIP": "None", "clusterIPs": ["None"]})),
        service(json!({"clusterIPs": ["10.0.0.1"]})),
        service(json!({"clusterIP": ""})),
        service(json!({"type": "ExternalName", "externalName": "x"})),
        secret("kubernetes.io/service-account-token"),
        secret("Opaque"),
    ]
}

fn cases() -> Vec<Value> {
    let mut all = objects();
    // Each without each field of its metadata.
    for object in all.clone() {
        for field in ["annotations", "labels", "uid", "namespace", "generation"] {
            let mut less = object.clone();
            less["metadata"].as_object_mut().unwrap().remove(field);
            all.push(less);
        }
    }
    all
}

#[test]
fn what_goes_to_a_member_is_what_the_original_sends() {
    let cases = cases();
    let questions: Vec<Value> = cases.iter().map(|object| json!({"ask": "prune", "object": object})).collect();
    let Some(answers) = ask_original(&questions) else { return };
    let stripped = |mut value: Value| {
        strip(&mut value);
        value
    };
    let compared: Vec<(Value, Said, Said)> = cases
        .into_iter()
        .zip(answers)
        .map(|(object, theirs)| {
            let mut ours = object.clone();
            prune(&mut ours);
            (object, Ok(stripped(ours)), theirs.map(stripped))
        })
        .collect();
    judge("pruned objects", &compared, ACCEPTED);
}
