//! What a Deployment says about itself.

use std::time::Duration;

use serde_json::{Value, json};

use super::rollout::{Rollout, name, number, replicas};
use crate::condition::{self, Says, Stamps};
use crate::time;

const PROGRESSING: &str = "Progressing";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const COMPLETE: &str = "NewReplicaSetAvailable";
const RESUMED: &str = "DeploymentResumed";

/// The counters of the status, without conditions.
pub(super) fn counts(rollout: &Rollout<'_>) -> Value {
    let sum = |field: &str| -> i64 { rollout.all().map(|set| number(set, "status", field)).sum() };
    let updated = rollout.new.as_ref().map_or(0, |set| number(set, "status", "replicas"));
    let available = sum("availableReplicas");
    let missing = (rollout.all().map(replicas).sum::<i64>() - available).max(0);
    let mut status = json!({"observedGeneration": rollout.deployment["metadata"]["generation"]});
    let fields = [
        ("replicas", sum("replicas")),
        ("updatedReplicas", updated),
        ("readyReplicas", sum("readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", missing),
    ];
    for (field, count) in fields.into_iter().filter(|(_, count)| *count > 0) {
        status[field] = count.into();
    }
    // A set that has not said yet how many of its pods go leaves the sum unknown.
    let going: Option<Vec<i64>> = rollout.all().map(|set| set["status"]["terminatingReplicas"].as_i64()).collect();
    if let Some(going) = going {
        status["terminatingReplicas"] = going.iter().sum::<i64>().into();
    }
    if let Some(count) = rollout.deployment["status"].get("collisionCount") {
        status["collisionCount"] = count.clone();
    }
    status
}

fn has_deadline(rollout: &Rollout<'_>) -> Option<i64> {
    rollout.deployment["spec"]["progressDeadlineSeconds"].as_i64().filter(|seconds| *seconds < i64::from(i32::MAX))
}

fn say(rollout: &mut Rollout<'_>, kind: &str, status: &str, reason: &str, message: &str) {
    let now = time::text(rollout.now);
    condition::set(&mut rollout.conditions, Says { kind, status, reason, message }, Stamps::Update, &now);
}

/// A pause and its end are told; returns whether it ended just now, which is told before anything is done.
pub(super) fn judge_pause(rollout: &mut Rollout<'_>) -> bool {
    if has_deadline(rollout).is_none() {
        return false;
    }
    let reason = condition::get(&rollout.conditions, PROGRESSING)
        .and_then(|c| c["reason"].as_str())
        .unwrap_or_default()
        .to_owned();
    if reason == TIMED_OUT {
        return false;
    }
    let paused = rollout.deployment["spec"]["paused"] == true;
    if paused && reason != "DeploymentPaused" {
        say(rollout, PROGRESSING, "Unknown", "DeploymentPaused", "Deployment is paused");
    } else if !paused && reason == "DeploymentPaused" {
        say(rollout, PROGRESSING, "Unknown", RESUMED, "Deployment is resumed");
        return true;
    }
    false
}

/// The set of the template was there already.
pub(super) fn found(rollout: &mut Rollout<'_>, set: &str) {
    if has_deadline(rollout).is_some() && condition::get(&rollout.conditions, PROGRESSING).is_none() {
        say(rollout, PROGRESSING, "True", "FoundNewReplicaSet", &format!("Found new replica set {set:?}"));
    }
}

/// The set of the template was made. After a pause the original does not say so.
pub(super) fn created(rollout: &mut Rollout<'_>, set: &str) {
    let resumed = condition::get(&rollout.conditions, PROGRESSING).is_some_and(|said| said["reason"] == RESUMED);
    if has_deadline(rollout).is_some() && !resumed {
        say(rollout, PROGRESSING, "True", "NewReplicaSetCreated", &format!("Created new replica set {set:?}"));
    }
}

/// Whether everything is as wanted.
pub(super) fn is_complete(rollout: &Rollout<'_>, counts: &Value) -> bool {
    let wanted = rollout.wanted();
    let count = |field: &str| counts[field].as_i64().unwrap_or_default();
    count("updatedReplicas") == wanted && count("replicas") == wanted && count("availableReplicas") == wanted
}

/// Whether something moved since the last look.
fn is_progressing(rollout: &Rollout<'_>, counts: &Value) -> bool {
    let old = &rollout.deployment["status"];
    let was = |field: &str| old[field].as_i64().unwrap_or_default();
    let is = |field: &str| counts[field].as_i64().unwrap_or_default();
    is("updatedReplicas") > was("updatedReplicas")
        || is("replicas") - is("updatedReplicas") < was("replicas") - was("updatedReplicas")
        || is("readyReplicas") > was("readyReplicas")
        || is("availableReplicas") > was("availableReplicas")
}

/// Says whether the rollout gets on; returns when to look again for its deadline.
pub(super) fn judge_progress(rollout: &mut Rollout<'_>, counts: &Value) -> Option<Duration> {
    let Some(deadline) = has_deadline(rollout) else {
        condition::remove(&mut rollout.conditions, PROGRESSING);
        return None;
    };
    let current = condition::get(&rollout.conditions, PROGRESSING);
    let reason = current.and_then(|c| c["reason"].as_str()).unwrap_or_default().to_owned();
    let since = current.and_then(|c| time::read(&c["lastUpdateTime"]));
    let done = counts["replicas"] == counts["updatedReplicas"] && reason == COMPLETE;
    if done || rollout.created {
        return None;
    }
    let about = match &rollout.new {
        Some(set) => format!("ReplicaSet {:?}", name(set)),
        None => format!("Deployment {:?}", name(rollout.deployment)),
    };
    if is_complete(rollout, counts) {
        say(rollout, PROGRESSING, "True", COMPLETE, &format!("{about} has successfully progressed."));
        return None;
    }
    if is_progressing(rollout, counts) {
        let message = format!("{about} is progressing.");
        // The moment of the last step moves even when the words stay.
        let now = time::text(rollout.now);
        say(rollout, PROGRESSING, "True", "ReplicaSetUpdated", &message);
        for condition in rollout.conditions.as_array_mut().into_iter().flatten().filter(|c| c["type"] == PROGRESSING) {
            condition["lastUpdateTime"] = now.clone().into();
        }
        return Some(Duration::from_secs(deadline.unsigned_abs() + 1));
    }
    if reason == TIMED_OUT {
        return None;
    }
    let due = time::plus(since?, deadline);
    if rollout.now >= due && reason != COMPLETE {
        say(rollout, PROGRESSING, "False", TIMED_OUT, &format!("{about} has timed out progressing."));
        return None;
    }
    Some(time::until(rollout.now, due) + Duration::from_secs(1))
}

/// Says whether enough pods serve.
pub(super) fn judge_available(rollout: &mut Rollout<'_>, counts: &Value) {
    let least = rollout.wanted() - rollout.max_unavailable();
    if counts["availableReplicas"].as_i64().unwrap_or_default() >= least {
        say(rollout, "Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.");
    } else {
        say(
            rollout,
            "Available",
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        );
    }
}

/// Says what a set says that cannot make its pods; the newest set's word counts first.
pub(super) fn judge_failure(rollout: &mut Rollout<'_>) {
    const FAILURE: &str = "ReplicaFailure";
    let sets = rollout.new.iter().chain(&rollout.old);
    let found = sets.into_iter().find_map(|set| condition::get(&set["status"]["conditions"], FAILURE).cloned());
    let Some(mut found) = found else { return condition::remove(&mut rollout.conditions, FAILURE) };
    found["lastUpdateTime"] = found["lastTransitionTime"].clone();
    if condition::get(&rollout.conditions, FAILURE) != Some(&found) {
        condition::remove(&mut rollout.conditions, FAILURE);
        if let Some(list) = rollout.conditions.as_array_mut() {
            list.push(found);
        }
    }
}
