//! Pods and pod templates.

mod container;
mod defaults;
mod part;
mod probe;
mod scheduling;
mod security;
mod spec;
mod update;
mod volume;

use atoll_meta::FieldPath;
use serde_json::Value;

use super::errors::Errors;
use super::tree::{at, has, int, items, items_mut, keep, remove, text};
use super::{PLAIN, Rules, metadata};

pub(crate) use container::PROTOCOLS;
pub use defaults::classify;
pub use part::{prepare_ephemeral, prepare_resize, validate_ephemeral, validate_resize};
pub(crate) use scheduling::{EFFECTS, node_selector, tolerations};
pub(crate) use volume::no_backsteps;

/// Rules of `Pod`.
pub(crate) const POD: Rules = Rules {
    default: |_, object| defaults::pod(object),
    create: |ctx, object| defaults::fresh_status(object, ctx.now),
    status: |_, new, old| prepare_status(new, old),
    validate: |object, out| {
        validate(object, out);
        create_only(object, out);
    },
    validate_update: |new, old, out| {
        validate(new, out);
        update::validate(new, old, out);
    },
    validate_status: update::validate_status,
    ..PLAIN
};

/// Rules of `PodTemplate`.
pub(crate) const POD_TEMPLATE: Rules = Rules {
    default: |_, object| default_template(object, "template"),
    validate: |object, out| template(object, "template", out),
    validate_update: |new, _, out| template(new, "template", out),
    ..PLAIN
};

/// Defaults of a template that stands at `path`.
pub(crate) fn default_template(object: &mut Value, path: &str) {
    if super::tree::map(object, path).is_some() {
        defaults::spec(object, &format!("{path}.spec"));
    }
}

fn prepare_status(new: &mut Value, old: &Value) {
    keep(new, old, "metadata.deletionTimestamp");
    keep(new, old, "metadata.ownerReferences");
    if text(new, "status.qosClass").is_empty() {
        keep(new, old, "status.qosClass");
    }
    if int(new, "status.observedGeneration").unwrap_or(0) == 0 {
        keep(new, old, "status.observedGeneration");
    }
    let before: Vec<Value> = items(old, "status.conditions").to_vec();
    for condition in items_mut(new, "status.conditions") {
        let kind = text(condition, "type").to_owned();
        if !has(condition, "observedGeneration")
            && let Some(known) = before.iter().find(|known| text(known, "type") == kind)
        {
            keep(condition, known, "observedGeneration");
        }
    }
    if !has(new, "status.podIPs") {
        remove(new, "status.podIP");
    }
    defaults::pod(new);
}

fn validate(object: &Value, out: &mut Errors) {
    spec::validate(out, at(object, "spec"), &FieldPath::new("spec"), Some(at(object, "metadata")));
    for list in ["containers", "initContainers"] {
        for (index, container) in items(at(object, "spec"), list).iter().enumerate() {
            let image = text(container, "image");
            if image.trim().len() != image.len() {
                let path = FieldPath::new("spec").child(list).index(index).child("image");
                out.invalid(&path, image, "must not have leading or trailing whitespace");
            }
        }
    }
}

fn create_only(object: &Value, out: &mut Errors) {
    let path = FieldPath::new("spec");
    if !items(object, "spec.ephemeralContainers").is_empty() {
        out.forbidden(&path.child("ephemeralContainers"), "cannot be set on create");
    }
    if !text(object, "spec.nodeName").is_empty() && !items(object, "spec.schedulingGates").is_empty() {
        out.forbidden(&path.child("nodeName"), "cannot be set until all schedulingGates have been cleared");
    }
}

/// Judges the template at `field` of `parent`, whose own path is the root.
fn template(parent: &Value, field: &str, out: &mut Errors) {
    validate_template(out, at(parent, field), &FieldPath::new(field));
}

/// Judges a pod template.
pub(crate) fn validate_template(out: &mut Errors, template: &Value, path: &FieldPath) {
    metadata::labels(out, at(template, "metadata.labels"), &path.child("labels"));
    metadata::annotations(out, at(template, "metadata.annotations"), &path.child("annotations"));
    spec::validate(out, at(template, "spec"), &path.child("spec"), None);
    if !items(template, "spec.ephemeralContainers").is_empty() {
        out.forbidden(
            &path.child("spec").child("ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        );
    }
}

#[cfg(test)]
mod tests;
