//! Controllers that run pods.

use serde_json::Value;

use super::view::{NONE, UNSET, View, seconds};
use super::{AGE, CONTAINERS, IMAGES, NAME, Printer, SELECTOR, boolean, integer, text};
use crate::strategy as tree;

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "Deployment" => &DEPLOYMENT,
        "ReplicaSet" => &REPLICA_SET,
        "ReplicationController" => &CONTROLLER,
        "StatefulSet" => &STATEFUL_SET,
        "DaemonSet" => &DAEMON_SET,
        "Job" => &JOB,
        "CronJob" => &CRON_JOB,
        "ControllerRevision" => &REVISION,
        _ => return None,
    })
}

const TEMPLATE: &str = "spec.template.spec.containers";

const DEPLOYMENT: Printer = Printer {
    columns: &[
        NAME,
        text("Ready", "How many pods are ready, out of how many wanted."),
        text("Up-to-date", "Pods made from the newest template."),
        text("Available", "Pods that have been ready long enough."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |view| {
        let [names, images] = view.containers(TEMPLATE);
        vec![
            view.name(),
            ready(view),
            view.int("status.updatedReplicas").into(),
            view.int("status.availableReplicas").into(),
            view.age(),
            names,
            images,
            view.raw_selector("spec.selector").into(),
        ]
    },
};

fn ready(view: &View) -> Value {
    format!("{}/{}", view.int("status.readyReplicas"), view.int("spec.replicas")).into()
}

const REPLICA_SET: Printer =
    Printer { columns: CONTROLLER.columns, cells: |view| controller(view, view.selector("spec.selector")) };

const CONTROLLER: Printer = Printer {
    columns: &[
        NAME,
        integer("Desired", "Pods wanted."),
        integer("Current", "Pods that exist."),
        integer("Ready", "Pods that are ready."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |view| controller(view, view.labels("spec.selector")),
};

fn controller(view: &View, selector: String) -> Vec<Value> {
    let [names, images] = view.containers(TEMPLATE);
    vec![
        view.name(),
        view.int("spec.replicas").into(),
        view.int("status.replicas").into(),
        view.int("status.readyReplicas").into(),
        view.age(),
        names,
        images,
        selector.into(),
    ]
}

const STATEFUL_SET: Printer = Printer {
    columns: &[NAME, text("Ready", "How many pods are ready, out of how many wanted."), AGE, CONTAINERS, IMAGES],
    cells: |view| {
        let [names, images] = view.containers(TEMPLATE);
        vec![view.name(), ready(view), view.age(), names, images]
    },
};

const DAEMON_SET: Printer = Printer {
    columns: &[
        NAME,
        integer("Desired", "Nodes that should run the pod."),
        integer("Current", "Nodes that run at least one such pod."),
        integer("Ready", "Nodes whose pod is ready."),
        integer("Up-to-date", "Nodes whose pod is made from the newest template."),
        integer("Available", "Nodes whose pod has been ready long enough."),
        text("Node Selector", "Labels of the nodes that run the pod."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |view| {
        let [names, images] = view.containers(TEMPLATE);
        vec![
            view.name(),
            view.int("status.desiredNumberScheduled").into(),
            view.int("status.currentNumberScheduled").into(),
            view.int("status.numberReady").into(),
            view.int("status.updatedNumberScheduled").into(),
            view.int("status.numberAvailable").into(),
            view.labels("spec.template.spec.nodeSelector").into(),
            view.age(),
            names,
            images,
            view.selector("spec.selector").into(),
        ]
    },
};

const JOB: Printer = Printer {
    columns: &[
        NAME,
        text("Status", "State of the job."),
        text("Completions", "How many pods succeeded, out of how many must."),
        text("Duration", "How long the job has run."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: job,
};

fn job(view: &View) -> Vec<Value> {
    let succeeded = view.int("status.succeeded");
    let parallel = view.int("spec.parallelism");
    let completions = match tree::int(view.object, "spec.completions") {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
        None => format!("{succeeded}/1"),
    };
    let end = seconds(view.text("status.completionTime")).unwrap_or(view.now);
    let duration = seconds(view.text("status.startTime")).map(|start| super::age(end - start)).unwrap_or_default();
    let status = if view.holds("Complete") {
        "Complete"
    } else if view.holds("Failed") {
        "Failed"
    } else if view.has("metadata.deletionTimestamp") {
        "Terminating"
    } else {
        let known = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
        known.into_iter().find(|kind| view.holds(kind)).unwrap_or("Running")
    };
    let [names, images] = view.containers(TEMPLATE);
    vec![
        view.name(),
        status.into(),
        completions.into(),
        duration.into(),
        view.age(),
        names,
        images,
        view.selector("spec.selector").into(),
    ]
}

const CRON_JOB: Printer = Printer {
    columns: &[
        NAME,
        text("Schedule", "When jobs are started, in cron's notation."),
        text("Timezone", "Time zone of the schedule."),
        boolean("Suspend", "Whether no jobs are started for now."),
        integer("Active", "Jobs that run now."),
        text("Last Schedule", "Time since a job was last started."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |view| {
        let last =
            if view.has("status.lastScheduleTime") { view.since("status.lastScheduleTime") } else { NONE.to_owned() };
        let suspended = match view.at("spec.suspend").as_bool() {
            Some(true) => "True",
            Some(false) => "False",
            None => UNSET,
        };
        let [names, images] = view.containers("spec.jobTemplate.spec.template.spec.containers");
        vec![
            view.name(),
            view.text("spec.schedule").into(),
            view.text_or("spec.timeZone", NONE),
            suspended.into(),
            view.items("status.active").len().into(),
            last.into(),
            view.age(),
            names,
            images,
            view.selector("spec.jobTemplate.spec.selector").into(),
        ]
    },
};

const REVISION: Printer = Printer {
    columns: &[
        NAME,
        text("Controller", "Object whose template this was."),
        text("Revision", "Number of the revision."),
        AGE,
    ],
    cells: |view| {
        let owner = view.items("metadata.ownerReferences").iter().find(|owner| tree::flag(owner, "controller"));
        let controller = owner.map_or_else(
            || NONE.to_owned(),
            |owner| {
                let group = tree::text(owner, "apiVersion").split_once('/').map(|(group, _)| format!(".{group}"));
                let kind = format!("{}{}", tree::text(owner, "kind"), group.unwrap_or_default()).to_lowercase();
                format!("{kind}/{}", tree::text(owner, "name"))
            },
        );
        vec![view.name(), controller.into(), view.int("revision").into(), view.age()]
    },
};
