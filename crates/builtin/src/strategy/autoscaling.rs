//! Autoscalers of both versions, and disruption budgets.

use atoll_meta::{FieldErrorKind, FieldPath};
use serde_json::{Value, json};

use super::errors::{Errors, NOT_POSITIVE};
use super::tree::{at, at_mut, fill, fill_map, has, int, items, items_mut, same, set, text};
use super::{PLAIN, Rules, amount, apps, metadata, name};

const MAX_WINDOW: i64 = 3600;
const MAX_PERIOD: i64 = 1800;
const METRICS: &[(&str, &str)] = &[
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];

pub(super) fn rules(kind: &str) -> &'static Rules {
    if kind == "HorizontalPodAutoscaler" { &AUTOSCALER } else { &PLAIN }
}

pub(super) fn policy_rules(kind: &str) -> &'static Rules {
    if kind == "PodDisruptionBudget" { &BUDGET } else { &PLAIN }
}

const AUTOSCALER: Rules = Rules {
    default: |ctx, object| {
        fill(object, "spec.minReplicas", 1);
        if ctx.version != "v1" {
            default_metrics(object);
        }
        fill(object, "status.desiredReplicas", 0);
        if ctx.version == "v1" {
            fill(object, "status.currentReplicas", 0);
        }
    },
    create: |ctx, object| {
        if ctx.version != "v1" {
            set(object, "status.currentMetrics", Value::Null);
        }
    },
    validate: |object, out| autoscaler(object, None, out),
    validate_update: |new, old, out| autoscaler(new, Some(old), out),
    validate_status: |new, _, out| {
        out.not_negative(&FieldPath::new("status"), at(new, "status"), "currentReplicas");
        out.not_negative(&FieldPath::new("status"), at(new, "status"), "desiredReplicas");
    },
    ..PLAIN
};

