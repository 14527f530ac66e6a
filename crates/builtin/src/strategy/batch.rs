//! Jobs and cron jobs.

mod schedule;

use std::collections::BTreeSet;

use atoll_meta::FieldPath;
use serde_json::{Map, Value};

use super::errors::Errors;
use super::tree::{at, at_mut, fill, fill_map, fill_text, flag, has, int, items, items_mut, keep, same, set, text};
use super::{PLAIN, Rules, metadata, name, pod};

pub(super) fn rules(kind: &str) -> &'static Rules {
    match kind {
        "Job" => &JOB,
        "CronJob" => &CRON_JOB,
        _ => &PLAIN,
    }
}

const JOB: Rules = Rules {
    default: |_, object| {
        default_spec(object, "spec");
        let labels = at(object, "spec.template.metadata.labels").clone();
        if labels.is_object() && at(object, "metadata.labels").as_object().is_none_or(Map::is_empty) {
            set(object, "metadata.labels", labels);
        }
    },
    create: |_, object| {
        if !flag(object, "spec.manualSelector") {
            generate_selector(object);
        }
    },
    validate: job,
    validate_update: job_update,
    validate_status: |new, old, out| job_status(new, old, out),
    ..PLAIN
};

const CRON_JOB: Rules = Rules {
    default: |_, object| {
        fill_map(object, "spec.jobTemplate.spec");
        pod::default_template(object, "spec.jobTemplate.spec.template");
        fill_text(object, "spec.concurrencyPolicy", "Allow");
        fill(object, "spec.suspend", false);
        fill(object, "spec.successfulJobsHistoryLimit", 3);
        fill(object, "spec.failedJobsHistoryLimit", 1);
    },
    validate: |object, out| {
        cron_job(object, None, out);
        let own = text(object, "metadata.name");
        if own.len() > 52 {
            out.invalid(&FieldPath::new("metadata.name"), own, "must be no more than 52 characters");
        }
    },
    validate_update: |new, old, out| cron_job(new, Some(old), out),
    ..PLAIN
};

