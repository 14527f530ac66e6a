//! The metadata of objects: what only the server sets, and what a request must not contradict.

use atoll_meta::{Revision, Status};
use atoll_store::{Entry, Expect, Op, Write};
use serde_json::{Map, Value, json};

use crate::call::Call;

/// The metadata map of an object, made if missing.
pub fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"].as_object_mut().expect("just made an object")
}

/// A text field of an object's metadata.
pub fn meta_text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

impl Call {
    /// Removes what only the server may set, and checks what the client must not contradict.
    pub(super) fn prepare_metadata(&self, object: &mut Value) -> Result<(), Status> {
        let namespace = self.target.namespace.clone();
        let meta = metadata(object);
        for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            meta.remove(field);
        }
        match meta.remove("resourceVersion") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() || text == "0" => {}
            Some(_) => {
                return Err(Status::new(
                    500,
                    atoll_meta::Reason::Unknown,
                    "resourceVersion should not be set on objects to be created",
                ));
            }
        }
        self.check_namespace(meta, &namespace)
    }

    /// The namespace in the body must be that of the URL.
    pub fn check_namespace(&self, meta: &mut Map<String, Value>, namespace: &str) -> Result<(), Status> {
        let given = meta.get("namespace").and_then(Value::as_str).unwrap_or_default();
        if !self.kind.namespaced {
            if !given.is_empty() && given != namespace {
                meta.remove("namespace");
            }
            return Ok(());
        }
        if !given.is_empty() && given != namespace {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        meta.insert("namespace".into(), namespace.into());
        Ok(())
    }

    /// Creating needs a living namespace; the returned check makes that part of the transaction.
    pub(super) async fn namespace_guard(&self, name: &str) -> Result<Vec<Write>, Status> {
        if !self.kind.namespaced {
            return Ok(Vec::new());
        }
        let namespace = &self.target.namespace;
        let key = atoll_meta::Key::new("", "namespaces", "", namespace);
        let Some(entry) = self.hub.read(&self.instance, key.as_str()).await? else {
            return Err(Status::not_found("", "namespaces", namespace));
        };
        if entry.object.head.deleting {
            let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
            return Err(Status::forbidden(&self.kind.group, &self.kind.plural, name, why).cause(
                "NamespaceTerminating",
                format!("namespace {namespace} is being terminated"),
                "metadata.namespace",
            ));
        }
        Ok(vec![Write { key, expect: Expect::At(entry.modified), op: Op::Check }])
    }

    /// A write may say which object it means, by identity and revision.
    pub(super) fn check_preconditions(&self, entry: &Entry, new: &mut Value) -> Result<(), Status> {
        let given = meta_text(new, "uid");
        let uid = &*entry.object.head.uid;
        if !given.is_empty() && given != uid {
            let why = format!("Precondition failed: UID in precondition: {given}, UID in object meta: {uid}");
            return Err(Status::conflict(&self.kind.group, &self.kind.plural, &self.target.name, why));
        }
        let revision = meta_text(new, "resourceVersion");
        if !revision.is_empty() && revision != "0" && Revision::parse(revision) != Some(entry.modified) {
            if Revision::parse(revision).is_none() {
                let why = format!("strconv.ParseUint: parsing {revision:?}: {}", crate::query::fault_of(revision));
                return Err(Status::new(500, atoll_meta::Reason::Unknown, why));
            }
            return Err(self.modified());
        }
        let meta = metadata(new);
        let name = meta.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            meta.insert("name".into(), self.target.name.clone().into());
        } else if name != self.target.name {
            return Err(Status::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                self.target.name
            )));
        }
        self.check_namespace(meta, &self.target.namespace)
    }

    /// Finalizers of custom objects should say whose they are.
    pub(super) fn warn_of_finalizers(&self, object: &Value) {
        if self.kind.custom().is_none() {
            return;
        }
        let list = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        for name in list.filter_map(Value::as_str).filter(|name| !name.contains('/')) {
            self.warn(format!("metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"));
        }
    }
}

/// Only the server changes these.
pub(super) fn keep_system_metadata(new: &mut Value, old: &Value) {
    const KEPT: [&str; 7] = [
        "resourceVersion",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
    ];
    let meta = metadata(new);
    meta.remove("selfLink");
    for field in KEPT {
        match old["metadata"].get(field) {
            Some(value) => drop(meta.insert(field.into(), value.clone())),
            None => drop(meta.remove(field)),
        }
    }
    if !meta.contains_key("managedFields")
        && let Some(managed) = old["metadata"].get("managedFields")
    {
        meta.insert("managedFields".into(), managed.clone());
    }
}

/// Seconds of grace an object being deleted still has.
pub fn grace_left(object: &Value) -> i64 {
    object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default()
}

/// Namespaces have finalizers of their own in their spec.
pub fn has_namespace_finalizers(object: &Value) -> bool {
    object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty())
}

/// Sets or removes a field.
pub(super) fn put(tree: &mut Value, key: &str, value: Option<Value>) {
    let Some(map) = tree.as_object_mut() else { return };
    match value {
        Some(value) => drop(map.insert(key.into(), value)),
        None => drop(map.remove(key)),
    }
}
