//! What a StatefulSet needs: pods with numbers, in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::revision::LABEL;
use crate::pod::{Phase, Pod};
use crate::share::{self, Round};
use crate::time;

/// What is to be done for a StatefulSet.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// Numbers of pods to make, each with the name of its revision.
    pub create: Vec<(i64, String)>,
    /// Names and uids of pods to delete.
    pub delete: Vec<(String, String)>,
    /// Its new status.
    pub status: Value,
    /// When to look again without an event.
    pub again: Option<Duration>,
}

/// The number in the name of a pod.
pub fn ordinal(set: &str, pod: &str) -> Option<i64> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// The names of the revisions before and after a rollout.
#[derive(Copy, Clone, Debug)]
pub struct Names<'a> {
    /// Before.
    pub current: &'a str,
    /// After.
    pub update: &'a str,
}

struct Set<'a> {
    tree: &'a Value,
    names: Names<'a>,
    now: Timestamp,
    /// Whether pods come and go one after another.
    ordered: bool,
    start: i64,
    replicas: i64,
    partition: i64,
    min_ready: i64,
    slots: BTreeMap<i64, Arc<Pod>>,
    /// Pods above or below the numbers wanted, highest first.
    surplus: Vec<Arc<Pod>>,
}

/// Decides what a StatefulSet needs.
pub fn decide(tree: &Value, pods: &[Arc<Pod>], names: Names<'_>, now: Timestamp) -> Plan {
    let set = Set::new(tree, pods, names, now);
    let mut plan = Plan { status: set.status(), ..Plan::default() };
    plan.again = set.next_available(pods);
    if tree["metadata"]["deletionTimestamp"].is_null() {
        set.act(&mut plan);
    }
    set.complete(&mut plan.status);
    plan
}

fn is_healthy(pod: &Pod) -> bool {
    pod.phase == Phase::Running && pod.ready.is_some() && !pod.head().deleting
}

fn doomed(pod: &Pod) -> (String, String) {
    (pod.name().to_owned(), pod.head().uid.to_string())
}

impl<'a> Set<'a> {
    fn new(tree: &'a Value, pods: &[Arc<Pod>], names: Names<'a>, now: Timestamp) -> Self {
        let spec = &tree["spec"];
        let name = tree["metadata"]["name"].as_str().unwrap_or_default();
        let start = spec["ordinals"]["start"].as_i64().unwrap_or_default();
        let replicas = spec["replicas"].as_i64().unwrap_or(1);
        let mut slots = BTreeMap::new();
        let mut surplus = Vec::new();
        for pod in pods {
            match ordinal(name, pod.name()) {
                Some(number) if (start..start + replicas).contains(&number) => drop(slots.insert(number, pod.clone())),
                Some(number) => surplus.push((number, pod.clone())),
                None => {}
            }
        }
        surplus.sort_by_key(|(number, _)| -number);
        Self {
            tree,
            names,
            now,
            ordered: spec["podManagementPolicy"] != "Parallel",
            start,
            replicas,
            partition: spec["updateStrategy"]["rollingUpdate"]["partition"].as_i64().unwrap_or_default(),
            min_ready: spec["minReadySeconds"].as_i64().unwrap_or_default(),
            slots,
            surplus: surplus.into_iter().map(|(_, pod)| pod).collect(),
        }
    }

    fn is_of(pod: &Pod, revision: &str) -> bool {
        pod.head().label(LABEL) == Some(revision)
    }

    fn rolls(&self) -> bool {
        self.tree["spec"]["updateStrategy"]["type"] != "OnDelete"
    }

    /// Which revision a missing pod is made from.
    fn revision_for(&self, number: i64) -> &str {
        let done = if !self.rolls() {
            0
        } else if self.tree["spec"]["updateStrategy"]["rollingUpdate"].is_object() {
            self.partition
        } else {
            self.tree["status"]["currentReplicas"].as_i64().unwrap_or_default()
        };
        if number < self.start + done { self.names.current } else { self.names.update }
    }

    fn act(&self, plan: &mut Plan) {
        if self.fill(plan) || self.shrink(plan) || !self.rolls() {
            return;
        }
        self.roll(plan);
        // Those that go count no longer: a pod without grace is gone before anybody sees it going.
        let gone = self.slots.values().filter(|pod| {
            Self::is_of(pod, self.names.current) && plan.delete.iter().any(|(name, _)| name == pod.name())
        });
        let left = plan.status["currentReplicas"].as_u64().unwrap_or_default().saturating_sub(gone.count() as u64);
        match left {
            0 => drop(plan.status.as_object_mut().and_then(|map| map.remove("currentReplicas"))),
            left => plan.status["currentReplicas"] = left.into(),
        }
    }

