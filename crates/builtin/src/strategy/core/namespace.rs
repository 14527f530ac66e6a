//! Namespaces.

use atoll_meta::FieldPath;
use serde_json::Value;

use crate::strategy::errors::Errors;
use crate::strategy::tree::{fill_text, has, items, keep, map, set, text};
use crate::strategy::{PLAIN, Rules, name};

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) const NAMESPACE: Rules = Rules {
    default: |_, object| {
        let own = text(object, "metadata.name").to_owned();
        if !own.is_empty()
            && let Some(labels) = map(object, "metadata.labels")
        {
            labels.insert(NAME_LABEL.to_owned(), own.into());
        }
        crate::strategy::tree::fill_map(object, "spec");
        fill_text(object, "status.phase", "Active");
    },
    create: |_, object| {
        let mut finalizers = items(object, "spec.finalizers").to_vec();
        if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
            finalizers.push("kubernetes".into());
        }
        set(object, "spec.finalizers", finalizers);
    },
    update: |_, new, old| keep(new, old, "spec.finalizers"),
    validate,
    validate_status: |new, _, out| {
        let phase = text(new, "status.phase");
        let path = FieldPath::new("status.Phase");
        match (has(new, "metadata.deletionTimestamp"), phase) {
            (false, "Active") | (true, "Terminating") => {}
            (false, _) => out.invalid(&path, phase, "may only be 'Active' if `deletionTimestamp` is empty"),
            (true, _) => out.invalid(&path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"),
        }
    },
    ..PLAIN
};

fn validate(object: &Value, out: &mut Errors) {
    let path = FieldPath::new("spec.finalizers");
    for finalizer in items(object, "spec.finalizers") {
        let finalizer = finalizer.as_str().unwrap_or_default();
        out.each(&path, finalizer, name::qualified(finalizer));
        if !finalizer.contains('/') && !matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion") {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            out.invalid(&path, finalizer, detail);
        }
    }
}
