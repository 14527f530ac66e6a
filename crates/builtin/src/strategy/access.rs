//! Roles and their bindings, certificates, leases.

use atoll_meta::{FieldErrorKind, FieldPath};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::errors::Errors;
use super::tree::{at, at_mut, fill, fill_map, fill_text, has, int, items, items_mut, keep, remove, same, set, text};
use super::{PLAIN, Rules, metadata, name};

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn rbac_rules(kind: &str) -> &'static Rules {
    match kind {
        "Role" => &ROLE,
        "ClusterRole" => &CLUSTER_ROLE,
        "RoleBinding" => &BINDING,
        "ClusterRoleBinding" => &CLUSTER_BINDING,
        _ => &PLAIN,
    }
}

pub(super) fn certificate_rules(kind: &str) -> &'static Rules {
    if kind == "CertificateSigningRequest" { &REQUEST } else { &PLAIN }
}

pub(super) fn lease_rules(kind: &str) -> &'static Rules {
    match kind {
        "Lease" => &LEASE,
        "LeaseCandidate" => &CANDIDATE,
        _ => &PLAIN,
    }
}

const ROLE: Rules = Rules {
    default: |_, object| default_rules(object),
    validate: |object, out| policy_rules(object, true, out),
    validate_update: |new, _, out| policy_rules(new, true, out),
    ..PLAIN
};

const CLUSTER_ROLE: Rules = Rules {
    default: |_, object| default_rules(object),
    validate: cluster_role,
    validate_update: |new, _, out| cluster_role(new, out),
    ..PLAIN
};

/// No rules and an empty list of rules are one and the same once stored.
fn default_rules(object: &mut Value) {
    if items(object, "rules").is_empty() {
        set(object, "rules", Value::Null);
    }
}

fn cluster_role(object: &Value, out: &mut Errors) {
    policy_rules(object, false, out);
    if !has(object, "aggregationRule") {
        return;
    }
    let path = FieldPath::new("aggregationRule.clusterRoleSelectors");
    let selectors = items(object, "aggregationRule.clusterRoleSelectors");
    if selectors.is_empty() {
        out.required(&path, "at least one clusterRoleSelector required if aggregationRule is non-nil");
    }
    for (index, selector) in selectors.iter().enumerate() {
        metadata::selector(out, selector, &path.index(index));
    }
}

fn policy_rules(object: &Value, namespaced: bool, out: &mut Errors) {
    for (index, rule) in items(object, "rules").iter().enumerate() {
        let path = FieldPath::new("rules").index(index);
        if items(rule, "verbs").is_empty() {
            out.required(&path.child("verbs"), "verbs must contain at least one value");
        }
        let urls = items(rule, "nonResourceURLs");
        if !urls.is_empty() {
            let here = path.child("nonResourceURLs");
            if namespaced {
                out.invalid(&here, Value::from(urls), "namespaced rules cannot apply to non-resource URLs");
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !items(rule, field).is_empty()) {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                out.invalid(&here, Value::from(urls), detail);
            }
            continue;
        }
        if items(rule, "apiGroups").is_empty() {
            out.required(&path.child("apiGroups"), "resource rules must supply at least one api group");
        }
        if items(rule, "resources").is_empty() {
            out.required(&path.child("resources"), "resource rules must supply at least one resource");
        }
    }
}

const BINDING: Rules = Rules {
    default: |_, object| default_binding(object),
    validate: |object, out| binding(object, true, out),
    validate_update: |new, old, out| binding_update(new, old, true, out),
    ..PLAIN
};

const CLUSTER_BINDING: Rules = Rules {
    default: |_, object| default_binding(object),
    validate: |object, out| binding(object, false, out),
    validate_update: |new, old, out| binding_update(new, old, false, out),
    ..PLAIN
};

fn default_binding(object: &mut Value) {
    fill_text(object, "roleRef.apiGroup", RBAC);
    for subject in items_mut(object, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            fill_text(subject, "apiGroup", RBAC);
        }
    }
}

