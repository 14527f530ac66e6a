//! ReplicaSets: as many pods as wanted, no more, no fewer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Again, create_pods, delete_pods, parent, retry, write_status};
use crate::child::{claim_pods, pod_of, selector};
use crate::condition::{self, Says, Stamps};
use crate::kind::Kind;
use crate::pod::{Phase, Pod};
use crate::time;
use crate::world::{Work, World};

/// Most pods made or deleted at once.
const BURST: usize = 500;

/// What is to be done for a set of pods.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// How many pods to make.
    pub create: usize,
    /// Names and uids of pods to delete.
    pub delete: Vec<(String, String)>,
    /// Its new status.
    pub status: Value,
    /// When a pod becomes available without an event.
    pub again: Option<Duration>,
}

/// Decides what a set needs.
pub fn decide(set: &Value, pods: &[Arc<Pod>], now: Timestamp) -> Plan {
    let wanted = usize::try_from(set["spec"]["replicas"].as_i64().unwrap_or(1)).unwrap_or_default();
    let active: Vec<&Arc<Pod>> = pods.iter().filter(|pod| pod.is_active()).collect();
    let mut plan = Plan { status: status(set, &active, now), ..Plan::default() };
    if set["kind"] != Kind::ReplicationController.name() {
        let going = pods.iter().filter(|pod| pod.head().deleting && !pod.is_finished());
        plan.status["terminatingReplicas"] = going.count().into();
    }
    plan.again = next_available(set, &active, now);
    if !set["metadata"]["deletionTimestamp"].is_null() {
        return plan;
    }
    if active.len() < wanted {
        plan.create = (wanted - active.len()).min(BURST);
    } else if active.len() > wanted {
        let surplus = (active.len() - wanted).min(BURST);
        plan.delete = victims(&active, surplus);
    }
    plan
}

/// Which pods go first: those that do least good.
fn victims(active: &[&Arc<Pod>], count: usize) -> Vec<(String, String)> {
    let mut crowd: HashMap<&str, usize> = HashMap::new();
    for pod in active {
        *crowd.entry(&pod.node).or_default() += 1;
    }
    let mut ranked = active.to_vec();
    ranked.sort_by_cached_key(|pod| {
        (
            !pod.node.is_empty(),
            match pod.phase {
                Phase::Pending => 0,
                Phase::Unknown => 1,
                _ => 2,
            },
            pod.ready.is_some(),
            pod.deletion_cost,
            std::cmp::Reverse(crowd.get(&*pod.node).copied().unwrap_or_default()),
            std::cmp::Reverse(pod.ready),
            std::cmp::Reverse(pod.restarts),
            std::cmp::Reverse(pod.created),
        )
    });
    ranked.iter().take(count).map(|pod| (pod.name().to_owned(), pod.head().uid.to_string())).collect()
}

fn min_ready(set: &Value) -> i64 {
    set["spec"]["minReadySeconds"].as_i64().unwrap_or_default()
}

fn next_available(set: &Value, active: &[&Arc<Pod>], now: Timestamp) -> Option<Duration> {
    let seconds = min_ready(set);
    if seconds == 0 {
        return None;
    }
    let due = active.iter().filter_map(|pod| pod.ready).map(|since| time::plus(since, seconds));
    due.filter(|due| *due > now).min().map(|due| time::until(now, due))
}

fn status(set: &Value, active: &[&Arc<Pod>], now: Timestamp) -> Value {
    let labels = set["spec"]["template"]["metadata"]["labels"].as_object();
    let labelled = |pod: &&&Arc<Pod>| {
        labels.is_none_or(|labels| labels.iter().all(|(key, value)| pod.head().label(key) == value.as_str()))
    };
    let seconds = min_ready(set);
    let mut status = json!({"replicas": active.len(), "observedGeneration": set["metadata"]["generation"]});
    let counts = [
        ("fullyLabeledReplicas", active.iter().filter(labelled).count()),
        ("readyReplicas", active.iter().filter(|pod| pod.ready.is_some()).count()),
        ("availableReplicas", active.iter().filter(|pod| pod.is_available(seconds, now)).count()),
    ];
    for (field, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        status[field] = count.into();
    }
    if let Some(conditions) = set["status"].get("conditions") {
        status["conditions"] = conditions.clone();
    }
    status
}

