//! Workloads of the group `apps`, and what they share with other controllers.

use atoll_meta::{FieldErrorKind, FieldPath};
use serde_json::{Map, Value};

use super::errors::Errors;
use super::tree::{at, fill, fill_map, fill_text, has, int, items, keep, same, set, text};
use super::{PLAIN, Rules, core, metadata, name, pod};

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) fn rules(kind: &str) -> &'static Rules {
    match kind {
        "Deployment" => &DEPLOYMENT,
        "ReplicaSet" => &REPLICA_SET,
        "StatefulSet" => &STATEFUL_SET,
        "DaemonSet" => &DAEMON_SET,
        "ControllerRevision" => &REVISION,
        _ => &PLAIN,
    }
}

const DEPLOYMENT: Rules = Rules {
    default: |_, object| {
        pod::default_template(object, "spec.template");
        fill(object, "spec.replicas", 1);
        fill_text(object, "spec.strategy.type", "RollingUpdate");
        if text(object, "spec.strategy.type") == "RollingUpdate" {
            fill(object, "spec.strategy.rollingUpdate.maxUnavailable", "25%");
            fill(object, "spec.strategy.rollingUpdate.maxSurge", "25%");
        }
        fill(object, "spec.revisionHistoryLimit", 10);
        fill(object, "spec.progressDeadlineSeconds", 600);
    },
    status: |_, new, old| keep(new, old, "metadata.labels"),
    validate: deployment,
    validate_update: |new, old, out| {
        deployment(new, out);
        out.immutable(&FieldPath::new("spec"), at(new, "spec"), at(old, "spec"), "selector");
    },
    validate_status: |new, old, out| {
        let fields = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"];
        replica_status(out, at(new, "status"), &fields, &["updatedReplicas", "readyReplicas", "availableReplicas"]);
        collisions(out, new, old);
    },
    ..PLAIN
};

const REPLICA_SET: Rules = Rules {
    default: |_, object| {
        pod::default_template(object, "spec.template");
        fill(object, "spec.replicas", 1);
        fill(object, "status.replicas", 0);
    },
    validate: replica_set,
    validate_update: |new, old, out| {
        replica_set(new, out);
        out.immutable(&FieldPath::new("spec"), at(new, "spec"), at(old, "spec"), "selector");
    },
    validate_status: |new, _, out| controller_status(new, out),
    ..PLAIN
};

