//! The one way into the store: system metadata, ownership of fields, admission, validation, commit.

use std::sync::Arc;

use atoll_builtin::strategy;
use atoll_meta::{FieldError, FieldPath, Object, Revision, Status, name};
use atoll_patch::managed;
use atoll_store::{Entry, Expect, Op, StoreError, Write};
use serde_json::{Map, Value, json};

use crate::admission::{Operation, Review};
use crate::call::Call;
use crate::instance::store_status;

/// How often a write is tried again when somebody else was faster.
const ATTEMPTS: usize = 8;

/// The outcome of a write: what is stored now (or, when dry, would be).
pub struct Stored {
    /// The object.
    pub entry: Entry,
    /// Its revision.
    pub revision: Revision,
    /// Whether it was made by this request.
    pub created: bool,
}

/// Why a commit did not happen.
enum Lost {
    /// Somebody else was faster; the caller may look again.
    Race,
    /// It cannot happen.
    Failed(Status),
}

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
    /// Creates an object from a decoded tree.
    pub async fn insert(&self, object: Value, dry_run: bool) -> Result<Stored, Status> {
        self.insert_as(object, dry_run, false).await
    }

    /// Creates an object; `applied` says that its managedFields are already right.
    pub async fn insert_as(&self, mut object: Value, dry_run: bool, applied: bool) -> Result<Stored, Status> {
        self.prepare_metadata(&mut object)?;
        let generate = meta_text(&object, "name").is_empty();
        if generate && meta_text(&object, "generateName").is_empty() {
            let error = FieldError::required(FieldPath::new("metadata.name"), "name or generateName is required");
            return Err(self.kind.invalid("", &[error]));
        }
        for _ in 0..ATTEMPTS {
            let mut attempt = object.clone(); // one tree per attempt: admission and naming change it
            if generate {
                let base = meta_text(&attempt, "generateName").to_owned();
                metadata(&mut attempt).insert("name".into(), name::generate(&base, &mut rand::random::<u32>).into());
            }
            let key = self.key(meta_text(&attempt, "name"));
            let mut writes = self.namespace_guard(meta_text(&attempt, "name")).await?;
            self.finish_create(&mut attempt, dry_run, applied, &mut writes).await?;
            let object = Arc::new(Object::encode(&attempt).map_err(Status::internal)?);
            if dry_run {
                if self.hub.read(&self.instance, key.as_str()).await?.is_some() {
                    return Err(self.exists(&attempt));
                }
                let entry = Entry { object, modified: Revision(0), created: Revision(0) };
                return Ok(Stored { entry, revision: Revision(0), created: true });
            }
            writes.push(Write { key, expect: Expect::Absent, op: Op::Put(object.clone()) });
            let place = writes.len() - 1;
            match self.commit(writes).await {
                Ok(revision) => {
                    let entry = Entry { object, modified: revision, created: revision };
                    return Ok(Stored { entry, revision, created: true });
                }
                Err(CommitError::Taken(at, current)) if at == place => {
                    if generate {
                        continue;
                    }
                    let terminating = current.is_some_and(|entry| entry.object.head.deleting);
                    let mut status = self.exists(&attempt);
                    if terminating {
                        status.message = format!("object is being deleted: {}", status.message);
                    }
                    return Err(status);
                }
                Err(CommitError::Taken(..)) => {} // the namespace or a quota changed meanwhile: look again
                Err(CommitError::Failed(status)) => return Err(status),
            }
        }
        let base = meta_text(&object, "generateName");
        Err(Status::already_exists(&self.kind.group, &self.kind.plural, base).retry_after(1))
    }

    fn exists(&self, object: &Value) -> Status {
        Status::already_exists(&self.kind.group, &self.kind.plural, meta_text(object, "name"))
    }

    /// Removes what only the server may set, and checks what the client must not contradict.
    fn prepare_metadata(&self, object: &mut Value) -> Result<(), Status> {
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
    async fn namespace_guard(&self, name: &str) -> Result<Vec<Write>, Status> {
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

    async fn finish_create(
        &self,
        object: &mut Value,
        dry_run: bool,
        applied: bool,
        writes: &mut Vec<Write>,
    ) -> Result<(), Status> {
        let now = self.timestamp();
        // What the server itself adds from here on belongs to no manager.
        if !applied {
            self.track(None, object, "")?;
        }
        let managed = object["metadata"].get("managedFields").cloned();
        let meta = metadata(object);
        meta.insert("uid".into(), uuid::Uuid::new_v4().to_string().into());
        meta.insert("creationTimestamp".into(), now.clone().into());
        if self.kind.tracks_generation() {
            meta.insert("generation".into(), 1.into());
        }
        match self.kind.custom() {
            None => strategy::prepare_create(&self.strategy(&now), object),
            Some(_) if self.kind.has_status() => drop(object.as_object_mut().and_then(|map| map.remove("status"))),
            Some(_) => {}
        }
        let review = self.review(Operation::Create, "", None, dry_run, meta_text(object, "name").to_owned());
        self.admit(&review, object).await?;
        if (&*self.kind.group, &*self.kind.kind) == ("", "Pod") {
            strategy::classify_pod(object);
        }
        put_managed(object, managed);
        self.warn_of_finalizers(object);
        let errors = self.validate_create(object, &now);
        if !errors.is_empty() {
            return Err(self.kind.invalid(meta_text(object, "name"), &errors));
        }
        self.store_form(object);
        writes.extend(self.admit_finally(&review, object).await?);
        Ok(())
    }

    fn validate_create(&self, object: &Value, now: &str) -> Vec<FieldError> {
        let mut errors = strategy::validate_metadata(&object["metadata"], self.kind.name_rule(), self.kind.namespaced);
        match self.kind.custom() {
            None => errors.extend(strategy::validate_create(&self.strategy(now), object)),
            Some(custom) => errors.extend(custom.validate(object, None)),
        }
        errors
    }

    /// Records which manager set which fields.
    pub fn track(&self, live: Option<&Value>, object: &mut Value, sub: &str) -> Result<(), Status> {
        let manager = self.manager()?;
        let now = self.timestamp();
        // Ownership is kept in the version of the request.
        let api_version = self.kind.api_version();
        let reset = self.reset_fields(sub);
        let request = managed::Request {
            manager: &manager,
            api_version: &api_version,
            subresource: sub,
            now: &now,
            schema: self.kind.typed(),
            reset,
            versions: &|_| true,
        };
        if self.kind.custom().is_some() {
            // Metadata has a schema of its own and was looked at before.
            let meta = object["metadata"].take();
            let fits = request.fits(object);
            object["metadata"] = meta;
            if !fits {
                metadata(object).remove("managedFields");
                return Ok(());
            }
        }
        if !self.kind.converts() && &*self.kind.kind != "Event" {
            managed::update(&request, live, object);
            return Ok(());
        }
        let live = live.map(|live| self.tracked_form(live));
        let mut shown = self.tracked_form(object);
        managed::update(&request, live.as_ref(), &mut shown);
        let managed = shown["metadata"].get_mut("managedFields").map(Value::take);
        put_managed(object, managed);
        Ok(())
    }

    /// A stored tree in the version of the request, without what nobody set.
    fn tracked_form(&self, tree: &Value) -> Value {
        let mut tree = tree.clone(); // what is stored keeps its form
        if self.kind.converts() {
            tree = crate::convert::to(&self.kind, tree);
        }
        if let (Some(map), "Event") = (tree.as_object_mut(), &*self.kind.kind) {
            let converted = self.kind.converts();
            map.retain(|key, value| match value {
                Value::Null => !converted && key != "eventTime",
                Value::Object(inner) => !converted || !inner.is_empty(),
                _ => true,
            });
        }
        tree
    }

    /// Fields that cannot be owned through an endpoint, because it ignores them.
    pub fn reset_fields(&self, sub: &str) -> &'static [&'static str] {
        match sub {
            "status" => &["spec"],
            "" if self.kind.has_status() => &["status"],
            _ => &[],
        }
    }

    /// Changes an object: `make` computes the new tree (in the version of the request) from the old one
    /// and is called again when somebody else was faster.
    pub async fn modify(
        &self,
        sub: &str,
        dry_run: bool,
        mut make: impl FnMut(&Value) -> Result<Value, Status>,
    ) -> Result<Stored, Status> {
        let key = self.key(&self.target.name);
        for _ in 0..ATTEMPTS {
            let entry = self.hub.read(&self.instance, key.as_str()).await?.ok_or_else(|| self.not_found())?;
            let old = self.kind.tree(&entry, entry.modified);
            let new = make(&old)?;
            match self.replace(&entry, new, sub, dry_run, false).await {
                Ok(stored) => return Ok(stored),
                Err(Lost::Race) => {}
                Err(Lost::Failed(status)) => return Err(status),
            }
        }
        Err(self.modified())
    }

    /// Like [`Call::modify`] for a tree whose managedFields are already right (server-side apply).
    pub async fn modify_applied(
        &self,
        sub: &str,
        dry_run: bool,
        mut make: impl FnMut(&Value) -> Result<Value, Status>,
    ) -> Result<Option<Stored>, Status> {
        let key = self.key(&self.target.name);
        for _ in 0..ATTEMPTS {
            let Some(entry) = self.hub.read(&self.instance, key.as_str()).await? else { return Ok(None) };
            let old = self.kind.tree(&entry, entry.modified);
            let new = make(&old)?;
            match self.replace(&entry, new, sub, dry_run, true).await {
                Ok(stored) => return Ok(Some(stored)),
                Err(Lost::Race) => {}
                Err(Lost::Failed(status)) => return Err(status),
            }
        }
        Err(self.modified())
    }

    /// One attempt to replace a stored object.
    async fn replace(
        &self,
        entry: &Entry,
        mut new: Value,
        sub: &str,
        dry_run: bool,
        applied: bool,
    ) -> Result<Stored, Lost> {
        let mut old = entry.object.tree(entry.modified);
        self.default_custom(&mut old);
        if self.kind.converts() {
            new = crate::convert::from(&self.kind, new);
        }
        new["apiVersion"] = self.kind.storage_api_version().into();
        self.check_preconditions(entry, &mut new)?;
        keep_system_metadata(&mut new, &old);
        let now = self.timestamp();
        // Bindings have no manager.
        if !applied && sub != "binding" {
            self.track(Some(&old), &mut new, sub).map_err(Lost::Failed)?;
        }
        let managed = new["metadata"].get("managedFields").cloned();
        self.prepare_change(&mut new, &old, sub, &now);
        self.count_generation(&mut new, &old, sub);
        let review = self.review(Operation::Update, sub, Some(&old), dry_run, self.target.name.clone());
        self.admit(&review, &mut new).await.map_err(Lost::Failed)?;
        put_managed(&mut new, managed);
        self.warn_of_finalizers(&new);
        let errors = self.validate_change(&new, &old, sub, &now);
        if !errors.is_empty() {
            return Err(Lost::Failed(self.kind.invalid(&self.target.name, &errors)));
        }
        self.store_form(&mut new);
        let mut writes = self.admit_finally(&review, &mut new).await.map_err(Lost::Failed)?;
        let object = Arc::new(Object::encode(&new).map_err(|error| Lost::Failed(Status::internal(error)))?);
        let unchanged = object.body == entry.object.body;
        let removes = object.head.deleting
            && object.head.finalizers.is_empty()
            && grace_left(&new) == 0
            && !(&*self.kind.plural == "namespaces" && has_namespace_finalizers(&new));
        if (unchanged && !removes) || dry_run {
            let entry = Entry { object, ..entry.clone() };
            let revision = entry.modified;
            return Ok(Stored { entry, revision, created: false });
        }
        let op = if removes { Op::Delete(Some(object.clone())) } else { Op::Put(object.clone()) };
        writes.push(Write { key: self.key(&self.target.name), expect: Expect::At(entry.modified), op });
        match self.commit(writes).await {
            Ok(revision) => {
                let entry = Entry { object, modified: revision, created: entry.created };
                Ok(Stored { entry, revision, created: false })
            }
            Err(CommitError::Taken(..)) => Err(Lost::Race),
            Err(CommitError::Failed(status)) => Err(Lost::Failed(status)),
        }
    }

    /// Stored custom objects may predate a default; readers and comparisons see it filled in.
    fn default_custom(&self, old: &mut Value) {
        if let Some(custom) = self.kind.custom() {
            custom.default_stored(old);
            custom.default(old);
        }
    }

    fn check_preconditions(&self, entry: &Entry, new: &mut Value) -> Result<(), Lost> {
        let given = meta_text(new, "uid");
        let uid = &*entry.object.head.uid;
        if !given.is_empty() && given != uid {
            let why = format!("Precondition failed: UID in precondition: {given}, UID in object meta: {uid}");
            return Err(Lost::Failed(Status::conflict(&self.kind.group, &self.kind.plural, &self.target.name, why)));
        }
        let revision = meta_text(new, "resourceVersion");
        if !revision.is_empty() && revision != "0" && Revision::parse(revision) != Some(entry.modified) {
            if Revision::parse(revision).is_none() {
                let why = format!("strconv.ParseUint: parsing {revision:?}: invalid syntax");
                return Err(Lost::Failed(Status::new(500, atoll_meta::Reason::Unknown, why)));
            }
            return Err(Lost::Failed(self.modified()));
        }
        let meta = metadata(new);
        let name = meta.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            meta.insert("name".into(), self.target.name.clone().into());
        } else if name != self.target.name {
            return Err(Lost::Failed(Status::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                self.target.name
            ))));
        }
        self.check_namespace(meta, &self.target.namespace).map_err(Lost::Failed)
    }

    fn prepare_change(&self, new: &mut Value, old: &Value, sub: &str, now: &str) {
        match (self.kind.custom(), sub) {
            (None, "status") => strategy::prepare_status(&self.strategy(now), new, old),
            (None, "") => strategy::prepare_update(&self.strategy(now), new, old),
            (None, "ephemeralcontainers") => strategy::prepare_ephemeral(new, old),
            (None, "resize") => strategy::prepare_resize(new, old),
            (None, _) => {}
            (Some(_), "status") => {
                let status = new.get("status").cloned();
                let managed = new["metadata"].get("managedFields").cloned();
                *new = old.clone();
                put(new, "status", status);
                if let Some(managed) = managed {
                    metadata(new).insert("managedFields".into(), managed);
                }
            }
            (Some(_), _) if self.kind.has_status() => put(new, "status", old.get("status").cloned()),
            (Some(_), _) => {}
        }
    }

    /// Brings a custom object into the form of the version it is stored in.
    fn store_form(&self, object: &mut Value) {
        if let Some(custom) = self.kind.custom() {
            custom.default_stored(object);
        }
    }

    fn count_generation(&self, new: &mut Value, old: &Value, sub: &str) {
        if !self.kind.tracks_generation() || matches!(sub, "status" | "binding") {
            return;
        }
        let has_status = self.kind.has_status() || self.kind.custom().is_none();
        let skip = |key: &str| matches!(key, "metadata" | "apiVersion" | "kind") || (key == "status" && has_status);
        let part = |tree: &Value| -> Vec<(String, Value)> {
            let map = tree.as_object().into_iter().flatten();
            map.filter(|(key, _)| !skip(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let annotations_count = &*self.kind.kind == "Deployment" && self.kind.custom().is_none();
        // What counts is what will be stored.
        let stored = self.kind.custom().filter(|custom| custom.is_stored_elsewhere()).map(|custom| {
            let mut stored = new.clone();
            custom.default_stored(&mut stored);
            stored
        });
        let changed = part(stored.as_ref().unwrap_or(new)) != part(old)
            || (annotations_count && new["metadata"]["annotations"] != old["metadata"]["annotations"]);
        if changed {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
            metadata(new).insert("generation".into(), generation.into());
        }
    }

    fn validate_change(&self, new: &Value, old: &Value, sub: &str, now: &str) -> Vec<FieldError> {
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
            (Some(custom), "status") => errors.extend(custom.validate(new, Some(old)).into_iter().map(of_status)),
            (Some(custom), _) => errors.extend(custom.validate(new, Some(old))),
        }
        errors
    }

    /// Finalizers of custom objects should say whose they are.
    fn warn_of_finalizers(&self, object: &Value) {
        if self.kind.custom().is_none() {
            return;
        }
        let list = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        for name in list.filter_map(Value::as_str).filter(|name| !name.contains('/')) {
            self.warn(format!("metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"));
        }
    }

    /// Describes the write to admission.
    pub fn review<'a>(
        &'a self,
        operation: Operation,
        sub: &'a str,
        old: Option<&'a Value>,
        dry_run: bool,
        name: String,
    ) -> Review<'a> {
        Review { call: self, operation, subresource: sub, old, dry_run, name }
    }

    /// Commits and lets the server react to changes of its own objects.
    pub(super) async fn commit(&self, writes: Vec<Write>) -> Result<Revision, CommitError> {
        self.check_room(&writes).await.map_err(CommitError::Failed)?;
        match self.hub.engine.commit(self.instance.id, writes).await {
            Ok(commit) => {
                crate::crd::committed(self).await;
                Ok(commit.revision)
            }
            Err(StoreError::Conflict { index, current }) => Err(CommitError::Taken(index, current)),
            Err(error) => Err(CommitError::Failed(store_status(&error))),
        }
    }
}

/// Why a commit did not happen.
pub(super) enum CommitError {
    /// The expectation of this write failed; here is what is there.
    Taken(usize, Option<Entry>),
    /// The store failed.
    Failed(Status),
}

/// A complaint about a status alone names fields from there.
fn of_status(mut error: FieldError) -> FieldError {
    if let Some(rest) = error.detail.strip_prefix("status.") {
        error.detail = rest.to_owned();
    }
    error
}

/// Puts recorded ownership back after parts that rebuild an object.
fn put_managed(object: &mut Value, managed: Option<Value>) {
    if object["metadata"].get("managedFields") != managed.as_ref() {
        put(&mut object["metadata"], "managedFields", managed);
    }
}

fn put(tree: &mut Value, key: &str, value: Option<Value>) {
    let Some(map) = tree.as_object_mut() else { return };
    match value {
        Some(value) => drop(map.insert(key.into(), value)),
        None => drop(map.remove(key)),
    }
}

/// Only the server changes these.
fn keep_system_metadata(new: &mut Value, old: &Value) {
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
