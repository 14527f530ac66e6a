//! Nodes.

use std::collections::BTreeSet;

use atoll_meta::FieldPath;
use serde_json::Value;

use crate::strategy::errors::Errors;
use crate::strategy::tree::{at, at_mut, entries, fill, fill_map, has, items, set, text};
use crate::strategy::{PLAIN, Rules, amount, name, pod};

const INFO: &[&str] = &[
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
];

pub(super) const NODE: Rules = Rules {
    default: |_, object| default(object),
    validate: |object, out| {
        taints(object, out);
        resources(object, out);
        let path = FieldPath::new("spec.podCIDRs");
        for (index, network) in items(object, "spec.podCIDRs").iter().enumerate() {
            let network = network.as_str().unwrap_or_default();
            if name::cidr(network).is_none() {
                out.invalid(&path.index(index), network, name::NOT_A_NETWORK);
            }
        }
    },
    validate_update: update,
    validate_status: update,
    ..PLAIN
};

fn default(object: &mut Value) {
    fill_map(object, "spec");
    amount::canonize_map(at_mut(object, "status.capacity"));
    amount::canonize_map(at_mut(object, "status.allocatable"));
    if has(object, "status.capacity") {
        let capacity = at(object, "status.capacity").clone();
        fill(object, "status.allocatable", capacity);
    }
    fill(object, "status.daemonEndpoints.kubeletEndpoint.Port", 0);
    for field in INFO {
        fill(object, &format!("status.nodeInfo.{field}"), "");
    }
    let single = text(object, "spec.podCIDR").to_owned();
    if !single.is_empty() && !has(object, "spec.podCIDRs") {
        set(object, "spec.podCIDRs", vec![single]);
    }
    let first = items(object, "spec.podCIDRs").first().cloned();
    if let Some(first) = first {
        fill(object, "spec.podCIDR", first);
    }
}

fn taints(object: &Value, out: &mut Errors) {
    let path = FieldPath::new("metadata.taints");
    let mut seen = BTreeSet::new();
    for (index, taint) in items(object, "spec.taints").iter().enumerate() {
        let here = path.index(index);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        out.each(&here.child("key"), key, name::qualified(key));
        let faults = name::label_value(value);
        if !faults.is_empty() {
            out.invalid(&here.child("value"), value, faults.join(";"));
        }
        if effect.is_empty() {
            out.required(&here.child("effect"), "");
        } else if !pod::EFFECTS.contains(&effect) {
            out.not_supported(&here.child("effect"), effect, pod::EFFECTS);
        }
        if !seen.insert((effect, key)) {
            out.duplicate(&here, taint.clone());
            if let Some(last) = out.0.last_mut() {
                last.detail = "taints must be unique by key and effect pair".to_owned();
            }
        }
    }
}

fn resources(object: &Value, out: &mut Errors) {
    for part in ["capacity", "allocatable"] {
        let path = FieldPath::new("status").child(part);
        for (resource, value) in entries(at(object, "status"), part) {
            amount::resource_value(out, &path.child(resource), resource, value);
        }
    }
}

fn update(new: &Value, old: &Value, out: &mut Errors) {
    resources(new, out);
    let addresses = items(new, "status.addresses");
    for (index, address) in addresses.iter().enumerate() {
        if addresses[..index].contains(address) {
            out.duplicate(&FieldPath::new("status.addresses").index(index), address.clone());
        }
    }
    let before = items(old, "spec.podCIDRs");
    if !before.is_empty() && before != items(new, "spec.podCIDRs") {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        out.forbidden(&FieldPath::new("spec.podCIDRs"), detail);
    }
    let provider = text(old, "spec.providerID");
    if !provider.is_empty() && provider != text(new, "spec.providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        out.forbidden(&FieldPath::new("spec.providerID"), detail);
    }
    taints(new, out);
}
