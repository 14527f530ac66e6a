//! Counts of a pod.

use atoll_meta::Quantity;
use serde_json::{Value, json};

/// Restarts, containers, resources and owner of a pod.
pub fn pod(tree: &mut Value) {
    let statuses = tree["status"]["containerStatuses"].as_array().cloned().unwrap_or_default();
    let restarts: i64 = statuses.iter().filter_map(|status| status["restartCount"].as_i64()).sum();
    let ready = statuses.iter().filter(|status| status["ready"] == true).count();
    let total = tree["spec"]["containers"].as_array().map_or(0, Vec::len);
    let sums = [
        ("cpuRequest", sum(tree, "requests", "cpu", Quantity::milli_value)),
        ("cpuLimit", sum(tree, "limits", "cpu", Quantity::milli_value)),
        ("memoryRequest", sum(tree, "requests", "memory", Quantity::value)),
        ("memoryLimit", sum(tree, "limits", "memory", Quantity::value)),
    ];
    let owner = tree["metadata"]["ownerReferences"]
        .as_array()
        .and_then(|owners| owners.iter().find(|owner| owner["controller"] == true))
        .cloned();
    if !tree["status"].is_object() {
        tree["status"] = json!({});
    }
    let status = &mut tree["status"];
    status["restartCount"] = restarts.into();
    status["containerReadyCount"] = ready.into();
    status["containerTotalCount"] = total.into();
    for (key, value) in sums {
        status[key] = value.into();
    }
    if let Some(owner) = owner {
        status["ownedBy"] = json!({"kind": owner["kind"], "name": owner["name"]});
    }
}

fn sum(tree: &Value, which: &str, resource: &str, unit: fn(Quantity) -> i64) -> i64 {
    let containers = tree["spec"]["containers"].as_array();
    let amounts = containers
        .into_iter()
        .flatten()
        .filter_map(|container| Quantity::parse(container["resources"][which][resource].as_str()?).ok());
    unit(amounts.sum())
}