fn default_metrics(object: &mut Value) {
    if items(object, "spec.metrics").is_empty() {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        set(object, "spec.metrics", json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    }
    for metric in items_mut(object, "spec.metrics") {
        for (_, field) in METRICS {
            for part in ["target.value", "target.averageValue"] {
                if let Some(value) = at_mut(metric, &format!("{field}.{part}")) {
                    amount::canonize(value);
                }
            }
        }
    }
    if has(object, "spec.behavior") {
        let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
        let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
        fill(object, "spec.behavior.scaleUp.stabilizationWindowSeconds", 0);
        fill(object, "spec.behavior.scaleUp.selectPolicy", "Max");
        fill(object, "spec.behavior.scaleUp.policies", json!([pods, percent]));
        fill(object, "spec.behavior.scaleDown.selectPolicy", "Max");
        fill(object, "spec.behavior.scaleDown.policies", json!([percent]));
    }
}

fn autoscaler(object: &Value, old: Option<&Value>, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    let least = int(spec, "minReplicas");
    let most = int(spec, "maxReplicas").unwrap_or(0);
    if let Some(least) = least.filter(|least| *least < 1) {
        out.invalid(&path.child("minReplicas"), least, "must be greater than or equal to 1");
    }
    if most < 1 {
        out.invalid(&path.child("maxReplicas"), most, "must be greater than 0");
    }
    if least.is_some_and(|least| most < least) {
        out.invalid(&path.child("maxReplicas"), most, "must be greater than or equal to `minReplicas`");
    }
    let target = at(spec, "scaleTargetRef");
    reference(out, target, &path.child("scaleTargetRef"));
    let kept = old.is_some_and(|old| same(at(old, "spec.scaleTargetRef"), target));
    if !kept && !text(target, "apiVersion").contains('/') && text(target, "kind") != "ReplicationController" {
        let here = path.child("scaleTargetRef").child("apiVersion");
        out.invalid(&here, text(target, "apiVersion"), "apiVersion must specify API group");
    }
    let outside = items(spec, "metrics").iter().any(|metric| matches!(text(metric, "type"), "Object" | "External"));
    if least == Some(0) && !outside {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        out.forbidden(&path.child("metrics"), detail);
    }
    for (index, metric) in items(spec, "metrics").iter().enumerate() {
        metric_spec(out, metric, &path.child("metrics").index(index));
    }
    for direction in ["scaleUp", "scaleDown"] {
        if has(at(spec, "behavior"), direction) {
            scaling_rules(out, at(at(spec, "behavior"), direction), &path.child("behavior").child(direction));
        }
    }
}

fn reference(out: &mut Errors, reference: &Value, path: &FieldPath) {
    for field in ["kind", "name"] {
        let value = text(reference, field);
        if value.is_empty() {
            out.required(&path.child(field), "");
        } else {
            out.each(&path.child(field), value, atoll_meta::name::is_path_segment(value));
        }
    }
}

fn metric_spec(out: &mut Errors, metric: &Value, path: &FieldPath) {
    let sorted = &["ContainerResource", "External", "Object", "Pods", "Resource"];
    let kind = text(metric, "type");
    if kind.is_empty() {
        out.required(&path.child("type"), "must specify a metric source type");
    }
    let expected = METRICS.iter().find(|(name, _)| *name == kind).map(|(_, field)| *field);
    let Some(expected) = expected else {
        // Told twice, as it has always been.
        out.not_supported(&path.child("type"), kind, sorted);
        return out.not_supported(&path.child("type"), kind, sorted);
    };
    let present: Vec<&str> = METRICS.iter().map(|(_, field)| *field).filter(|field| has(metric, field)).collect();
    if let Some(first) = present.first() {
        source(out, first, at(metric, first), &path.child(first));
    }
    if !present.contains(&expected) {
        out.required(&path.child(expected), "must populate information for the given metric source");
    }
    for other in present.iter().filter(|field| **field != expected) {
        out.forbidden(&path.child(other), "must populate the given metric source only");
    }
}

fn source(out: &mut Errors, field: &str, source: &Value, path: &FieldPath) {
    let target = path.child("target");
    if matches!(field, "resource" | "containerResource") {
        if text(source, "name").is_empty() {
            out.required(&path.child("name"), "must specify a resource name");
        }
        if field == "containerResource" && text(source, "container").is_empty() {
            out.required(&path.child("container"), "must specify a container");
        }
    } else {
        if field == "object" {
            reference(out, at(source, "describedObject"), &path.child("describedObject"));
        }
        if text(source, "metric.name").is_empty() {
            out.required(&path.child("metric").child("name"), "must specify a metric name");
        }
    }
    metric_target(out, at(source, "target"), &target);
    let (value, average, share) =
        (has(source, "target.value"), has(source, "target.averageValue"), has(source, "target.averageUtilization"));
    match field {
        "object" if !value && !average => {
            out.required(&target.child("averageValue"), "must set either a target value or averageValue");
        }
        "external" if !value && !average => {
            let detail = "must set either a target value for metric or a per-pod target";
            out.required(&target.child("averageValue"), detail);
        }
        "external" if value && average => {
            let detail = "may not set both a target value for metric and a per-pod target";
            out.forbidden(&target.child("value"), detail);
        }
        "pods" if !average => {
            out.required(&target.child("averageValue"), "must specify a positive target averageValue");
        }
        "resource" | "containerResource" if !share && !average => {
            let detail = "must set either a target raw value or a target utilization";
            out.required(&target.child("averageUtilization"), detail);
        }
        "resource" | "containerResource" if share && average => {
            let detail = "may not set both a target raw value and a target utilization";
            out.forbidden(&target.child("averageValue"), detail);
        }
        _ => {}
    }
}

fn metric_target(out: &mut Errors, target: &Value, path: &FieldPath) {
    let kind = text(target, "type");
    if kind.is_empty() {
        out.required(&path.child("type"), "must specify a metric target type");
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        out.invalid(&path.child("type"), kind, "must be either Utilization, Value, or AverageValue");
    }
    for field in ["value", "averageValue"] {
        if let Some(value) = amount::read(at(target, field)).filter(|value| value.is_zero() || value.is_negative()) {
            out.invalid(&path.child(field), value.to_string(), "must be positive");
        }
    }
    if let Some(share) = int(target, "averageUtilization").filter(|share| *share < 1) {
        out.invalid(&path.child("averageUtilization"), share, "must be greater than 0");
    }
}

fn scaling_rules(out: &mut Errors, rules: &Value, path: &FieldPath) {
    if let Some(window) = int(rules, "stabilizationWindowSeconds") {
        let here = path.child("stabilizationWindowSeconds");
        if window < 0 {
            out.invalid(&here, window, "must be greater than or equal to zero");
        }
        if window > MAX_WINDOW {
            out.invalid(&here, window, format!("must be less than or equal to {MAX_WINDOW}"));
        }
    }
    out.one_of(path, rules, "selectPolicy", &["Disabled", "Max", "Min"]);
    let policies = items(rules, "policies");
    if policies.is_empty() {
        out.required(&path.child("policies"), "must specify at least one Policy");
    }
    for (index, policy) in policies.iter().enumerate() {
        let here = path.child("policies").index(index);
        if !matches!(text(policy, "type"), "Pods" | "Percent") {
            out.not_supported(&here.child("type"), text(policy, "type"), &["Percent", "Pods"]);
        }
        for field in ["value", "periodSeconds"] {
            let number = int(policy, field).unwrap_or(0);
            if number <= 0 {
                out.invalid(&here.child(field), number, NOT_POSITIVE);
            }
        }
        if let Some(period) = int(policy, "periodSeconds").filter(|period| *period > MAX_PERIOD) {
            out.invalid(&here.child("periodSeconds"), period, format!("must be less than or equal to {MAX_PERIOD}"));
        }
    }
}

const BUDGET: Rules = Rules {
    default: |_, object| {
        fill_map(object, "spec");
        for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
            fill(object, &format!("status.{field}"), 0);
        }
    },
    validate: budget,
    validate_update: |new, _, out| budget(new, out),
    validate_status: |new, _, out| {
        let path = FieldPath::new("status");
        for (index, condition) in items(new, "status.conditions").iter().enumerate() {
            let kind = text(condition, "type");
            out.each(&path.child("conditions").index(index).child("type"), kind, name::qualified(kind));
        }
        for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
            out.not_negative(&path, at(new, "status"), field);
        }
    },
    ..PLAIN
};

fn budget(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    if has(spec, "minAvailable") && has(spec, "maxUnavailable") {
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            at(spec, "minAvailable"),
            at(spec, "selector"),
            at(spec, "maxUnavailable"),
            at(spec, "unhealthyPodEvictionPolicy"),
        );
        let why = "minAvailable and maxUnavailable cannot be both set";
        out.shown(&path, FieldErrorKind::Invalid, &shown, why);
    }
    for field in ["minAvailable", "maxUnavailable"] {
        apps::number_or_percent(out, at(spec, field), &path.child(field));
        apps::at_most_all(out, at(spec, field), &path.child(field));
    }
    metadata::selector(out, at(spec, "selector"), &path.child("selector"));
    out.one_of(&path, spec, "unhealthyPodEvictionPolicy", &["AlwaysAllow", "IfHealthyBudget"]);
}
