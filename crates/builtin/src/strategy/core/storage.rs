//! Persistent volumes and claims.

use atoll_meta::FieldPath;
use atoll_meta::quantity::Quantity;
use serde_json::Value;

use crate::strategy::errors::{Errors, IMMUTABLE, NOT_POSITIVE};
use crate::strategy::tree::{
    at, at_mut, entries, fill, fill_map, fill_text, has, items, keep, remove, same, set, text,
};
use crate::strategy::{PLAIN, Rules, amount, metadata, name, pod};

const MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

/// Fields of a volume's spec that are not its source.
const NOT_A_SOURCE: &[&str] = &[
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

pub(super) const VOLUME: Rules = Rules {
    default: |_, object| {
        fill_text(object, "status.phase", "Pending");
        fill_text(object, "spec.persistentVolumeReclaimPolicy", "Retain");
        fill(object, "spec.volumeMode", "Filesystem");
        amount::canonize_map(at_mut(object, "spec.capacity"));
        if let Some(source) = at_mut(object, "spec.hostPath") {
            fill(source, "type", "");
        }
    },
    create: |ctx, object| set(object, "status.lastPhaseTransitionTime", ctx.now),
    status: |ctx, new, old| {
        let moved = text(new, "status.phase") != text(old, "status.phase");
        let stamp = at(new, "status.lastPhaseTransitionTime");
        if !moved && stamp.is_null() {
            keep(new, old, "status.lastPhaseTransitionTime");
        } else if moved && (stamp.is_null() || stamp == at(old, "status.lastPhaseTransitionTime")) {
            set(new, "status.lastPhaseTransitionTime", ctx.now);
        }
    },
    validate: volume,
    validate_update: |new, old, out| {
        volume(new, out);
        if !same(&source(new), &source(old)) {
            let path = FieldPath::new("spec.persistentvolumesource");
            out.forbidden(&path, "spec.persistentvolumesource is immutable after creation");
        }
        out.immutable(&FieldPath::root(), at(new, "spec"), at(old, "spec"), "volumeMode");
        if has(old, "spec.nodeAffinity") && !same(at(new, "spec.nodeAffinity"), at(old, "spec.nodeAffinity")) {
            out.invalid(&FieldPath::new("nodeAffinity"), at(new, "spec.nodeAffinity").clone(), IMMUTABLE);
        }
    },
    ..PLAIN
};

pub(super) const CLAIM: Rules = Rules {
    default: |_, object| default_claim(object),
    create: |_, object| data_source(object, &Value::Null),
    update: |_, new, old| data_source(new, old),
    validate: |object, out| claim_spec(out, at(object, "spec"), &FieldPath::new("spec")),
    validate_update: claim_update,
    ..PLAIN
};

/// Defaults of a claim, on its own or as a template.
pub(crate) fn default_claim(object: &mut Value) {
    fill_text(object, "status.phase", "Pending");
    fill(object, "spec.volumeMode", "Filesystem");
    fill_map(object, "spec.resources");
    for part in ["spec.resources.requests", "spec.resources.limits", "status.capacity", "status.allocatedResources"] {
        amount::canonize_map(at_mut(object, part));
    }
}

/// The old and the new way to name a source agree. The old one takes two kinds and ignores all others.
fn data_source(object: &mut Value, before: &Value) {
    let given = at(object, "spec.dataSource");
    let known = matches!(
        (text(given, "apiGroup"), text(given, "kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    );
    if !known && !has(object, "spec.dataSourceRef") && !has(before, "spec.dataSource") {
        remove(object, "spec.dataSource");
    }
    let (old, new) = (at(object, "spec.dataSource").clone(), at(object, "spec.dataSourceRef").clone());
    if !old.is_null() && new.is_null() {
        set(object, "spec.dataSourceRef", old);
    } else if old.is_null() && !new.is_null() && text(&new, "namespace").is_empty() {
        set(object, "spec.dataSource", new);
    }
}

fn source(object: &Value) -> Value {
    let fields = entries(object, "spec").filter(|(key, _)| !NOT_A_SOURCE.contains(&key.as_str()));
    Value::Object(fields.map(|(key, value)| (key.clone(), value.clone())).collect())
}

fn access_modes(out: &mut Errors, spec: &Value, path: &FieldPath) {
    let modes = items(spec, "accessModes");
    for mode in modes.iter().map(|mode| mode.as_str().unwrap_or_default()) {
        if !MODES.contains(&mode) {
            out.not_supported(path, mode, MODES);
        }
    }
    let exclusive = modes.iter().any(|mode| mode == "ReadWriteOncePod");
    let others = modes.iter().filter_map(Value::as_str).any(|mode| mode != "ReadWriteOncePod" && MODES.contains(&mode));
    if exclusive && others {
        out.forbidden(path, "may not use ReadWriteOncePod with other access modes");
    }
}

fn positive(out: &mut Errors, value: &Value, path: &FieldPath) {
    if let Some(size) = amount::read(value).filter(|size| *size <= Quantity::ZERO) {
        out.invalid(path, size.to_string(), NOT_POSITIVE);
    }
}

fn volume(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    if items(spec, "accessModes").is_empty() {
        out.required(&path.child("accessModes"), "");
    }
    access_modes(out, spec, &path.child("accessModes"));
    let capacity = at(spec, "capacity");
    let here = path.child("capacity");
    if crate::strategy::count(spec, "capacity") == 0 {
        out.required(&here, "");
    }
    if capacity.get("storage").is_none() || crate::strategy::count(spec, "capacity") > 1 {
        out.not_supported(&here, capacity.clone(), &["storage"]);
    }
    for (resource, value) in entries(spec, "capacity") {
        positive(out, value, &here.key(resource));
    }
    out.one_of(&path, spec, "persistentVolumeReclaimPolicy", &["Delete", "Recycle", "Retain"]);
    if has(spec, "nodeAffinity.required") {
        pod::node_selector(out, at(spec, "nodeAffinity.required"), &path.child("nodeAffinity").child("required"));
    }
    volume_source(out, object, &path);
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        out.each(&path.child("storageClassName"), class, name::subdomain(class));
    }
    out.one_of(&path, spec, "volumeMode", VOLUME_MODES);
}

fn volume_source(out: &mut Errors, object: &Value, path: &FieldPath) {
    let all = source(object);
    let mut kinds = entries_of(&all);
    let Some((kind, first)) = kinds.next() else {
        return out.required(path, "must specify a volume type");
    };
    for (other, _) in kinds {
        out.forbidden(&path.child(other), "may not specify more than 1 volume type");
    }
    let here = path.child(kind);
    let needed: &[&str] = match kind.as_str() {
        "hostPath" | "local" => &["path"],
        "nfs" => &["server", "path"],
        "csi" => &["driver", "volumeHandle"],
        _ => &[],
    };
    for field in needed.iter().filter(|field| text(first, field).is_empty()) {
        out.required(&here.child(field), "");
    }
    if kind == "hostPath" || kind == "local" {
        pod::no_backsteps(out, text(first, "path"), &here.child("path"));
    }
    if kind == "local" && !has(object, "spec.nodeAffinity") {
        out.required(&path.child("nodeAffinity"), "Local volume requires node affinity");
    }
    if kind == "hostPath"
        && text(first, "path") == "/"
        && text(object, "spec.persistentVolumeReclaimPolicy") == "Recycle"
    {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        out.forbidden(&path.child("persistentVolumeReclaimPolicy"), detail);
    }
}

fn entries_of(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null())
}

/// Judges what a claim asks for.
pub(crate) fn claim_spec(out: &mut Errors, spec: &Value, path: &FieldPath) {
    if items(spec, "accessModes").is_empty() {
        out.required(&path.child("accessModes"), "at least 1 access mode is required");
    }
    metadata::selector(out, at(spec, "selector"), &path.child("selector"));
    access_modes(out, spec, &path.child("accessModes"));
    let here = path.child("resources").key("storage");
    match at(spec, "resources.requests.storage") {
        Value::Null => out.required(&here, ""),
        size => positive(out, size, &here),
    }
    for field in ["storageClassName", "volumeAttributesClassName"] {
        let class = text(spec, field);
        if !class.is_empty() {
            out.each(&path.child(field), class, name::subdomain(class));
        }
    }
    out.one_of(path, spec, "volumeMode", VOLUME_MODES);
    for field in ["dataSource", "dataSourceRef"] {
        let (source, here) = (at(spec, field), path.child(field));
        if source.is_null() {
            continue;
        }
        for part in ["name", "kind"] {
            if text(source, part).is_empty() {
                out.required(&here.child(part), "");
            }
        }
        let kind = text(source, "kind");
        if text(source, "apiGroup").is_empty() && kind != "PersistentVolumeClaim" {
            out.invalid(&here, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
        }
    }
}

fn claim_update(new: &Value, old: &Value, out: &mut Errors) {
    let path = FieldPath::new("spec");
    claim_spec(out, at(new, "spec"), &path);
    let (mut now, mut before) = (at(new, "spec").clone(), at(old, "spec").clone());
    if text(&before, "volumeName").is_empty() {
        keep(&mut before, &now, "volumeName");
    }
    if !has(&before, "storageClassName") {
        // Claims made before there was a default class get one later.
        keep(&mut now, &before, "storageClassName");
    }
    if text(new, "status.phase") == "Bound" {
        keep(&mut now, &before, "resources.requests.storage");
        keep(&mut now, &before, "volumeAttributesClassName");
    }
    if !same(&now, &before) {
        out.forbidden(
            &path,
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        );
    }
    let size = |object: &Value| amount::read(at(object, "spec.resources.requests.storage")).unwrap_or_default();
    let given = amount::read(at(old, "status.capacity.storage")).unwrap_or_default();
    if size(new) < size(old) && size(new) <= given {
        let here = path.child("resources").child("requests").child("storage");
        out.forbidden(&here, "field can not be less than status.capacity");
    }
    out.immutable(&FieldPath::root(), at(new, "spec"), at(old, "spec"), "volumeMode");
}