    /// Makes missing pods; returns whether it has to wait.
    fn fill(&self, plan: &mut Plan) -> bool {
        for number in self.start..self.start + self.replicas {
            let Some(pod) = self.slots.get(&number) else {
                plan.create.push((number, self.revision_for(number).to_owned()));
                if self.ordered {
                    return true;
                }
                continue;
            };
            if pod.is_finished() && !pod.head().deleting {
                plan.delete.push(doomed(pod));
                if self.ordered {
                    return true;
                }
                continue;
            }
            if self.ordered && (!is_healthy(pod) || !pod.is_available(self.min_ready, self.now)) {
                return true;
            }
        }
        !plan.create.is_empty() || !plan.delete.is_empty()
    }

    /// Deletes pods above the number wanted, highest first; returns whether it has to wait.
    fn shrink(&self, plan: &mut Plan) -> bool {
        let all = self.slots.values().chain(self.surplus.iter().rev());
        let first_ill = all.into_iter().find(|pod| !is_healthy(pod)).map(|pod| pod.name());
        for pod in &self.surplus {
            if pod.head().deleting {
                if self.ordered {
                    return true;
                }
                continue;
            }
            // One that is ill goes only when none below it is.
            if self.ordered && !is_healthy(pod) && first_ill != Some(pod.name()) {
                return true;
            }
            plan.delete.push(doomed(pod));
            if self.ordered {
                return true;
            }
        }
        !self.surplus.is_empty()
    }

    /// Replaces pods of the old template, highest first.
    fn roll(&self, plan: &mut Plan) {
        let most = &self.tree["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"];
        let most = share::of(most, self.replicas, Round::Up).unwrap_or(1).max(1);
        let mut missing = 0;
        for pod in self.slots.values() {
            missing += i64::from(!is_healthy(pod) || !pod.is_available(self.min_ready, self.now));
        }
        let mut deleted = 0;
        for (number, pod) in self.slots.iter().rev() {
            if *number < self.start + self.partition {
                return;
            }
            let healthy = is_healthy(pod);
            if Self::is_of(pod, self.names.update) {
                if !healthy && most == 1 {
                    return;
                }
                continue;
            }
            if pod.head().deleting {
                if most == 1 {
                    return;
                }
                continue;
            }
            // One that is not well anyway costs nothing.
            if missing + deleted >= most && healthy {
                return;
            }
            plan.delete.push(doomed(pod));
            deleted += i64::from(healthy);
            if most == 1 {
                return;
            }
        }
    }

    fn status(&self) -> Value {
        let all: Vec<&Arc<Pod>> = self.slots.values().chain(&self.surplus).filter(|pod| !pod.is_finished()).collect();
        let count = |fits: &dyn Fn(&Pod) -> bool| all.iter().filter(|pod| fits(pod)).count();
        let ready = count(&|pod| pod.phase == Phase::Running && pod.ready.is_some());
        let mut status = json!({
            "observedGeneration": self.tree["metadata"]["generation"], "replicas": all.len(),
            "availableReplicas": count(&|pod| is_healthy(pod) && pod.is_available(self.min_ready, self.now)),
            "currentRevision": self.names.current, "updateRevision": self.names.update,
            "collisionCount": self.tree["status"]["collisionCount"].as_i64().unwrap_or_default(),
        });
        let fields = [
            ("readyReplicas", ready),
            ("currentReplicas", count(&|pod| !pod.head().deleting && Self::is_of(pod, self.names.current))),
            ("updatedReplicas", count(&|pod| !pod.head().deleting && Self::is_of(pod, self.names.update))),
        ];
        for (field, number) in fields.into_iter().filter(|(_, number)| *number > 0) {
            status[field] = number.into();
        }
        status
    }

    /// When all pods are of the new revision, it is the current one.
    fn complete(&self, status: &mut Value) {
        let number = |field: &str| status[field].as_i64().unwrap_or_default();
        let updated = number("updatedReplicas");
        if self.rolls() && [number("replicas"), number("readyReplicas"), self.replicas] == [updated; 3] {
            status["currentRevision"] = self.names.update.into();
            if updated > 0 {
                status["currentReplicas"] = updated.into();
            }
        }
    }

