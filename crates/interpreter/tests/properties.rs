//! What holds for any input.
#![allow(clippy::unwrap_used, missing_docs)]

mod customized;

use atoll_interpreter::Interpreter;
use customized::{interpreter, thing};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Words that the rules look at, so that random objects come close to real ones.
const WORDS: [&str; 24] = [
    "spec",
    "status",
    "metadata",
    "replicas",
    "template",
    "containers",
    "resources",
    "requests",
    "cpu",
    "name",
    "volumes",
    "conditions",
    "type",
    "True",
    "Complete",
    "loadBalancer",
    "ingress",
    "phase",
    "generation",
    "labels",
    "selector",
    "secrets",
    "active",
    "disruptedPods",
];

const KINDS: [(&str, &str); 18] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("v1", "Secret"),
    ("v1", "PersistentVolume"),
    ("v1", "PersistentVolumeClaim"),
    ("networking.k8s.io/v1", "Ingress"),
    ("policy/v1", "PodDisruptionBudget"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("multicluster.x-k8s.io/v1alpha1", "ServiceImport"),
    ("apps.kruise.io/v1alpha1", "CloneSet"),
    ("flink.apache.org/v1beta1", "FlinkDeployment"),
];

fn value() -> impl Strategy<Value = Value> {
    let word = proptest::sample::select(&WORDS[..]).prop_map(str::to_owned);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0i64..5).prop_map(Value::from),
        word.clone().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((word.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    (proptest::sample::select(&KINDS[..]), value(), value(), value()).prop_map(|((api_version, kind), metadata, spec, status)| {
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, "status": status})
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(template in object(), other in value(), statuses in proptest::collection::vec(value(), 0..3)) {
        let it = Interpreter::new();
        let _ = it.replicas(&template);
        let _ = it.components(&template);
        it.dependencies(&template);
        it.health(&template);
        it.reflect(&template);
        for start in [template.clone(), other.clone()] {
            let _ = it.revise(&mut start.clone(), 3);
            let _ = it.retain(&mut start.clone(), &template);
            let _ = it.retain(&mut template.clone(), &start);
        }
        let items: Vec<(String, Value)> = statuses.into_iter().enumerate().map(|(index, status)| (index.to_string(), status)).collect();
        it.aggregate(&mut template.clone(), &items);
        it.aggregate(&mut other.clone(), &items);
    }

    #[test]
    fn aggregating_again_changes_nothing(template in object(), statuses in proptest::collection::vec(value(), 0..3)) {
        let it = Interpreter::new();
        let items: Vec<(String, Value)> = statuses.into_iter().enumerate().map(|(index, status)| (index.to_string(), status)).collect();
        let mut once = template;
        it.aggregate(&mut once, &items);
        let mut twice = once.clone();
        prop_assert!(!it.aggregate(&mut twice, &items));
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn objects_survive_a_script_that_leaves_them_alone(body in value()) {
        let it = interpreter(&[("replicaRevision", "function ReviseReplica(obj) return obj end")]);
        let before = thing(json!({"spec": body}));
        let mut after = before.clone();
        it.revise(&mut after, 1).unwrap();
        prop_assert_eq!(before, after);
    }
}