fn default_spec(object: &mut Value, path: &str) {
    fill_map(object, path);
    pod::default_template(object, &format!("{path}.template"));
    let Some(spec) = at_mut(object, path) else { return };
    if !has(spec, "completions") && !has(spec, "parallelism") {
        set(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    let limit = if has(spec, "backoffLimitPerIndex") { i32::MAX } else { 6 };
    fill(spec, "backoffLimit", limit);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    let replacement = if has(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    fill(spec, "podReplacementPolicy", replacement);
    fill(spec, "manualSelector", false);
    for rule in items_mut(spec, "podFailurePolicy.rules") {
        for pattern in items_mut(rule, "onPodConditions") {
            fill_text(pattern, "status", "True");
        }
    }
}

/// Pods of a job are told apart by the uid of the job.
fn generate_selector(object: &mut Value) {
    let own = text(object, "metadata.name").to_owned();
    let uid = text(object, "metadata.uid").to_owned();
    if let Some(labels) = super::tree::map(object, "spec.template.metadata.labels") {
        for (key, value) in [
            ("job-name", &own),
            ("batch.kubernetes.io/job-name", &own),
            ("controller-uid", &uid),
            ("batch.kubernetes.io/controller-uid", &uid),
        ] {
            labels.entry(key).or_insert_with(|| value.clone().into());
        }
    }
    if let Some(labels) = super::tree::map(object, "spec.selector.matchLabels") {
        labels.entry("batch.kubernetes.io/controller-uid").or_insert_with(|| uid.into());
    }
}

fn job(object: &Value, out: &mut Errors) {
    let path = FieldPath::new("spec");
    generated_selector(object, out);
    job_spec(out, at(object, "spec"), &path);
    job_selector(out, at(object, "spec"), &path);
    if text(object, "spec.completionMode") == "Indexed"
        && let Some(last) = int(object, "spec.completions").filter(|count| *count > 0)
    {
        let own = text(object, "metadata.name");
        let host = format!("{own}-{}", last - 1);
        if !name::label(&host).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {host}");
            out.invalid(&FieldPath::new("metadata.name"), own, detail);
        }
    }
}

fn generated_selector(object: &Value, out: &mut Errors) {
    if flag(object, "spec.manualSelector") || !has(object, "spec.selector") {
        return;
    }
    let (own, uid) = (text(object, "metadata.name"), text(object, "metadata.uid"));
    let expected = serde_json::json!({
        "controller-uid": uid, "job-name": own,
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": own,
    });
    let path = FieldPath::new("spec.template.metadata").child("labels");
    let labels = at(object, "spec.template.metadata.labels");
    for key in ["controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"] {
        match labels.get(key).and_then(Value::as_str) {
            None => {
                let wanted = expected[key].as_str().unwrap_or_default();
                out.required(&path.key(key), &format!("must be '{wanted}'"));
            }
            Some(value) if expected[key] != value => {
                let wanted = expected[key].as_str().unwrap_or_default();
                out.invalid(&path.key(key), labels.clone(), format!("must be '{wanted}'"));
            }
            Some(_) => {}
        }
    }
    let chosen = at(object, "spec.selector");
    if !metadata::selects(chosen, &expected) {
        out.invalid(&FieldPath::new("spec.selector"), chosen.clone(), "`selector` not auto-generated");
    }
}

fn job_selector(out: &mut Errors, spec: &Value, path: &FieldPath) {
    let chosen = at(spec, "selector");
    if chosen.is_null() {
        out.required(&path.child("selector"), "");
    } else {
        metadata::selector(out, chosen, &path.child("selector"));
    }
    let labels = at(spec, "template.metadata.labels");
    if chosen.is_null() || !metadata::selects(chosen, labels) {
        let here = path.child("template").child("metadata").child("labels");
        out.invalid(&here, labels.clone(), "`selector` does not match template `labels`");
    }
}

fn job_spec(out: &mut Errors, spec: &Value, path: &FieldPath) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        out.not_negative(path, spec, field);
    }
    if has(spec, "maxFailedIndexes") && !has(spec, "backoffLimitPerIndex") {
        out.required(&path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    if has(spec, "managedBy") {
        let manager = text(spec, "managedBy");
        out.each(&path.child("managedBy"), manager, name::domain_path(manager));
        if manager.len() > 63 {
            out.too_long(&path.child("managedBy"), 63);
        }
    }
    completion(out, spec, path);
    failure_policy(out, spec, &path.child("podFailurePolicy"));
    if has(spec, "successPolicy") {
        let here = path.child("successPolicy");
        if text(spec, "completionMode") != "Indexed" {
            out.invalid(&here, at(spec, "successPolicy").clone(), "requires indexed completion mode");
        } else if items(spec, "successPolicy.rules").is_empty() {
            out.required(
                &here.child("rules"),
                "at least one rules must be specified when the successPolicy is specified",
            );
        }
    }
    let supported: &[&str] =
        if has(spec, "podFailurePolicy") { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    out.one_of(path, spec, "podReplacementPolicy", supported);
    pod::validate_template(out, at(spec, "template"), &path.child("template"));
    let here = path.child("template").child("spec").child("restartPolicy");
    match text(spec, "template.spec.restartPolicy") {
        "Always" | "" => out.required(&here, "valid values: \"OnFailure\", \"Never\""),
        "Never" => {}
        "OnFailure" if has(spec, "podFailurePolicy") => {
            out.invalid(&here, "OnFailure", "only \"Never\" is supported when podFailurePolicy is specified");
        }
        "OnFailure" => {}
        other => out.not_supported(&here, other, &["OnFailure", "Never"]),
    }
}

fn completion(out: &mut Errors, spec: &Value, path: &FieldPath) {
    const MOST: i64 = 100_000;
    out.one_of(path, spec, "completionMode", &["NonIndexed", "Indexed"]);
    if text(spec, "completionMode") == "Indexed" {
        if !has(spec, "completions") {
            out.required(&path.child("completions"), "when completion mode is Indexed");
        }
        if let Some(number) = int(spec, "parallelism").filter(|number| *number > MOST) {
            let detail = format!("must be less than or equal to {MOST} when completion mode is Indexed");
            out.invalid(&path.child("parallelism"), number, detail);
        }
        if let (Some(all), Some(failed)) = (int(spec, "completions"), int(spec, "maxFailedIndexes"))
            && failed > all
        {
            out.invalid(&path.child("maxFailedIndexes"), failed, "must be less than or equal to completions");
        }
    } else {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(number) = int(spec, field) {
                out.invalid(&path.child(field), number, "requires indexed completion mode");
            }
        }
    }
}

fn failure_policy(out: &mut Errors, spec: &Value, path: &FieldPath) {
    const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
    let rules = items(spec, "podFailurePolicy.rules");
    if rules.len() > 20 {
        out.too_many(&path.child("rules"), rules.len(), 20);
    }
    let names: BTreeSet<&str> = items(spec, "template.spec.containers")
        .iter()
        .chain(items(spec, "template.spec.initContainers"))
        .map(|container| text(container, "name"))
        .collect();
    for (index, rule) in rules.iter().enumerate() {
        let here = path.child("rules").index(index);
        match text(rule, "action") {
            "" => out.required(&here.child("action"), "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]"),
            "FailIndex" if !has(spec, "backoffLimitPerIndex") => {
                out.invalid(&here.child("action"), "FailIndex", "requires the backoffLimitPerIndex to be set");
            }
            action if !ACTIONS.contains(&action) => out.not_supported(&here.child("action"), action, ACTIONS),
            _ => {}
        }
        if has(rule, "onExitCodes") {
            exit_codes(out, at(rule, "onExitCodes"), &here.child("onExitCodes"), &names);
        }
        for (index, pattern) in items(rule, "onPodConditions").iter().enumerate() {
            let here = here.child("onPodConditions").index(index);
            out.each(&here.child("type"), text(pattern, "type"), name::qualified(text(pattern, "type")));
            out.one_of(&here, pattern, "status", &["False", "True", "Unknown"]);
        }
        let detail = match (has(rule, "onExitCodes"), !items(rule, "onPodConditions").is_empty()) {
            (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        out.invalid(&here, Value::Null, detail);
        if let Some(last) = out.0.last_mut() {
            last.value = None;
        }
    }
}

fn exit_codes(out: &mut Errors, rule: &Value, path: &FieldPath, names: &BTreeSet<&str>) {
    match text(rule, "operator") {
        "" => out.required(&path.child("operator"), "valid values: [\"In\" \"NotIn\"]"),
        "In" | "NotIn" => {}
        other => out.not_supported(&path.child("operator"), other, &["In", "NotIn"]),
    }
    if has(rule, "containerName") && !names.contains(text(rule, "containerName")) {
        out.invalid(
            &path.child("containerName"),
            text(rule, "containerName"),
            "must be one of the container or initContainer names in the pod template",
        );
    }
    let (values, here) = (items(rule, "values"), path.child("values"));
    if values.is_empty() {
        out.invalid(&here, Value::from(values), "at least one value is required");
    }
    let mut seen = BTreeSet::new();
    for (index, value) in values.iter().enumerate() {
        let number = value.as_i64().unwrap_or(0);
        if number == 0 && text(rule, "operator") == "In" {
            out.invalid(&here.index(index), 0, "must not be 0 for the In operator");
        }
        if !seen.insert(number) {
            out.duplicate(&here.index(index), number);
        }
    }
    if values.windows(2).any(|pair| pair[0].as_i64() > pair[1].as_i64()) {
        out.invalid(&here, Value::from(values), "must be ordered");
    }
}

fn job_update(new: &Value, old: &Value, out: &mut Errors) {
    let path = FieldPath::new("spec");
    let (now, before) = (at(new, "spec"), at(old, "spec"));
    job_spec(out, now, &path);
    job_selector(out, now, &path);
    if text(now, "completionMode") != "Indexed" {
        out.immutable(&path, now, before, "completions");
    } else if !same(at(now, "completions"), at(before, "completions"))
        && int(now, "completions") != int(now, "parallelism")
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        out.invalid(&path.child("completions"), at(now, "completions").clone(), detail);
    }
    out.immutable(&path, now, before, "selector");
    let mut allowed = before.clone();
    // Before a suspended job first runs, where its pods may go can still be changed.
    if flag(before, "suspend") && !has(old, "status.startTime") {
        for field in ["affinity.nodeAffinity", "nodeSelector", "tolerations", "schedulingGates"] {
            keep(&mut allowed, now, &format!("template.spec.{field}"));
        }
        keep(&mut allowed, now, "template.metadata.annotations");
        keep(&mut allowed, now, "template.metadata.labels");
    }
    out.immutable(&path, now, &allowed, "template");
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        out.immutable(&path, now, before, field);
    }
}

fn job_status(new: &Value, old: &Value, out: &mut Errors) {
    let path = FieldPath::new("status");
    let status = at(new, "status");
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        out.not_negative(&path, status, field);
    }
    let holds = |object: &Value, kind: &str| {
        items(object, "status.conditions")
            .iter()
            .any(|each| text(each, "type") == kind && text(each, "status") == "True")
    };
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if holds(old, kind) && !holds(new, kind) {
            let detail = format!("cannot disable the terminal {kind}=True condition");
            out.invalid(&path.child("conditions"), Value::Null, detail);
            if let Some(last) = out.0.last_mut() {
                last.value = None;
            }
        }
    }
    for (field, detail) in
        [("failed", "cannot decrease the failed counter"), ("succeeded", "cannot decrease the succeeded counter")]
    {
        let now = int(status, field).unwrap_or(0);
        if now < int(at(old, "status"), field).unwrap_or(0) {
            out.invalid(&path.child(field), now, detail);
        }
    }
}