const STATEFUL_SET: Rules = Rules {
    default: |_, object| {
        pod::default_template(object, "spec.template");
        fill_text(object, "spec.podManagementPolicy", "OrderedReady");
        if text(object, "spec.updateStrategy.type").is_empty() {
            set(object, "spec.updateStrategy.type", "RollingUpdate");
            fill_map(object, "spec.updateStrategy.rollingUpdate");
        }
        if text(object, "spec.updateStrategy.type") == "RollingUpdate"
            && has(object, "spec.updateStrategy.rollingUpdate")
        {
            fill(object, "spec.updateStrategy.rollingUpdate.partition", 0);
        }
        fill_text(object, "spec.persistentVolumeClaimRetentionPolicy.whenDeleted", "Retain");
        fill_text(object, "spec.persistentVolumeClaimRetentionPolicy.whenScaled", "Retain");
        fill(object, "spec.replicas", 1);
        fill(object, "spec.revisionHistoryLimit", 10);
        fill(object, "spec.serviceName", "");
        fill(object, "status.replicas", 0);
        fill(object, "status.availableReplicas", 0);
        for claim in super::tree::items_mut(object, "spec.volumeClaimTemplates") {
            fill(claim, "apiVersion", "v1");
            fill(claim, "kind", "PersistentVolumeClaim");
            core::default_claim(claim);
        }
    },
    validate: |object, out| stateful_set(object, out, true),
    validate_update: stateful_set_update,
    validate_status: |new, old, out| {
        let fields = ["replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
        replica_status(out, at(new, "status"), &fields, &fields[1..]);
        collisions(out, new, old);
    },
    ..PLAIN
};

const DAEMON_SET: Rules = Rules {
    default: |_, object| {
        pod::default_template(object, "spec.template");
        fill_text(object, "spec.updateStrategy.type", "RollingUpdate");
        if text(object, "spec.updateStrategy.type") == "RollingUpdate" {
            fill(object, "spec.updateStrategy.rollingUpdate.maxUnavailable", 1);
            fill(object, "spec.updateStrategy.rollingUpdate.maxSurge", 0);
        }
        fill(object, "spec.revisionHistoryLimit", 10);
        for field in ["currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"] {
            fill(object, &format!("status.{field}"), 0);
        }
        set_template_generation(object, template_generation(object));
    },
    create: |_, object| set_template_generation(object, template_generation(object).max(1)),
    update: |_, new, old| {
        let changed = !same(at(new, "spec.template"), at(old, "spec.template"));
        set_template_generation(new, template_generation(old) + i64::from(changed));
    },
    validate: daemon_set,
    validate_update: |new, old, out| {
        out.immutable(&FieldPath::new("spec"), at(new, "spec"), at(old, "spec"), "selector");
        daemon_set(new, out);
    },
    validate_status: |new, old, out| {
        let path = FieldPath::new("status");
        for field in [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ] {
            out.not_negative(&path, at(new, "status"), field);
        }
        collisions(out, new, old);
    },
    ..PLAIN
};

const REVISION: Rules = Rules {
    default: |_, object| fill(object, "revision", 0),
    validate: |object, out| {
        out.not_negative(&FieldPath::root(), object, "revision");
        match at(object, "data") {
            Value::Null => out.required(&FieldPath::new("data"), "data is mandatory"),
            Value::Object(_) => {}
            _ => out.required(&FieldPath::new("data"), "data must be a valid JSON object"),
        }
    },
    validate_update: |new, old, out| {
        out.not_negative(&FieldPath::root(), new, "revision");
        out.immutable(&FieldPath::root(), new, old, "data");
    },
    ..PLAIN
};

fn template_generation(object: &Value) -> i64 {
    at(object, "metadata.annotations")
        .get(TEMPLATE_GENERATION)
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// The old counter lives on as an annotation.
fn set_template_generation(object: &mut Value, generation: i64) {
    if let Some(annotations) = super::tree::map(object, "metadata.annotations") {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
    }
}

fn deployment(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    out.not_negative(&path, spec, "replicas");
    selector(out, spec, &path, "deployment");
    template(out, spec, &path, "ReplicaSet");
    strategy(out, at(spec, "strategy"), &path.child("strategy"));
    for field in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        out.not_negative(&path, spec, field);
    }
    if let Some(deadline) = int(spec, "progressDeadlineSeconds")
        && deadline <= int(spec, "minReadySeconds").unwrap_or(0)
    {
        out.invalid(&path.child("progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds");
    }
}

fn strategy(out: &mut Errors, strategy: &Value, path: &FieldPath) {
    let rolling = at(strategy, "rollingUpdate");
    let here = path.child("rollingUpdate");
    match text(strategy, "type") {
        "Recreate" if !rolling.is_null() => {
            out.forbidden(&here, "may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        "RollingUpdate" => {
            number_or_percent(out, at(rolling, "maxUnavailable"), &here.child("maxUnavailable"));
            number_or_percent(out, at(rolling, "maxSurge"), &here.child("maxSurge"));
            if amount(at(rolling, "maxUnavailable")) == 0 && amount(at(rolling, "maxSurge")) == 0 {
                let value = at(rolling, "maxUnavailable").clone();
                out.invalid(&here.child("maxUnavailable"), value, "may not be 0 when `maxSurge` is 0");
            }
            at_most_all(out, at(rolling, "maxUnavailable"), &here.child("maxUnavailable"));
        }
        other => {
            let shown = format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", serde_json::json!(other));
            let detail = "supported values: \"Recreate\", \"RollingUpdate\"";
            out.shown(path, FieldErrorKind::NotSupported, &shown, detail);
        }
    }
}

/// A count, or a share in percent.
pub(super) fn number_or_percent(out: &mut Errors, value: &Value, path: &FieldPath) {
    match value {
        Value::String(text) => {
            for fault in name::percent(text) {
                out.invalid(path, text.as_str(), fault);
            }
        }
        Value::Number(_) if value.as_i64().is_some_and(|number| number < 0) => {
            out.invalid(path, value.clone(), super::errors::NOT_NEGATIVE);
        }
        _ => {}
    }
}

/// The number itself, or the number before the percent sign.
pub(super) fn amount(value: &Value) -> i64 {
    match value {
        Value::String(text) => text.trim_end_matches('%').parse().unwrap_or(0),
        other => other.as_i64().unwrap_or(0),
    }
}

/// A share may not be above 100%.
pub(super) fn at_most_all(out: &mut Errors, value: &Value, path: &FieldPath) {
    if let Value::String(text) = value
        && name::percent(text).is_empty()
        && amount(value) > 100
    {
        out.invalid(path, text.as_str(), "must not be greater than 100%");
    }
}

fn replica_set(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    out.not_negative(&path, spec, "replicas");
    out.not_negative(&path, spec, "minReadySeconds");
    selector(out, spec, &path, "deployment");
    template(out, spec, &path, "ReplicaSet");
}

fn stateful_set(object: &Value, out: &mut Errors, fresh: bool) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        out.invalid(&path.child("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'");
    }
    let rolling = at(spec, "updateStrategy.rollingUpdate");
    let here = path.child("updateStrategy");
    match text(spec, "updateStrategy.type") {
        "OnDelete" if !rolling.is_null() => {
            out.invalid(
                &here.child("rollingUpdate"),
                rolling.clone(),
                "only allowed for updateStrategy 'RollingUpdate'",
            );
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            let here = here.child("rollingUpdate");
            out.not_negative(&here, rolling, "partition");
            if has(rolling, "maxUnavailable") {
                let value = at(rolling, "maxUnavailable");
                number_or_percent(out, value, &here.child("maxUnavailable"));
                if amount(value) == 0 {
                    out.invalid(&here.child("maxUnavailable"), value.clone(), "cannot be 0");
                }
                at_most_all(out, value, &here.child("maxUnavailable"));
            }
        }
        _ => out.invalid(&here, at(spec, "updateStrategy").clone(), "must be 'RollingUpdate' or 'OnDelete'"),
    }
    let retention = at(spec, "persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        out.one_of(&path.child("persistentVolumeClaimRetentionPolicy"), retention, field, &["Retain", "Delete"]);
    }
    if fresh {
        for (index, claim) in items(spec, "volumeClaimTemplates").iter().enumerate() {
            core::claim_spec(out, at(claim, "spec"), &path.child("volumeClaimTemplates").index(index).child("spec"));
        }
    }
    out.not_negative(&path, spec, "replicas");
    out.not_negative(&path, spec, "minReadySeconds");
    out.not_negative(&path.child("ordinals"), at(spec, "ordinals"), "start");
    let service = text(spec, "serviceName");
    if fresh && !service.is_empty() {
        out.each(&path.child("serviceName"), service, name::label(service));
    }
    selector(out, spec, &path, "statefulset");
    template(out, &with_claims(spec), &path, "StatefulSet");
}

/// The spec as its pods will see it: claims are volumes, names are given by the set.
fn with_claims(spec: &Value) -> Value {
    let mut spec = spec.clone();
    super::tree::remove(&mut spec, "template.spec.hostname");
    super::tree::remove(&mut spec, "template.spec.subdomain");
    let claims: Vec<String> =
        items(&spec, "volumeClaimTemplates").iter().map(|claim| text(claim, "metadata.name").to_owned()).collect();
    if claims.is_empty() {
        return spec;
    }
    let mut volumes: Vec<Value> = claims
        .iter()
        .map(|claim| serde_json::json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}))
        .collect();
    for volume in items(&spec, "template.spec.volumes") {
        if !claims.iter().any(|claim| claim == text(volume, "name")) {
            volumes.push(volume.clone());
        }
    }
    set(&mut spec, "template.spec.volumes", volumes);
    spec
}

