//! Webhooks, policies, aggregated services and flow control.

use std::collections::BTreeSet;

use atoll_meta::FieldPath;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::access::default_service;
use super::errors::Errors;
use super::tree::{at, at_mut, fill, fill_map, fill_number, flag, has, int, items, items_mut, keep, set, text};
use super::{PLAIN, Rules, metadata, name};

pub(super) fn admission_rules(kind: &str) -> &'static Rules {
    match kind {
        "MutatingWebhookConfiguration" => &MUTATING,
        "ValidatingWebhookConfiguration" => &VALIDATING,
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => &POLICY,
        "ValidatingAdmissionPolicyBinding" => &VALIDATING_BINDING,
        "MutatingAdmissionPolicyBinding" => &BINDING,
        _ => &PLAIN,
    }
}

pub(super) fn registration_rules(kind: &str) -> &'static Rules {
    if kind == "APIService" { &API_SERVICE } else { &PLAIN }
}

pub(super) fn flow_rules(kind: &str) -> &'static Rules {
    match kind {
        "FlowSchema" => &FLOW,
        "PriorityLevelConfiguration" => &LEVEL,
        _ => &PLAIN,
    }
}

const MUTATING: Rules = Rules {
    default: |_, object| {
        for hook in items_mut(object, "webhooks") {
            default_hook(hook);
            fill(hook, "reinvocationPolicy", "Never");
        }
    },
    ..VALIDATING
};

const VALIDATING: Rules = Rules {
    default: |_, object| {
        for hook in items_mut(object, "webhooks") {
            default_hook(hook);
        }
    },
    validate: hooks,
    validate_update: |new, _, out| hooks(new, out),
    ..PLAIN
};

fn default_hook(hook: &mut Value) {
    fill(hook, "failurePolicy", "Fail");
    fill(hook, "timeoutSeconds", 10);
    default_match(hook);
    for rule in items_mut(hook, "rules") {
        fill(rule, "scope", "*");
    }
    default_service(hook, "clientConfig.service");
}

fn default_match(target: &mut Value) {
    fill(target, "matchPolicy", "Equivalent");
    fill_map(target, "namespaceSelector");
    fill_map(target, "objectSelector");
}

fn hooks(object: &Value, out: &mut Errors) {
    let mut names = BTreeSet::new();
    for (index, hook) in items(object, "webhooks").iter().enumerate() {
        let path = FieldPath::new("webhooks").index(index);
        hook_name(out, text(hook, "name"), &path.child("name"));
        for (index, rule) in items(hook, "rules").iter().enumerate() {
            hook_rule(out, rule, &path.child("rules").index(index));
        }
        out.one_of(&path, hook, "failurePolicy", &["Fail", "Ignore"]);
        out.one_of(&path, hook, "matchPolicy", &["Equivalent", "Exact"]);
        if has(hook, "sideEffects") {
            out.one_of(&path, hook, "sideEffects", &["None", "NoneOnDryRun"]);
        } else {
            out.required(&path.child("sideEffects"), "must specify one of None, NoneOnDryRun");
        }
        if let Some(seconds) = int(hook, "timeoutSeconds").filter(|seconds| !(1..=30).contains(seconds)) {
            let detail = "the timeout value must be between 1 and 30 seconds";
            out.invalid(&path.child("timeoutSeconds"), seconds, detail);
        }
        for field in ["namespaceSelector", "objectSelector"] {
            metadata::selector(out, at(hook, field), &path.child(field));
        }
        out.one_of(&path, hook, "reinvocationPolicy", &["IfNeeded", "Never"]);
        endpoint(out, at(hook, "clientConfig"), &path.child("clientConfig"));
        review_versions(out, items(hook, "admissionReviewVersions"), &path.child("admissionReviewVersions"));
        let own = text(hook, "name");
        if !own.is_empty() && !names.insert(own) {
            out.duplicate(&path.child("name"), own);
        }
    }
}

fn hook_name(out: &mut Errors, own: &str, path: &FieldPath) {
    let faults = name::subdomain(own);
    if own.is_empty() {
        out.required(path, "");
    } else if !faults.is_empty() {
        out.invalid(path, own, faults.join(","));
    } else if own.split('.').count() < 3 {
        out.invalid(path, own, "should be a domain with at least three segments separated by dots");
    }
}

fn alone(out: &mut Errors, list: &[Value], what: &str, path: &FieldPath) {
    if list.len() > 1 && list.iter().any(|item| item == "*") {
        out.invalid(path, Value::from(list), format!("if '*' is present, must not specify other {what}"));
    }
}

