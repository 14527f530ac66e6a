//! Judging where a pod may run: affinity, tolerations, spreading.

use atoll_meta::FieldPath;
use serde_json::Value;

use crate::strategy::errors::{Errors, NOT_POSITIVE};
use crate::strategy::tree::{at, has, int, items, text};
use crate::strategy::{metadata, name};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
/// What a taint may do.
pub(crate) const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Node and pod affinity.
pub(super) fn affinity(out: &mut Errors, affinity: &Value, path: &FieldPath) {
    let node = at(affinity, "nodeAffinity");
    let here = path.child("nodeAffinity");
    if has(node, REQUIRED) {
        node_selector(out, at(node, REQUIRED), &here.child(REQUIRED));
    }
    for (index, term) in items(node, PREFERRED).iter().enumerate() {
        let here = here.child(PREFERRED).index(index);
        weight(out, term, &here);
        node_selector_term(out, at(term, "preference"), &here.child("preference"));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let (rules, here) = (at(affinity, kind), path.child(kind));
        for (index, term) in items(rules, REQUIRED).iter().enumerate() {
            pod_term(out, term, &here.child(REQUIRED).index(index));
        }
        for (index, term) in items(rules, PREFERRED).iter().enumerate() {
            let here = here.child(PREFERRED).index(index);
            weight(out, term, &here);
            pod_term(out, at(term, "podAffinityTerm"), &here.child("podAffinityTerm"));
        }
    }
}

fn weight(out: &mut Errors, term: &Value, path: &FieldPath) {
    let weight = int(term, "weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        out.invalid(&path.child("weight"), weight, "must be in the range 1-100");
    }
}

/// A node selector: terms, of which one must fit.
pub(crate) fn node_selector(out: &mut Errors, selector: &Value, path: &FieldPath) {
    let terms = items(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        out.required(&path.child("nodeSelectorTerms"), "must have at least one node selector term");
    }
    for (index, term) in terms.iter().enumerate() {
        node_selector_term(out, term, &path.child("nodeSelectorTerms").index(index));
    }
}

/// One term of a node selector.
fn node_selector_term(out: &mut Errors, term: &Value, path: &FieldPath) {
    for (index, rule) in items(term, "matchExpressions").iter().enumerate() {
        let here = path.child("matchExpressions").index(index);
        let values = items(rule, "values");
        match text(rule, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                out.required(&here.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                out.forbidden(&here.child("values"), detail);
            }
            "Gt" | "Lt" if values.len() != 1 => {
                out.required(&here.child("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => out.invalid(&here.child("operator"), other, "not a valid selector operator"),
        }
        let key = text(rule, "key");
        out.each(&here.child("key"), key, name::qualified(key));
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            out.each(&here.child("values").index(index), value, name::label_value(value));
        }
    }
    for (index, rule) in items(term, "matchFields").iter().enumerate() {
        let here = path.child("matchFields").index(index);
        match text(rule, "operator") {
            "In" | "NotIn" if items(rule, "values").len() != 1 => out.required(
                &here.child("values"),
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            ),
            "In" | "NotIn" => {}
            other => out.invalid(&here.child("operator"), other, "not a valid selector operator"),
        }
        if text(rule, "key") != "metadata.name" {
            out.invalid(&here.child("key"), text(rule, "key"), "not a valid field selector key");
        }
    }
}

fn pod_term(out: &mut Errors, term: &Value, path: &FieldPath) {
    metadata::selector(out, at(term, "labelSelector"), &path.child("labelSelector"));
    metadata::selector(out, at(term, "namespaceSelector"), &path.child("namespaceSelector"));
    for namespace in items(term, "namespaces") {
        let namespace = namespace.as_str().unwrap_or_default();
        out.each(&path.child("namespace"), namespace, name::label(namespace));
    }
    let key = text(term, "topologyKey");
    if key.is_empty() {
        out.required(&path.child("topologyKey"), "can not be empty");
    }
    out.each(&path.child("topologyKey"), key, name::qualified(key));
}

/// Tolerations of taints.
pub(crate) fn tolerations(out: &mut Errors, list: &[Value], path: &FieldPath) {
    for (index, toleration) in list.iter().enumerate() {
        let here = path.index(index);
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        if key.is_empty() {
            if operator != "Exists" {
                let detail =
                    "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
                out.invalid(&here.child("operator"), operator, detail);
            }
        } else {
            out.each(&here.child("key"), key, name::qualified(key));
        }
        let effect = text(toleration, "effect");
        if has(toleration, "tolerationSeconds") && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            out.invalid(&here.child("effect"), effect, detail);
        }
        let value = text(toleration, "value");
        match operator {
            "Equal" | "" => {
                let faults = name::label_value(value);
                if !faults.is_empty() {
                    out.invalid(&here.child("operator"), value, faults.join(";"));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    out.invalid(&here.child("operator"), value, "value must be empty when `operator` is 'Exists'");
                }
            }
            "Lt" | "Gt" => out.not_supported(&here.child("operator"), operator, &["Equal", "Exists", "Lt", "Gt"]),
            other => out.not_supported(&here.child("operator"), other, &["Equal", "Exists"]),
        }
        if !effect.is_empty() && !EFFECTS.contains(&effect) {
            out.not_supported(&here.child("effect"), effect, EFFECTS);
        }
    }
}

/// Rules for spreading pods over a topology.
pub(super) fn spread(out: &mut Errors, list: &[Value], path: &FieldPath) {
    for (index, rule) in list.iter().enumerate() {
        let here = path.index(index);
        if int(rule, "maxSkew").unwrap_or(0) <= 0 {
            out.invalid(&here.child("maxSkew"), int(rule, "maxSkew").unwrap_or(0), NOT_POSITIVE);
        }
        let (key, action) = (text(rule, "topologyKey"), text(rule, "whenUnsatisfiable"));
        if key.is_empty() {
            out.required(&here.child("topologyKey"), "can not be empty");
        }
        if !matches!(action, "DoNotSchedule" | "ScheduleAnyway") {
            out.not_supported(&here.child("whenUnsatisfiable"), action, &["DoNotSchedule", "ScheduleAnyway"]);
        }
        if list[index + 1..]
            .iter()
            .any(|other| text(other, "topologyKey") == key && text(other, "whenUnsatisfiable") == action)
        {
            out.duplicate(&here.child("{topologyKey, whenUnsatisfiable}"), format!("{{{key}, {action}}}"));
        }
        if let Some(domains) = int(rule, "minDomains") {
            if domains <= 0 {
                out.invalid(&here.child("minDomains"), domains, NOT_POSITIVE);
            }
            if action != "DoNotSchedule" {
                let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                out.invalid(&here.child("minDomains"), domains, detail);
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            out.one_of(&here, rule, field, &["Honor", "Ignore"]);
        }
        metadata::selector(out, at(rule, "labelSelector"), &here.child("labelSelector"));
    }
}