fn binding(object: &Value, namespaced: bool, out: &mut Errors) {
    let (role, path) = (at(object, "roleRef"), FieldPath::new("roleRef"));
    if text(role, "apiGroup") != RBAC {
        out.not_supported(&path.child("apiGroup"), text(role, "apiGroup"), &[RBAC]);
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&text(role, "kind")) {
        out.not_supported(&path.child("kind"), text(role, "kind"), kinds);
    }
    let own = text(role, "name");
    if own.is_empty() {
        out.required(&path.child("name"), "");
    } else {
        out.each(&path.child("name"), own, atoll_meta::name::is_path_segment(own));
    }
    for (index, subject) in items(object, "subjects").iter().enumerate() {
        binding_subject(out, subject, namespaced, &FieldPath::new("subjects").index(index));
    }
}

fn binding_subject(out: &mut Errors, subject: &Value, namespaced: bool, path: &FieldPath) {
    let (own, group) = (text(subject, "name"), text(subject, "apiGroup"));
    if own.is_empty() {
        out.required(&path.child("name"), "");
    }
    match text(subject, "kind") {
        "ServiceAccount" => {
            if !own.is_empty() {
                out.each(&path.child("name"), own, name::subdomain(own));
            }
            if !group.is_empty() {
                out.not_supported(&path.child("apiGroup"), group, &[""]);
            }
            if !namespaced && text(subject, "namespace").is_empty() {
                out.required(&path.child("namespace"), "");
            }
        }
        "User" | "Group" => {
            if group != RBAC {
                out.not_supported(&path.child("apiGroup"), group, &[RBAC]);
            }
        }
        other => out.not_supported(&path.child("kind"), other, &["ServiceAccount", "User", "Group"]),
    }
}

fn binding_update(new: &Value, old: &Value, namespaced: bool, out: &mut Errors) {
    binding(new, namespaced, out);
    if !same(at(new, "roleRef"), at(old, "roleRef")) {
        let text = |field: &str| json!(text(at(new, "roleRef"), field));
        let shown =
            format!("{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}", text("apiGroup"), text("kind"), text("name"));
        out.shown(&FieldPath::new("roleRef"), FieldErrorKind::Invalid, &shown, "cannot change roleRef");
    }
}

const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

const REQUEST: Rules = Rules {
    update: |_, new, old| keep(new, old, "spec"),
    status: |ctx, new, old| {
        // Decisions are made on `/approval` only: they stay as they are. New and missing ones are refused later.
        let mut kept: Vec<Value> = items(new, "status.conditions").to_vec();
        for kind in ["Approved", "Denied"] {
            let is = |condition: &&Value| text(condition, "type") == kind;
            let before: Vec<&Value> = items(old, "status.conditions").iter().filter(is).collect();
            let after: Vec<&mut Value> = kept.iter_mut().filter(|each| text(each, "type") == kind).collect();
            if before.len() == after.len() {
                after.into_iter().zip(before).for_each(|(after, before)| after.clone_from(before));
            }
        }
        for condition in &mut kept {
            fill(condition, "lastUpdateTime", ctx.now);
            fill(condition, "lastTransitionTime", ctx.now);
        }
        if !kept.is_empty() {
            set(new, "status.conditions", kept);
        }
    },
    validate: request,
    validate_status: |new, _, out| conditions(new, out),
    ..PLAIN
};

