//! Judging containers of all three sorts.

use std::collections::BTreeSet;

use atoll_meta::FieldPath;
use serde_json::Value;

use super::volume::{Volumes, device_mounts, mounts};
use super::{probe, security};
use crate::strategy::errors::Errors;
use crate::strategy::tree::{at, has, int, items, text};
use crate::strategy::{amount, name};

pub(crate) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const NOT_FOR_INIT: &str = "may not be set for init containers without restartPolicy=Always";

/// What containers of one pod share.
pub(super) struct Pod<'a> {
    pub spec: &'a Value,
    pub volumes: Volumes<'a>,
    pub grace: Option<i64>,
}

/// The regular containers; there must be one.
pub(super) fn regular(out: &mut Errors, pod: &Pod, path: &FieldPath) {
    let list = items(pod.spec, "containers");
    if list.is_empty() {
        return out.required(path, "");
    }
    let mut names = BTreeSet::new();
    for (index, container) in list.iter().enumerate() {
        let here = path.index(index);
        common(out, container, pod, &here);
        if !names.insert(text(container, "name")) {
            out.duplicate(&here.child("name"), text(container, "name"));
        }
        handlers(out, container, pod, &here);
        restart_policy(out, container, &here);
    }
    host_ports(out, list, path);
}

/// Containers that run before, or as sidecars beside, the regular ones.
pub(super) fn init(out: &mut Errors, pod: &Pod, path: &FieldPath) {
    let mut names: BTreeSet<&str> = items(pod.spec, "containers").iter().map(|other| text(other, "name")).collect();
    for (index, container) in items(pod.spec, "initContainers").iter().enumerate() {
        let here = path.index(index);
        common(out, container, pod, &here);
        let policy = text(container, "restartPolicy");
        if policy == "Always" && !items(container, "restartPolicyRules").is_empty() {
            out.forbidden(
                &here.child("restartPolicyRules"),
                "restartPolicyRules are not allowed for init containers with restart policy Always",
            );
        } else {
            restart_policy(out, container, &here);
        }
        let own = text(container, "name");
        if !own.is_empty() && !names.insert(own) {
            out.duplicate(&here.child("name"), own);
        }
        host_ports(out, std::slice::from_ref(container), path);
        if policy == "Always" {
            handlers(out, container, pod, &here);
        } else {
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if has(container, field) {
                    out.forbidden(&here.child(field), NOT_FOR_INIT);
                }
            }
        }
    }
}

/// Containers added to a running pod.
pub(super) fn ephemeral(out: &mut Errors, pod: &Pod, path: &FieldPath) {
    let others: BTreeSet<&str> = items(pod.spec, "containers")
        .iter()
        .chain(items(pod.spec, "initContainers"))
        .map(|other| text(other, "name"))
        .collect();
    let mut names = others.clone();
    for (index, container) in items(pod.spec, "ephemeralContainers").iter().enumerate() {
        let here = path.index(index);
        common(out, container, pod, &here);
        if !names.insert(text(container, "name")) {
            out.duplicate(&here.child("name"), text(container, "name"));
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            out.not_found(&here.child("targetContainerName"), target);
        }
        for field in ["ports", "resources", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] {
            let empty = at(container, field).as_object().is_some_and(serde_json::Map::is_empty);
            if has(container, field) && !(field == "resources" && empty) {
                out.forbidden(&here.child(field), "cannot be set for an Ephemeral Container");
            }
        }
    }
}

