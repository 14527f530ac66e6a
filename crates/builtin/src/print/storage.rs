//! Volumes, claims and what provides them.

use serde_json::Value;

use super::view::{NONE, UNSET, View, shown};
use super::{AGE, Column, NAME, Printer, boolean, integer, text};
use crate::strategy as tree;

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "PersistentVolume" => &VOLUME,
        "PersistentVolumeClaim" => &CLAIM,
        "StorageClass" => &CLASS,
        "VolumeAttributesClass" => &ATTRIBUTES,
        "VolumeAttachment" => &ATTACHMENT,
        "CSINode" => &CSI_NODE,
        "CSIDriver" => &CSI_DRIVER,
        "CSIStorageCapacity" => &CAPACITY,
        _ => return None,
    })
}

const MODE: Column = text("VolumeMode", "Whether the volume is a file system or a raw device.").wide();

const VOLUME: Printer = Printer {
    columns: &[
        NAME,
        text("Capacity", "Size of the volume."),
        text("Access Modes", "How the volume can be mounted."),
        text("Reclaim Policy", "What happens to the volume when its claim is gone."),
        text("Status", "State of the volume."),
        text("Claim", "Claim the volume is bound to."),
        text("StorageClass", "Class of the volume."),
        text("VolumeAttributesClass", "Class of attributes that can be changed."),
        text("Reason", "Why the volume is in its state."),
        AGE,
        MODE,
    ],
    cells: |view| {
        let claim = if view.has("spec.claimRef") {
            format!("{}/{}", view.text("spec.claimRef.namespace"), view.text("spec.claimRef.name"))
        } else {
            String::new()
        };
        vec![
            view.name(),
            size(view, "spec.capacity.storage").into(),
            modes(view, "spec.accessModes").into(),
            view.text("spec.persistentVolumeReclaimPolicy").into(),
            phase(view),
            claim.into(),
            class(view),
            optional(view, "spec.volumeAttributesClassName"),
            view.text("status.reason").into(),
            view.age(),
            optional(view, "spec.volumeMode"),
        ]
    },
};

const CLAIM: Printer = Printer {
    columns: &[
        NAME,
        text("Status", "State of the claim."),
        text("Volume", "Volume the claim is bound to."),
        text("Capacity", "Size of the volume."),
        text("Access Modes", "How the volume can be mounted."),
        text("StorageClass", "Class the claim asks for."),
        text("VolumeAttributesClass", "Class of attributes that can be changed."),
        AGE,
        MODE,
    ],
    cells: |view| {
        let bound = !view.text("spec.volumeName").is_empty();
        vec![
            view.name(),
            phase(view),
            view.text("spec.volumeName").into(),
            if bound { size(view, "status.capacity.storage").into() } else { "".into() },
            if bound { modes(view, "status.accessModes").into() } else { "".into() },
            class(view),
            optional(view, "spec.volumeAttributesClassName"),
            view.age(),
            optional(view, "spec.volumeMode"),
        ]
    },
};

fn size(view: &View, path: &str) -> String {
    match view.at(path) {
        Value::Null => "0".to_owned(),
        value => shown(value),
    }
}

fn optional(view: &View, path: &str) -> Value {
    view.at(path).as_str().unwrap_or(UNSET).into()
}

fn phase(view: &View) -> Value {
    if view.has("metadata.deletionTimestamp") { "Terminating".into() } else { view.text("status.phase").into() }
}

fn class(view: &View) -> Value {
    match view.entry("metadata.annotations", BETA_CLASS) {
        "" => view.text("spec.storageClassName").into(),
        old => old.into(),
    }
}

fn modes(view: &View, path: &str) -> String {
    let given = view.items(path);
    let short =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let found = short.iter().filter(|(long, _)| given.iter().any(|mode| mode == long)).map(|(_, short)| *short);
    found.collect::<Vec<_>>().join(",")
}

const CLASS: Printer = Printer {
    columns: &[
        NAME,
        text("Provisioner", "Program that makes the volumes."),
        text("ReclaimPolicy", "What happens to volumes when their claim is gone."),
        text("VolumeBindingMode", "When volumes are made and bound."),
        text("AllowVolumeExpansion", "Whether volumes can grow."),
        AGE,
    ],
    cells: |view| {
        let default =
            ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
                .iter()
                .any(|key| view.entry("metadata.annotations", key) == "true");
        let mark = if default { " (default)" } else { "" };
        vec![
            format!("{}{mark}", view.text("metadata.name")).into(),
            view.text("provisioner").into(),
            view.text_or("reclaimPolicy", "Delete"),
            view.text_or("volumeBindingMode", "Immediate"),
            view.flag("allowVolumeExpansion").into(),
            view.age(),
        ]
    },
};

const ATTRIBUTES: Printer = Printer {
    columns: &[NAME, text("DriverName", "Driver that knows the attributes."), AGE],
    cells: |view| vec![view.name(), view.text("driverName").into(), view.age()],
};

const ATTACHMENT: Printer = Printer {
    columns: &[
        NAME,
        Column { format: "name", ..text("Attacher", "Driver that attaches the volume.") },
        text("PV", "Volume to attach."),
        text("Node", "Node to attach it to."),
        boolean("Attached", "Whether it is attached."),
        AGE,
    ],
    cells: |view| {
        vec![
            view.name(),
            view.text("spec.attacher").into(),
            view.text("spec.source.persistentVolumeName").into(),
            view.text("spec.nodeName").into(),
            view.flag("status.attached").into(),
            view.age(),
        ]
    },
};

const CSI_NODE: Printer = Printer {
    columns: &[NAME, integer("Drivers", "Drivers registered on the node."), AGE],
    cells: |view| vec![view.name(), view.items("spec.drivers").len().into(), view.age()],
};

const CSI_DRIVER: Printer = Printer {
    columns: &[
        NAME,
        boolean("AttachRequired", "Whether volumes are attached before they are mounted."),
        boolean("PodInfoOnMount", "Whether the driver is told about the pod."),
        boolean("StorageCapacity", "Whether the driver reports its capacity."),
        text("TokenRequests", "Audiences of the tokens the driver needs."),
        boolean("RequiresRepublish", "Whether volumes are published again and again."),
        text("Modes", "Sorts of volumes the driver supports."),
        AGE,
    ],
    cells: |view| {
        let join = |path: &str, field: &str| {
            let all: Vec<&str> = view
                .items(path)
                .iter()
                .map(|item| if field.is_empty() { item.as_str().unwrap_or_default() } else { tree::text(item, field) })
                .collect();
            all.join(",")
        };
        let modes = join("spec.volumeLifecycleModes", "");
        let tokens =
            if view.has("spec.tokenRequests") { join("spec.tokenRequests", "audience") } else { UNSET.to_owned() };
        vec![
            view.name(),
            view.at("spec.attachRequired").as_bool().unwrap_or(true).into(),
            view.flag("spec.podInfoOnMount").into(),
            view.flag("spec.storageCapacity").into(),
            tokens.into(),
            view.flag("spec.requiresRepublish").into(),
            if modes.is_empty() { NONE.into() } else { modes.into() },
            view.age(),
        ]
    },
};

const CAPACITY: Printer = Printer {
    columns: &[NAME, text("StorageClassName", "Class the capacity is of."), text("Capacity", "How much is left.")],
    cells: |view| {
        let left = if view.has("capacity") { shown(view.at("capacity")) } else { UNSET.to_owned() };
        vec![view.name(), view.text("storageClassName").into(), left.into()]
    },
};
