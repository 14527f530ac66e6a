//! The next step of a pod's life: a pure function of the pod and the present moment.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::container::{Life, Now, Restart, terminated};
use super::image::{Pull, pull};
use super::memory::Memory;
use super::probe;
use super::program::program_of;
use super::status::{conditions, phase};
use super::subpath;
use super::wishes::Wishes;
use crate::condition;
use crate::time;

/// How long containers take to stop that do not say so. Deletions are noted to the second, so it is half a second at least.
const STOP_TIME: Duration = Duration::from_millis(1500);

/// What surrounds a pod.
pub struct Around<'a> {
    /// The present moment.
    pub now: Timestamp,
    /// Address of the pod.
    pub ip: &'a str,
    /// Address of its node.
    pub host_ip: &'a str,
    /// Whether its containers crash, because a fault was asked for.
    pub crashes: bool,
    /// What containers left behind on volumes, if that is remembered.
    pub memory: Option<&'a Memory>,
    /// Names of containers whose readiness probes fail.
    pub unready: &'a [String],
}

/// What is to be done for a pod.
#[derive(Debug, Default)]
pub struct Step {
    /// Its new status, if there is one.
    pub status: Option<Value>,
    /// Whether it is gone.
    pub remove: bool,
    /// When to look again.
    pub again: Option<Duration>,
    /// What happened: type, reason, message.
    pub events: Vec<(&'static str, &'static str, String)>,
}

/// Decides the next step of a pod on a node.
pub fn step(pod: &Value, around: &Around<'_>) -> Step {
    let wishes = Wishes::of(pod);
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return stop(pod, &wishes, around);
    }
    if is_finished(&pod["status"]) {
        return Step::default();
    }
    if let Some(step) = overdue(pod, around) {
        return step;
    }
    live(pod, &wishes, around)
}

