//! Judging a pod spec, in a pod or in a template.

use std::collections::BTreeSet;

use atoll_meta::FieldPath;
use serde_json::Value;

use super::{container, scheduling, security, volume};
use crate::strategy::errors::Errors;
use crate::strategy::tree::{at, flag, has, int, items, text};
use crate::strategy::{metadata, name};

/// Judges a spec; a pod's own metadata comes along when there is a pod.
pub(super) fn validate(out: &mut Errors, spec: &Value, path: &FieldPath, pod: Option<&Value>) {
    let volumes = volume::all(out, spec, &path.child("volumes"));
    claims(out, spec, &path.child("resourceClaims"));
    let shared = container::Pod { spec, volumes, grace: int(spec, "terminationGracePeriodSeconds") };
    container::regular(out, &shared, &path.child("containers"));
    container::init(out, &shared, &path.child("initContainers"));
    container::ephemeral(out, &shared, &path.child("ephemeralContainers"));
    host_network(out, spec, path, pod.is_some());
    out.one_of(path, spec, "restartPolicy", &["Always", "OnFailure", "Never"]);
    out.one_of(path, spec, "dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    metadata::labels(out, at(spec, "nodeSelector"), &path.child("nodeSelector"));
    security::pod(out, spec, &path.child("securityContext"));
    scheduling::affinity(out, at(spec, "affinity"), &path.child("affinity"));
    dns(out, spec, &path.child("dnsConfig"));
    gates(out, spec, path);
    scheduling::spread(out, items(spec, "topologySpreadConstraints"), &path.child("topologySpreadConstraints"));
    names(out, spec, path);
    let deadline = int(spec, "activeDeadlineSeconds");
    if let Some(seconds) = deadline.filter(|seconds| !(1..=i64::from(i32::MAX)).contains(seconds)) {
        out.invalid(&path.child("activeDeadlineSeconds"), seconds, name::range(1, i64::from(i32::MAX)));
    }
    scheduling::tolerations(out, items(spec, "tolerations"), &path.child("tolerations"));
    for (index, alias) in items(spec, "hostAliases").iter().enumerate() {
        let here = path.child("hostAliases").index(index);
        out.each(&here.child("ip"), text(alias, "ip"), name::ip(text(alias, "ip")));
        for (index, host) in items(alias, "hostnames").iter().enumerate() {
            let host = host.as_str().unwrap_or_default();
            out.each(&here.child("hostnames").index(index), host, name::subdomain(host));
        }
    }
    out.one_of(path, spec, "preemptionPolicy", &["PreemptLowerPriority", "Never"]);
    if has(spec, "os") {
        match text(spec, "os.name") {
            "" => out.required(&path.child("os").child("name"), ""),
            "linux" | "windows" => {}
            other => out.not_supported(&path.child("os"), other, &["linux", "windows"]),
        }
    }
}

fn names(out: &mut Errors, spec: &Value, path: &FieldPath) {
    type Check = fn(&str) -> Vec<String>;
    let checks: [(&str, Check); 6] = [
        ("serviceAccountName", name::subdomain),
        ("nodeName", name::subdomain),
        ("hostname", name::label),
        ("subdomain", name::label),
        ("priorityClassName", name::subdomain),
        ("runtimeClassName", name::subdomain),
    ];
    for (field, check) in checks {
        let value = text(spec, field);
        if !value.is_empty() {
            out.each(&path.child(field), value, check(value));
        }
    }
}

fn claims(out: &mut Errors, spec: &Value, path: &FieldPath) {
    let mut names = BTreeSet::new();
    for (index, claim) in items(spec, "resourceClaims").iter().enumerate() {
        let here = path.index(index);
        let own = text(claim, "name");
        if own.is_empty() {
            out.required(&here.child("name"), "");
        } else if !names.insert(own) {
            out.duplicate(&here.child("name"), own);
        } else {
            out.each(&here.child("name"), own, name::label(own));
        }
        match (has(claim, "resourceClaimName"), has(claim, "resourceClaimTemplateName")) {
            (true, true) => out.invalid(
                &here,
                claim.clone(),
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
            (false, false) => out.invalid(
                &here,
                claim.clone(),
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            ),
            _ => {}
        }
    }
}

fn host_network(out: &mut Errors, spec: &Value, path: &FieldPath, in_pod: bool) {
    if flag(spec, "hostNetwork") {
        for (index, container) in items(spec, "containers").iter().enumerate() {
            for (place, port) in items(container, "ports").iter().enumerate() {
                let host = int(port, "hostPort").unwrap_or(0);
                if (in_pod || host != 0) && host != int(port, "containerPort").unwrap_or(0) {
                    let here = path.child("containers").index(index).child("ports").index(place).child("hostPort");
                    out.invalid(&here, host, "must match `containerPort` when `hostNetwork` is true");
                }
            }
        }
    }
    if at(spec, "hostUsers").as_bool() == Some(false) {
        for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
            if flag(spec, field) {
                out.forbidden(&path.child(shown), "when `hostUsers` is false");
            }
        }
    }
}

fn gates(out: &mut Errors, spec: &Value, path: &FieldPath) {
    for (index, gate) in items(spec, "readinessGates").iter().enumerate() {
        let kind = text(gate, "conditionType");
        out.each(&path.child("readinessGates").index(index).child("conditionType"), kind, name::qualified(kind));
    }
    let mut seen = BTreeSet::new();
    for (index, gate) in items(spec, "schedulingGates").iter().enumerate() {
        let here = path.child("schedulingGates").index(index);
        let own = text(gate, "name");
        out.each(&here, own, name::qualified(own));
        if !seen.insert(own) {
            out.duplicate(&here, own);
        }
    }
}

fn dns(out: &mut Errors, spec: &Value, path: &FieldPath) {
    let config = at(spec, "dnsConfig");
    let servers = items(config, "nameservers");
    if text(spec, "dnsPolicy") == "None" {
        if config.is_null() {
            return out.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return out.required(&path.child("nameservers"), detail);
        }
    }
    if servers.len() > 3 {
        out.invalid(&path.child("nameservers"), Value::from(servers), "must not have more than 3 nameservers");
    }
    for (index, server) in servers.iter().enumerate() {
        let server = server.as_str().unwrap_or_default();
        out.each(&path.child("nameservers").index(index), server, name::ip(server));
    }
    let searches = items(config, "searches");
    if searches.len() > 32 {
        out.invalid(&path.child("searches"), Value::from(searches), "must not have more than 32 search paths");
    }
    for (index, option) in items(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            out.required(&path.child("options").index(index), "must not be empty");
        }
    }
}
