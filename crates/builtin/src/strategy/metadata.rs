//! Rules every object's metadata follows, whatever its kind.

use atoll_meta::{FieldError, FieldErrorKind, FieldPath};
use serde_json::Value;

use super::errors::Errors;
use super::tree::{at, entries, flag, has, int, items, text};
use super::{NameRule, name};

const ANNOTATION_LIMIT: usize = 256 * 1024;
const SUBRESOURCE_LIMIT: usize = 256;

/// Checks the metadata of a new object.
pub fn validate_metadata(meta: &Value, rule: NameRule, namespaced: bool) -> Vec<FieldError> {
    let mut out = Errors::default();
    let path = FieldPath::new("metadata");
    let prefix = text(meta, "generateName");
    if !prefix.is_empty() {
        out.each(&path.child("generateName"), prefix, name::check(rule, prefix, true));
    }
    let own = text(meta, "name");
    if own.is_empty() {
        out.required(&path.child("name"), "name or generateName is required");
    } else {
        out.each(&path.child("name"), own, name::check(rule, own, false));
    }
    let namespace = text(meta, "namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => out.required(&path.child("namespace"), ""),
        (true, false) => out.each(&path.child("namespace"), namespace, name::label(namespace)),
        (false, false) => out.forbidden(&path.child("namespace"), "not allowed on this type"),
        (false, true) => {}
    }
    out.not_negative(&path, meta, "generation");
    changeable(&mut out, meta, &path);
    finalizers(&mut out, meta, &path.child("finalizers"));
    managed(&mut out, meta, &path.child("managedFields"));
    out.0
}

/// Checks what an update did to the metadata.
pub fn validate_metadata_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut out = Errors::default();
    let path = FieldPath::new("metadata");
    if has(old, "deletionTimestamp") {
        let mut added: Vec<String> = items(new, "finalizers")
            .iter()
            .filter(|name| !items(old, "finalizers").contains(name))
            .map(|name| format!("\"{}\"", name.as_str().unwrap_or_default()))
            .collect();
        added.sort();
        added.dedup();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            out.forbidden(&path.child("finalizers"), detail);
        }
    }
    if text(new, "resourceVersion").is_empty() {
        out.invalid(&path.child("resourceVersion"), "", "must be specified for an update");
    }
    let generation = int(new, "generation").unwrap_or(0);
    if generation < int(old, "generation").unwrap_or(0) {
        out.invalid(&path.child("generation"), generation, "must not be decremented");
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        out.immutable(&path, new, old, field);
    }
    changeable(&mut out, new, &path);
    managed(&mut out, new, &path.child("managedFields"));
    out.0
}

/// The parts a user may change at any time.
fn changeable(out: &mut Errors, meta: &Value, path: &FieldPath) {
    labels(out, at(meta, "labels"), &path.child("labels"));
    annotations(out, at(meta, "annotations"), &path.child("annotations"));
    owners(out, items(meta, "ownerReferences"), &path.child("ownerReferences"));
}

/// Label keys and values.
pub(crate) fn labels(out: &mut Errors, labels: &Value, path: &FieldPath) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        out.each(path, key, name::qualified(key));
        let value = value.as_str().unwrap_or_default();
        out.each(path, value, name::label_value(value));
    }
}

/// Annotation keys and the size of all of them together.
pub(crate) fn annotations(out: &mut Errors, annotations: &Value, path: &FieldPath) {
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        for message in name::qualified(&key.to_lowercase()) {
            out.invalid(path, key.as_str(), message);
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATION_LIMIT {
        out.too_long(path, ANNOTATION_LIMIT);
    }
}

fn owners(out: &mut Errors, owners: &[Value], path: &FieldPath) {
    let mut controller: Option<String> = None;
    for owner in owners {
        let version = text(owner, "apiVersion");
        if version.is_empty() || version.ends_with('/') {
            out.invalid(&path.child("apiVersion"), version, "version must not be empty");
        }
        for field in ["kind", "name", "uid"] {
            if text(owner, field).is_empty() {
                out.invalid(&path.child(field), "", "must not be empty");
            }
        }
        if version == "v1" && text(owner, "kind") == "Event" {
            out.invalid(path, owner.clone(), "/v1, Kind=Event is disallowed from being an owner");
        }
        if flag(owner, "controller") {
            let this = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
            match &controller {
                Some(first) => out.shown(
                    path,
                    FieldErrorKind::Invalid,
                    &shown_owners(owners),
                    &format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    ),
                ),
                None => controller = Some(this),
            }
        }
    }
}

fn finalizers(out: &mut Errors, meta: &Value, path: &FieldPath) {
    let list = items(meta, "finalizers");
    for finalizer in list {
        let finalizer = finalizer.as_str().unwrap_or_default();
        out.each(path, finalizer, name::qualified(finalizer));
    }
    let set = |wanted: &str| list.iter().any(|finalizer| finalizer == wanted);
    if set("orphan") && set("foregroundDeletion") {
        out.invalid(path, Value::from(list), "finalizer orphan and foregroundDeletion cannot be both set");
    }
}