    fn next_available(&self, pods: &[Arc<Pod>]) -> Option<Duration> {
        if self.min_ready == 0 {
            return None;
        }
        let due = pods.iter().filter_map(|pod| pod.ready).map(|since| time::plus(since, self.min_ready));
        due.filter(|due| *due > self.now).min().map(|due| time::until(self.now, due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Builder, pod};

    const NAMES: Names<'static> = Names { current: "s-1", update: "s-1" };
    const ROLLING: Names<'static> = Names { current: "s-1", update: "s-2" };

    fn set(replicas: i64, more: Value) -> Value {
        let mut tree = json!({"metadata": {"name": "s", "generation": 1}, "spec": {"replicas": replicas},
                              "status": {"currentReplicas": replicas}});
        for (key, value) in more.as_object().into_iter().flatten() {
            tree["spec"][key] = value.clone();
        }
        tree
    }

    fn at(name: &str, revision: &str) -> Builder {
        pod(name).label(LABEL, revision)
    }

    fn run(tree: &Value, pods: Vec<Builder>, names: Names<'_>) -> Plan {
        let pods: Vec<_> = pods.into_iter().map(Builder::build).collect();
        decide(tree, &pods, names, "2026-01-01T00:10:00Z".parse().expect("a moment"))
    }

    fn numbers(plan: &Plan) -> Vec<i64> {
        plan.create.iter().map(|(number, _)| *number).collect()
    }

    fn deleted(plan: &Plan) -> Vec<&str> {
        plan.delete.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn pods_come_one_after_another() {
        let tree = set(3, json!({}));
        assert_eq!(numbers(&run(&tree, vec![], NAMES)), [0]);
        assert_eq!(numbers(&run(&tree, vec![at("s-0", "s-1")], NAMES)), [0i64; 0]);
        assert_eq!(numbers(&run(&tree, vec![at("s-0", "s-1").ready()], NAMES)), [1]);
        let parallel = set(3, json!({"podManagementPolicy": "Parallel"}));
        assert_eq!(numbers(&run(&parallel, vec![], NAMES)), [0, 1, 2]);
        let shifted = set(2, json!({"ordinals": {"start": 5}}));
        assert_eq!(numbers(&run(&shifted, vec![at("s-5", "s-1").ready()], NAMES)), [6]);
    }

    #[test]
    fn pods_go_highest_first() {
        let tree = set(1, json!({}));
        let all = || vec![at("s-0", "s-1").ready(), at("s-1", "s-1").ready(), at("s-2", "s-1").ready()];
        assert_eq!(deleted(&run(&tree, all(), NAMES)), ["s-2"]);
        let mut leaving = all();
        leaving[2] = at("s-2", "s-1").ready().deleting();
        assert_eq!(deleted(&run(&tree, leaving, NAMES)), [""; 0]);
    }

    #[test]
    fn a_finished_pod_is_replaced() {
        assert_eq!(deleted(&run(&set(1, json!({})), vec![at("s-0", "s-1").phase("Failed")], NAMES)), ["s-0"]);
    }

    #[test]
    fn a_rollout_goes_from_the_highest_number_down_to_the_partition() {
        let old = |n: i64| at(&format!("s-{n}"), "s-1").ready();
        let new = |n: i64| at(&format!("s-{n}"), "s-2").ready();
        let tree = set(3, json!({}));
        assert_eq!(deleted(&run(&tree, vec![old(0), old(1), old(2)], ROLLING)), ["s-2"]);
        assert_eq!(deleted(&run(&tree, vec![old(0), old(1), new(2)], ROLLING)), ["s-1"]);
        let unready = vec![old(0), old(1), at("s-2", "s-2")];
        assert_eq!(deleted(&run(&tree, unready, ROLLING)), [""; 0]);
        let part = set(3, json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}));
        assert_eq!(deleted(&run(&part, vec![old(0), old(1), new(2)], ROLLING)), [""; 0]);
        let manual = set(3, json!({"updateStrategy": {"type": "OnDelete"}}));
        assert_eq!(deleted(&run(&manual, vec![old(0), old(1), old(2)], ROLLING)), [""; 0]);
    }

    #[test]
    fn the_new_revision_is_current_when_all_pods_have_it() {
        let plan = run(&set(1, json!({})), vec![at("s-0", "s-2").ready()], ROLLING);
        assert_eq!(plan.status["currentRevision"], "s-2");
        assert_eq!(plan.status["currentReplicas"], 1);
        let plan = run(&set(2, json!({})), vec![at("s-0", "s-1").ready(), at("s-1", "s-2").ready()], ROLLING);
        assert_eq!(plan.status["currentRevision"], "s-1");
        assert_eq!(
            (&plan.status["currentReplicas"], &plan.status["updatedReplicas"]),
            (&Value::Null, &json!(1)),
            "the last one goes"
        );
    }

    #[test]
    fn a_pod_that_went_at_once_comes_back_new() {
        let old = |n: i64| at(&format!("s-{n}"), "s-1").ready();
        let revision = |tree: &Value| run(tree, vec![old(0), old(1)], ROLLING).create[0].1.clone();
        let whole = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}});
        assert_eq!(revision(&set(3, whole)), "s-2");
        let mut bare = set(3, json!({"updateStrategy": {"type": "RollingUpdate"}}));
        assert_eq!(run(&bare, vec![old(0), old(1), old(2)], ROLLING).status["currentReplicas"], 2);
        bare["status"]["currentReplicas"] = 2.into();
        assert_eq!(revision(&bare), "s-2");
        let part = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}});
        assert_eq!(revision(&set(3, part)), "s-1");
    }

    #[test]
    fn names_have_numbers() {
        assert_eq!(ordinal("web", "web-12"), Some(12));
        assert_eq!(ordinal("web", "web-x"), None);
        assert_eq!(ordinal("web", "other-1"), None);
    }
}