fn hook_rule(out: &mut Errors, rule: &Value, path: &FieldPath) {
    let operations = items(rule, "operations");
    if operations.is_empty() {
        out.required(&path.child("operations"), "");
    }
    alone(out, operations, "operations", &path.child("operations"));
    for (index, operation) in operations.iter().enumerate() {
        let known = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
        if !known.contains(&operation.as_str().unwrap_or_default()) {
            out.not_supported(&path.child("operations").index(index), operation.clone(), &known);
        }
    }
    for (field, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        if items(rule, field).is_empty() {
            out.required(&path.child(field), "");
        }
        alone(out, items(rule, field), what, &path.child(field));
    }
    let resources = items(rule, "resources");
    let here = path.child("resources");
    if resources.is_empty() {
        out.required(&here, "");
    }
    if resources.len() > 1 && resources.iter().any(|resource| resource == "*/*") {
        out.invalid(&here, Value::from(resources), "if '*/*' is present, must not specify other resources");
    }
    out.one_of(path, rule, "scope", &["*", "Cluster", "Namespaced"]);
}

fn endpoint(out: &mut Errors, config: &Value, path: &FieldPath) {
    const FORM: &str = "; desired format: https://host[/path]";
    match (has(config, "url"), has(config, "service")) {
        (true, false) => {
            let here = path.child("url");
            let (scheme, rest) = text(config, "url").split_once("://").unwrap_or(("", ""));
            if scheme != "https" {
                out.invalid(&here, scheme, format!("'https' is the only allowed URL scheme{FORM}"));
            }
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            if host.is_empty() {
                out.invalid(&here, "", format!("host must be specified{FORM}"));
            }
            if let Some((user, _)) = host.split_once('@') {
                out.invalid(&here, user, "user information is not permitted in the URL");
            }
            let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
            if !fragment.is_empty() {
                out.invalid(&here, fragment, "fragments are not permitted in the URL");
            }
            if let Some((_, query)) = rest.split_once('?') {
                out.invalid(&here, query, "query parameters are not permitted in the URL");
            }
        }
        (false, true) => {
            let (service, here) = (at(config, "service"), path.child("service"));
            for field in ["name", "namespace"] {
                if text(service, field).is_empty() {
                    out.required(&here.child(field), "");
                }
            }
            service_port(out, service, &here);
            service_path(out, text(service, "path"), &here.child("path"));
        }
        _ => out.required(path, "exactly one of url or service is required"),
    }
}

fn service_path(out: &mut Errors, path: &str, place: &FieldPath) {
    if path.is_empty() || path == "/" {
        return;
    }
    if !path.starts_with('/') {
        out.invalid(place, path, "must start with a '/'");
    }
    let mut rest = path.chars();
    rest.next();
    let rest = rest.as_str();
    for (index, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            out.invalid(place, path, format!("segment[{index}] may not be empty"));
            continue;
        }
        for fault in name::subdomain(step) {
            out.invalid(place, path, format!("segment[{index}]: {fault}"));
        }
    }
}

fn service_port(out: &mut Errors, service: &Value, path: &FieldPath) {
    let port = int(service, "port").unwrap_or(443);
    if !(1..=65535).contains(&port) {
        out.invalid(&path.child("port"), port, format!("port is not valid: {}", name::range(1, 65535)));
    }
}

fn review_versions(out: &mut Errors, versions: &[Value], path: &FieldPath) {
    if versions.is_empty() {
        return out.required(path, "must specify one of v1, v1beta1");
    }
    for (index, version) in versions.iter().enumerate() {
        let shown = version.as_str().unwrap_or_default();
        if versions[..index].contains(version) {
            out.invalid(&path.index(index), shown, "duplicate version");
        } else {
            out.each(&path.index(index), shown, name::label_1035(shown));
        }
    }
    if !versions.iter().any(|version| version == "v1" || version == "v1beta1") {
        out.invalid(path, Value::from(versions), "must include at least one of v1, v1beta1");
    }
}

