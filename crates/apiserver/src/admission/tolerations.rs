//! Pods stay five minutes on a node that is not ready or not reachable, unless they say otherwise.

use serde_json::{Value, json};

use super::{Operation, Review};

const SECONDS: i64 = 300;

/// Adds the two tolerations that are missing.
pub fn mutate(review: &Review<'_>, object: &mut Value) {
    if !review.is("", "pods") || !matches!(review.operation, Operation::Create | Operation::Update) {
        return;
    }
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let list = object["spec"]["tolerations"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |toleration: &Value, field: &str| toleration[field].as_str().unwrap_or_default().to_owned();
        let tolerated = list.iter().any(|toleration| {
            let (own, effect) = (text(toleration, "key"), text(toleration, "effect"));
            (own == key || own.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if tolerated {
            continue;
        }
        let added = json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS});
        match object["spec"]["tolerations"].as_array_mut() {
            Some(list) => list.push(added),
            None => object["spec"]["tolerations"] = json!([added]),
        }
    }
}