fn is_finished(status: &Value) -> bool {
    matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// A pod that is to go stops its containers, then disappears.
fn stop(pod: &Value, wishes: &Wishes, around: &Around<'_>) -> Step {
    let meta = &pod["metadata"];
    let grace = meta["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    let asked = time::read(&meta["deletionTimestamp"]).map(|at| time::plus(at, -grace)).unwrap_or(around.now);
    let limit = Duration::from_secs(grace.unsigned_abs());
    let due = asked.checked_add(wishes.stop_delay.unwrap_or(STOP_TIME).min(limit)).unwrap_or(asked);
    if due > around.now && !is_finished(&pod["status"]) {
        return Step { again: Some(time::until(around.now, due)), ..Step::default() };
    }
    let held = meta["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    // Who holds a pod by a finalizer wants to see how it ended.
    let status = (held && !is_finished(&pod["status"])).then(|| ended(pod, around, "Failed", 137));
    Step { status, remove: true, ..Step::default() }
}

/// The status of a pod whose containers were stopped.
fn ended(pod: &Value, around: &Around<'_>, phase: &str, exit: i32) -> Value {
    let mut status = pod["status"].clone();
    status["phase"] = phase.into();
    for container in status["containerStatuses"].as_array_mut().into_iter().flatten() {
        let started = container["state"]["running"]["startedAt"].clone();
        if container["state"].get("terminated").is_none() {
            let id = container["containerID"].clone();
            container["state"] = terminated(exit, &started, around.now, &id);
            if started.is_null()
                && let Some(map) = container["state"]["terminated"].as_object_mut()
            {
                map.remove("startedAt");
                map.remove("containerID");
            }
        }
        container["ready"] = false.into();
        container["started"] = false.into();
    }
    let list = conditions(pod, &status, phase, &time::text(around.now));
    status["conditions"] = list;
    status
}

/// A pod that may run only for some time is stopped when it is over.
fn overdue(pod: &Value, around: &Around<'_>) -> Option<Step> {
    let seconds = pod["spec"]["activeDeadlineSeconds"].as_i64()?;
    let due = time::plus(time::read(&pod["status"]["startTime"])?, seconds);
    if due > around.now {
        return None;
    }
    let mut status = ended(pod, around, "Failed", 137);
    status["reason"] = "DeadlineExceeded".into();
    status["message"] = "Pod was active on the node longer than the specified deadline".into();
    Some(Step { status: Some(status), ..Step::default() })
}

fn live(pod: &Value, wishes: &Wishes, around: &Around<'_>) -> Step {
    let mut status = pod["status"].clone();
    let scheduled =
        condition::get(&status["conditions"], "PodScheduled").and_then(|c| time::read(&c["lastTransitionTime"]));
    // A clock that goes behind must not keep a pod waiting for a moment that has passed elsewhere.
    let begin = time::read(&status["startTime"]).or(scheduled).unwrap_or(around.now).min(around.now);
    let start = begin.checked_add(wishes.start_delay).unwrap_or(begin);
    // A node that was promised is of no interest once there is one.
    if let Some(map) = status.as_object_mut() {
        map.remove("nominatedNodeName");
    }
    status["startTime"] = pod["status"].get("startTime").cloned().unwrap_or_else(|| time::text(begin).into());
    for (single, list, key, address) in
        [("hostIP", "hostIPs", "ip", around.host_ip), ("podIP", "podIPs", "ip", around.ip)]
    {
        if !address.is_empty() && (single == "hostIP" || start <= around.now) {
            status[single] = address.into();
            status[list] = json!([{key: address}]);
        }
    }
    let mut events = Vec::new();
    let mut next: Vec<Timestamp> = Vec::new();
    let ready_to_run = initialise(pod, wishes, around, start, &mut status, &mut next, &mut events);
    let mut list = Vec::new();
    for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
        let waiting = if ready_to_run.is_none() && has_init(pod) { "PodInitializing" } else { "ContainerCreating" };
        let life = life(pod, container, wishes, around, ready_to_run, waiting, None);
        list.push(advance(&life, &pod["status"]["containerStatuses"], around.now, &mut next, &mut events));
    }
    status["containerStatuses"] = list.into();
    let guests = guests(pod, wishes, around, ready_to_run, &mut next, &mut events);
    if !guests.is_empty() {
        status["ephemeralContainerStatuses"] = guests.into();
    }
    let phase = phase(pod, &status);
    status["phase"] = phase.into();
    status["observedGeneration"] = pod["metadata"]["generation"].clone();
    let list = conditions(pod, &status, phase, &time::text(around.now));
    status["conditions"] = list;
    if let Some(seconds) = pod["spec"]["activeDeadlineSeconds"].as_i64() {
        next.push(time::plus(begin, seconds));
    }
    let again = next.into_iter().filter(|at| *at > around.now).min().map(|at| time::until(around.now, at));
    Step { status: Some(status), remove: false, again, events }
}

/// Containers somebody put into a pod to look at it: they run once the pod does, and are never restarted.
fn guests(
    pod: &Value,
    wishes: &Wishes,
    around: &Around<'_>,
    start: Option<Timestamp>,
    next: &mut Vec<Timestamp>,
    events: &mut Vec<(&'static str, &'static str, String)>,
) -> Vec<Value> {
    let containers = pod["spec"]["ephemeralContainers"].as_array().into_iter().flatten();
    containers
        .map(|container| {
            // They came later than the pod; before their first look they were not there.
            let since = start.map(|at| at.max(around.now));
            let life = life(pod, container, wishes, around, since, "ContainerCreating", Some(Restart::Never));
            let mut one = advance(&life, &pod["status"]["ephemeralContainerStatuses"], around.now, next, events);
            one["ready"] = false.into();
            one
        })
        .collect()
}

fn has_init(pod: &Value) -> bool {
    pod["spec"]["initContainers"].as_array().is_some_and(|list| !list.is_empty())
}

/// Runs init containers one after another; returns when the others may start, if they may.
fn initialise(
    pod: &Value,
    wishes: &Wishes,
    around: &Around<'_>,
    start: Timestamp,
    status: &mut Value,
    next: &mut Vec<Timestamp>,
    events: &mut Vec<(&'static str, &'static str, String)>,
) -> Option<Timestamp> {
    let mut free = Some(start);
    let mut list = Vec::new();
    for container in pod["spec"]["initContainers"].as_array().into_iter().flatten() {
        let stays = container["restartPolicy"] == "Always";
        let restart = match (stays, Restart::of(pod["spec"]["restartPolicy"].as_str())) {
            (true, _) => Restart::Always,
            (false, Restart::Never) => Restart::Never,
            // One that ended well is not started again.
            (false, _) => Restart::OnFailure,
        };
        let mut life = life(pod, container, wishes, around, free, "PodInitializing", Some(restart));
        if !stays && life.program.end.is_none() && !runs_by_command(container) {
            life.program.end = Some((Duration::ZERO, 0));
        }
        let mut one = advance(&life, &pod["status"]["initContainerStatuses"], around.now, next, events);
        let done = one["state"]["terminated"]["exitCode"] == 0;
        if !stays {
            one["ready"] = done.into();
        }
        free = if stays && one["state"].get("running").is_some() || done { free } else { None };
        list.push(one);
    }
    if !list.is_empty() {
        status["initContainerStatuses"] = list.into();
    }
    free
}

fn runs_by_command(container: &Value) -> bool {
    container["command"].as_array().is_some_and(|list| !list.is_empty())
}

fn advance(
    life: &Life<'_>,
    known: &Value,
    now: Timestamp,
    next: &mut Vec<Timestamp>,
    events: &mut Vec<(&'static str, &'static str, String)>,
) -> Value {
    let old = known.as_array().and_then(|list| list.iter().find(|status| status["name"] == life.spec["name"]));
    let Now { status, next: due, events: more } = life.advance(old, now);
    next.extend(due);
    events.extend(more);
    status
}

fn life<'a>(
    pod: &'a Value,
    container: &'a Value,
    wishes: &Wishes,
    around: &Around<'a>,
    start: Option<Timestamp>,
    waiting: &'a str,
    restart: Option<Restart>,
) -> Life<'a> {
    let init = restart.is_some();
    let unready = around.unready.iter().any(|name| container["name"] == name.as_str());
    let meta = &pod["metadata"];
    let text = |field: &str| meta[field].as_str().unwrap_or_default();
    let image = container["image"].as_str().unwrap_or_default();
    let verdict = probe::judge(pod, container);
    let ready = wishes.ready_delay.or(verdict.ready).filter(|_| !wishes.never_ready && !unready);
    let plain = Wishes::default();
    let wishes_here = if init { &plain } else { wishes };
    Life {
        spec: container,
        pod: (text("namespace"), text("name"), text("uid")),
        pull: if wishes.pull_fails { Pull::Failed(format!("{image}: not found")) } else { pull(image) },
        program: program_of(pod, container, wishes_here, around.crashes && !init, around.now),
        memory: around.memory.filter(|_| wishes_here.run_for.is_none() && !around.crashes),
        tree: pod,
        restart: restart.unwrap_or_else(|| Restart::of(pod["spec"]["restartPolicy"].as_str())),
        ready_after: if init { Some(Duration::ZERO) } else { ready },
        dies_after: verdict.dies,
        fault: subpath::fault(container),
        start,
        waiting,
    }
}

#[cfg(test)]
#[path = "stage_tests.rs"]
mod tests;
