//! Nodes, classes of pods, and devices.

use std::collections::BTreeSet;

use serde_json::Value;

use super::view::{NONE, UNKNOWN, View};
use super::{AGE, NAME, NAME_AND_AGE, Printer, boolean, integer, text};
use crate::strategy as tree;

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "Node" => &NODE,
        "RuntimeClass" => &RUNTIME,
        "PriorityClass" => &PRIORITY,
        "DeviceClass" | "ResourceClaimTemplate" | "Workload" => &NAME_AND_AGE,
        "ResourceClaim" => &CLAIM,
        "ResourceSlice" => &SLICE,
        "DeviceTaintRule" => &TAINT,
        _ => return None,
    })
}

const NODE: Printer = Printer {
    columns: &[
        NAME,
        text("Status", "Whether the node is ready, and whether pods may be placed on it."),
        text("Roles", "What the node is for."),
        AGE,
        text("Version", "Version of its kubelet."),
        text("Internal-IP", "Address inside the cluster.").wide(),
        text("External-IP", "Address outside the cluster.").wide(),
        text("OS-Image", "Operating system.").wide(),
        text("Kernel-Version", "Version of the kernel.").wide(),
        text("Container-Runtime", "Program that runs the containers.").wide(),
    ],
    cells: |view| {
        let mut status = match view.condition("Ready") {
            Some(_) if view.holds("Ready") => "Ready".to_owned(),
            Some(_) => "NotReady".to_owned(),
            None => "Unknown".to_owned(),
        };
        if view.flag("spec.unschedulable") {
            status.push_str(",SchedulingDisabled");
        }
        vec![
            view.name(),
            status.into(),
            roles(view).into(),
            view.age(),
            view.text("status.nodeInfo.kubeletVersion").into(),
            address(view, "InternalIP").into(),
            address(view, "ExternalIP").into(),
            view.text_or("status.nodeInfo.osImage", UNKNOWN),
            view.text_or("status.nodeInfo.kernelVersion", UNKNOWN),
            view.text_or("status.nodeInfo.containerRuntimeVersion", UNKNOWN),
        ]
    },
};

fn roles(view: &View) -> String {
    let mut roles = BTreeSet::new();
    for (key, value) in tree::entries(view.object, "metadata.labels") {
        let value = value.as_str().unwrap_or_default();
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => {
                roles.insert(role);
            }
            None if key == "kubernetes.io/role" && !value.is_empty() => {
                roles.insert(value);
            }
            _ => {}
        }
    }
    if roles.is_empty() { NONE.to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}

fn address<'a>(view: &View<'a>, kind: &str) -> &'a str {
    let found = view.items("status.addresses").iter().find(|address| tree::text(address, "type") == kind);
    found.map_or(NONE, |address| tree::text(address, "address"))
}

const RUNTIME: Printer = Printer {
    columns: &[NAME, text("Handler", "Settings of the container runtime that are used."), AGE],
    cells: |view| vec![view.name(), view.text("handler").into(), view.age()],
};

const PRIORITY: Printer = Printer {
    columns: &[
        NAME,
        integer("Value", "The higher, the more important."),
        boolean("Global-Default", "Whether pods without a class get this one."),
        AGE,
        text("PreemptionPolicy", "Whether less important pods make room."),
    ],
    cells: |view| {
        vec![
            view.name(),
            view.int("value").into(),
            view.flag("globalDefault").into(),
            view.age(),
            view.text("preemptionPolicy").into(),
        ]
    },
};

const CLAIM: Printer = Printer {
    columns: &[NAME, text("State", "Whether the claim is pending, allocated or reserved."), AGE],
    cells: |view| {
        let mut state = Vec::new();
        let leaving = view.has("metadata.deletionTimestamp");
        if leaving {
            state.push("deleted");
        }
        if view.has("status.allocation") {
            state.push("allocated");
            if !view.items("status.reservedFor").is_empty() {
                state.push("reserved");
            }
        } else if !leaving {
            state.push("pending");
        }
        vec![view.name(), state.join(",").into(), view.age()]
    },
};

const SLICE: Printer = Printer {
    columns: &[
        NAME,
        text("Node", "Node the devices are on."),
        text("Driver", "Driver of the devices."),
        text("Pool", "Pool the devices belong to."),
        AGE,
    ],
    cells: |view| {
        vec![
            view.name(),
            view.text("spec.nodeName").into(),
            view.text("spec.driver").into(),
            view.text("spec.pool.name").into(),
            view.age(),
        ]
    },
};

const TAINT: Printer = Printer {
    columns: &[
        NAME,
        text("Key", "Key of the taint."),
        text("Value", "Value of the taint."),
        text("Effect", "What the taint does."),
        text("TimeAdded", "Time since the taint was added."),
        AGE,
    ],
    cells: |view| {
        let added: Value =
            if view.has("spec.taint.timeAdded") { view.since("spec.taint.timeAdded").into() } else { "".into() };
        vec![
            view.name(),
            view.text("spec.taint.key").into(),
            view.text("spec.taint.value").into(),
            view.text("spec.taint.effect").into(),
            added,
            view.age(),
        ]
    },
};
