//! Disruption budgets: how many pods may be evicted now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::selector::LabelSelector;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Again, parent, split, write_status};
use crate::condition::{self, Says, Stamps};
use crate::kind::Kind;
use crate::pod::Pod;
use crate::share::{self, Round};
use crate::time;
use crate::world::{Work, World};

/// An eviction that did not happen within this time is forgotten.
const FORGOTTEN: i64 = 120;

/// Decides what a budget allows; `scales` are the wanted replicas of the controllers of the pods.
pub fn decide(budget: &Value, pods: &[Arc<Pod>], scales: i64, now: Timestamp) -> (Value, Option<Duration>) {
    let spec = &budget["spec"];
    let own = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let (expected, desired) = if let Some(most) = spec.get("maxUnavailable").filter(|value| !value.is_null()) {
        (scales, (scales - share::of(most, scales, Round::Up).unwrap_or(0)).max(0))
    } else {
        match &spec["minAvailable"] {
            Value::String(_) => (scales, share::of(&spec["minAvailable"], scales, Round::Up).unwrap_or(0)),
            value => (own, value.as_i64().unwrap_or(1)),
        }
    };
    let (evicting, again) = evicting(budget, pods, now);
    let healthy = pods
        .iter()
        .filter(|pod| pod.ready.is_some() && !pod.head().deleting && !evicting.contains_key(pod.name()))
        .count();
    let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
    let allowed = if expected <= 0 { 0 } else { (healthy - desired).max(0) };
    let mut status = json!({
        "observedGeneration": budget["metadata"]["generation"], "disruptionsAllowed": allowed, "currentHealthy": healthy,
        "desiredHealthy": desired, "expectedPods": expected,
    });
    if !evicting.is_empty() {
        status["disruptedPods"] = evicting.into();
    }
    let mut conditions = budget["status"]["conditions"].clone();
    let (word, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let says = Says { kind: "DisruptionAllowed", status: word, reason, message: "" };
    condition::set(&mut conditions, says, Stamps::Transition, &time::text(now));
    for one in conditions.as_array_mut().into_iter().flatten() {
        one["observedGeneration"] = budget["metadata"]["generation"].clone();
        one["message"] = one["message"].as_str().unwrap_or_default().into();
    }
    status["conditions"] = conditions;
    (status, again)
}

/// Evictions that were allowed and have not happened yet.
fn evicting(budget: &Value, pods: &[Arc<Pod>], now: Timestamp) -> (Map<String, Value>, Option<Duration>) {
    let mut kept = Map::new();
    let mut again = None;
    for (name, at) in budget["status"]["disruptedPods"].as_object().into_iter().flatten() {
        let waits = pods.iter().any(|pod| pod.name() == name && !pod.head().deleting);
        let due = time::read(at).map(|at| time::plus(at, FORGOTTEN)).unwrap_or(now);
        if waits && due > now {
            kept.insert(name.clone(), at.clone());
            again = Some(time::until(now, due));
        }
    }
    (kept, again)
}

/// Looks after one budget.
pub async fn reconcile(world: &World, work: &Work) -> Again {
    let Some(budget) = parent(world, Kind::PodDisruptionBudget, work) else { return Ok(None) };
    let (namespace, _) = split(&work.key);
    let selector = LabelSelector::from_value(&budget["spec"]["selector"]).unwrap_or_else(|_| LabelSelector::nothing());
    let pods: Vec<Arc<Pod>> = {
        let book = world.book.read();
        let fitting = book.pods().filter(|pod| {
            *pod.head().namespace == *namespace && !pod.is_finished() && selector.matches_head(pod.head())
        });
        fitting.cloned().collect()
    };
    let (status, again) = decide(&budget, &pods, scales(world, namespace, &pods), world.now());
    write_status(world, work, Kind::PodDisruptionBudget, &budget, &status).await?;
    Ok(again)
}

/// Wanted replicas of all controllers of the pods, each counted once.
fn scales(world: &World, namespace: &str, pods: &[Arc<Pod>]) -> i64 {
    let mut known: BTreeMap<String, i64> = BTreeMap::new();
    for pod in pods {
        let Some(owner) = pod.head().controller() else {
            known.insert(pod.name().to_owned(), 1);
            continue;
        };
        let (mut kind, mut name, mut uid) = (Kind::named(&owner.kind), owner.name.to_string(), owner.uid.to_string());
        // A Deployment speaks for its sets.
        if kind == Some(Kind::ReplicaSet)
            && let Some(set) = world.cache(Kind::ReplicaSet).get(namespace, &name)
            && let Some(above) = set.object.head.controller()
        {
            (kind, name, uid) = (Kind::named(&above.kind), above.name.to_string(), above.uid.to_string());
        }
        if known.contains_key(&uid) {
            continue;
        }
        let replicas = kind
            .and_then(|kind| world.cache(kind).get(namespace, &name))
            .and_then(|item| item.tree()["spec"]["replicas"].as_i64());
        known.insert(uid, replicas.unwrap_or_default());
    }
    known.values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pod;

    #[test]
    fn a_budget_allows_what_is_above_its_limit() {
        let pods = [pod("a").ready(), pod("b").ready(), pod("c").ready(), pod("d")].map(|p| p.build());
        let now = "2026-01-01T00:10:00Z".parse().expect("a moment");
        let table = [
            (json!({"minAvailable": 2}), json!({}), (1, 2, 4)),
            (json!({"minAvailable": "50%"}), json!({}), (1, 2, 4)),
            (json!({"maxUnavailable": 1}), json!({}), (0, 3, 4)),
            (json!({"maxUnavailable": "50%"}), json!({}), (1, 2, 4)),
            (json!({"minAvailable": 2}), json!({"disruptedPods": {"a": "2026-01-01T00:09:30Z"}}), (0, 2, 4)),
            (json!({"minAvailable": 2}), json!({"disruptedPods": {"a": "2026-01-01T00:00:00Z"}}), (1, 2, 4)),
        ];
        for (spec, status, (allowed, desired, expected)) in table {
            let budget = json!({"metadata": {"generation": 1}, "spec": spec, "status": status});
            let (status, _) = decide(&budget, &pods, 4, now);
            assert_eq!(status["disruptionsAllowed"], allowed, "{budget}");
            assert_eq!(
                (&status["desiredHealthy"], &status["expectedPods"]),
                (&json!(desired), &json!(expected)),
                "{budget}"
            );
        }
    }
}
