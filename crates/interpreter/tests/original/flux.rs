//! Kinds of Flux and Kyverno.

use serde_json::{Value, json};

use crate::builtin::Base;
use crate::known::base;
use crate::random::Choice;

/// Version, kind, the reason for being ready, what is wanted and what is told beside the conditions.
fn kinds() -> Vec<(&'static str, &'static str, &'static str, Value, Value)> {
    let secret = |name: &str| json!({"secretRef": {"name": name}});
    let source = |spec: Value| {
        (spec, json!({"artifact": {"revision": "main", "url": "u"}, "url": "u", "observedGeneration": 3}))
    };
    let (release, values) = (
        json!({"lastAppliedRevision": "1", "lastAttemptedRevision": "2", "helmChart": "ns/it", "observedGeneration": 3}),
        json!([{"kind": "Secret", "name": "values"}, {"kind": "ConfigMap", "name": "more"}]),
    );
    let chart = json!({"serviceAccountName": "robot", "valuesFrom": values, "chart": {"spec": {"verify": secret("keys")}}, "kubeConfig": secret("kube")});
    let custom = json!({"serviceAccountName": "robot", "decryption": secret("sops"), "kubeConfig": secret("kube")});
    let applied = json!({"lastAppliedRevision": "main", "lastAttemptedRevision": "main", "observedGeneration": 3});
    let image = json!({"secretRef": {"name": "login"}, "verify": secret("keys"), "certSecretRef": {"name": "ca"}, "serviceAccountName": "robot"});
    let rules = json!({"ready": true, "autogen": {"rules": [{"name": "r"}]}, "rulecount": {"validate": 1, "generate": 0, "mutate": 2, "verifyimages": 0}});
    let git = json!({"secretRef": {"name": "login"}, "verify": secret("keys")});
    let told = json!({"artifact": {"revision": "main", "url": "u"}, "observedGeneration": 3});
    let mut all = vec![
        ("helm.toolkit.fluxcd.io/v2beta1", "HelmRelease", "ReconciliationSucceeded", chart, release),
        ("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "ReconciliationSucceeded", custom, applied),
        ("source.toolkit.fluxcd.io/v1", "GitRepository", "Succeeded", git, told),
        ("kyverno.io/v1", "ClusterPolicy", "Succeeded", json!({}), rules.clone()),
        ("kyverno.io/v1", "Policy", "Succeeded", json!({}), rules),
    ];
    for (kind, spec) in [
        ("Bucket", secret("login")),
        ("HelmChart", json!({"verify": secret("keys")})),
        ("HelmRepository", secret("login")),
        ("OCIRepository", image),
    ] {
        let (spec, status) = source(spec);
        all.push(("source.toolkit.fluxcd.io/v1beta2", kind, "Succeeded", spec, status));
    }
    all
}

pub fn flux() -> Vec<Base> {
    let made = kinds().into_iter().map(|(api_version, kind, reason, mut spec, mut status)| {
        let ready = |reason: &str, status: &str, message: &str| json!({"type": "Ready", "status": status, "reason": reason, "message": message});
        let good = ready(reason, "True", "fine");
        let stalled = json!({"type": "Stalled", "status": "False", "reason": "x", "message": "m"});
        let states = vec![
            json!([ready(reason, "False", "bad")]),
            json!([ready("Other", "True", "hm")]),
            json!([]),
            json!([good, stalled]),
        ];
        spec["suspend"] = json!(false);
        status["conditions"] = json!([good]);
        let mut choices: Vec<Choice> =
            vec![("/spec/suspend", vec![json!(true), Value::Null]), ("/status/conditions", states.clone())];
        match api_version.starts_with("kyverno") {
            true => choices.push(("/status/ready", vec![json!(false), Value::Null])),
            false => choices.push(("/status/observedGeneration", vec![json!(2)])),
        }
        base(api_version, kind, spec, status, choices, vec![("/conditions", states)])
    });
    made.collect()
}
