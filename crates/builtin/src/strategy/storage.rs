//! Storage classes, drivers and attachments.

use std::collections::BTreeSet;

use atoll_meta::FieldPath;
use serde_json::{Value, json};

use super::errors::{Errors, IMMUTABLE};
use super::tree::{at, entries, fill, fill_map, has, int, items, keep, same, set, text};
use super::{PLAIN, Rules, count, name};

pub(super) fn rules(kind: &str) -> &'static Rules {
    match kind {
        "StorageClass" => &CLASS,
        "VolumeAttributesClass" => &ATTRIBUTES,
        "VolumeAttachment" => &ATTACHMENT,
        "CSIDriver" => &DRIVER,
        "CSINode" => &NODE,
        _ => &PLAIN,
    }
}

const CLASS: Rules = Rules {
    default: |_, object| {
        fill(object, "reclaimPolicy", "Delete");
        fill(object, "volumeBindingMode", "Immediate");
    },
    validate: class,
    validate_update: |new, old, out| {
        for field in ["parameters", "provisioner", "reclaimPolicy"] {
            if !same(at(new, field), at(old, field)) {
                out.forbidden(&FieldPath::new(field), format!("updates to {field} are forbidden."));
            }
        }
        out.immutable(&FieldPath::root(), new, old, "volumeBindingMode");
    },
    ..PLAIN
};

fn class(object: &Value, out: &mut Errors) {
    let root = FieldPath::root();
    let provisioner = text(object, "provisioner");
    if provisioner.is_empty() {
        out.required(&root.child("provisioner"), "");
    } else {
        let lower = provisioner.to_lowercase();
        out.each(&root.child("provisioner"), &lower, name::qualified(&lower));
    }
    parameters(out, object);
    out.one_of(&root, object, "reclaimPolicy", &["Delete", "Retain"]);
    out.one_of(&root, object, "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"]);
    for (index, term) in items(object, "allowedTopologies").iter().enumerate() {
        let path = FieldPath::new("allowedTopologies").index(index).child("matchLabelExpressions");
        for (index, rule) in items(term, "matchLabelExpressions").iter().enumerate() {
            if items(rule, "values").is_empty() {
                out.required(&path.index(index).child("values"), "");
            }
            let key = text(rule, "key");
            out.each(&path.index(index).child("key"), key, name::qualified(key));
        }
    }
}

fn parameters(out: &mut Errors, object: &Value) {
    let path = FieldPath::new("parameters");
    if count(object, "parameters") > 512 {
        return out.too_long(&path, 512);
    }
    let mut size = 0;
    for (key, value) in entries(object, "parameters") {
        if key.is_empty() {
            out.invalid(&path, "", "field can not be empty.");
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > 256 * 1024 {
        out.too_long(&path, 256 * 1024);
    }
}

const ATTRIBUTES: Rules = Rules {
    validate: |object, out| {
        if text(object, "driverName").is_empty() {
            out.required(&FieldPath::new("driverName"), "");
        }
        parameters(out, object);
        if count(object, "parameters") == 0 {
            out.required(&FieldPath::new("parameters"), "must contain at least one key/value pair");
        }
    },
    validate_update: |new, old, out| {
        for field in ["driverName", "parameters"] {
            if !same(at(new, field), at(old, field)) {
                out.forbidden(&FieldPath::new(field), format!("updates to {field} are forbidden."));
            }
        }
    },
    ..PLAIN
};

const ATTACHMENT: Rules = Rules {
    default: |_, object| fill(object, "status.attached", false),
    status: |_, new, old| {
        for field in ["labels", "annotations", "ownerReferences", "finalizers"] {
            keep(new, old, &format!("metadata.{field}"));
        }
    },
    validate: attachment,
    validate_update: |new, old, out| {
        attachment(new, out);
        if !same(at(new, "spec"), at(old, "spec")) {
            out.invalid(&FieldPath::new("spec"), at(new, "spec").clone(), IMMUTABLE);
        }
    },
    ..PLAIN
};

fn attachment(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    if text(spec, "attacher").is_empty() {
        // Both the old and the newer check say so.
        out.required(&path.child("attacher"), "");
        out.required(&path.child("attacher"), "");
    }
    let here = path.child("source");
    let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (has(spec, "source.inlineVolumeSpec"), has(spec, "source.persistentVolumeName")) {
        (false, false) => out.required(&here, detail),
        (true, true) => out.forbidden(&here, detail),
        (false, true) if text(spec, "source.persistentVolumeName").is_empty() => {
            out.required(&here.child("persistentVolumeName"), "must specify non empty persistentVolumeName");
        }
        _ => {}
    }
    let node = text(spec, "nodeName");
    out.each(&path.child("nodeName"), node, name::subdomain(node));
}

const DRIVER: Rules = Rules {
    default: |_, object| {
        fill(object, "spec.attachRequired", true);
        for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
            fill(object, &format!("spec.{field}"), false);
        }
        fill(object, "spec.fsGroupPolicy", "ReadWriteOnceWithFSType");
        if items(object, "spec.volumeLifecycleModes").is_empty() {
            set(object, "spec.volumeLifecycleModes", json!(["Persistent"]));
        }
    },
    validate: driver,
    validate_update: |new, old, out| {
        driver(new, out);
        if !same(at(new, "spec.attachRequired"), at(old, "spec.attachRequired")) {
            let value = at(new, "spec.attachRequired").clone();
            out.invalid(&FieldPath::new("spec.attachedRequired"), value, IMMUTABLE);
        }
        out.immutable(&FieldPath::new("spec"), at(new, "spec"), at(old, "spec"), "volumeLifecycleModes");
    },
    ..PLAIN
};

fn driver(object: &Value, out: &mut Errors) {
    let (spec, path) = (at(object, "spec"), FieldPath::new("spec"));
    out.one_of(&path, spec, "fsGroupPolicy", &["File", "None", "ReadWriteOnceWithFSType"]);
    let mut audiences = BTreeSet::new();
    for (index, request) in items(spec, "tokenRequests").iter().enumerate() {
        let here = path.child("tokenRequests").index(index);
        let audience = text(request, "audience");
        if !audiences.insert(audience) {
            out.duplicate(&here.child("audience"), audience);
        } else if let Some(seconds) = int(request, "expirationSeconds").filter(|seconds| *seconds < 600) {
            out.invalid(&here.child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes");
        }
    }
    for mode in items(spec, "volumeLifecycleModes") {
        if mode != "Persistent" && mode != "Ephemeral" {
            out.not_supported(&path.child("volumeLifecycleModes"), mode.clone(), &["Persistent", "Ephemeral"]);
        }
    }
}

const NODE: Rules = Rules {
    default: |_, object| {
        fill_map(object, "spec");
        fill(object, "spec.drivers", Value::Null);
    },
    validate: |object, out| {
        let path = FieldPath::new("spec.drivers");
        let mut names = BTreeSet::new();
        for (index, driver) in items(object, "spec.drivers").iter().enumerate() {
            let here = path.index(index);
            let own = text(driver, "name");
            if own.is_empty() {
                out.required(&here.child("name"), "");
            } else if !names.insert(own) {
                out.duplicate(&here.child("name"), own);
            }
            if text(driver, "nodeID").is_empty() {
                out.required(&here.child("nodeID"), "");
            }
        }
    },
    ..PLAIN
};
