//! Override policies.

use atoll_api::policy::{FieldOverrider, LabelAnnotationOverrider, OverrideSpec, Overriders};
use atoll_meta::{FieldError, FieldPath};
use serde_json::Value;

use super::policy::check_affinity;
use super::{items_mut, label_value, qualified};

/// Selectors are for the policy's own namespace.
pub fn default(object: &mut Value, namespace: &str) {
    for selector in items_mut(object, "/spec/resourceSelectors") {
        if selector["namespace"].as_str().unwrap_or_default().is_empty() {
            selector["namespace"] = namespace.into();
        }
    }
}

/// What is wrong with an override policy.
pub fn check(spec: &OverrideSpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let root = FieldPath::new("spec");
    let old_form = spec.target_cluster.is_some()
        || spec.overriders.as_ref().is_some_and(|overriders| *overriders != Overriders::default());
    if old_form && !spec.override_rules.is_empty() {
        errors.push(FieldError::invalid(
            root.child("overrideRules"),
            spec.override_rules.len(),
            "overrideRules and (overriders or targetCluster) can't co-exist",
        ));
    }
    if let Some(affinity) = &spec.target_cluster {
        check_affinity(&mut errors, &root.child("targetCluster"), affinity);
    }
    if let Some(overriders) = &spec.overriders {
        check_overriders(&mut errors, &root.child("overriders"), overriders);
    }
    for (at, rule) in spec.override_rules.iter().enumerate() {
        let path = root.child("overrideRules").index(at);
        if let Some(affinity) = &rule.target_cluster {
            check_affinity(&mut errors, &path.child("targetCluster"), affinity);
        }
        check_overriders(&mut errors, &path.child("overriders"), &rule.overriders);
    }
    errors
}

fn check_overriders(errors: &mut Vec<FieldError>, path: &FieldPath, overriders: &Overriders) {
    for (at, overrider) in overriders.plaintext.iter().enumerate() {
        pointer(errors, &path.child("plaintext").index(at).child("path"), &overrider.path);
    }
    for (at, overrider) in overriders.image_overrider.iter().enumerate() {
        if let Some(predicate) = &overrider.predicate {
            pointer(errors, &path.child("imageOverrider").index(at).child("predicate").child("path"), &predicate.path);
        }
    }
    for (at, overrider) in overriders.field_overrider.iter().enumerate() {
        field(errors, &path.child("fieldOverrider").index(at), overrider);
    }
    for (at, overrider) in overriders.labels_overrider.iter().enumerate() {
        keys(errors, &path.child("labelsOverrider").index(at), overrider, true);
    }
    for (at, overrider) in overriders.annotations_overrider.iter().enumerate() {
        keys(errors, &path.child("annotationsOverrider").index(at), overrider, false);
    }
}

fn keys(errors: &mut Vec<FieldError>, path: &FieldPath, overrider: &LabelAnnotationOverrider, values: bool) {
    for (key, value) in &overrider.value {
        qualified(errors, &path.child("value"), key);
        if values {
            label_value(errors, &path.child("value").key(key), value);
        }
    }
}

fn field(errors: &mut Vec<FieldError>, path: &FieldPath, overrider: &FieldOverrider) {
    pointer(errors, &path.child("fieldPath"), &overrider.field_path);
    if overrider.json.is_empty() == overrider.yaml.is_empty() {
        errors.push(FieldError::invalid(
            path.clone(),
            overrider.field_path.as_str(),
            "exactly one of json and yaml must be given",
        ));
    }
    for (name, patches) in [("json", &overrider.json), ("yaml", &overrider.yaml)] {
        for (at, patch) in patches.iter().enumerate() {
            pointer(errors, &path.child(name).index(at).child("subPath"), &patch.sub_path);
        }
    }
}

/// A JSON pointer begins with a slash, and a tilde is followed by 0 or 1.
fn pointer(errors: &mut Vec<FieldError>, path: &FieldPath, text: &str) {
    let escapes = text.split('~').skip(1).all(|part| part.starts_with(['0', '1']));
    if !text.starts_with('/') || !escapes {
        errors.push(FieldError::invalid(path.clone(), text, "must be a JSON pointer as in RFC 6901"));
    }
}