fn common(out: &mut Errors, container: &Value, pod: &Pod, path: &FieldPath) {
    let own = text(container, "name");
    if own.is_empty() {
        out.required(&path.child("name"), "");
    } else {
        out.each(&path.child("name"), own, name::label(own));
    }
    if text(container, "image").is_empty() {
        out.required(&path.child("image"), "");
    }
    let policies = &["File", "FallbackToLogsOnError"];
    out.one_of(path, container, "terminationMessagePolicy", policies);
    ports(out, container, &path.child("ports"));
    variables(out, container, path);
    mounts(out, container, &pod.volumes, &path.child("volumeMounts"));
    device_mounts(out, container, &pod.volumes, &path.child("volumeDevices"));
    out.one_of(path, container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"]);
    amount::requirements(out, at(container, "resources"), &path.child("resources"));
    claims(out, container, pod, &path.child("resources").child("claims"));
    resize_policy(out, container, pod, &path.child("resizePolicy"));
    let host_users = at(pod.spec, "hostUsers").as_bool().unwrap_or(true);
    security::container(out, at(container, "securityContext"), &path.child("securityContext"), host_users);
}

fn claims(out: &mut Errors, container: &Value, pod: &Pod, path: &FieldPath) {
    let known: BTreeSet<&str> = items(pod.spec, "resourceClaims").iter().map(|claim| text(claim, "name")).collect();
    for (index, claim) in items(container, "resources.claims").iter().enumerate() {
        let own = text(claim, "name");
        if own.is_empty() {
            out.required(&path.index(index), "");
        } else if !known.contains(own) {
            out.not_found(&path.index(index), own);
            let names = known.iter().copied().collect::<Vec<_>>().join(", ");
            if let Some(last) = out.0.last_mut() {
                last.detail = "must be one of the names in pod.spec.resourceClaims".to_owned();
                last.detail += &if known.is_empty() { " which is empty".to_owned() } else { format!(": {names}") };
            }
        }
    }
}

fn resize_policy(out: &mut Errors, container: &Value, pod: &Pod, path: &FieldPath) {
    for policy in items(container, "resizePolicy") {
        let resource = text(policy, "resourceName");
        if !matches!(resource, "cpu" | "memory") {
            out.not_supported(path, resource, &["cpu", "memory"]);
        }
        let restart = text(policy, "restartPolicy");
        if !matches!(restart, "NotRequired" | "RestartContainer") {
            out.not_supported(path, restart, &["NotRequired", "RestartContainer"]);
        } else if text(pod.spec, "restartPolicy") == "Never" && restart != "NotRequired" {
            out.invalid(path, restart, "must be 'NotRequired' when `restartPolicy` is 'Never'");
        }
    }
}

fn ports(out: &mut Errors, container: &Value, path: &FieldPath) {
    let mut names = BTreeSet::new();
    for (index, port) in items(container, "ports").iter().enumerate() {
        let here = path.index(index);
        let own = text(port, "name");
        if !own.is_empty() {
            let faults = name::port_name(own);
            if !faults.is_empty() {
                out.each(&here.child("name"), own, faults);
            } else if !names.insert(own) {
                out.duplicate(&here.child("name"), own);
            }
        }
        match int(port, "containerPort").unwrap_or(0) {
            0 => out.required(&here.child("containerPort"), ""),
            number => out.port(&here.child("containerPort"), number),
        }
        if let Some(number) = int(port, "hostPort").filter(|number| *number != 0) {
            out.port(&here.child("hostPort"), number);
        }
        out.one_of(&here, port, "protocol", PROTOCOLS);
    }
}

fn host_ports(out: &mut Errors, containers: &[Value], path: &FieldPath) {
    let mut taken = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        for (place, port) in items(container, "ports").iter().enumerate() {
            let Some(number) = int(port, "hostPort").filter(|number| *number != 0) else { continue };
            let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if !taken.insert(key.clone()) {
                out.duplicate(&path.index(index).child("ports").index(place).child("hostPort"), key);
            }
        }
    }
}

fn variables(out: &mut Errors, container: &Value, path: &FieldPath) {
    for (index, variable) in items(container, "env").iter().enumerate() {
        let here = path.child("env").index(index);
        let own = text(variable, "name");
        if own.is_empty() {
            out.required(&here.child("name"), "");
        } else {
            out.each(&here.child("name"), own, name::env_name(own));
        }
        if has(variable, "valueFrom") {
            value_from(out, variable, &here.child("valueFrom"));
        }
    }
    let path = path.child("envFrom");
    for (index, source) in items(container, "envFrom").iter().enumerate() {
        let here = path.index(index);
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            out.each(&here.child("prefix"), prefix, name::env_name(prefix));
        }
        let mut found = 0;
        for field in ["configMapRef", "secretRef"].into_iter().filter(|field| has(source, field)) {
            found += 1;
            let reference = text(at(source, field), "name");
            if reference.is_empty() {
                out.required(&here.child(field).child("name"), "");
            } else {
                let rule = crate::strategy::NameRule::Subdomain;
                out.each(&here.child(field).child("name"), reference, name::check(rule, reference, true));
            }
        }
        match found {
            0 => out.invalid(&path, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => out.invalid(&path, "", "may not have more than one field specified at a time"),
        }
    }
}

