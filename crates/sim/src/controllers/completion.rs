//! What a Job needs: pods until enough have succeeded, or too many failed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::failure_policy::{self, Judgement};
use super::indexes;
use crate::condition::{self, Says, Stamps};
use crate::pod::{Phase, Pod};
use crate::time;

/// Keeps a finished pod until its Job has counted it.
pub const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// Label and annotation that hold the index of a pod.
pub const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Pauses after failures: ten seconds, doubled each time, at most ten minutes.
const FIRST_PAUSE: u64 = 10;
const LONGEST_PAUSE: u64 = 600;
/// Most pods made or deleted at once.
const BURST: usize = 500;

/// What is to be done for a Job.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// Pods to make, with their index in an indexed Job.
    pub create: Vec<Option<i64>>,
    /// Names and uids of pods to delete.
    pub delete: Vec<(String, String)>,
    /// Names of pods that are counted once the status is written, and may go.
    pub release: Vec<String>,
    /// Its new status.
    pub status: Value,
    /// When to look again without an event.
    pub again: Option<Duration>,
    /// What to tell: type, reason, message.
    pub events: Vec<(&'static str, &'static str, String)>,
}

/// A Job taken apart.
pub struct Job<'a> {
    pub(super) tree: &'a Value,
    pub(super) pods: &'a [Arc<Pod>],
    now: Timestamp,
    status: Value,
    parallelism: usize,
    completions: Option<usize>,
    indexed: bool,
    succeeded: usize,
    failed: usize,
    done: BTreeSet<i64>,
    lost: BTreeSet<i64>,
    /// Failures of each index, from its pods.
    failures: BTreeMap<i64, usize>,
    ignored: usize,
    verdict: Option<(String, String)>,
}

/// The index of a pod.
pub fn index_of(pod: &Pod) -> Option<i64> {
    pod.head().label(INDEX)?.parse().ok()
}

fn tracked(pod: &Pod) -> bool {
    pod.head().finalizers.iter().any(|one| **one == *FINALIZER)
}

fn doomed(pod: &Arc<Pod>) -> (String, String) {
    (pod.name().to_owned(), pod.head().uid.to_string())
}

/// Whether a Job has ended.
pub fn is_finished(job: &Value) -> bool {
    let conditions = &job["status"]["conditions"];
    condition::is_true(conditions, "Complete") || condition::is_true(conditions, "Failed")
}

/// Decides what a Job needs.
pub fn decide(tree: &Value, pods: &[Arc<Pod>], now: Timestamp) -> Plan {
    if is_finished(tree) || !tree["metadata"]["deletionTimestamp"].is_null() {
        let release = pods.iter().filter(|pod| tracked(pod)).map(|pod| pod.name().to_owned()).collect();
        return Plan { release, status: tree["status"].clone(), ..Plan::default() };
    }
    let mut job = Job::new(tree, pods, now);
    let mut plan = Plan::default();
    job.count(&mut plan);
    job.judge(&mut plan);
    job.manage(&mut plan);
    job.finish(&mut plan);
    plan.status = job.status;
    plan
}

impl<'a> Job<'a> {
    fn new(tree: &'a Value, pods: &'a [Arc<Pod>], now: Timestamp) -> Self {
        let spec = &tree["spec"];
        let number = |field: &str| spec[field].as_u64().and_then(|n| usize::try_from(n).ok());
        Self {
            tree,
            pods,
            now,
            status: tree["status"].clone(),
            parallelism: number("parallelism").unwrap_or(1),
            completions: number("completions"),
            indexed: spec["completionMode"] == "Indexed",
            succeeded: 0,
            failed: 0,
            done: indexes::parse(tree["status"]["completedIndexes"].as_str().unwrap_or_default()),
            lost: indexes::parse(tree["status"]["failedIndexes"].as_str().unwrap_or_default()),
            failures: BTreeMap::new(),
            ignored: 0,
            verdict: None,
        }
    }