fn stateful_set_update(new: &Value, old: &Value, out: &mut Errors) {
    stateful_set(new, out, false);
    let mut rest = at(new, "spec").clone();
    let before = at(old, "spec");
    for field in [
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    ] {
        keep(&mut rest, before, field);
    }
    if !same(&rest, before) {
        out.forbidden(
            &FieldPath::new("spec"),
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
             'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        );
    }
}

fn daemon_set(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    let chosen = at(spec, "selector");
    metadata::selector(out, chosen, &path.child("selector"));
    let labels = at(spec, "template.metadata.labels");
    if !broken_selector(chosen) && (chosen.is_null() || !metadata::selects(chosen, labels)) {
        mismatch(out, labels, &path.child("template"));
    }
    if !chosen.is_null() && empty_selector(chosen) {
        out.invalid(&path.child("selector"), chosen.clone(), "empty selector is invalid for daemonset");
    }
    pod::validate_template(out, at(spec, "template"), &path.child("template"));
    always_running(out, spec, &path, "DaemonSet");
    out.not_negative(&path, spec, "minReadySeconds");
    let rolling = at(spec, "updateStrategy.rollingUpdate");
    let here = path.child("updateStrategy");
    match text(spec, "updateStrategy.type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let here = here.child("rollingUpdate");
            for field in ["maxUnavailable", "maxSurge"] {
                number_or_percent(out, at(rolling, field), &here.child(field));
                at_most_all(out, at(rolling, field), &here.child(field));
            }
            match (amount(at(rolling, "maxUnavailable")) != 0, amount(at(rolling, "maxSurge")) != 0) {
                (true, true) => {
                    let value = at(rolling, "maxSurge").clone();
                    out.invalid(&here.child("maxSurge"), value, "may not be set when maxUnavailable is non-zero");
                }
                (false, false) => out.required(&here.child("maxUnavailable"), "cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        _ => out.not_supported(&here, at(spec, "updateStrategy").clone(), &["RollingUpdate", "OnDelete"]),
    }
    out.not_negative(&path, spec, "revisionHistoryLimit");
}

fn empty_selector(selector: &Value) -> bool {
    super::count(selector, "matchLabels") + super::count(selector, "matchExpressions") == 0
}

/// A selector no query can be made of.
fn broken_selector(selector: &Value) -> bool {
    let mut out = Errors::default();
    metadata::selector(&mut out, selector, &FieldPath::root());
    !out.0.is_empty()
}

fn selector(out: &mut Errors, spec: &Value, path: &FieldPath, kind: &str) {
    let chosen = at(spec, "selector");
    if chosen.is_null() {
        return out.required(&path.child("selector"), "");
    }
    metadata::selector(out, chosen, &path.child("selector"));
    if empty_selector(chosen) {
        let detail = format!("empty selector is invalid for {kind}");
        out.invalid(&path.child("selector"), chosen.clone(), detail);
    }
}

fn mismatch(out: &mut Errors, labels: &Value, template: &FieldPath) {
    let path = template.child("metadata").child("labels");
    out.invalid(&path, labels.clone(), "`selector` does not match template `labels`");
}

/// The template of a controller: its labels must be selected, its pods must run for ever.
fn template(out: &mut Errors, spec: &Value, path: &FieldPath, kind: &str) {
    let chosen = at(spec, "selector");
    let labels = at(spec, "template.metadata.labels");
    if broken_selector(chosen) {
        let detail = if kind == "StatefulSet" { "" } else { "invalid label selector" };
        out.invalid(&path.child("selector"), chosen.clone(), detail);
    } else {
        // No selector selects nothing; an empty one is complained about elsewhere.
        if chosen.is_null() || (!empty_selector(chosen) && !metadata::selects(chosen, labels)) {
            mismatch(out, labels, &path.child("template"));
        }
        pod::validate_template(out, at(spec, "template"), &path.child("template"));
        if kind == "StatefulSet" {
            // Such templates have always been judged twice.
            metadata::labels(out, labels, &path.child("template").child("labels"));
        }
    }
    always_running(out, spec, path, kind);
}

/// Pods of long-running controllers always restart and have no deadline.
pub(super) fn always_running(out: &mut Errors, spec: &Value, path: &FieldPath, kind: &str) {
    let here = path.child("template").child("spec");
    let policy = text(spec, "template.spec.restartPolicy");
    if policy != "Always" {
        out.not_supported(&here.child("restartPolicy"), policy, &["Always"]);
    }
    if has(spec, "template.spec.activeDeadlineSeconds") {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        out.forbidden(&here.child("activeDeadlineSeconds"), detail);
    }
}

/// Counters of a status: none negative, parts not above the whole.
fn replica_status(out: &mut Errors, status: &Value, counters: &[&str], parts: &[&str]) {
    let path = FieldPath::new("status");
    for field in counters.iter().chain(&["observedGeneration", "collisionCount"]) {
        out.not_negative(&path, status, field);
    }
    let count = |field: &str| int(status, field).unwrap_or(0);
    for field in parts {
        if count(field) > count("replicas") {
            out.invalid(&path.child(field), count(field), "cannot be greater than status.replicas");
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        let detail = if parts.contains(&"currentReplicas") {
            "cannot be greater than status.readyReplicas"
        } else {
            "cannot be greater than readyReplicas"
        };
        out.invalid(&path.child("availableReplicas"), count("availableReplicas"), detail);
    }
}

/// The status of a ReplicaSet or ReplicationController.
pub(super) fn controller_status(object: &Value, out: &mut Errors) {
    let fields = ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    replica_status(out, at(object, "status"), &fields, &fields[1..]);
}

fn collisions(out: &mut Errors, new: &Value, old: &Value) {
    let count = |object: &Value| int(object, "status.collisionCount");
    if let Some(before) = count(old)
        && count(new).unwrap_or(0) < before
    {
        let path = FieldPath::new("status").child("collisionCount");
        out.invalid(&path, count(new).unwrap_or(0), "cannot be decremented");
    }
}

/// Defaults and checks shared with ReplicationController, whose selector is a plain map.
pub(super) fn default_controller(object: &mut Value) {
    if has(object, "spec.template") {
        pod::default_template(object, "spec.template");
    }
    let labels = at(object, "spec.template.metadata.labels").clone();
    if let Value::Object(labels) = labels {
        if at(object, "spec.selector").as_object().is_none_or(Map::is_empty) {
            set(object, "spec.selector", labels.clone());
        }
        if at(object, "metadata.labels").as_object().is_none_or(Map::is_empty) {
            set(object, "metadata.labels", labels);
        }
    }
    fill(object, "spec.replicas", 1);
    fill(object, "status.replicas", 0);
}

/// Judges a ReplicationController.
pub(super) fn controller(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    out.not_negative(&path, spec, "minReadySeconds");
    let chosen = at(spec, "selector");
    if super::count(spec, "selector") == 0 {
        out.required(&path.child("selector"), "");
    }
    out.not_negative(&path, spec, "replicas");
    if !has(spec, "template") {
        return out.required(&path.child("template"), "");
    }
    let labels = at(spec, "template.metadata.labels");
    let selected = chosen.as_object().into_iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    if !selected {
        mismatch(out, labels, &path.child("template"));
    }
    pod::validate_template(out, at(spec, "template"), &path.child("template"));
    always_running(out, spec, &path, "ReplicationController");
}

#[cfg(test)]
mod tests;
