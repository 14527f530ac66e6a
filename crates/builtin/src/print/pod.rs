//! Pods and pod templates.

use serde_json::Value;

use super::view::{NONE, View, seconds};
use super::{AGE, NAME, Printer, text};
use crate::strategy as tree;

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    match kind {
        "Pod" => Some(&POD),
        "PodTemplate" => Some(&TEMPLATE),
        _ => None,
    }
}

const POD: Printer = Printer {
    columns: &[
        NAME,
        text("Ready", "How many containers are ready, out of how many."),
        text("Status", "State of the pod, with the reason where something is wrong."),
        text("Restarts", "How often containers were restarted, and when last."),
        AGE,
        text("IP", "Address of the pod.").wide(),
        text("Node", "Node the pod runs on.").wide(),
        text("Nominated Node", "Node the pod waits for while others are evicted.").wide(),
        text("Readiness Gates", "How many extra conditions for readiness hold, out of how many.").wide(),
    ],
    cells: pod,
};

const TEMPLATE: Printer = Printer {
    columns: &[
        NAME,
        text("Containers", "Names of the containers in the template."),
        text("Images", "Images of the containers in the template."),
        text("Pod Labels", "Labels of pods made from the template."),
    ],
    cells: |view| {
        let [names, images] = view.containers("template.spec.containers");
        vec![view.name(), names, images, view.labels("template.metadata.labels").into()]
    },
};

/// What is counted while going through the containers.
struct Tally {
    reason: String,
    ready: usize,
    restarts: i64,
    last: Option<i64>,
}

impl Tally {
    fn count(&mut self, status: &Value) {
        self.restarts += tree::int(status, "restartCount").unwrap_or(0);
        let finished = seconds(tree::text(status, "lastState.terminated.finishedAt"));
        self.last = self.last.max(finished);
    }
}

fn pod(view: &View) -> Vec<Value> {
    let phase = view.text("status.phase");
    let own = view.text("status.reason");
    let gated = view.items("status.conditions").iter().any(|condition| {
        tree::text(condition, "type") == "PodScheduled" && tree::text(condition, "reason") == "SchedulingGated"
    });
    let reason = if gated {
        "SchedulingGated"
    } else if own.is_empty() {
        phase
    } else {
        own
    };
    let mut tally = Tally { reason: reason.to_owned(), ready: 0, restarts: 0, last: None };
    let mut sidecars = Tally { reason: String::new(), ready: 0, restarts: 0, last: None };
    let waiting = init_containers(view, &mut tally, &mut sidecars);
    if !waiting || view.holds("Initialized") {
        tally.restarts = sidecars.restarts;
        tally.last = sidecars.last;
        containers(view, &mut tally);
    }
    if view.has("metadata.deletionTimestamp") {
        if own == "NodeLost" {
            "Unknown".clone_into(&mut tally.reason);
        } else if !matches!(phase, "Failed" | "Succeeded") {
            "Terminating".clone_into(&mut tally.reason);
        }
    }
    let restarts = match tally.last {
        Some(last) if tally.restarts != 0 => format!("{} ({} ago)", tally.restarts, super::age(view.now - last)),
        _ => tally.restarts.to_string(),
    };
    let total = view.items("spec.containers").len()
        + view.items("spec.initContainers").iter().filter(|each| sidecar(each)).count();
    vec![
        view.name(),
        format!("{}/{total}", tally.ready).into(),
        tally.reason.into(),
        restarts.into(),
        view.age(),
        view.items("status.podIPs")
            .first()
            .map(|first| tree::text(first, "ip"))
            .filter(|ip| !ip.is_empty())
            .unwrap_or(NONE)
            .into(),
        view.text_or("spec.nodeName", NONE),
        view.text_or("status.nominatedNodeName", NONE),
        gates(view).into(),
    ]
}

fn sidecar(container: &Value) -> bool {
    tree::text(container, "restartPolicy") == "Always"
}

/// Goes through the init containers; true while one of them holds the pod up.
fn init_containers(view: &View, tally: &mut Tally, sidecars: &mut Tally) -> bool {
    let specs = view.items("spec.initContainers");
    for (index, status) in view.items("status.initContainerStatuses").iter().enumerate() {
        tally.count(status);
        let beside = specs.iter().any(|spec| sidecar(spec) && tree::text(spec, "name") == tree::text(status, "name"));
        if beside {
            sidecars.count(status);
        }
        let ended = tree::has(status, "state.terminated");
        let waiting = tree::text(status, "state.waiting.reason");
        if ended && tree::int(status, "state.terminated.exitCode").unwrap_or(0) == 0 {
            continue;
        }
        if beside && tree::flag(status, "started") {
            tally.ready += usize::from(tree::flag(status, "ready"));
            continue;
        }
        tally.reason = if ended {
            format!("Init:{}", end_reason(status))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", specs.len())
        };
        return true;
    }
    false
}

fn end_reason(status: &Value) -> String {
    let reason = tree::text(status, "state.terminated.reason");
    let signal = tree::int(status, "state.terminated.signal").unwrap_or(0);
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", tree::int(status, "state.terminated.exitCode").unwrap_or(0))
    }
}

fn containers(view: &View, tally: &mut Tally) {
    let mut running = false;
    let mut failure = String::new();
    for status in view.items("status.containerStatuses").iter().rev() {
        tally.count(status);
        let waiting = tree::text(status, "state.waiting.reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut tally.reason);
        } else if tree::has(status, "state.terminated") {
            tally.reason = end_reason(status);
            if tree::int(status, "state.terminated.exitCode").unwrap_or(0) != 0 {
                failure.clone_from(&tally.reason);
            }
        } else if tree::flag(status, "ready") && tree::has(status, "state.running") {
            running = true;
            tally.ready += 1;
        }
    }
    if tally.reason == "Completed" {
        if running && view.holds("Ready") {
            "Running".clone_into(&mut tally.reason);
        } else if !failure.is_empty() {
            tally.reason = failure;
        } else if running {
            "NotReady".clone_into(&mut tally.reason);
        }
    }
}

fn gates(view: &View) -> String {
    let gates = view.items("spec.readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = gates.iter().filter(|gate| view.holds(tree::text(gate, "conditionType"))).count();
    format!("{open}/{}", gates.len())
}
