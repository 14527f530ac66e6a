//! The one way into the store: system metadata, ownership of fields, admission, validation, commit.

use std::sync::Arc;

use atoll_builtin::strategy;
use atoll_meta::{FieldError, FieldPath, Object, Revision, Status, name};
use atoll_store::{Entry, Expect, Op, StoreError, Write};
use serde_json::Value;

use super::metadata::{grace_left, has_namespace_finalizers, keep_system_metadata, meta_text, metadata};
use super::ownership::{put_managed, take_managed};
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

impl Call {
    /// Creates an object; `make` gives its tree, and again when the name was taken or somebody else was faster.
    pub async fn insert(&self, dry_run: bool, make: impl FnMut() -> Result<Value, Status>) -> Result<Stored, Status> {
        self.insert_as(dry_run, false, make).await
    }

    /// Creates an object; `applied` says that its managedFields are already right.
    pub async fn insert_as(
        &self,
        dry_run: bool,
        applied: bool,
        mut make: impl FnMut() -> Result<Value, Status>,
    ) -> Result<Stored, Status> {
        let mut base = String::new();
        for _ in 0..ATTEMPTS {
            let mut attempt = make()?;
            self.prepare_metadata(&mut attempt)?;
            meta_text(&attempt, "generateName").clone_into(&mut base);
            let generate = meta_text(&attempt, "name").is_empty();
            if generate && base.is_empty() {
                let error = FieldError::required(FieldPath::new("metadata.name"), "name or generateName is required");
                return Err(self.kind.invalid("", &[error]));
            }
            if generate {
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
        Err(Status::already_exists(&self.kind.group, &self.kind.plural, &base).retry_after(1))
    }

    fn exists(&self, object: &Value) -> Status {
        Status::already_exists(&self.kind.group, &self.kind.plural, meta_text(object, "name"))
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
        let managed = take_managed(object);
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
            let shown = self.kind.tree(&entry, entry.modified);
            let new = make(&shown)?;
            match self.replace(&entry, self.before(&entry, shown), new, sub, dry_run, false).await {
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
            let shown = self.kind.tree(&entry, entry.modified);
            let new = make(&shown)?;
            match self.replace(&entry, self.before(&entry, shown), new, sub, dry_run, true).await {
                Ok(stored) => return Ok(Some(stored)),
                Err(Lost::Race) => {}
                Err(Lost::Failed(status)) => return Err(status),
            }
        }
        Err(self.modified())
    }

    /// The stored tree a change is compared with. `shown` is the same in the version of the request: where that is
    /// how it is stored, it need not be read again.
    fn before(&self, entry: &Entry, shown: Value) -> Value {
        let mut old = if self.kind.is_stored_form(entry) { shown } else { entry.object.tree(entry.modified) };
        self.default_custom(&mut old);
        old
    }

    /// One attempt to replace a stored object.
    async fn replace(
        &self,
        entry: &Entry,
        old: Value,
        mut new: Value,
        sub: &str,
        dry_run: bool,
        applied: bool,
    ) -> Result<Stored, Lost> {
        if self.kind.converts() {
            new = crate::convert::from(&self.kind, new);
            crate::convert::keep_unseen(&self.kind, &mut new, &old);
        }
        new["apiVersion"] = self.kind.storage_api_version().into();
        self.check_preconditions(entry, &mut new).map_err(Lost::Failed)?;
        keep_system_metadata(&mut new, &old);
        let now = self.timestamp();
        // Bindings have no manager.
        if !applied && sub != "binding" {
            self.track(Some(&old), &mut new, sub).map_err(Lost::Failed)?;
        }
        let managed = take_managed(&mut new);
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
