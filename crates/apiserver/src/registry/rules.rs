//! What a kind makes of its objects: defaults, generation, checks.

use atoll_builtin::strategy;
use atoll_meta::FieldError;
use serde_json::Value;

use super::metadata::{metadata, put};
use crate::call::Call;
use crate::crd::Custom;

impl Call {
    /// Finds what is wrong with a new object.
    pub(super) fn validate_create(&self, object: &Value, now: &str) -> Vec<FieldError> {
        let mut errors = strategy::validate_metadata(&object["metadata"], self.kind.name_rule(), self.kind.namespaced);
        match self.kind.custom() {
            None => errors.extend(strategy::validate_create(&self.strategy(now), object)),
            Some(custom) => errors.extend(self.custom_errors(custom, object, None, |_| {})),
        }
        errors
    }

    /// Stored custom objects may predate a default; readers and comparisons see it filled in.
    pub(super) fn default_custom(&self, old: &mut Value) {
        if let Some(custom) = self.kind.custom() {
            custom.default_stored(old);
            if !custom.converts() {
                custom.default(old);
            }
        }
    }

    /// What is wrong with a custom object, said of the fields its writer knows: those of the version of the request.
    fn custom_errors(
        &self,
        custom: &Custom,
        new: &Value,
        old: Option<&Value>,
        warn: impl Fn(String),
    ) -> Vec<FieldError> {
        if !custom.converts() {
            return custom.validate(new, old, warn);
        }
        let shown = |tree: &Value| crate::convert::to(&self.kind, tree.clone());
        custom.validate(&shown(new), old.map(shown).as_ref(), warn)
    }

    /// Lets the kind keep what this endpoint cannot change.
    pub(super) fn prepare_change(&self, new: &mut Value, old: &Value, sub: &str, now: &str) {
        match (self.kind.custom(), sub) {
            (None, "status") => strategy::prepare_status(&self.strategy(now), new, old),
            (None, "") => strategy::prepare_update(&self.strategy(now), new, old),
            (None, "ephemeralcontainers") => strategy::prepare_ephemeral(new, old),
            (None, "resize") => strategy::prepare_resize(new, old),
            (None, _) => {}
            (Some(_), "status") => {
                keep_all_but(&["metadata", "status"], new, old);
                keep_all_but(&["managedFields"], &mut new["metadata"], &old["metadata"]);
            }
            (Some(_), _) if self.kind.has_status() => {
                if new.get("status") != old.get("status") {
                    put(new, "status", old.get("status").cloned());
                }
            }
            (Some(_), _) => {}
        }
    }

    /// Brings a custom object into the form of the version it is stored in.
    pub(super) fn store_form(&self, object: &mut Value) {
        if let Some(custom) = self.kind.custom() {
            custom.default_stored(object);
        }
    }

    /// Counts a change of what the object asks for.
    pub(super) fn count_generation(&self, new: &mut Value, old: &Value, sub: &str) {
        if !self.kind.tracks_generation() || matches!(sub, "status" | "binding") {
            return;
        }
        let has_status = self.kind.has_status() || self.kind.custom().is_none();
        let skip = |key: &str| matches!(key, "metadata" | "apiVersion" | "kind") || (key == "status" && has_status);
        let differ = |new: &Value, old: &Value| {
            let part = |tree| Value::as_object(tree).into_iter().flatten().filter(|(key, _)| !skip(key));
            part(new).ne(part(old))
        };
        let annotations_count = &*self.kind.kind == "Deployment" && self.kind.custom().is_none();
        // What counts is what will be stored.
        let stored = self.kind.custom().filter(|custom| custom.is_stored_elsewhere()).map(|custom| {
            let mut stored = new.clone();
            custom.default_stored(&mut stored);
            stored
        });
        let changed = differ(stored.as_ref().unwrap_or(new), old)
            || (annotations_count && new["metadata"]["annotations"] != old["metadata"]["annotations"]);
        if changed {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
            metadata(new).insert("generation".into(), generation.into());
        }
    }

    /// Finds what is wrong with a changed object.
    pub(super) fn validate_change(&self, new: &Value, old: &Value, sub: &str, now: &str) -> Vec<FieldError> {
        let mut errors = strategy::validate_metadata_update(&new["metadata"], &old["metadata"]);
        // The original looks twice, and says so in the causes.
        errors.extend(errors.clone());
        match (self.kind.custom(), sub) {
            (None, "status") => errors.extend(strategy::validate_status(&self.strategy(now), new, old)),
            // A binding sets the one field that no other update may change.
            (None, "binding") => {}
            (None, "ephemeralcontainers") => errors.extend(strategy::validate_ephemeral(new, old)),
            (None, "resize") => errors.extend(strategy::validate_resize(new, old)),
            (None, _) => errors.extend(strategy::validate_update(&self.strategy(now), new, old)),
            (Some(custom), _) => {
                let found = self.custom_errors(custom, new, Some(old), |text| self.warn(text));
                errors.extend(found.into_iter().map(|error| if sub == "status" { of_status(error) } else { error }));
            }
        }
        errors
    }
}

/// Makes all fields but some what they were; most are, and stay where they are.
fn keep_all_but(some: &[&str], new: &mut Value, old: &Value) {
    let (Some(new), Some(old)) = (new.as_object_mut(), old.as_object()) else { return };
    new.retain(|key, _| some.contains(&key.as_str()) || old.contains_key(key));
    for (key, value) in old.iter().filter(|(key, _)| !some.contains(&key.as_str())) {
        if new.get(key) != Some(value) {
            new.insert(key.clone(), value.clone());
        }
    }
}

/// A complaint about a status alone names fields from there.
fn of_status(mut error: FieldError) -> FieldError {
    if let Some(rest) = error.detail.strip_prefix("status.") {
        error.detail = rest.to_owned();
    }
    error
}