fn managed(out: &mut Errors, meta: &Value, path: &FieldPath) {
    for (index, entry) in items(meta, "managedFields").iter().enumerate() {
        let path = path.index(index);
        let operation = text(entry, "operation");
        if operation != "Apply" && operation != "Update" {
            out.invalid(&path.child("operation"), operation, "must be `Apply` or `Update`");
        }
        let kind = text(entry, "fieldsType");
        if !kind.is_empty() && kind != "FieldsV1" {
            out.invalid(&path.child("fieldsType"), kind, "must be `FieldsV1`");
        }
        if text(entry, "manager").len() > 128 {
            out.too_long(&path.child("manager"), 128);
        }
        if text(entry, "subresource").len() > SUBRESOURCE_LIMIT {
            out.too_long(&path.child("subresource"), SUBRESOURCE_LIMIT);
        }
    }
}

/// A label selector with `matchLabels` and `matchExpressions`.
pub(crate) fn selector(out: &mut Errors, selector: &Value, path: &FieldPath) {
    labels(out, at(selector, "matchLabels"), &path.child("matchLabels"));
    for (index, term) in items(selector, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions").index(index);
        let values = items(term, "values");
        match text(term, "operator") {
            "In" | "NotIn" => {
                if values.is_empty() {
                    out.required(&path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    out.forbidden(
                        &path.child("values"),
                        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                    );
                }
            }
            other => out.invalid(&path.child("operator"), other, "not a valid selector operator"),
        }
        let key = text(term, "key");
        out.each(&path.child("key"), key, name::qualified(key));
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            out.each(&path.child("values").index(index), value, name::label_value(value));
        }
    }
}

/// Does a label selector select an object with these labels? A malformed term selects nothing.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    let simple = entries(selector, "matchLabels").all(|(key, value)| labels.get(key) == Some(value));
    simple
        && items(selector, "matchExpressions").iter().all(|term| {
            let value = labels.get(text(term, "key"));
            let listed = value.is_some_and(|value| items(term, "values").contains(value));
            match text(term, "operator") {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// Owners as the original writes them into messages.
fn shown_owners(owners: &[Value]) -> String {
    const FIELDS: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let one = |owner: &Value| {
        let fields = FIELDS.iter().filter_map(|field| Some(format!("\"{field}\":{}", owner.get(field)?)));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    };
    format!("[{}]", owners.iter().map(one).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn good_metadata_passes() {
        let meta = json!({"name": "web", "namespace": "shop", "labels": {"app.example.com/tier": "a_b"},
            "finalizers": ["example.com/clean"], "annotations": {"Example.com/Note": "any text"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true}]});
        assert_eq!(texts(&validate_metadata(&meta, NameRule::Subdomain, true)), Vec::<String>::new());
    }

    #[test]
    fn bad_metadata_is_refused_with_the_known_words() {
        let cases = [
            (json!({}), false, "metadata.name: Required value: name or generateName is required"),
            (json!({"name": "a"}), true, "metadata.namespace: Required value"),
            (json!({"name": "a", "namespace": "n"}), false, "metadata.namespace: Forbidden: not allowed on this type"),
            (
                json!({"name": "a", "generation": -1}),
                false,
                "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
            ),
            (
                json!({"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}),
                false,
                "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and \
                 foregroundDeletion cannot be both set",
            ),
            (
                json!({"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]}),
                false,
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
            ),
        ];
        for (meta, namespaced, expected) in cases {
            assert_eq!(texts(&validate_metadata(&meta, NameRule::Subdomain, namespaced)), [expected]);
        }
        let big = json!({"name": "a", "annotations": {"k": "x".repeat(ANNOTATION_LIMIT)}});
        assert_eq!(
            texts(&validate_metadata(&big, NameRule::Subdomain, false)),
            ["metadata.annotations: Too long: may not be more than 262144 bytes"]
        );
    }

    #[test]
    fn identity_never_changes_and_finalizers_only_leave_after_deletion() {
        let old = json!({"name": "a", "uid": "1", "resourceVersion": "5", "deletionTimestamp": "2024-01-01T00:00:00Z",
            "finalizers": ["a.b/c"], "generation": 2});
        let mut new = old.clone();
        assert!(validate_metadata_update(&new, &old).is_empty());
        new["uid"] = json!("2");
        new["finalizers"] = json!(["a.b/c", "a.b/d"]);
        new["generation"] = json!(1);
        assert_eq!(
            texts(&validate_metadata_update(&new, &old)),
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found \
                 new finalizers []string{\"a.b/d\"}",
                "metadata.generation: Invalid value: 1: must not be decremented",
                "metadata.uid: Invalid value: \"2\": field is immutable",
            ]
        );
    }

    #[test]
    fn selectors_select_by_label() {
        let labels = json!({"app": "web", "tier": "front"});
        assert!(selects(&json!({"matchLabels": {"app": "web"}}), &labels));
        assert!(selects(
            &json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["front"]},
            {"key": "x", "operator": "DoesNotExist"}]}),
            &labels
        ));
        assert!(!selects(
            &json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}),
            &labels
        ));
    }
}