/// Looks after one ReplicaSet.
pub async fn reconcile(world: &World, work: &Work) -> Again {
    let Some(set) = parent(world, Kind::ReplicaSet, work) else { return Ok(None) };
    let selector = selector(&set);
    run(world, work, Kind::ReplicaSet, &set, &selector).await
}

/// Looks after a set of pods, be it a ReplicaSet or a ReplicationController.
pub async fn run(
    world: &World,
    work: &Work,
    kind: Kind,
    set: &Value,
    selector: &atoll_meta::selector::LabelSelector,
) -> Again {
    let pods = claim_pods(world, work, kind, set, selector).await?;
    let mut plan = decide(set, &pods, world.now());
    let mut failure = None;
    if plan.create > 0 {
        let pod = pod_of(kind, set, &set["spec"]["template"]);
        let (_, failed) = create_pods(world, work, set, vec![pod; plan.create]).await;
        failure = failed;
    }
    if !plan.delete.is_empty() {
        delete_pods(world, work, set, &plan.delete).await?;
    }
    judge(&mut plan.status, failure.as_ref().map(|status| status.message.as_str()), &time::text(world.now()));
    write_status(world, work, kind, set, &plan.status).await?;
    retry(failure, plan.again)
}

/// Says in the status whether pods could be made.
fn judge(status: &mut Value, failure: Option<&str>, now: &str) {
    let mut conditions = status["conditions"].take();
    match failure {
        // The first reason stays: names of pods in messages differ, and each write would call us again.
        Some(message) if !condition::is_true(&conditions, "ReplicaFailure") => {
            let says = Says { kind: "ReplicaFailure", status: "True", reason: "FailedCreate", message };
            condition::set(&mut conditions, says, Stamps::Transition, now);
        }
        Some(_) => {}
        None => condition::remove(&mut conditions, "ReplicaFailure"),
    }
    if conditions.as_array().is_some_and(|list| !list.is_empty()) {
        status["conditions"] = conditions;
    } else if let Some(map) = status.as_object_mut() {
        map.remove("conditions");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pod;

    fn set(replicas: i64) -> Value {
        json!({"metadata": {"name": "s", "namespace": "d", "uid": "s", "generation": 2},
               "spec": {"replicas": replicas, "template": {"metadata": {"labels": {"app": "a"}}}}})
    }

    fn now() -> Timestamp {
        "2026-01-01T00:10:00Z".parse().expect("a moment")
    }

    #[test]
    fn missing_pods_are_made_and_surplus_ones_deleted() {
        let pods =
            [pod("a").ready(), pod("b").ready(), pod("c").phase("Failed"), pod("d").deleting()].map(|p| p.build());
        let plan = decide(&set(4), &pods, now());
        assert_eq!((plan.create, plan.delete.len()), (2, 0));
        let plan = decide(&set(0), &pods, now());
        assert_eq!((plan.create, plan.delete.len()), (0, 2));
        assert_eq!((&plan.status["replicas"], &plan.status["terminatingReplicas"]), (&json!(2), &json!(1)));
        assert_eq!(plan.status["readyReplicas"], 2);
        assert_eq!(plan.status["observedGeneration"], 2);
    }

    #[test]
    fn pods_that_do_least_good_go_first() {
        let pods = [
            pod("good").node("n1").ready(),
            pod("cheap").node("n2").ready().cost(-5),
            pod("unready").node("n3"),
            pod("unbound").phase("Pending"),
        ]
        .map(|p| p.build());
        let names: Vec<Vec<String>> = (0..4)
            .map(|wanted| decide(&set(wanted), &pods, now()).delete.into_iter().map(|(name, _)| name).collect())
            .collect();
        assert_eq!(names[3], ["unbound"]);
        assert_eq!(names[2], ["unbound", "unready"]);
        assert_eq!(names[1], ["unbound", "unready", "cheap"]);
    }

    #[test]
    fn availability_waits_for_the_set_time() {
        let mut slow = set(1);
        slow["spec"]["minReadySeconds"] = 30.into();
        let ready = pod("a").ready_at("2026-01-01T00:09:50Z").build();
        let plan = decide(&slow, &[ready], now());
        assert_eq!(plan.status.get("availableReplicas"), None);
        assert_eq!(plan.again, Some(Duration::from_secs(20)));
    }

    #[test]
    fn a_set_that_is_being_deleted_makes_nothing() {
        let mut leaving = set(3);
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(decide(&leaving, &[], now()).create, 0);
    }
}
