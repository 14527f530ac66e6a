//! What may change about a pod once it exists.

use atoll_meta::FieldPath;
use serde_json::Value;

use crate::strategy::errors::{Errors, IMMUTABLE};
use crate::strategy::tree::{at, at_mut, has, int, items, keep, remove, same, set, text};
use crate::strategy::{name, pod::scheduling};

const CHANGEABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
`spec.tolerations` (only additions to existing tolerations),\
`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Judges a change of the spec.
pub(super) fn validate(new: &Value, old: &Value, out: &mut Errors) {
    let path = FieldPath::new("spec");
    let (new, old) = (at(new, "spec"), at(old, "spec"));
    for list in ["containers", "initContainers"] {
        if items(new, list).len() != items(old, list).len() {
            return out.forbidden(&path.child(list), "pod updates may not add or remove containers");
        }
    }
    if !deadline(out, new, old, &path.child("activeDeadlineSeconds")) {
        return;
    }
    tolerations(out, new, old, &path.child("tolerations"));
    gates(out, new, old, &path.child("schedulingGates"));
    if same(new, old) {
        return;
    }
    let allowed = with_changeable_parts_of(new, old);
    if !same(&allowed, old) {
        out.forbidden(&path, CHANGEABLE);
    }
}

/// The new spec with every changeable part put back to what it was.
fn with_changeable_parts_of(new: &Value, old: &Value) -> Value {
    let mut spec = new.clone();
    for list in ["containers", "initContainers"] {
        for (index, before) in items(old, list).iter().enumerate() {
            if let Some(container) = at_mut(&mut spec, list).and_then(|list| list.get_mut(index)) {
                keep(container, before, "image");
            }
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        keep(&mut spec, old, field);
    }
    if int(old, "terminationGracePeriodSeconds").is_some_and(|grace| grace < 0)
        && int(new, "terminationGracePeriodSeconds") == Some(1)
    {
        keep(&mut spec, old, "terminationGracePeriodSeconds");
    }
    if !items(old, "schedulingGates").is_empty() {
        // While gated, where a pod may run can still be narrowed.
        keep(&mut spec, old, "nodeSelector");
        if has(old, "affinity.nodeAffinity") {
            set(&mut spec, "affinity.nodeAffinity", at(old, "affinity.nodeAffinity").clone());
        } else {
            remove(&mut spec, "affinity.nodeAffinity");
        }
    }
    spec
}

fn deadline(out: &mut Errors, new: &Value, old: &Value, path: &FieldPath) -> bool {
    let before = int(old, "activeDeadlineSeconds");
    match int(new, "activeDeadlineSeconds") {
        Some(now) if !(0..=i64::from(i32::MAX)).contains(&now) => {
            out.invalid(path, now, name::range(0, i64::from(i32::MAX)));
            false
        }
        Some(now) if before.is_some_and(|before| before < now) => {
            out.invalid(path, now, "must be less than or equal to previous value");
            false
        }
        None if before.is_some() => {
            out.invalid(path, Value::Null, "must not update from a positive integer to nil value");
            true
        }
        _ => true,
    }
}

fn tolerations(out: &mut Errors, new: &Value, old: &Value, path: &FieldPath) {
    let now = items(new, "tolerations");
    for before in items(old, "tolerations") {
        let kept = now.iter().any(|toleration| {
            let mut before = before.clone();
            keep(&mut before, toleration, "tolerationSeconds");
            same(&before, toleration)
        });
        if !kept {
            return out.forbidden(path, "existing toleration can not be modified except its tolerationSeconds");
        }
    }
    scheduling::tolerations(out, now, path);
}

fn gates(out: &mut Errors, new: &Value, old: &Value, path: &FieldPath) {
    for (index, gate) in items(new, "schedulingGates").iter().enumerate() {
        let own = text(gate, "name");
        if !items(old, "schedulingGates").iter().any(|before| text(before, "name") == own) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{own}'");
            out.forbidden(&path.index(index).child("name"), detail);
        }
    }
}

/// Judges a change of the status.
pub(super) fn validate_status(new: &Value, old: &Value, out: &mut Errors) {
    let path = FieldPath::new("status");
    for (index, condition) in items(new, "status.conditions").iter().enumerate() {
        let kind = text(condition, "type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            out.each(&path.child("conditions").index(index).child("Type"), kind, name::qualified(kind));
        }
    }
    let nominated = text(new, "status.nominatedNodeName");
    if !nominated.is_empty() && nominated != text(old, "status.nominatedNodeName") {
        out.each(&path.child("nominatedNodeName"), nominated, name::subdomain(nominated));
    }
    let (now, before) = (text(new, "status.qosClass"), text(old, "status.qosClass"));
    if now != before {
        out.invalid(&path.child("qosClass"), now, IMMUTABLE);
    }
    restarts(out, new, old);
    for (index, address) in items(new, "status.podIPs").iter().enumerate() {
        let address = text(address, "ip");
        out.each(&path.child("podIPs").index(index), address, name::ip(address));
    }
}

/// A container that must not restart may not come back from the dead.
fn restarts(out: &mut Errors, new: &Value, old: &Value) {
    let policy = text(old, "spec.restartPolicy");
    if policy == "Always" || policy.is_empty() {
        return;
    }
    for (index, before) in items(old, "status.containerStatuses").iter().enumerate() {
        if !has(before, "state.terminated") {
            continue;
        }
        if policy == "OnFailure" && int(before, "state.terminated.exitCode") != Some(0) {
            continue;
        }
        let own = text(before, "name");
        let now = items(new, "status.containerStatuses").iter().find(|status| text(status, "name") == own);
        if now.is_some_and(|status| !has(status, "state.terminated")) {
            let path = FieldPath::new("status").child("containerStatuses").index(index).child("state");
            out.forbidden(&path, "may not be transitioned to non-terminated state");
        }
    }
}
