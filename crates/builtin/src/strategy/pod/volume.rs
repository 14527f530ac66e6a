//! Judging volumes and how containers mount them.

use std::collections::{BTreeMap, BTreeSet};

use atoll_meta::FieldPath;
use serde_json::Value;

use super::container::{VOLUME_FIELDS, field_ref, resource_ref};
use crate::strategy::errors::Errors;
use crate::strategy::tree::{at, flag, has, int, items, text};
use crate::strategy::{amount, name};

/// Well-formed volumes by name.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

const SOURCES: &[&str] = &[
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// The fields a simple source cannot do without.
const NEEDS: &[(&str, &[&str])] = &[
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("secret", &["secretName"]),
    ("nfs", &["server", "path"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("glusterfs", &["endpoints", "path"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("rbd", &["image"]),
    ("cinder", &["volumeID"]),
    ("quobyte", &["registry", "volume"]),
    ("flexVolume", &["driver"]),
    ("configMap", &["name"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("scaleIO", &["gateway", "system"]),
    ("csi", &["driver"]),
    ("image", &["reference"]),
];

/// Judges the volumes of a pod and returns the good ones.
pub(super) fn all<'a>(out: &mut Errors, spec: &'a Value, path: &FieldPath) -> Volumes<'a> {
    let mut good = Volumes::new();
    for (index, volume) in items(spec, "volumes").iter().enumerate() {
        let here = path.index(index);
        let before = out.0.len();
        source(out, volume, &here);
        let own = text(volume, "name");
        if own.is_empty() {
            out.required(&here.child("name"), "");
        } else {
            out.each(&here.child("name"), own, name::label(own));
        }
        if good.contains_key(own) {
            out.duplicate(&here.child("name"), own);
        }
        if out.0.len() == before {
            good.insert(own, volume);
        }
    }
    good
}

fn source(out: &mut Errors, volume: &Value, path: &FieldPath) {
    let mut found = false;
    for kind in SOURCES.iter().copied().filter(|kind| has(volume, kind)) {
        let here = path.child(kind);
        if found {
            out.forbidden(&here, "may not specify more than 1 volume type");
            continue;
        }
        found = true;
        let source = at(volume, kind);
        if let Some((_, fields)) = NEEDS.iter().find(|(name, _)| *name == kind) {
            for field in fields.iter().filter(|field| text(source, field).is_empty()) {
                out.required(&here.child(field), "");
            }
        }
        special(out, kind, source, &here);
    }
    if !found {
        out.required(path, "must specify a volume type");
    }
}

fn special(out: &mut Errors, kind: &str, source: &Value, path: &FieldPath) {
    match kind {
        "emptyDir" if amount::read(at(source, "sizeLimit")).is_some_and(|limit| limit.is_negative()) => {
            out.forbidden(&path.child("sizeLimit"), "SizeLimit field must be a valid resource quantity");
        }
        "hostPath" => host_path(out, source, path),
        "nfs" if !text(source, "path").starts_with('/') => {
            out.invalid(&path.child("path"), text(source, "path"), "must be an absolute path");
        }
        "secret" | "configMap" => {
            mode(out, source, "defaultMode", path);
            for (index, item) in items(source, "items").iter().enumerate() {
                key_to_path(out, item, &path.child("items").index(index));
            }
        }
        "downwardAPI" => {
            mode(out, source, "defaultMode", path);
            for file in items(source, "items") {
                downward_file(out, file, path);
            }
        }
        "projected" => projected(out, source, path),
        "ephemeral" if !has(source, "volumeClaimTemplate") => out.required(&path.child("volumeClaimTemplate"), ""),
        "ephemeral" => {
            let spec = at(source, "volumeClaimTemplate.spec");
            crate::strategy::core::claim_spec(out, spec, &path.child("volumeClaimTemplate").child("spec"));
        }
        "image" => out.one_of(path, source, "pullPolicy", &["Always", "IfNotPresent", "Never"]),
        _ => {}
    }
}

fn host_path(out: &mut Errors, source: &Value, path: &FieldPath) {
    let target = text(source, "path");
    if target.is_empty() {
        return out.required(&path.child("path"), "");
    }
    no_backsteps(out, target, &path.child("path"));
    out.one_of(
        path,
        source,
        "type",
        &["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"],
    );
}

fn mode(out: &mut Errors, source: &Value, field: &str, path: &FieldPath) {
    if let Some(mode) = int(source, field).filter(|mode| !(0..=0o777).contains(mode)) {
        out.invalid(&path.child(field), mode, MODE);
    }
}

/// One key shown as one file.
fn key_to_path(out: &mut Errors, item: &Value, path: &FieldPath) {
    for field in ["key", "path"] {
        if text(item, field).is_empty() {
            out.required(&path.child(field), "");
        }
    }
    local_path(out, text(item, "path"), &path.child("path"));
    mode(out, item, "mode", path);
}

fn downward_file(out: &mut Errors, file: &Value, path: &FieldPath) {
    if text(file, "path").is_empty() {
        out.required(&path.child("path"), "");
    }
    local_path(out, text(file, "path"), &path.child("path"));
    match (has(file, "fieldRef"), has(file, "resourceFieldRef")) {
        (true, both) => {
            field_ref(out, at(file, "fieldRef"), VOLUME_FIELDS, &path.child("fieldRef"));
            if both {
                out.invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously");
            }
        }
        (false, true) => resource_ref(out, at(file, "resourceFieldRef"), true, &path.child("resourceFieldRef")),
        (false, false) => out.required(path, "one of fieldRef and resourceFieldRef is required"),
    }
    mode(out, file, "mode", path);
}

fn projected(out: &mut Errors, volume: &Value, path: &FieldPath) {
    mode(out, volume, "defaultMode", path);
    let mut paths = BTreeSet::new();
    for (index, source) in items(volume, "sources").iter().enumerate() {
        let here = path.child("sources").index(index);
        let mut found = 0;
        for kind in ["secret", "configMap"].into_iter().filter(|kind| has(source, kind)) {
            found += 1;
            let reference = text(at(source, kind), "name");
            if reference.is_empty() {
                out.required(&here.child(kind).child("name"), "");
            }
            for (index, item) in items(at(source, kind), "items").iter().enumerate() {
                key_to_path(out, item, &here.child(kind).child("items").index(index));
                let target = text(item, "path");
                if !target.is_empty() && !paths.insert(target) {
                    out.invalid(path, reference, "conflicting duplicate paths");
                }
            }
        }
        if has(source, "downwardAPI") {
            found += 1;
            for file in items(source, "downwardAPI.items") {
                downward_file(out, file, &here.child("downwardAPI"));
                let target = text(file, "path");
                if !target.is_empty() && !paths.insert(target) {
                    out.invalid(path, target, "conflicting duplicate paths");
                }
            }
        }
        if has(source, "serviceAccountToken") {
            found += 1;
            token(out, at(source, "serviceAccountToken"), path, &here.child("serviceAccountToken"));
        }
        found += usize::from(has(source, "clusterTrustBundle")) + usize::from(has(source, "podCertificate"));
        if found > 1 {
            out.forbidden(&here, "may not specify more than 1 volume type per source");
        }
    }
}

fn token(out: &mut Errors, token: &Value, volume: &FieldPath, path: &FieldPath) {
    let seconds = int(token, "expirationSeconds").unwrap_or(3600);
    if seconds < 600 {
        out.invalid(&path.child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes");
    }
    if seconds > 1 << 32 {
        out.invalid(&path.child("expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds");
    }
    let target = text(token, "path");
    if target.is_empty() {
        out.required(&volume.child("path"), "");
    } else {
        local_path(out, target, &volume.child("path"));
    }
}

/// No part of the path may lead upwards.
pub(crate) fn no_backsteps(out: &mut Errors, target: &str, path: &FieldPath) {
    if target.split('/').any(|part| part == "..") {
        out.invalid(path, target, "must not contain '..'");
    }
}

/// A relative path that stays below where it starts.
pub(super) fn descending_path(out: &mut Errors, target: &str, path: &FieldPath) {
    if target.starts_with('/') {
        out.invalid(path, target, "must be a relative path");
    }
    no_backsteps(out, target, path);
}

fn local_path(out: &mut Errors, target: &str, path: &FieldPath) {
    descending_path(out, target, path);
    if target.starts_with("..") && !target.starts_with("../") {
        out.invalid(path, target, "must not start with '..'");
    }
}

/// The mounts of one container.
pub(super) fn mounts(out: &mut Errors, container: &Value, volumes: &Volumes, path: &FieldPath) {
    let devices = items(container, "volumeDevices");
    let mut points = BTreeSet::new();
    for (index, mount) in items(container, "volumeMounts").iter().enumerate() {
        let here = path.index(index);
        let (own, point) = (text(mount, "name"), text(mount, "mountPath"));
        if own.is_empty() {
            out.required(&here.child("name"), "");
        }
        if !volumes.contains_key(own) {
            out.not_found(&here.child("name"), own);
        }
        if point.is_empty() {
            out.required(&here.child("mountPath"), "");
        }
        if !points.insert(point) {
            out.invalid(&here.child("mountPath"), point, "must be unique");
        }
        if devices.iter().any(|device| text(device, "name") == own) {
            out.invalid(&here.child("name"), own, "must not already exist in volumeDevices");
        }
        if devices.iter().any(|device| text(device, "devicePath") == point) {
            out.invalid(&here.child("mountPath"), point, "must not already exist as a path in volumeDevices");
        }
        sub_path(out, mount, path, &here);
        propagation(out, container, mount, path);
    }
}

fn sub_path(out: &mut Errors, mount: &Value, list: &FieldPath, here: &FieldPath) {
    let (fixed, expanded) = (text(mount, "subPath"), text(mount, "subPathExpr"));
    if !fixed.is_empty() {
        descending_path(out, fixed, &list.child("subPath"));
    }
    if !expanded.is_empty() {
        if !fixed.is_empty() {
            out.invalid(&here.child("subPathExpr"), expanded, "subPathExpr and subPath are mutually exclusive");
        }
        descending_path(out, expanded, &list.child("subPathExpr"));
    }
}

fn propagation(out: &mut Errors, container: &Value, mount: &Value, path: &FieldPath) {
    out.one_of(path, mount, "mountPropagation", &["Bidirectional", "HostToContainer", "None"]);
    if text(mount, "mountPropagation") == "Bidirectional" && !flag(container, "securityContext.privileged") {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        out.forbidden(&path.child("mountPropagation"), detail);
    }
    let recursive = path.child("recursiveReadOnly");
    match text(mount, "recursiveReadOnly") {
        "" | "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !flag(mount, "readOnly") {
                out.forbidden(&recursive, "may only be specified when readOnly is true");
            }
            if !matches!(text(mount, "mountPropagation"), "" | "None") {
                out.forbidden(&recursive, "may only be specified when mountPropagation is None or not specified");
            }
        }
        other => out.not_supported(&recursive, other, &["Disabled", "Enabled", "IfPossible"]),
    }
}

/// The raw devices of one container.
pub(super) fn device_mounts(out: &mut Errors, container: &Value, volumes: &Volumes, path: &FieldPath) {
    let mounts = items(container, "volumeMounts");
    let (mut names, mut points) = (BTreeSet::new(), BTreeSet::new());
    for (index, device) in items(container, "volumeDevices").iter().enumerate() {
        let here = path.index(index);
        let (own, point) = (text(device, "name"), text(device, "devicePath"));
        if own.is_empty() {
            out.required(&here.child("name"), "");
        }
        if !own.is_empty() && !names.insert(own) {
            out.invalid(&here.child("name"), own, "must be unique");
        }
        match volumes.get(own) {
            None => out.not_found(&here.child("name"), own),
            Some(volume) if !has(volume, "persistentVolumeClaim") && !has(volume, "ephemeral") => {
                let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                out.invalid(&here.child("name"), own, detail);
            }
            Some(_) => {}
        }
        if point.is_empty() {
            out.required(&here.child("devicePath"), "");
        } else if point.split('/').any(|part| part == "..") {
            out.invalid(&here.child("devicePath"), point, "can not contain backsteps ('..')");
        } else if !points.insert(point) {
            out.invalid(&here.child("devicePath"), point, "must be unique");
        }
        if mounts.iter().any(|mount| text(mount, "name") == own) {
            out.invalid(&here.child("name"), own, "must not already exist in volumeMounts");
        }
        if mounts.iter().any(|mount| text(mount, "mountPath") == point) {
            out.invalid(&here.child("devicePath"), point, "must not already exist as a path in volumeMounts");
        }
    }
}