fn value_from(out: &mut Errors, variable: &Value, path: &FieldPath) {
    let source = at(variable, "valueFrom");
    let mut found = 0;
    if has(source, "fieldRef") {
        found += 1;
        field_ref(out, at(source, "fieldRef"), ENV_FIELDS, &path.child("fieldRef"));
    }
    if has(source, "resourceFieldRef") {
        found += 1;
        resource_ref(out, at(source, "resourceFieldRef"), false, &path.child("resourceFieldRef"));
    }
    for field in ["configMapKeyRef", "secretKeyRef"].into_iter().filter(|field| has(source, field)) {
        found += 1;
        let (reference, here) = (at(source, field), path.child(field));
        out.each(&here.child("name"), text(reference, "name"), name::subdomain(text(reference, "name")));
        let key = text(reference, "key");
        if key.is_empty() {
            out.required(&here.child("key"), "");
        } else {
            out.each(&here.child("key"), key, name::config_key(key));
        }
    }
    if has(source, "fileKeyRef") {
        found += 1;
        for field in ["key", "volumeName", "path"] {
            if text(at(source, "fileKeyRef"), field).is_empty() {
                out.required(&path.child("fileKeyRef").child(field), "");
            }
        }
    }
    if found == 0 {
        out.invalid(
            path,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        );
    } else if !text(variable, "value").is_empty() {
        out.invalid(path, "", "may not be specified when `value` is not empty");
    } else if found > 1 {
        out.invalid(path, "", "may not have more than one field specified at a time");
    }
}

const ENV_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Fields a file of a downward volume may show.
pub(super) const VOLUME_FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

const RESOURCE_FIELDS: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// A reference to a field of the pod.
pub(super) fn field_ref(out: &mut Errors, reference: &Value, allowed: &[&str], path: &FieldPath) {
    let field = text(reference, "fieldPath");
    if text(reference, "apiVersion").is_empty() {
        return out.required(&path.child("apiVersion"), "");
    }
    if field.is_empty() {
        return out.required(&path.child("fieldPath"), "");
    }
    if let Some((map, key)) = field.strip_suffix("']").and_then(|field| field.split_once("['")) {
        match map {
            "metadata.annotations" => out.each(path, key, name::qualified(&key.to_lowercase())),
            "metadata.labels" => out.each(path, key, name::qualified(key)),
            _ => out.invalid(path, map, "does not support subscript"),
        }
    } else if !ENV_FIELDS.contains(&field) && !VOLUME_FIELDS.contains(&field) {
        let detail = format!("error converting fieldPath: field label not supported: {field}");
        out.invalid(&path.child("fieldPath"), field, detail);
    } else if !allowed.contains(&field) {
        out.not_supported(&path.child("fieldPath"), field, allowed);
    }
}

/// A reference to a resource of a container.
pub(super) fn resource_ref(out: &mut Errors, reference: &Value, in_volume: bool, path: &FieldPath) {
    let resource = text(reference, "resource");
    if in_volume && text(reference, "containerName").is_empty() {
        out.required(&path.child("containerName"), "");
    } else if resource.is_empty() {
        out.required(&path.child("resource"), "");
    } else if !RESOURCE_FIELDS.contains(&resource)
        && !resource.starts_with("limits.hugepages-")
        && !resource.starts_with("requests.hugepages-")
    {
        out.not_supported(&path.child("resource"), resource, RESOURCE_FIELDS);
    }
}

fn restart_policy(out: &mut Errors, container: &Value, path: &FieldPath) {
    let rules = items(container, "restartPolicyRules");
    if !has(container, "restartPolicy") && !rules.is_empty() {
        out.required(&path.child("restartPolicy"), "must specify restartPolicy when restart rules are used");
    }
    out.one_of(path, container, "restartPolicy", &["Always", "Never", "OnFailure"]);
    for (index, rule) in rules.iter().enumerate() {
        let here = path.child("restartPolicyRules").index(index);
        out.one_of(&here, rule, "action", &["Restart"]);
        if has(rule, "exitCodes") {
            out.one_of(&here.child("exitCodes"), at(rule, "exitCodes"), "operator", &["In", "NotIn"]);
        } else {
            out.required(&here.child("exitCodes"), "must be specified");
        }
    }
}

fn handlers(out: &mut Errors, container: &Value, pod: &Pod, path: &FieldPath) {
    for hook in ["postStart", "preStop"] {
        let handler = at(at(container, "lifecycle"), hook);
        if !handler.is_null() {
            probe::handler(out, handler, pod.grace, &path.child("lifecycle").child(hook));
        }
    }
    probe::all(out, container, pod.grace, path);
}
