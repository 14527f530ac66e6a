//! Classes of pods: priorities and runtimes.

use atoll_meta::FieldPath;
use serde_json::Value;

use super::errors::Errors;
use super::tree::{at, at_mut, fill, fill_map, flag, int, items, same, text};
use super::{PLAIN, Rules, amount, metadata, name, pod};

const HIGHEST: i64 = 1_000_000_000;
/// Classes every cluster has, with their values.
const SYSTEM: &[(&str, i64)] = &[("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

pub(super) fn scheduling_rules(kind: &str) -> &'static Rules {
    if kind == "PriorityClass" { &PRIORITY } else { &PLAIN }
}

pub(super) fn node_rules(kind: &str) -> &'static Rules {
    if kind == "RuntimeClass" { &RUNTIME } else { &PLAIN }
}

pub(super) fn resource_rules(kind: &str) -> &'static Rules {
    match kind {
        "ResourceClaim" | "ResourceClaimTemplate" => &CLAIM,
        _ => &PLAIN,
    }
}

const PRIORITY: Rules = Rules {
    default: |_, object| {
        fill(object, "preemptionPolicy", "PreemptLowerPriority");
        fill(object, "value", 0);
    },
    validate: priority,
    validate_update: |new, old, out| {
        if int(new, "value") != int(old, "value") {
            out.forbidden(&FieldPath::new("value"), "may not be changed in an update.");
        }
        out.immutable(&FieldPath::root(), new, old, "preemptionPolicy");
    },
    ..PLAIN
};

fn priority(object: &Value, out: &mut Errors) {
    let own = text(object, "metadata.name");
    let value = int(object, "value").unwrap_or(0);
    if own.starts_with("system-") {
        let fault = match SYSTEM.iter().find(|(known, _)| *known == own) {
            None => Some(format!("{own} is not a known system priority class")),
            Some((_, wanted)) if *wanted != value => Some(format!("value of {own} PriorityClass must be {wanted}")),
            Some(_) if flag(object, "globalDefault") => {
                Some(format!("globalDefault of {own} PriorityClass must be false"))
            }
            Some(_) => None,
        };
        if let Some(fault) = fault {
            let detail =
                format!("priority class names with 'system-' prefix are reserved for system use only. error: {fault}");
            out.forbidden(&FieldPath::new("metadata.name"), detail);
        }
    } else if value > HIGHEST {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        out.forbidden(&FieldPath::new("value"), detail);
    }
    out.one_of(&FieldPath::root(), object, "preemptionPolicy", &["PreemptLowerPriority", "Never"]);
}

const RUNTIME: Rules = Rules {
    default: |_, object| amount::canonize_map(at_mut(object, "overhead.podFixed")),
    validate: |object, out| {
        let handler = text(object, "handler");
        out.each(&FieldPath::new("handler"), handler, name::label(handler));
        let limits = serde_json::json!({"limits": at(object, "overhead.podFixed")});
        amount::requirements(out, &limits, &FieldPath::new("overhead"));
        let path = FieldPath::new("scheduling");
        metadata::labels(out, at(object, "scheduling.nodeSelector"), &path.child("nodeSelector"));
        let tolerations = items(object, "scheduling.tolerations");
        pod::tolerations(out, tolerations, &path.child("tolerations"));
        for (index, toleration) in tolerations.iter().enumerate() {
            if tolerations[..index].iter().any(|other| same(other, toleration)) {
                out.duplicate(&path.child("tolerations").index(index), toleration.clone());
            }
        }
    },
    validate_update: |new, old, out| out.immutable(&FieldPath::root(), new, old, "handler"),
    ..PLAIN
};

const CLAIM: Rules = Rules {
    default: |ctx, object| {
        fill_map(object, "spec");
        let list =
            if ctx.kind == "ResourceClaimTemplate" { "spec.spec.devices.requests" } else { "spec.devices.requests" };
        for request in super::tree::items_mut(object, list) {
            let target = if ctx.version == "v1beta1" { Some(request) } else { at_mut(request, "exactly") };
            if let Some(exact) = target {
                fill(exact, "allocationMode", "ExactCount");
                if text(exact, "allocationMode") == "ExactCount" {
                    fill(exact, "count", 1);
                }
            }
        }
    },
    validate_update: |new, old, out| {
        if !same(at(new, "spec"), at(old, "spec")) {
            out.invalid(&FieldPath::new("spec"), at(new, "spec").clone(), super::errors::IMMUTABLE);
        }
    },
    ..PLAIN
};
