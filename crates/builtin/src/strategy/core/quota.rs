//! Limits and quotas of namespaces.

use std::collections::BTreeSet;

use atoll_meta::FieldPath;
use serde_json::{Map, Value};

use crate::strategy::errors::{Errors, IMMUTABLE};
use crate::strategy::tree::{at, at_mut, entries, fill_map, items, items_mut, map, set, text};
use crate::strategy::{PLAIN, Rules, amount, count, name};

const PARTS: &[&str] = &["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];
const SCOPES: &[&str] = &[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

pub(super) const LIMIT_RANGE: Rules = Rules {
    default: |_, object| {
        fill_map(object, "spec");
        if items(object, "spec.limits").is_empty() {
            set(object, "spec.limits", Value::Null);
        }
        for limit in items_mut(object, "spec.limits") {
            default_limit(limit);
        }
    },
    validate: limit_range,
    validate_update: |new, _, out| limit_range(new, out),
    ..PLAIN
};

pub(super) const QUOTA: Rules = Rules {
    default: |_, object| {
        fill_map(object, "spec");
        for part in ["spec.hard", "status.hard", "status.used"] {
            amount::canonize_map(at_mut(object, part));
        }
    },
    validate: quota,
    validate_update: |new, old, out| {
        quota(new, out);
        let scopes = |object: &Value| -> BTreeSet<String> {
            items(object, "spec.scopes").iter().map(|scope| scope.as_str().unwrap_or_default().to_owned()).collect()
        };
        if scopes(new) != scopes(old) {
            out.invalid(&FieldPath::new("spec.scopes"), at(new, "spec.scopes").clone(), IMMUTABLE);
        }
    },
    validate_status: |new, _, out| {
        for part in ["hard", "used"] {
            amounts(out, at(new, "status"), part, &FieldPath::new("status").child(part));
        }
    },
    ..PLAIN
};

fn default_limit(limit: &mut Value) {
    for part in PARTS {
        amount::canonize_map(at_mut(limit, part));
    }
    if text(limit, "type") != "Container" {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let given: Map<String, Value> = at(limit, from).as_object().cloned().unwrap_or_default();
        if given.is_empty() {
            continue;
        }
        if let Some(target) = map(limit, to) {
            for (resource, value) in given {
                target.entry(resource).or_insert(value);
            }
        }
    }
}

fn limit_range(object: &Value, out: &mut Errors) {
    let mut kinds = BTreeSet::new();
    for (index, limit) in items(object, "spec.limits").iter().enumerate() {
        let path = FieldPath::new("spec.limits").index(index);
        let kind = text(limit, "type");
        let faults = name::qualified(kind);
        if faults.is_empty() && !kind.contains('/') && !matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim") {
            out.invalid(&path.child("type"), kind, "must be a standard limit type or fully qualified");
        }
        out.each(&path.child("type"), kind, faults);
        if !kinds.insert(kind) {
            out.duplicate(&path.child("type"), kind);
        }
        limit_names(out, limit, kind, &path);
        if kind == "Pod" {
            for part in ["default", "defaultRequest"] {
                if count(limit, part) > 0 {
                    out.forbidden(&path.child(part), "may not be specified when `type` is 'Pod'");
                }
            }
        }
        if kind == "PersistentVolumeClaim" && at(limit, "min.storage").is_null() && at(limit, "max.storage").is_null() {
            let detail = "either minimum or maximum storage value is required, but neither was provided";
            out.required(&path.child("limits"), detail);
        }
        limit_order(out, limit, &path);
    }
}

fn limit_names(out: &mut Errors, limit: &Value, kind: &str, path: &FieldPath) {
    for part in PARTS {
        for (resource, _) in entries(limit, part) {
            let here = path.child(part).key(resource);
            if matches!(kind, "Pod" | "Container") {
                amount::container_resource_name(out, &here, resource);
            } else {
                amount::resource_name(out, &here, resource);
            }
        }
    }
}

/// Least ≤ default request ≤ default ≤ most.
fn limit_order(out: &mut Errors, limit: &Value, path: &FieldPath) {
    let resources: BTreeSet<&String> = PARTS.iter().flat_map(|part| entries(limit, part)).map(|(key, _)| key).collect();
    for resource in resources {
        let get = |part: &str| at(limit, part).get(resource).and_then(amount::read);
        let mut order = |low: &str, high: &str, at: (&str, &str), words: (&str, &str)| {
            if let (Some(low), Some(high)) = (get(low), get(high))
                && low > high
            {
                let detail = format!("{} value {low} is greater than {} value {high}", words.0, words.1);
                let value = get(at.1).map(|value| value.to_string());
                out.invalid(&path.child(at.0).key(resource), value.unwrap_or_default(), detail);
            }
        };
        let request = ("defaultRequest", "defaultRequest");
        order("min", "max", ("min", "min"), ("min", "max"));
        order("min", "defaultRequest", request, ("min", "default request"));
        order("defaultRequest", "max", request, ("default request", "max"));
        order("defaultRequest", "default", request, ("default request", "default limit"));
        order("min", "default", ("default", "min"), ("min", "default"));
        order("default", "max", ("default", "max"), ("default", "max"));
    }
}

fn quota(object: &Value, out: &mut Errors) {
    amounts(out, at(object, "spec"), "hard", &FieldPath::new("spec.hard"));
    let scopes = items(object, "spec.scopes");
    let path = FieldPath::new("spec.scopes");
    for scope in scopes {
        if !SCOPES.contains(&scope.as_str().unwrap_or_default()) {
            out.invalid(&path, Value::from(scopes), "unsupported scope");
        }
        for (resource, _) in entries(at(object, "spec"), "hard") {
            if amount::for_quota(resource) && !fits(scope.as_str().unwrap_or_default(), resource) {
                out.invalid(&path, Value::from(scopes), "unsupported scope applied to resource");
            }
        }
    }
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|wanted| scopes.iter().any(|scope| scope == wanted)) {
            out.invalid(&path, Value::from(scopes), "conflicting scopes");
        }
    }
    let path = FieldPath::new("spec.scopeSelector.matchExpressions");
    for rule in items(object, "spec.scopeSelector.matchExpressions") {
        let scope = text(rule, "scopeName");
        if !SCOPES.contains(&scope) {
            out.invalid(&path.child("scopeName"), scope, "unsupported scope");
        }
        match text(rule, "operator") {
            "In" | "NotIn" if items(rule, "values").is_empty() => {
                let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                out.required(&path.child("values"), detail);
            }
            "Exists" | "DoesNotExist" if !items(rule, "values").is_empty() => {
                let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                out.invalid(&path.child("values"), at(rule, "values").clone(), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => out.invalid(&path.child("operator"), other, "not a valid selector operator"),
        }
    }
}

/// Whether a scope says anything about a resource.
fn fits(scope: &str, resource: &str) -> bool {
    let compute = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
    match scope {
        "BestEffort" => resource == "pods",
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
            resource == "pods" || compute.contains(&resource)
        }
        _ => true,
    }
}

fn amounts(out: &mut Errors, parent: &Value, field: &str, path: &FieldPath) {
    for (resource, value) in entries(parent, field) {
        let here = path.key(resource);
        amount::resource_name(out, &here, resource);
        if !resource.contains('/') && !amount::for_quota(resource) {
            out.invalid(&here, resource.as_str(), "must be a standard resource for quota");
        }
        amount::resource_value(out, &here, resource, value);
    }
}