fn cron_job(object: &Value, old: Option<&Value>, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    let when = text(spec, "schedule");
    if when.is_empty() {
        out.required(&path.child("schedule"), "");
    } else {
        if let Err(fault) = schedule::parse(when) {
            out.invalid(&path.child("schedule"), when, fault);
        }
        let zoned_before = old.is_some_and(|old| text(old, "spec.schedule").contains("TZ"));
        if when.contains("TZ") {
            let detail = match (zoned_before, has(spec, "timeZone")) {
                (false, _) => Some("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
                (true, true) => Some("cannot use both timeZone field and TZ or CRON_TZ in schedule"),
                (true, false) => None,
            };
            if let Some(detail) = detail {
                out.invalid(&path.child("schedule"), when, detail);
            }
        }
    }
    out.not_negative(&path, spec, "startingDeadlineSeconds");
    if has(spec, "timeZone") {
        time_zone(out, text(spec, "timeZone"), &path.child("timeZone"));
    }
    out.one_of(&path, spec, "concurrencyPolicy", &["Allow", "Forbid", "Replace"]);
    let template = path.child("jobTemplate").child("spec");
    let inner = at(spec, "jobTemplate.spec");
    job_spec(out, inner, &template);
    if has(inner, "selector") {
        out.invalid(&template.child("selector"), at(inner, "selector").clone(), "`selector` will be auto-generated");
    }
    if flag(inner, "manualSelector") {
        out.not_supported(&template.child("manualSelector"), true, &["nil", "false"]);
    }
    out.not_negative(&path, spec, "successfulJobsHistoryLimit");
    out.not_negative(&path, spec, "failedJobsHistoryLimit");
}

/// Only the form is judged: which zones exist is not known here.
fn time_zone(out: &mut Errors, zone: &str, path: &FieldPath) {
    if zone.is_empty() {
        return out.invalid(path, zone, "timeZone must be nil or non-empty string");
    }
    let fits = |part: &str| {
        (1..=14).contains(&part.len())
            && part != "."
            && part != ".."
            && !part.starts_with('-')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte))
    };
    if !zone.split('/').all(fits) {
        out.invalid(path, zone, format!("unknown time zone {zone}"));
    } else if zone.eq_ignore_ascii_case("local") {
        out.invalid(path, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
    }
}

#[cfg(test)]
mod tests;
