//! What each field of ResourceInterpreterCustomization does.

use atoll_interpreter::Interpreter;
use serde_json::{Value, json};

use crate::case::{Case, other};

/// What the interpreter says of a thing nobody else knows, with every question there is.
fn meaning(spec: &Value, _: bool) -> String {
    let custom = json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": "one"}, "spec": spec});
    let (interpreter, errors) = Interpreter::default().with_customizations(&[custom]);
    assert_eq!(errors, []);
    let thing = json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "it", "namespace": "ns"},
        "spec": {"count": 3}, "status": {"ready": 2}});
    let (mut revised, mut retained, mut aggregated) = (thing.clone(), thing.clone(), thing.clone());
    interpreter.revise(&mut revised, 9).ok();
    interpreter.retain(&mut retained, &json!({"spec": {"count": 5}})).unwrap();
    let told = interpreter.aggregate(&mut aggregated, &[("m1".to_owned(), json!({"ready": 2}))]);
    [
        format!("{:?}", interpreter.replicas(&thing).unwrap()),
        format!("{:?}", interpreter.components(&thing).unwrap()),
        format!("{revised} {retained} {told} {aggregated}"),
        format!("{:?} {:?}", interpreter.reflect(&thing), interpreter.health(&thing)),
        format!("{:?}", interpreter.dependencies(&thing)),
    ]
    .join("\n")
}

/// Operations with a script, and what is replaced in it for comparison.
const SCRIPTS: [(&str, &str, (&str, &str)); 8] = [
    ("replicaResource", "function GetReplicas(obj) return obj.spec.count, nil end", ("obj.spec.count", "8")),
    ("componentResource", "function GetComponents(obj) return {{ name = 'a', replicas = 2 }} end", ("2", "3")),
    (
        "replicaRevision",
        "function ReviseReplica(obj, wanted) obj.spec.count = wanted return obj end",
        ("= wanted", "= 1"),
    ),
    (
        "retention",
        "function Retain(desired, there) desired.spec.count = there.spec.count return desired end",
        ("= there.spec.count", "= 1"),
    ),
    (
        "statusAggregation",
        "function AggregateStatus(obj, items) obj.status = { ready = 40 } return obj end",
        ("40", "50"),
    ),
    ("statusReflection", "function ReflectStatus(obj) return { only = obj.status.ready } end", ("only", "just")),
    (
        "healthInterpretation",
        "function InterpretHealth(obj) return obj.status.ready == obj.spec.count end",
        ("==", "~="),
    ),
    (
        "dependencyInterpretation",
        "function GetDependencies(obj) return {{ apiVersion = 'v1', kind = 'Secret', namespace = 'ns', name = 's' }} end",
        ("'s'", "'t'"),
    ),
];

/// All fields.
pub fn cases() -> Vec<Case> {
    let spec = |name: &str, script: &str| json!({"target": {"apiVersion": "example.io/v1", "kind": "Thing"}, "customizations": {name: {"luaScript": script}}});
    let first = || spec(SCRIPTS[0].0, SCRIPTS[0].1);
    let mut cases = vec![
        other("target.apiVersion", first(), json!("example.io/v2"), meaning),
        other("target.kind", first(), json!("Other"), meaning),
    ];
    cases.extend(SCRIPTS.iter().map(|(name, script, (what, instead))| {
        let changed = json!(script.replace(what, instead));
        other(&format!("customizations.{name}.luaScript"), spec(name, script), changed, meaning)
    }));
    cases
}
