//! Judging security contexts of pods and containers.

use std::collections::BTreeSet;

use atoll_meta::FieldPath;
use serde_json::Value;

use super::volume::descending_path;
use crate::strategy::errors::Errors;
use crate::strategy::name;
use crate::strategy::tree::{at, flag, has, int, items, text};

const PROFILES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
const MAX_ID: i64 = i32::MAX as i64;

fn id(out: &mut Errors, path: &FieldPath, value: Option<i64>) {
    if let Some(value) = value.filter(|value| !(0..=MAX_ID).contains(value)) {
        out.invalid(path, value, name::range(0, MAX_ID));
    }
}

/// The security context of one container.
pub(super) fn container(out: &mut Errors, context: &Value, path: &FieldPath, host_users: bool) {
    if context.is_null() {
        return;
    }
    id(out, &path.child("runAsUser"), int(context, "runAsUser"));
    id(out, &path.child("runAsGroup"), int(context, "runAsGroup"));
    if has(context, "procMount") {
        let mount = text(context, "procMount");
        if !matches!(mount, "Default" | "Unmasked") {
            out.not_supported(&path.child("procMount"), mount, &["Default", "Unmasked"]);
        }
        if host_users && mount == "Unmasked" {
            out.invalid(&path.child("procMount"), mount, "`hostUsers` must be false to use `Unmasked`");
        }
    }
    seccomp(out, at(context, "seccompProfile"), &path.child("seccompProfile"));
    if at(context, "allowPrivilegeEscalation").as_bool() == Some(false) {
        if flag(context, "privileged") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            out.invalid(path, context.clone(), detail);
        }
        if items(context, "capabilities.add").iter().any(|capability| capability == "CAP_SYS_ADMIN") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            out.invalid(path, context.clone(), detail);
        }
    }
    app_armor(out, at(context, "appArmorProfile"), &path.child("appArmorProfile"));
}

/// The security context of a pod, and the host namespaces beside it.
pub(super) fn pod(out: &mut Errors, spec: &Value, path: &FieldPath) {
    let context = at(spec, "securityContext");
    id(out, &path.child("fsGroup"), int(context, "fsGroup"));
    id(out, &path.child("runAsUser"), int(context, "runAsUser"));
    id(out, &path.child("runAsGroup"), int(context, "runAsGroup"));
    for (index, group) in items(context, "supplementalGroups").iter().enumerate() {
        id(out, &path.child("supplementalGroups").index(index), group.as_i64());
    }
    if flag(spec, "shareProcessNamespace") && flag(spec, "hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        out.invalid(&path.child("shareProcessNamespace"), true, detail);
    }
    sysctls(out, context, &path.child("sysctls"));
    out.one_of(path, context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"]);
    seccomp(out, at(context, "seccompProfile"), &path.child("seccompProfile"));
    app_armor(out, at(context, "appArmorProfile"), &path.child("appArmorProfile"));
    out.one_of(path, context, "supplementalGroupsPolicy", &["Merge", "Strict"]);
    out.one_of(path, context, "seLinuxChangePolicy", &["MountOption", "Recursive"]);
}

fn sysctls(out: &mut Errors, context: &Value, path: &FieldPath) {
    let mut names = BTreeSet::new();
    for (index, sysctl) in items(context, "sysctls").iter().enumerate() {
        let here = path.index(index).child("name");
        let own = text(sysctl, "name");
        let segment = |part: &str| {
            let edge = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
            edge(part.as_bytes().first())
                && edge(part.as_bytes().last())
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
        };
        if own.is_empty() {
            out.required(&here, "");
        } else if own.len() > 253 || !own.split(['.', '/']).all(segment) {
            let detail = "must have at most 253 characters and match regex \
                          ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            out.invalid(&here, own, detail);
        } else if !names.insert(own) {
            out.duplicate(&here, own);
        }
    }
}

fn seccomp(out: &mut Errors, profile: &Value, path: &FieldPath) {
    if profile.is_null() {
        return;
    }
    let kind = text(profile, "type");
    if kind.is_empty() {
        out.required(&path.child("type"), "type is required when seccompProfile is set");
    } else if !PROFILES.contains(&kind) {
        out.not_supported(&path.child("type"), kind, PROFILES);
    }
    let local = path.child("localhostProfile");
    match (kind == "Localhost", has(profile, "localhostProfile")) {
        (true, false) => out.required(&local, "must be set when seccomp type is Localhost"),
        (true, true) => descending_path(out, text(profile, "localhostProfile"), &local),
        (false, true) => out.invalid(&local, profile.clone(), "can only be set when seccomp type is Localhost"),
        (false, false) => {}
    }
}

fn app_armor(out: &mut Errors, profile: &Value, path: &FieldPath) {
    if profile.is_null() {
        return;
    }
    let local = path.child("localhostProfile");
    let given = text(profile, "localhostProfile");
    match text(profile, "type") {
        "Localhost" if given.trim() != given => out.invalid(&local, given, "must not be padded with whitespace"),
        "Localhost" if given.is_empty() => out.required(&local, "must be set when AppArmor type is Localhost"),
        "Localhost" => {}
        "RuntimeDefault" | "Unconfined" => {
            if has(profile, "localhostProfile") {
                out.invalid(&local, given, "can only be set when AppArmor type is Localhost");
            }
        }
        "" => out.required(&path.child("type"), "type is required when appArmorProfile is set"),
        other => out.not_supported(&path.child("type"), other, PROFILES),
    }
}