const POLICY: Rules = Rules {
    default: |ctx, object| {
        fill(object, "spec.failurePolicy", "Fail");
        if ctx.kind == "MutatingAdmissionPolicy" {
            fill(object, "spec.reinvocationPolicy", "Never");
        }
        default_constraints(object, "spec.matchConstraints");
    },
    validate: |object, out| {
        let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
        out.one_of(&path, spec, "failurePolicy", &["Fail", "Ignore"]);
        if !has(spec, "matchConstraints") {
            out.required(&path.child("matchConstraints"), "");
        } else if items(spec, "matchConstraints.resourceRules").is_empty() {
            out.required(&path.child("matchConstraints").child("resourceRules"), "");
        }
        let mutating = has(spec, "mutations") || has(spec, "reinvocationPolicy");
        if !mutating && items(spec, "validations").is_empty() && items(spec, "auditAnnotations").is_empty() {
            for field in ["validations", "auditAnnotations"] {
                let detail = "validations or auditAnnotations must contain at least one item";
                out.required(&path.child(field), detail);
            }
        }
        for (index, rule) in items(spec, "validations").iter().enumerate() {
            if text(rule, "expression").trim().is_empty() {
                out.required(
                    &path.child("validations").index(index).child("expression"),
                    "expression is not specified",
                );
            }
        }
    },
    ..PLAIN
};

const BINDING: Rules = Rules {
    default: |_, object| default_constraints(object, "spec.matchResources"),
    validate: |object, out| {
        let policy = text(object, "spec.policyName");
        let path = FieldPath::new("spec.policyName");
        if policy.is_empty() {
            out.required(&path, "");
        } else {
            out.each(&path, policy, name::subdomain(policy));
        }
    },
    ..PLAIN
};

const VALIDATING_BINDING: Rules = Rules {
    validate: |object, out| {
        (BINDING.validate)(object, out);
        let (actions, path) = (items(object, "spec.validationActions"), FieldPath::new("spec.validationActions"));
        if actions.is_empty() {
            out.required(&path, "at least one validation action is required");
        }
        for (index, action) in actions.iter().enumerate() {
            if !matches!(action.as_str().unwrap_or_default(), "Deny" | "Warn" | "Audit") {
                out.not_supported(&path.index(index), action.clone(), &["Audit", "Deny", "Warn"]);
            }
        }
    },
    ..BINDING
};

fn default_constraints(object: &mut Value, path: &str) {
    if let Some(target) = at_mut(object, path) {
        default_match(target);
        for list in ["resourceRules", "excludeResourceRules"] {
            for rule in items_mut(target, list) {
                fill(rule, "scope", "*");
            }
        }
    }
}

const API_SERVICE: Rules = Rules {
    default: |_, object| {
        default_service(object, "spec.service");
        fill_map(object, "spec");
    },
    create: |ctx, object| {
        // What the server serves itself is there as soon as it is said.
        if !has(object, "spec.service") {
            let condition = json!({"type": "Available", "status": "True", "reason": "Local",
                "message": "Local APIServices are always available", "lastTransitionTime": ctx.now});
            set(object, "status.conditions", vec![condition]);
        }
    },
    validate: api_service,
    validate_update: |new, _, out| api_service(new, out),
    ..PLAIN
};

fn api_service(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    let (own, wanted) = (text(object, "metadata.name"), format!("{version}.{group}"));
    if own != wanted {
        let detail = format!("must be `spec.version+\".\"+spec.group`: \"{wanted}\"");
        out.invalid(&FieldPath::new("metadata.name"), own, detail);
    }
    if !group.is_empty() {
        out.each(&path.child("group"), group, name::subdomain(group));
    } else if version != "v1" {
        out.required(&path.child("group"), "only v1 may have an empty group and it better be legacy kube");
    }
    out.each(&path.child("version"), version, name::label_1035(version));
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let number = int(spec, field).unwrap_or(0);
        if !(1..=most).contains(&number) {
            out.invalid(&path.child(field), number, format!("must be positive and less than {most}"));
        }
    }
    let (bundle, insecure) = (text(spec, "caBundle"), flag(spec, "insecureSkipTLSVerify"));
    if !has(spec, "service") {
        if !bundle.is_empty() {
            let length = STANDARD.decode(bundle).map_or(bundle.len(), |bytes| bytes.len());
            let shown = format!("{length} bytes");
            out.invalid(&path.child("caBundle"), shown, "local APIServices may not have a caBundle");
        }
        if insecure {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            out.invalid(&path.child("insecureSkipTLSVerify"), true, detail);
        }
        return;
    }
    for field in ["namespace", "name"] {
        if text(at(spec, "service"), field).is_empty() {
            out.required(&path.child("service").child(field), "");
        }
    }
    service_port(out, at(spec, "service"), &path.child("service"));
    if insecure && !bundle.is_empty() {
        out.invalid(&path.child("insecureSkipTLSVerify"), true, "may not be true if caBundle is present");
    }
}

const FLOW: Rules = Rules {
    default: |_, object| fill_number(object, "spec.matchingPrecedence", 1000),
    status: |_, new, old| keep_metadata(new, old),
    validate: flow,
    validate_update: |new, _, out| flow(new, out),
    ..PLAIN
};