fn request(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    let request = text(spec, "request");
    let decoded = STANDARD.decode(request).unwrap_or_default();
    let pem = String::from_utf8_lossy(&decoded);
    if !pem.contains("-----BEGIN CERTIFICATE REQUEST-----") || !pem.contains("-----END CERTIFICATE REQUEST-----") {
        out.invalid(&path.child("request"), request, "PEM block type must be CERTIFICATE REQUEST");
    }
    let usages = items(spec, "usages");
    if usages.is_empty() {
        out.required(&path.child("usages"), "");
    }
    for (index, usage) in usages.iter().enumerate() {
        let here = path.child("usages").index(index);
        if !USAGES.contains(&usage.as_str().unwrap_or_default()) {
            out.not_supported(&here, usage.clone(), USAGES);
        }
        if usages[..index].contains(usage) {
            out.duplicate(&here, usage.clone());
        }
    }
    signer(out, text(spec, "signerName"), &path.child("signerName"));
    if let Some(seconds) = int(spec, "expirationSeconds").filter(|seconds| *seconds < 600) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        out.invalid(&path.child("expirationSeconds"), seconds, detail);
    }
    conditions(object, out);
}

fn signer(out: &mut Errors, signer: &str, path: &FieldPath) {
    if signer == "kubernetes.io/legacy-unknown" {
        return out.invalid(path, signer, "the legacy signerName is not allowed via this API version");
    }
    if signer.is_empty() {
        return out.required(path, "");
    }
    match signer.split_once('/') {
        None => {
            out.invalid(path, signer, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
        }
        Some((domain, _)) => {
            out.each(path, domain, name::subdomain(domain));
            if !domain.contains('.') {
                out.invalid(path, domain, "should be a domain with at least two segments separated by dots");
            }
        }
    }
}

fn conditions(object: &Value, out: &mut Errors) {
    let path = FieldPath::new("status.conditions");
    let list = items(object, "status.conditions");
    for (index, condition) in list.iter().enumerate() {
        let here = path.index(index);
        let kind = text(condition, "type");
        if kind.is_empty() {
            out.required(&here.child("type"), "");
        }
        let allowed: &[&str] =
            if matches!(kind, "Approved" | "Denied" | "Failed") { &["True"] } else { &["False", "True", "Unknown"] };
        match text(condition, "status") {
            "" => out.required(&here.child("status"), ""),
            status if !allowed.contains(&status) => out.not_supported(&here.child("status"), status, allowed),
            _ => {}
        }
        if list[..index].iter().any(|other| text(other, "type") == kind) {
            out.duplicate(&here.child("type"), kind);
        }
    }
    let held = |kind: &str| list.iter().any(|condition| text(condition, "type") == kind);
    if held("Approved") && held("Denied") {
        out.invalid(&path, "Denied", "Approved and Denied conditions are mutually exclusive");
    }
}

const LEASE: Rules = Rules {
    default: |_, object| fill_map(object, "spec"),
    create: |_, object| {
        // Coordinated election is not offered.
        remove(object, "spec.strategy");
        remove(object, "spec.preferredHolder");
    },
    validate: lease,
    validate_update: |new, _, out| lease(new, out),
    ..PLAIN
};

fn lease(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    out.positive(&path, spec, "leaseDurationSeconds");
    out.not_negative(&path, spec, "leaseTransitions");
    let strategy = text(spec, "strategy");
    if !strategy.is_empty() && !strategy.contains('/') && strategy != "OldestEmulationVersion" {
        out.not_supported(&path.child("strategy"), strategy, &["OldestEmulationVersion"]);
    }
    if !text(spec, "preferredHolder").is_empty() && strategy.is_empty() {
        out.forbidden(&path.child("preferredHolder"), "may only be specified if `strategy` is defined");
    }
}

const CANDIDATE: Rules = Rules {
    default: |_, object| fill_map(object, "spec"),
    validate: |object, out| {
        for field in ["leaseName", "binaryVersion", "strategy"] {
            if text(at(object, "spec"), field).is_empty() {
                out.required(&FieldPath::new("spec").child(field), "");
            }
        }
    },
    validate_update: |new, old, out| {
        out.immutable(&FieldPath::new("spec"), at(new, "spec"), at(old, "spec"), "leaseName")
    },
    ..PLAIN
};

/// Fills the port of a service reference.
pub(super) fn default_service(object: &mut Value, path: &str) {
    if let Some(service) = at_mut(object, path) {
        fill(service, "port", 443);
    }
}
