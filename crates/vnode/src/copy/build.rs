//! What a copy looks like.

use std::collections::BTreeSet;

use atoll_api::kubeocean_names::{PREFIX, annotation, label, physical};
use serde_json::{Value, json};

use super::stamp::SHARED_BY;
use super::thing::{Kind, Thing};
use crate::tree::{self, Strings};

/// A claim or volume that cannot be copied, and why.
pub(crate) type Unfit = String;

/// The copy of an original. `marks` say whose it is; `mount` is the namespace it goes to.
pub(crate) fn copy(thing: &Thing, original: &Value, marks: &[(String, String)], mount: &str) -> Result<Value, Unfit> {
    let mut labels: Strings = tree::labels(original).into_iter().filter(|(key, _)| !is_bookkeeping(key)).collect();
    if tree::label(original, label::USED_BY_PV) == "true" {
        labels.insert(label::USED_BY_PV.to_owned(), "true".to_owned());
    }
    labels.extend(marks.iter().cloned());
    let mut annotations: Strings =
        tree::annotations(original).into_iter().filter(|(key, _)| !is_bookkeeping(key)).collect();
    annotations.insert(annotation::VIRTUAL_NAME.to_owned(), thing.name.clone());
    annotations.insert(annotation::VIRTUAL_NAMESPACE.to_owned(), thing.namespace.clone());
    let mut metadata = json!({"name": thing.physical(), "labels": labels, "annotations": annotations});
    if let Some(namespace) = thing.kind.below(mount) {
        metadata["namespace"] = namespace.into();
    }
    let mut out = json!({"apiVersion": "v1", "kind": thing.kind.name(), "metadata": metadata});
    match thing.kind {
        Kind::ConfigMap => take(&mut out, original, &["data", "binaryData"]),
        Kind::Secret => {
            take(&mut out, original, &["data", "type"]);
            // As such it would be filled by the worker cluster, with a token of its own.
            if out["type"] == "kubernetes.io/service-account-token" {
                out["type"] = "Opaque".into();
            }
        }
        Kind::Claim => out["spec"] = claim(thing, original)?,
        Kind::Volume => out["spec"] = volume(original, mount),
    }
    Ok(out)
}

/// Whether a label or annotation only says what is copied where, or repeats the object.
fn is_bookkeeping(key: &str) -> bool {
    key.starts_with(PREFIX)
        || key.starts_with("pv.kubernetes.io/")
        || key.starts_with("volume.kubernetes.io/")
        || key.starts_with(SHARED_BY)
        || key == "kubectl.kubernetes.io/last-applied-configuration"
}

fn take(out: &mut Value, original: &Value, fields: &[&str]) {
    for field in fields {
        if !original[*field].is_null() {
            out[*field] = original[*field].clone();
        }
    }
}

/// The volume a claim is bound to.
pub(crate) fn volume_of(thing: &Thing, claim: &Value) -> Result<String, Unfit> {
    let phase = claim["status"]["phase"].as_str().unwrap_or_default();
    if phase != "Bound" {
        return Err(format!("{} is not bound, current phase: {phase}", thing.title()));
    }
    match claim["spec"]["volumeName"].as_str() {
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(format!("{} is bound but names no volume", thing.title())),
    }
}

fn claim(thing: &Thing, original: &Value) -> Result<Value, Unfit> {
    let mut spec = original["spec"].clone();
    spec["volumeName"] = physical("", &volume_of(thing, original)?).into();
    // Without any class a default of the worker cluster would be put in, which the volume is not of.
    spec["storageClassName"] = "".into();
    for field in ["dataSource", "dataSourceRef", "selector"] {
        spec.as_object_mut().map(|map| map.remove(field));
    }
    Ok(spec)
}

/// Where volumes name the Secrets with which they are mounted: the object, and its fields for name and namespace.
const SECRETS: [(&str, &str, &str); 12] = [
    ("/csi/nodePublishSecretRef", "name", "namespace"),
    ("/csi/nodeStageSecretRef", "name", "namespace"),
    ("/csi/nodeExpandSecretRef", "name", "namespace"),
    ("/csi/controllerPublishSecretRef", "name", "namespace"),
    ("/csi/controllerExpandSecretRef", "name", "namespace"),
    ("/iscsi/secretRef", "name", "namespace"),
    ("/flexVolume/secretRef", "name", "namespace"),
    ("/cephfs/secretRef", "name", "namespace"),
    ("/rbd/secretRef", "name", "namespace"),
    ("/scaleIO/secretRef", "name", "namespace"),
    ("/storageos/secretRef", "name", "namespace"),
    ("/azureFile", "secretName", "secretNamespace"),
];

/// The Secrets with which a volume is mounted, each once; one without a namespace is in that of the claim.
pub(crate) fn volume_secrets(volume: &Value) -> BTreeSet<Thing> {
    let claims = volume["spec"]["claimRef"]["namespace"].as_str();
    let named = SECRETS.iter().filter_map(|(place, name, namespace)| {
        let reference = volume["spec"].pointer(place)?;
        let text = |field: &str| reference[field].as_str().filter(|text| !text.is_empty());
        Some(Thing::new(Kind::Secret, text(namespace).or(claims)?, text(name)?))
    });
    named.collect()
}

fn volume(original: &Value, mount: &str) -> Value {
    let mut spec = original["spec"].clone();
    let claims = original["spec"]["claimRef"]["namespace"].as_str().unwrap_or_default();
    spec["persistentVolumeReclaimPolicy"] = "Retain".into();
    for field in ["claimRef", "nodeAffinity", "storageClassName"] {
        spec.as_object_mut().map(|map| map.remove(field));
    }
    for (place, name, namespace) in SECRETS {
        if let Some(reference) = spec.pointer_mut(place).filter(|reference| reference[name].is_string()) {
            // Into the mount namespace, where we may write Secrets, and not, as the original has it, into whatever
            // namespace of the worker cluster has the same name; one without a namespace is in that of the claim.
            let text = |field: &str| reference[field].as_str().filter(|text| !text.is_empty());
            let below = physical(text(namespace).unwrap_or(claims), text(name).unwrap_or_default());
            reference[name] = below.into();
            reference[namespace] = mount.into();
        }
    }
    spec
}

/// Whether a copy says what it should; what servers add does not count.
pub(crate) fn is_same(wanted: &Value, there: &Value, kind: Kind) -> bool {
    let meta = |object: &Value| (tree::labels(object), tree::annotations(object));
    let fields: &[&str] = match kind {
        Kind::ConfigMap => &["data", "binaryData"],
        Kind::Secret => &["data"],
        // What they say cannot be changed once they are there.
        Kind::Claim | Kind::Volume => &[],
    };
    let data = fields.iter().all(|field| wanted[*field] == there[*field]);
    // A claim collects annotations of its own below.
    data && (!matches!(kind, Kind::ConfigMap | Kind::Secret) || meta(wanted) == meta(there))
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