/// Nothing of the metadata but who manages what changes with the status.
fn keep_metadata(new: &mut Value, old: &Value) {
    for field in ["labels", "annotations", "ownerReferences", "finalizers"] {
        keep(new, old, &format!("metadata.{field}"));
    }
}

fn flow(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    let order = int(spec, "matchingPrecedence").unwrap_or(0);
    let here = path.child("matchingPrecedence");
    if order <= 0 {
        out.invalid(&here, order, "must be a positive value");
    }
    if order > 10_000 {
        out.invalid(&here, order, "must not be greater than 10000");
    }
    if order == 1 && text(object, "metadata.name") != "exempt" {
        out.invalid(&here, order, "only the schema named 'exempt' may have matchingPrecedence 1");
    }
    if has(spec, "distinguisherMethod") && !matches!(text(spec, "distinguisherMethod.type"), "ByUser" | "ByNamespace") {
        let value = at(spec, "distinguisherMethod").clone();
        out.not_supported(&path.child("distinguisherMethod").child("type"), value, &["ByNamespace", "ByUser"]);
    }
    let level = text(spec, "priorityLevelConfiguration.name");
    let here = path.child("priorityLevelConfiguration").child("name");
    if level.is_empty() {
        out.required(&here, "must reference a priority level");
    } else {
        out.each(&here, level, name::subdomain(level));
    }
    for (index, rule) in items(spec, "rules").iter().enumerate() {
        let here = path.child("rules").index(index);
        if items(rule, "subjects").is_empty() {
            out.required(&here.child("subjects"), "subjects must contain at least one value");
        }
        for (index, subject) in items(rule, "subjects").iter().enumerate() {
            let kind = text(subject, "kind");
            if !matches!(kind, "User" | "Group" | "ServiceAccount") {
                let place = here.child("subjects").index(index).child("kind");
                out.not_supported(&place, kind, &["Group", "ServiceAccount", "User"]);
            }
        }
        if items(rule, "resourceRules").is_empty() && items(rule, "nonResourceRules").is_empty() {
            out.required(&here, "at least one of resourceRules and nonResourceRules has to be non-empty");
        }
    }
}

const LEVEL: Rules = Rules {
    default: |_, object| {
        if let Some(limited) = at_mut(object, "spec.limited") {
            fill(limited, "nominalConcurrencyShares", 30);
            fill(limited, "lendablePercent", 0);
        }
        if let Some(exempt) = at_mut(object, "spec.exempt") {
            fill(exempt, "nominalConcurrencyShares", 0);
            fill(exempt, "lendablePercent", 0);
        }
        if let Some(queuing) = at_mut(object, "spec.limited.limitResponse.queuing") {
            fill_number(queuing, "handSize", 8);
            fill_number(queuing, "queues", 64);
            fill_number(queuing, "queueLengthLimit", 50);
        }
    },
    status: |_, new, old| keep_metadata(new, old),
    validate: level,
    validate_update: |new, _, out| level(new, out),
    ..PLAIN
};

fn level(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    let kind = text(spec, "type");
    if (text(object, "metadata.name") == "exempt") != (kind == "Exempt") {
        out.invalid(&path.child("type"), kind, "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    let limited = at(spec, "limited");
    match kind {
        "Exempt" if !limited.is_null() => {
            out.forbidden(&path.child("limited"), "must be nil if the type is not Limited");
        }
        "Exempt" => {}
        "Limited" => {
            if has(spec, "exempt") {
                out.forbidden(&path.child("exempt"), "must be nil if the type is Limited");
            }
            if limited.is_null() {
                return out.required(&path.child("limited"), "must not be empty when type is Limited");
            }
            let here = path.child("limited");
            if let Some(shares) = int(limited, "nominalConcurrencyShares").filter(|shares| *shares < 0) {
                out.invalid(&here.child("nominalConcurrencyShares"), shares, "must be a non-negative integer");
            }
            match (text(limited, "limitResponse.type"), has(limited, "limitResponse.queuing")) {
                ("Reject", true) => out.forbidden(
                    &here.child("limitResponse").child("queuing"),
                    "must be nil if limited.limitResponse.type is not Limited",
                ),
                ("Queue", false) => out.required(
                    &here.child("limitResponse").child("queuing"),
                    "must not be empty if limited.limitResponse.type is Limited",
                ),
                ("Reject" | "Queue", _) => {}
                (other, _) => {
                    out.not_supported(&here.child("limitResponse").child("type"), other, &["Queue", "Reject"]);
                }
            }
        }
        other => out.not_supported(&path.child("type"), other, &["Exempt", "Limited"]),
    }
}
