//! From the states of works to the state of their binding.

use std::collections::BTreeMap;

use atoll_api::words::{condition as types, reason};
use atoll_api::work::{AggregatedStatusItem, ResourceBindingStatus, ResourceHealth, Work};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::binding::Binding;
use crate::condition::{self, Wanted};
use crate::decision::{Record, verdict};

/// What one work says of its cluster.
pub fn item(cluster: &str, work: &Work) -> Option<AggregatedStatusItem> {
    let status = work.status.as_ref()?;
    let applied = condition::get(&status.conditions, types::APPLIED)?;
    let manifest = status.manifest_statuses.first();
    let is_applied = applied.status == "True";
    Some(AggregatedStatusItem {
        cluster_name: cluster.to_owned(),
        status: manifest.and_then(|manifest| manifest.status.clone()),
        applied: is_applied,
        applied_message: if is_applied { String::new() } else { applied.message.clone() },
        health: manifest.and_then(|manifest| manifest.health).or(Some(ResourceHealth::Unknown)),
    })
}

/// The status of a binding, from its decision and its works by cluster.
pub fn status(binding: &Binding, works: &BTreeMap<String, Work>, now: Timestamp) -> ResourceBindingStatus {
    let mut status = binding.status.clone().unwrap_or_default();
    if let Some(record) = Record::of(binding) {
        let (value, reason, message) = verdict(&record);
        let wanted = Wanted { type_: types::SCHEDULED, status: value, reason: &reason, message, generation: 0 };
        condition::set(&mut status.conditions, wanted, now);
        status.scheduler_observed_generation = record.generation;
        status.scheduler_observing_affinity_name = record.affinity;
        // Written in whole seconds; kept as it is within the second.
        let at = atoll_meta::time::parse(&record.at).and_then(|at| Timestamp::from_second(at.as_second()).ok());
        status.last_scheduled_time = at.map(Time);
    }
    status.aggregated_status = works.iter().filter_map(|(cluster, work)| item(cluster, work)).collect();
    let targets = binding.targets();
    if targets.is_empty() && status.aggregated_status.is_empty() {
        status.conditions.retain(|condition| condition.type_ != types::FULLY_APPLIED);
        return status;
    }
    let applied = |name: &str| status.aggregated_status.iter().any(|item| item.cluster_name == name && item.applied);
    let complete = targets.keys().all(|name| applied(name));
    let (value, why, message) = if complete {
        ("True", reason::FULLY_APPLIED_SUCCESS, "All works have been successfully applied")
    } else {
        ("False", reason::FULLY_APPLIED_FAILED, "Failed to apply all works, see status.aggregatedStatus for details")
    };
    let wanted =
        Wanted { type_: types::FULLY_APPLIED, status: value, reason: why, message: message.to_owned(), generation: 0 };
    condition::set(&mut status.conditions, wanted, now);
    status
}

/// What a cluster that is away said last is not how it is there now: nobody knows.
pub fn doubt(status: &mut ResourceBindingStatus, is_away: impl Fn(&str) -> bool) {
    for item in status.aggregated_status.iter_mut().filter(|item| is_away(&item.cluster_name)) {
        item.health = Some(ResourceHealth::Unknown);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn work(applied: &str, status: Value) -> Work {
        serde_json::from_value(json!({"metadata": {}, "spec": {"workload": {"manifests": []}}, "status": {
            "conditions": [{"type": "Applied", "status": applied, "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "manifestStatuses": [{"identifier": {"ordinal": 0, "version": "v1", "kind": "X", "resource": "xs", "name": "x"}, "status": status, "health": "Healthy"}]}}))
        .unwrap()
    }

    fn binding() -> Binding {
        serde_json::from_value(json!({"metadata": {"name": "b", "namespace": "d"},
            "spec": {"resource": {"apiVersion": "v1", "kind": "X", "name": "x"}, "clusters": [{"name": "m1"}, {"name": "m2"}]}}))
        .unwrap()
    }

    #[test]
    fn a_binding_is_fully_applied_when_every_target_is() {
        for (second, expected) in [("True", "True"), ("False", "False")] {
            let works = BTreeMap::from([
                ("m1".to_owned(), work("True", json!({"n": 1}))),
                ("m2".to_owned(), work(second, json!(null))),
            ]);
            let status = status(&binding(), &works, Timestamp::UNIX_EPOCH);
            let full = condition::get(&status.conditions, "FullyApplied").unwrap();
            assert_eq!(full.status, expected);
            assert_eq!(status.aggregated_status[0].status, Some(json!({"n": 1})));
            assert_eq!(status.aggregated_status[1].applied_message, if second == "True" { "" } else { "m" });
        }
        let one = BTreeMap::from([("m1".to_owned(), work("True", json!({})))]);
        let status = status(&binding(), &one, Timestamp::UNIX_EPOCH);
        assert_eq!(condition::get(&status.conditions, "FullyApplied").unwrap().status, "False");
    }
}
