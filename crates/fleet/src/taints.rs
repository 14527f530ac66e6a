//! Taints that clusters get by their conditions, from us and from ClusterTaintPolicies.

use atoll_api::policy::{ClusterTaintPolicySpec, MatchCondition};
use atoll_api::words::{condition as types, taint};
use atoll_placement::{Cluster, Matcher};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::condition;

/// The taints a cluster gets by being ready or not.
pub fn by_readiness(conditions: &[Condition], present: &[Taint]) -> Vec<Taint> {
    let wanted = match condition::get(conditions, types::READY).map(|ready| ready.status.as_str()) {
        Some("False") => Some(taint::NOT_READY),
        Some("Unknown") => Some(taint::UNREACHABLE),
        _ => None,
    };
    let ours =
        |own: &Taint| own.effect == "NoSchedule" && (own.key == taint::NOT_READY || own.key == taint::UNREACHABLE);
    let mut taints: Vec<Taint> =
        present.iter().filter(|own| !ours(own) || Some(own.key.as_str()) == wanted).cloned().collect();
    if let Some(key) = wanted.filter(|key| !taints.iter().any(|own| ours(own) && own.key == *key)) {
        taints.push(Taint { key: key.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() });
    }
    taints
}

/// Whether a cluster has a taint that says that it is not ready, or that nothing is known of it.
pub fn is_away(cluster: &Cluster) -> bool {
    cluster.taints.iter().any(|own| own.key == taint::NOT_READY || own.key == taint::UNREACHABLE)
}

fn holds(wanted: &[MatchCondition], conditions: &[Condition]) -> bool {
    !wanted.is_empty()
        && wanted.iter().all(|wanted| {
            let Some(found) = condition::get(conditions, &wanted.condition_type) else { return false };
            let among = wanted.status_values.contains(&found.status);
            match wanted.operator.as_str() {
                "In" => among,
                "NotIn" => !among,
                _ => false,
            }
        })
}

/// The taints a cluster gets by a policy: added when all conditions for that hold, then removed likewise.
pub fn by_policy(
    policy: &ClusterTaintPolicySpec,
    cluster: &Cluster,
    conditions: &[Condition],
    mut taints: Vec<Taint>,
    now: Timestamp,
) -> Vec<Taint> {
    if !policy.target_clusters.as_ref().is_none_or(|affinity| Matcher::new(affinity).matches(cluster)) {
        return taints;
    }
    if holds(&policy.add_on_conditions, conditions) {
        for wanted in &policy.taints {
            if !taints.iter().any(|own| own.key == wanted.key && own.effect == wanted.effect) {
                let value = Some(wanted.value.clone()).filter(|value| !value.is_empty());
                taints.push(Taint {
                    key: wanted.key.clone(),
                    effect: wanted.effect.clone(),
                    value,
                    time_added: Some(Time(now)),
                });
            }
        }
    }
    if holds(&policy.remove_on_conditions, conditions) {
        taints.retain(|own| !policy.taints.iter().any(|wanted| own.key == wanted.key && own.effect == wanted.effect));
    }
    taints
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn conditions(status: &str) -> Vec<Condition> {
        serde_json::from_value(json!([{"type": "Ready", "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}])).unwrap()
    }

    fn keys(taints: &[Taint]) -> Vec<&str> {
        taints.iter().map(|taint| taint.key.as_str()).collect()
    }

    #[test]
    fn taints_follow_readiness_and_leave_others_alone() {
        let own = vec![Taint { key: "mine".into(), effect: "NoSchedule".into(), ..Taint::default() }];
        assert_eq!(by_readiness(&conditions("True"), &own), own);
        let ill = by_readiness(&conditions("False"), &own);
        assert_eq!(keys(&ill), ["mine", taint::NOT_READY]);
        assert_eq!(by_readiness(&conditions("False"), &ill), ill);
        assert_eq!(keys(&by_readiness(&conditions("Unknown"), &ill)), ["mine", taint::UNREACHABLE]);
        assert_eq!(by_readiness(&conditions("True"), &ill), own);
    }

    #[test]
    fn a_policy_adds_and_removes_its_taints_as_conditions_come_and_go() {
        let policy: ClusterTaintPolicySpec = serde_json::from_value(json!({
            "targetClusters": {"clusterNames": ["m1"]},
            "addOnConditions": [{"conditionType": "Ready", "operator": "NotIn", "statusValues": ["True"]}],
            "removeOnConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["True"]}],
            "taints": [{"key": "ill", "effect": "NoSchedule"}]}))
        .unwrap();
        let cluster = |name: &str| Cluster { name: name.into(), ..Cluster::default() };
        let run = |name: &str, status: &str, taints: Vec<Taint>| {
            by_policy(&policy, &cluster(name), &conditions(status), taints, Timestamp::UNIX_EPOCH)
        };
        let ill = run("m1", "False", Vec::new());
        assert_eq!(keys(&ill), ["ill"]);
        assert_eq!(run("m1", "Unknown", ill.clone()), ill);
        assert!(run("m1", "True", ill).is_empty());
        assert!(run("m2", "False", Vec::new()).is_empty());
    }
}
