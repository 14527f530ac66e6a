//! What each field of OverridePolicy and ClusterOverridePolicy does.

use atoll_fleet::overrides::{OverridePolicy, Overrides, apply};
use atoll_meta::{Gvk, Head};
use atoll_runtime::Item;
use serde_json::{Value, json};

use crate::case::{Case, affinity, other, selectors};
use crate::world::{clusters, object, template};

/// The copies for all clusters.
fn copies(spec: &Value, namespaced: bool) -> String {
    let all = Overrides::default();
    all.put(OverridePolicy::of(&Item::of(&object("o", spec, namespaced)).unwrap()).unwrap());
    let head = Head::of(template()["metadata"].as_object().unwrap());
    let fitting = all.for_object(&Gvk::new("apps", "v1", "Deployment"), &head);
    let copy = |cluster| {
        let mut manifest = template();
        match apply(&mut manifest, cluster, &fitting) {
            Ok(_) => manifest.to_string(),
            Err(error) => error.to_string(),
        }
    };
    clusters().clusters().iter().map(|cluster| copy(cluster)).collect::<Vec<_>>().join("\n")
}

fn overriders() -> Vec<(&'static str, Value, Value)> {
    let image = |component: &str, operator: &str, value: &str| {
        json!({"imageOverrider": [{"predicate": {"path": "/spec/template/spec/containers/0/image"},
            "component": component, "operator": operator, "value": value}]})
    };
    let tag = || image("Tag", "replace", "v2");
    let list = |kind: &str, value: &str| json!({kind: [{"containerName": "c", "operator": "add", "value": [value]}]});
    let map = |kind: &str, key: &str| json!({kind: [{"operator": "add", "value": {key: "y"}}]});
    let field = |language: &str| json!({"fieldOverrider": [{"fieldPath": format!("/data/{language}"), language: [{"subPath": "/a", "operator": "replace", "value": 7}]}]});
    let plain = || json!({"plaintext": [{"path": "/spec/replicas", "operator": "replace", "value": 9}]});
    vec![
        ("imageOverrider.component", tag(), json!("Repository")),
        ("imageOverrider.operator", tag(), json!("remove")),
        ("imageOverrider.value", tag(), json!("v3")),
        ("imageOverrider.predicate.path", tag(), json!("/spec/template/spec/containers/1/image")),
        ("commandOverrider.containerName", list("commandOverrider", "x"), json!("none")),
        ("commandOverrider.operator", list("commandOverrider", "run"), json!("remove")),
        ("commandOverrider.value", list("commandOverrider", "x"), json!(["y"])),
        ("argsOverrider.containerName", list("argsOverrider", "x"), json!("none")),
        ("argsOverrider.operator", list("argsOverrider", "-a"), json!("remove")),
        ("argsOverrider.value", list("argsOverrider", "x"), json!(["y"])),
        ("labelsOverrider.operator", map("labelsOverrider", "app"), json!("remove")),
        ("labelsOverrider.value", map("labelsOverrider", "app"), json!({"app": "z"})),
        ("annotationsOverrider.operator", map("annotationsOverrider", "note"), json!("remove")),
        ("annotationsOverrider.value", map("annotationsOverrider", "note"), json!({"note": "z"})),
        ("fieldOverrider.fieldPath", field("json"), json!("/data/none")),
        ("fieldOverrider.json.operator", field("json"), json!("remove")),
        ("fieldOverrider.json.subPath", field("json"), json!("/b")),
        ("fieldOverrider.json.value", field("json"), json!(8)),
        ("fieldOverrider.yaml.operator", field("yaml"), json!("remove")),
        ("fieldOverrider.yaml.subPath", field("yaml"), json!("/b")),
        ("fieldOverrider.yaml.value", field("yaml"), json!(8)),
        ("plaintext.operator", plain(), json!("remove")),
        ("plaintext.path", plain(), json!("/metadata/name")),
        ("plaintext.value", plain(), json!(8)),
    ]
}

/// All fields.
pub fn cases() -> Vec<Case> {
    let mark = || json!({"labelsOverrider": [{"operator": "add", "value": {"marked": "yes"}}]});
    let mut cases =
        selectors(|own| json!({"resourceSelectors": own, "overrideRules": [{"overriders": mark()}]}), copies);
    let ruled = |own| json!({"overrideRules": [{"targetCluster": own, "overriders": mark()}]});
    cases.extend(affinity("overrideRules.targetCluster", ruled, copies));
    cases.extend(affinity("targetCluster", |own| json!({"targetCluster": own, "overriders": mark()}), copies));
    for (field, with, instead) in overriders() {
        let rule = json!({"overrideRules": [{"overriders": with.clone()}]});
        cases.push(other(&format!("overrideRules.overriders.{field}"), rule, instead.clone(), copies));
        cases.push(other(&format!("overriders.{field}"), json!({"overriders": with}), instead, copies));
    }
    cases
}
