//! The life of one container, from its last known state to now.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::image::{Pull, digest};
use super::memory::Memory;
use super::program::Program;
use crate::time;

/// Pauses between restarts: the first comes at once, then ten seconds, doubled each time.
const FIRST_PAUSE: u64 = 10;
const LONGEST_PAUSE: u64 = 300;

/// How a container ends that is killed.
const KILLED: i32 = 137;

/// Whether a container is started again when it ends.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Restart {
    /// Always.
    Always,
    /// If it ended with an error.
    OnFailure,
    /// Never.
    Never,
}

impl Restart {
    /// From a pod's or container's policy.
    pub fn of(text: Option<&str>) -> Self {
        match text {
            Some("OnFailure") => Self::OnFailure,
            Some("Never") => Self::Never,
            _ => Self::Always,
        }
    }

    fn applies(self, exit: i64) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => exit != 0,
            Self::Never => false,
        }
    }
}

/// What is needed to know how a container goes on.
pub struct Life<'a> {
    /// Its part of the pod's spec.
    pub spec: &'a Value,
    /// Namespace, name and uid of its pod.
    pub pod: (&'a str, &'a str, &'a str),
    /// Where its image is.
    pub pull: Pull,
    /// What it does.
    pub program: Program,
    /// What earlier runs left behind, if that matters.
    pub memory: Option<&'a Memory>,
    /// The pod.
    pub tree: &'a Value,
    /// Whether it is started again.
    pub restart: Restart,
    /// Time from running to ready; never if absent.
    pub ready_after: Option<Duration>,
    /// When a probe ends it, counted from its start, and which one.
    pub dies_after: Option<(Duration, &'static str)>,
    /// Why it cannot be made, if so.
    pub fault: Option<String>,
    /// When it may start, if it may at all.
    pub start: Option<Timestamp>,
    /// Why it waits until then.
    pub waiting: &'a str,
}

/// Where a container is, and when that changes by itself.
pub struct Now {
    /// Its status.
    pub status: Value,
    /// The next change.
    pub next: Option<Timestamp>,
    /// What happened since the last look: type, reason, message.
    pub events: Vec<(&'static str, &'static str, String)>,
}

impl Life<'_> {
    fn name(&self) -> &str {
        self.spec["name"].as_str().unwrap_or_default()
    }

    /// Leads a container from its last known status to the present.
    pub fn advance(&self, old: Option<&Value>, now: Timestamp) -> Now {
        let mut status = old.cloned().unwrap_or_else(|| self.fresh());
        let mut events = Vec::new();
        // Each round is a transition; a container that ends at once may make several.
        for _ in 0..8 {
            let due = self.due(&status);
            let Some(due) = due else { break };
            if due > now {
                return Now { next: Some(self.next_look(&status, due, now)), status: self.judged(status, now), events };
            }
            if !self.transit(&mut status, now, &mut events) {
                break;
            }
        }
        let next = self.ready_at(&status).filter(|at| *at > now);
        let due = self.due(&status).filter(|at| *at > now);
        Now { next: next.into_iter().chain(due).min(), status: self.judged(status, now), events }
    }

    fn next_look(&self, status: &Value, due: Timestamp, now: Timestamp) -> Timestamp {
        self.ready_at(status).filter(|at| *at > now).map_or(due, |at| at.min(due))
    }

    fn fresh(&self) -> Value {
        json!({"name": self.name(), "image": self.spec["image"], "imageID": "", "lastState": {}, "ready": false,
               "restartCount": 0, "started": false, "state": {"waiting": {"reason": self.waiting}}})
    }

    /// When the present state ends; `None` if only something else can end it.
    fn due(&self, status: &Value) -> Option<Timestamp> {
        let state = &status["state"];
        if let Some(running) = state.get("running") {
            let (length, _) = self.end_of(status)?;
            return later(time::read(&running["startedAt"])?, length);
        }
        if state.get("terminated").is_some() {
            let exit = state["terminated"]["exitCode"].as_i64().unwrap_or_default();
            return self.restart.applies(exit).then(|| time::read(&state["terminated"]["finishedAt"])).flatten();
        }
        match status["lastState"].get("terminated") {
            Some(last) => later(time::read(&last["finishedAt"])?, pause(status)),
            None => self.start,
        }
    }

    /// Goes over to the next state; returns whether there is one.
    fn transit(
        &self,
        status: &mut Value,
        now: Timestamp,
        events: &mut Vec<(&'static str, &'static str, String)>,
    ) -> bool {
        let state = status["state"].clone();
        if state.get("running").is_some() {
            self.end(status, &state["running"], events);
            return true;
        }
        if state.get("terminated").is_some() {
            let restarts = status["restartCount"].as_i64().unwrap_or_default();
            status["lastState"] = json!({"terminated": state["terminated"]});
            if restarts == 0 {
                status["restartCount"] = 1.into();
                self.run(status, now, events);
            } else {
                let seconds = pause(status).as_secs();
                let (namespace, pod, uid) = self.pod;
                let message = format!(
                    "back-off {} restarting failed container={} pod={pod}_{namespace}({uid})",
                    minutes(seconds),
                    self.name()
                );
                events.push((
                    "Warning",
                    "BackOff",
                    format!("Back-off restarting failed container {} in pod {pod}_{namespace}({uid})", self.name()),
                ));
                status["state"] = json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}});
            }
            return true;
        }
        if !self.pulled(status, events) || !self.made(status, events) {
            return false;
        }
        if status["lastState"].get("terminated").is_some() {
            let restarts = status["restartCount"].as_i64().unwrap_or_default();
            status["restartCount"] = (restarts + 1).into();
        }
        self.run(status, now, events);
        true
    }

    fn pulled(&self, status: &mut Value, events: &mut Vec<(&'static str, &'static str, String)>) -> bool {
        let image = self.spec["image"].as_str().unwrap_or_default();
        match &self.pull {
            Pull::Done(_) => true,
            Pull::Failed(why) => {
                if status["state"]["waiting"]["reason"] != "ImagePullBackOff" {
                    events.push(("Warning", "Failed", format!("Failed to pull image {image:?}: {why}")));
                    events.push(("Warning", "Failed", "Error: ErrImagePull".into()));
                    events.push(("Normal", "BackOff", format!("Back-off pulling image {image:?}")));
                }
                let message = format!("Back-off pulling image {image:?}: ErrImagePull: {why}");
                status["state"] = json!({"waiting": {"reason": "ImagePullBackOff", "message": message}});
                false
            }
            Pull::Invalid(why) => {
                if status["state"]["waiting"]["reason"] != "InvalidImageName" {
                    events.push(("Warning", "InspectFailed", why.clone()));
                    events.push(("Warning", "Failed", "Error: InvalidImageName".into()));
                }
                status["state"] = json!({"waiting": {"reason": "InvalidImageName", "message": why}});
                false
            }
        }
    }

    /// Whether it can be made as it is described.
    fn made(&self, status: &mut Value, events: &mut Vec<(&'static str, &'static str, String)>) -> bool {
        let Some(why) = &self.fault else { return true };
        if status["state"]["waiting"]["reason"] != "CreateContainerConfigError" {
            events.push(("Warning", "Failed", format!("Error: {why}")));
        }
        status["state"] = json!({"waiting": {"reason": "CreateContainerConfigError", "message": why}});
        false
    }

    fn run(&self, status: &mut Value, now: Timestamp, events: &mut Vec<(&'static str, &'static str, String)>) {
        let image = self.spec["image"].as_str().unwrap_or_default();
        if let Pull::Done(id) = &self.pull {
            status["imageID"] = id.clone().into();
        }
        status["image"] = image.into();
        let (_, _, uid) = self.pod;
        status["containerID"] =
            format!("containerd://{}", digest(&format!("{uid}/{}/{}", self.name(), status["restartCount"]))).into();
        status["state"] = json!({"running": {"startedAt": time::text(now)}});
        events.push(("Normal", "Pulled", format!("Container image {image:?} already present on machine")));
        events.push(("Normal", "Created", format!("Container created: {}", self.name())));
        events.push(("Normal", "Started", format!("Container started: {}", self.name())));
    }

    fn end(&self, status: &mut Value, running: &Value, events: &mut Vec<(&'static str, &'static str, String)>) {
        let (length, exit) = self.end_of(status).unwrap_or_default();
        if let Some((_, probe)) = self.dies_after.filter(|(at, _)| *at == length && exit == KILLED) {
            let name = self.name();
            events.push(("Warning", "Unhealthy", format!("{probe} probe failed: the container does not answer")));
            let probe = probe.to_lowercase();
            events.push(("Normal", "Killing", format!("Container {name} failed {probe} probe, will be restarted")));
        }
        let begin = time::read(&running["startedAt"]).unwrap_or_default();
        let finish = later(begin, length).unwrap_or(begin);
        let message = self.program_of(status).message;
        status["state"] = terminated(exit, &running["startedAt"], finish, &status["containerID"]);
        if !message.is_empty() {
            status["state"]["terminated"]["message"] = message.into();
        }
    }

    /// What the present run does.
    fn program_of(&self, status: &Value) -> Program {
        let remembered = self.memory.and_then(|memory| memory.program(self.tree, self.spec, status));
        remembered.unwrap_or_else(|| self.program.clone())
    }

    /// When and how the present run ends.
    fn end_of(&self, status: &Value) -> Option<(Duration, i32)> {
        let own = match self.memory.and_then(|memory| memory.program(self.tree, self.spec, status)) {
            Some(program) => program.end,
            None => self.program.end,
        };
        own.into_iter().chain(self.dies_after.map(|(at, _)| (at, KILLED))).min_by_key(|(at, _)| *at)
    }

    fn ready_at(&self, status: &Value) -> Option<Timestamp> {
        later(time::read(&status["state"]["running"]["startedAt"])?, self.ready_after?)
    }

    /// Says whether it is started and ready.
    fn judged(&self, mut status: Value, now: Timestamp) -> Value {
        status["started"] = status["state"].get("running").is_some().into();
        status["ready"] = self.ready_at(&status).is_some_and(|at| at <= now).into();
        status
    }
}

/// A state of having ended.
pub fn terminated(exit: i32, started: &Value, finished: Timestamp, id: &Value) -> Value {
    let reason = if exit == 0 { "Completed" } else { "Error" };
    json!({"terminated": {"exitCode": exit, "reason": reason, "startedAt": started,
                          "finishedAt": time::text(finished), "containerID": id}})
}

fn later(at: Timestamp, by: Duration) -> Option<Timestamp> {
    at.checked_add(by).ok()
}

/// How long a container waits before it is started again.
fn pause(status: &Value) -> Duration {
    let restarts = status["restartCount"].as_u64().unwrap_or_default();
    let doubled = FIRST_PAUSE << restarts.saturating_sub(1).min(6);
    Duration::from_secs(doubled.min(LONGEST_PAUSE))
}

fn minutes(seconds: u64) -> String {
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}