    fn active(&self) -> impl Iterator<Item = &'a Arc<Pod>> {
        self.pods.iter().filter(|pod| pod.is_active())
    }

    /// Whether a pod counts as failed: also one that is being deleted, unless only failed ones are replaced.
    fn has_failed(&self, pod: &Pod) -> bool {
        let only_failed =
            self.tree["spec"]["podReplacementPolicy"] == "Failed" || !self.tree["spec"]["podFailurePolicy"].is_null();
        pod.phase == Phase::Failed || pod.head().deleting && pod.phase != Phase::Succeeded && !only_failed
    }

    /// Counts finished pods exactly once: first by uid, then, when their finalizer is gone, as numbers.
    fn count(&mut self, plan: &mut Plan) {
        let mut uncounted = self.status["uncountedTerminatedPods"].clone();
        let held: BTreeMap<&str, &Arc<Pod>> =
            self.pods.iter().filter(|pod| tracked(pod)).map(|pod| (&*pod.head().uid, pod)).collect();
        for (list, counter) in [("succeeded", "succeeded"), ("failed", "failed")] {
            let uids: Vec<Value> = uncounted[list].as_array().cloned().unwrap_or_default();
            let (kept, gone): (Vec<Value>, Vec<Value>) =
                uids.into_iter().partition(|uid| held.contains_key(uid.as_str().unwrap_or_default()));
            let count = self.status[counter].as_u64().unwrap_or_default() + gone.len() as u64;
            if count > 0 && !(self.indexed && counter == "succeeded") {
                self.status[counter] = count.into();
            }
            uncounted[list] = kept.into();
        }
        for pod in held.values() {
            let uid = Value::from(&*pod.head().uid);
            let known = ["succeeded", "failed"]
                .iter()
                .any(|list| uncounted[*list].as_array().is_some_and(|uids| uids.contains(&uid)));
            if known {
                plan.release.push(pod.name().to_owned());
                continue;
            }
            if pod.phase == Phase::Succeeded {
                if self.indexed {
                    self.done.extend(index_of(pod));
                } else if let Some(list) = uncounted["succeeded"].as_array_mut() {
                    list.push(uid);
                }
            } else if self.has_failed(pod) {
                let judgement = failure_policy::judge(self.tree, pod);
                match judgement {
                    Judgement::Ignore => self.ignored += 1,
                    Judgement::FailJob(message) => self.verdict = Some(("PodFailurePolicy".into(), message)),
                    Judgement::FailIndex => self.lost.extend(index_of(pod)),
                    Judgement::Count => {}
                }
                if judgement_counts(self.tree, pod)
                    && let Some(list) = uncounted["failed"].as_array_mut()
                {
                    list.push(uid);
                }
            } else {
                continue;
            }
            plan.release.push(pod.name().to_owned());
        }
        let failed: Vec<i64> =
            self.pods.iter().filter(|pod| self.has_failed(pod)).filter_map(|pod| index_of(pod)).collect();
        for index in failed {
            *self.failures.entry(index).or_default() += 1;
        }
        let waiting = |list: &str| uncounted[list].as_array().map_or(0, Vec::len);
        self.failed =
            usize::try_from(self.status["failed"].as_u64().unwrap_or_default()).unwrap_or_default() + waiting("failed");
        self.succeeded = if self.indexed {
            let end = i64::try_from(self.completions.unwrap_or(0)).unwrap_or(i64::MAX);
            self.done.retain(|index| *index < end);
            self.done.len()
        } else {
            usize::try_from(self.status["succeeded"].as_u64().unwrap_or_default()).unwrap_or_default()
                + waiting("succeeded")
        };
        self.keep_uncounted(uncounted);
    }

    fn keep_uncounted(&mut self, mut uncounted: Value) {
        if let Some(map) = uncounted.as_object_mut() {
            map.retain(|_, list| list.as_array().is_some_and(|uids| !uids.is_empty()));
        }
        self.status["uncountedTerminatedPods"] = if uncounted.is_object() { uncounted } else { json!({}) };
    }

    fn say(&mut self, kind: &str, status: &str, reason: &str, message: &str) -> bool {
        let mut conditions = self.status["conditions"].take();
        let says = Says { kind, status, reason, message };
        let now = time::text(self.now);
        let changed = condition::set(&mut conditions, says, Stamps::Transition, &now);
        for one in conditions.as_array_mut().into_iter().flatten().filter(|one| one["type"] == kind && changed) {
            one["lastProbeTime"] = now.clone().into();
        }
        self.status["conditions"] = conditions;
        changed
    }

    fn target(&self, kind: &str) -> Option<(String, String)> {
        let found = condition::get(&self.status["conditions"], kind).filter(|c| c["status"] == "True")?;
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        Some((text("reason"), text("message")))
    }

    /// Decides whether the Job has reached its end, one way or the other.
    fn judge(&mut self, plan: &mut Plan) {
        let suspended = self.tree["spec"]["suspend"] == true;
        if self.status.get("startTime").is_none() && !suspended {
            self.status["startTime"] = time::text(self.now).into();
        }
        if self.target("FailureTarget").is_some() || self.target("SuccessCriteriaMet").is_some() {
            return;
        }
        if let Some((reason, message)) = self.failure(plan) {
            self.say("FailureTarget", "True", &reason, &message);
        } else if let Some((reason, message)) = self.success() {
            self.say("SuccessCriteriaMet", "True", &reason, &message);
        } else {
            self.pause(suspended, plan);
        }
    }

    fn pause(&mut self, suspended: bool, plan: &mut Plan) {
        if suspended {
            if self.say("Suspended", "True", "JobSuspended", "Job suspended") {
                plan.events.push(("Normal", "Suspended", "Job suspended".into()));
            }
            if let Some(map) = self.status.as_object_mut() {
                map.remove("startTime");
            }
        } else if condition::is_true(&self.status["conditions"], "Suspended")
            && self.say("Suspended", "False", "JobResumed", "Job resumed")
        {
            self.status["startTime"] = time::text(self.now).into();
            plan.events.push(("Normal", "Resumed", "Job resumed".into()));
        }
    }

    fn failure(&mut self, plan: &mut Plan) -> Option<(String, String)> {
        if let Some(verdict) = self.verdict.take() {
            return Some(verdict);
        }
        let spec = &self.tree["spec"];
        let limit = usize::try_from(spec["backoffLimit"].as_u64().unwrap_or(6)).unwrap_or(usize::MAX);
        let restarts: i64 = self.active().map(|pod| pod.restarts).sum();
        let restarts = usize::try_from(restarts).unwrap_or_default();
        let on_failure = spec["template"]["spec"]["restartPolicy"] == "OnFailure";
        if self.failed > limit || on_failure && restarts > 0 && restarts >= limit {
            return Some(("BackoffLimitExceeded".into(), "Job has reached the specified backoff limit".into()));
        }
        if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64()
            && let Some(start) = time::read(&self.status["startTime"])
        {
            let due = time::plus(start, seconds);
            if due <= self.now {
                return Some(("DeadlineExceeded".into(), "Job was active longer than specified deadline".into()));
            }
            plan.again = Some(time::until(self.now, due));
        }
        self.lost_indexes()
    }

    /// Indexes that failed too often are given up one by one.
    fn lost_indexes(&mut self) -> Option<(String, String)> {
        let spec = &self.tree["spec"];
        let limit = usize::try_from(spec["backoffLimitPerIndex"].as_u64()?).unwrap_or(usize::MAX);
        let over = self.failures.iter().filter(|(index, count)| **count > limit && !self.done.contains(index));
        self.lost.extend(over.map(|(index, _)| *index).collect::<Vec<_>>());
        self.status["failedIndexes"] = indexes::text(&self.lost).into();
        if let Some(most) = spec["maxFailedIndexes"].as_u64()
            && self.lost.len() as u64 > most
        {
            return Some((
                "MaxFailedIndexesExceeded".into(),
                "Job has exceeded the specified maximal number of failed indexes".into(),
            ));
        }
        let all = self.completions.unwrap_or(0);
        let ended = self.lost.len() + self.done.difference(&self.lost).count() >= all && !self.lost.is_empty();
        (ended && self.active().next().is_none()).then(|| ("FailedIndexes".into(), "Job has failed indexes".into()))
    }

    fn success(&self) -> Option<(String, String)> {
        let reached = ("CompletionsReached".to_owned(), "Reached expected number of succeeded pods".to_owned());
        if let Some(found) = failure_policy::success(self.tree, &self.done) {
            return Some(("SuccessPolicy".into(), found));
        }
        let enough = match self.completions {
            Some(all) => self.succeeded >= all,
            None => self.succeeded > 0 && self.active().next().is_none(),
        };
        enough.then_some(reached)
    }

    fn manage(&mut self, plan: &mut Plan) {
        let ending = self.target("FailureTarget").is_some() || self.target("SuccessCriteriaMet").is_some();
        let suspended = self.tree["spec"]["suspend"] == true;
        let active: Vec<&Arc<Pod>> = self.active().collect();
        if ending || suspended {
            plan.delete = active.iter().take(BURST).map(|pod| doomed(pod)).collect();
            return;
        }
        let left = match self.completions {
            Some(all) => all.saturating_sub(self.succeeded),
            None if self.succeeded > 0 => active.len(),
            None => usize::MAX,
        };
        let wanted = self.parallelism.min(left);
        let mut surplus = self.duplicates(&active);
        if active.len() > wanted {
            let mut ranked = active.clone();
            ranked.sort_by_key(|pod| {
                (!pod.node.is_empty(), pod.phase, pod.ready.is_some(), std::cmp::Reverse(pod.created))
            });
            surplus.extend(ranked.iter().take(active.len() - wanted).map(|pod| doomed(pod)));
        }
        plan.delete.extend(surplus);
        let terminating = if self.tree["spec"]["podReplacementPolicy"] == "Failed" {
            self.pods.iter().filter(|pod| pod.head().deleting && !pod.is_finished()).count()
        } else {
            0
        };
        let missing = wanted.saturating_sub(active.len() + terminating).min(BURST);
        if missing == 0 {
            return;
        }
        if let Some(wait) = self.pause_left() {
            plan.again = Some(plan.again.map_or(wait, |other| other.min(wait)));
            return;
        }
        plan.create = if self.indexed { self.free_indexes(&active, missing) } else { vec![None; missing] };
    }

    /// Pods of an index that has one already, or needs none.
    fn duplicates(&self, active: &[&Arc<Pod>]) -> Vec<(String, String)> {
        if !self.indexed {
            return Vec::new();
        }
        let mut seen = BTreeSet::new();
        let extra = |pod: &&&Arc<Pod>| {
            index_of(pod)
                .is_none_or(|index| self.done.contains(&index) || self.lost.contains(&index) || !seen.insert(index))
        };
        active.iter().filter(extra).map(|pod| doomed(pod)).collect()
    }

    fn free_indexes(&self, active: &[&Arc<Pod>], missing: usize) -> Vec<Option<i64>> {
        let busy: BTreeSet<i64> = active.iter().filter_map(|pod| index_of(pod)).collect();
        let all = 0..i64::try_from(self.completions.unwrap_or(0)).unwrap_or(i64::MAX);
        let free =
            all.filter(|index| !busy.contains(index) && !self.done.contains(index) && !self.lost.contains(index));
        free.take(missing).map(Some).collect()
    }

    /// How long to wait before the next try, after failures.
    fn pause_left(&self) -> Option<Duration> {
        let ends = |phase: Phase| self.pods.iter().filter(move |pod| pod.phase == phase).filter_map(|pod| pod.finished);
        let last_success = ends(Phase::Succeeded).max();
        let after: Vec<Timestamp> =
            ends(Phase::Failed).filter(|end| last_success.is_none_or(|good| *end > good)).collect();
        let last = after.iter().max()?;
        let doubled = FIRST_PAUSE << (after.len() - 1).min(10);
        let due = time::plus(*last, i64::try_from(doubled.min(LONGEST_PAUSE)).unwrap_or(i64::MAX));
        (due > self.now).then(|| time::until(self.now, due))
    }

    /// Writes the counters and, when all pods are gone, how the Job ended.
    fn finish(&mut self, plan: &mut Plan) {
        let deleted = plan.delete.len();
        let active = self.active().count().saturating_sub(deleted) + plan.create.len();
        let ready = self.active().filter(|pod| pod.ready.is_some()).count().saturating_sub(deleted);
        let terminating = self.pods.iter().filter(|pod| pod.head().deleting && !pod.is_finished()).count() + deleted;
        let mut put = |field: &str, count: usize| match count {
            0 => drop(self.status.as_object_mut().and_then(|map| map.remove(field))),
            count => self.status[field] = count.into(),
        };
        put("active", active);
        self.status["ready"] = ready.into();
        self.status["terminating"] = terminating.into();
        if self.indexed {
            self.status["completedIndexes"] = indexes::text(&self.done).into();
            if self.done.is_empty()
                && let Some(map) = self.status.as_object_mut()
            {
                map.remove("completedIndexes");
            }
            if self.succeeded > 0 {
                self.status["succeeded"] = self.succeeded.into();
            }
        }
        let open = self.status["uncountedTerminatedPods"].as_object().is_some_and(|map| !map.is_empty());
        // The end is told when every pod is counted and let go, not with the last count.
        if active > 0 || terminating > 0 || open || !plan.release.is_empty() {
            return;
        }
        if let Some((reason, message)) = self.target("FailureTarget") {
            self.say("Failed", "True", &reason, &message);
            plan.events.push(("Warning", reason_word(&reason), message));
        } else if let Some((reason, message)) = self.target("SuccessCriteriaMet") {
            self.status["completionTime"] = time::text(self.now).into();
            self.say("Complete", "True", &reason, &message);
            plan.events.push(("Normal", "Completed", "Job completed".into()));
        }
    }
}

fn judgement_counts(job: &Value, pod: &Pod) -> bool {
    !matches!(failure_policy::judge(job, pod), Judgement::Ignore)
}

fn reason_word(reason: &str) -> &'static str {
    match reason {
        "BackoffLimitExceeded" => "BackoffLimitExceeded",
        "DeadlineExceeded" => "DeadlineExceeded",
        "PodFailurePolicy" => "PodFailurePolicy",
        "FailedIndexes" => "FailedIndexes",
        _ => "Failed",
    }
}

#[cfg(test)]
#[path = "completion_tests.rs"]
mod tests;
