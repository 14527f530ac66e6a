//! What each field of ClusterTaintPolicy does.

use atoll_fleet::taints::by_policy;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

use crate::case::{Case, affinity, other};
use crate::world::clusters;

fn conditions() -> Vec<Condition> {
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    serde_json::from_value(json!([condition("Ready", "False"), condition("Network", "True")])).unwrap()
}

/// The taints of all clusters, which have one already.
fn taints(spec: &Value, _: bool) -> String {
    let policy = serde_json::from_value(spec.clone()).unwrap();
    let old = Taint { key: "old".to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
    let of = |cluster| by_policy(&policy, cluster, &conditions(), vec![old.clone()], jiff::Timestamp::UNIX_EPOCH);
    let all: Vec<_> = clusters().clusters().iter().map(|cluster| of(cluster)).collect();
    serde_json::to_string(&all).unwrap()
}

/// All fields.
pub fn cases() -> Vec<Case> {
    let when = |field: &str, key: &str| {
        json!({field: [{"conditionType": "Ready", "operator": "In", "statusValues": ["False"]}],
            "taints": [{"key": key, "effect": "NoSchedule", "value": "yes"}]})
    };
    let add = || when("addOnConditions", "new");
    let remove = || when("removeOnConditions", "old");
    let mut cases = vec![
        other("taints.key", add(), json!("another"), taints),
        other("taints.value", add(), json!("no"), taints),
        other("taints.effect", add(), json!("NoExecute"), taints),
    ];
    for (field, spec) in [("addOnConditions", add()), ("removeOnConditions", remove())] {
        cases.push(other(&format!("{field}.conditionType"), spec.clone(), json!("Network"), taints));
        cases.push(other(&format!("{field}.operator"), spec.clone(), json!("NotIn"), taints));
        cases.push(other(&format!("{field}.statusValues"), spec, json!(["True"]), taints));
    }
    cases.extend(affinity(
        "targetClusters",
        |own| {
            let mut spec = when("addOnConditions", "new");
            spec["targetClusters"] = own;
            spec
        },
        taints,
    ));
    cases
}
