//! DELETE of one object or of a collection.

use std::sync::Arc;

use atoll_builtin::strategy;
use atoll_meta::{FieldError, FieldPath, Object, Revision, Status};
use atoll_store::{Entry, Expect, Op, Write};
use http::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::metadata::metadata;
use super::write::CommitError;
use crate::admission::Operation;
use crate::body::Body;
use crate::call::Call;
use crate::negotiate;
use crate::query::{Query, dry_run};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// How to delete.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeleteOptions {
    /// Seconds to wait for the object to end itself.
    pub grace_period_seconds: Option<i64>,
    /// What happens to dependents: Orphan, Background or Foreground.
    pub propagation_policy: Option<String>,
    /// The old way to say Orphan or Background.
    pub orphan_dependents: Option<bool>,
    /// What must hold.
    pub preconditions: Option<Preconditions>,
    /// Only check.
    pub dry_run: Vec<String>,
}

/// What must hold for a deletion to happen.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Preconditions {
    /// This very object.
    pub uid: Option<String>,
    /// In this very state.
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// From a body or, without one, from the query.
    pub fn read(call: &Call, body: &[u8]) -> Result<Self, Status> {
        let options = if body.is_empty() { Self::from_query(&call.query)? } else { Self::from_body(call, body)? };
        options.check()?;
        Ok(options)
    }

    fn from_body(call: &Call, body: &[u8]) -> Result<Self, Status> {
        let media = negotiate::content(&call.headers)?;
        let (tree, _) = crate::decode::parse(media, body)?;
        if let Some(kind) = tree["kind"].as_str().filter(|kind| !kind.is_empty() && *kind != "DeleteOptions") {
            let version = tree["apiVersion"].as_str().unwrap_or_default();
            return Err(Status::bad_request(format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
            )));
        }
        let mut options: Self = serde_json::from_value(tree).map_err(|error| Status::bad_request(error.to_string()))?;
        options.dry_run.extend(call.query.all("dryRun").map(ToOwned::to_owned));
        Ok(options)
    }

    fn from_query(query: &Query) -> Result<Self, Status> {
        Ok(Self {
            grace_period_seconds: query.number("gracePeriodSeconds")?,
            propagation_policy: query.get("propagationPolicy").filter(|text| !text.is_empty()).map(ToOwned::to_owned),
            orphan_dependents: query.get("orphanDependents").map(|_| query.flag("orphanDependents")),
            preconditions: None,
            dry_run: query.all("dryRun").map(ToOwned::to_owned).collect(),
        })
    }

    fn check(&self) -> Result<(), Status> {
        let invalid = |error| Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &[error]));
        if self.propagation_policy.is_some() && self.orphan_dependents.is_some() {
            return invalid(FieldError::invalid(
                FieldPath::new("propagationPolicy"),
                self.propagation_policy.clone().unwrap_or_default(),
                "orphanDependents and deletionPropagation cannot be both set",
            ));
        }
        if let Some(policy) = &self.propagation_policy
            && !matches!(policy.as_str(), "Orphan" | "Background" | "Foreground")
        {
            let mut fault = FieldError::not_supported(FieldPath::new("propagationPolicy"), policy.clone(), &[]);
            fault.detail = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"".into();
            return invalid(fault);
        }
        dry_run("DeleteOptions", self.dry_run.iter().map(String::as_str)).map(drop)
    }

    fn is_dry(&self) -> bool {
        self.dry_run.iter().any(|value| value == "All")
    }

    fn policy(&self) -> Option<&str> {
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some(policy), _) => Some(policy),
            (None, Some(true)) => Some("Orphan"),
            (None, Some(false)) => Some("Background"),
            (None, None) => None,
        }
    }
}

/// What came of a deletion.
enum Outcome {
    /// Gone.
    Removed(Entry, Revision),
    /// Marked; finalizers or grace keep it.
    Pending(Entry, Revision),
}

impl Call {
    /// Deletes the named object.
    pub async fn delete(&self, body: &[u8]) -> Result<Response<Body>, Status> {
        let options = DeleteOptions::read(self, body)?;
        if (&*self.kind.group, &*self.kind.plural) == ("batch", "jobs") && options.policy().is_none() {
            self.warn("child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning");
        }
        match self.remove(&self.target.name, &options).await? {
            Outcome::Removed(entry, revision) if self.returns_object() => self.object(200, &entry, revision),
            Outcome::Removed(entry, _) => {
                let head = &entry.object.head;
                let mut details = json!({"name": head.name, "kind": &*self.kind.plural, "uid": head.uid});
                if !self.kind.group.is_empty() {
                    details["group"] = (*self.kind.group).into();
                }
                let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
                let media = self.accept(false).map(|accept| accept.media).unwrap_or_default();
                let mut answer = crate::respond::tree(200, media, &status)?;
                self.add_warnings(&mut answer);
                Ok(answer)
            }
            Outcome::Pending(entry, revision) => {
                let code = if options.orphan_dependents == Some(false) { 202 } else { 200 };
                self.object(code, &entry, revision)
            }
        }
    }

    /// Deletes the named object because its pod was evicted.
    pub async fn evict(&self, options: &DeleteOptions) -> Result<(), Status> {
        self.remove(&self.target.name, options).await.map(drop)
    }

    /// Kinds whose deletion answers with the last state instead of a Status.
    fn returns_object(&self) -> bool {
        matches!(
            (&*self.kind.group, &*self.kind.plural),
            (
                "",
                "pods"
                    | "services"
                    | "serviceaccounts"
                    | "persistentvolumes"
                    | "persistentvolumeclaims"
                    | "podtemplates"
                    | "resourcequotas"
            ) | ("storage.k8s.io", "storageclasses" | "csinodes" | "volumeattachments" | "csidrivers")
                | ("policy", "podsecuritypolicies")
        )
    }

    /// Deletes everything the selectors match.
    pub async fn delete_collection(&self, body: &[u8]) -> Result<Response<Body>, Status> {
        let options = DeleteOptions::read(self, body)?;
        let accept = self.accept(true)?;
        let filter = self.filter()?;
        let limit = self.limit()?;
        let (snapshot, after) = self.list_state(limit).await?;
        let page = self.cut(&snapshot, after.as_deref(), limit, &filter);
        let mut items = Vec::with_capacity(page.entries.len());
        for entry in &page.entries {
            let one = self.in_namespace(&entry.object.head.namespace, &entry.object.head.name);
            match one.remove(&entry.object.head.name, &options).await {
                Ok(Outcome::Removed(..) | Outcome::Pending(..)) => items.push(self.item(entry)),
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
        let mut list = json!({
            "kind": &*self.kind.list_kind, "apiVersion": self.kind.api_version(),
            "metadata": {"resourceVersion": snapshot.revision.to_string()}, "items": items,
        });
        page.mark(&mut list["metadata"]);
        crate::respond::tree(200, accept.media, &list)
    }

    /// An object as it stands in a list; the list says what kind built-in objects are of.
    fn item(&self, entry: &Entry) -> Value {
        let mut tree = self.kind.tree(entry, entry.modified);
        if let (None, Some(map)) = (self.kind.custom(), tree.as_object_mut()) {
            map.retain(|key, _| !matches!(key.as_str(), "kind" | "apiVersion"));
        }
        tree
    }

    /// The same request for one object of a collection.
    fn in_namespace(&self, namespace: &str, name: &str) -> Self {
        let mut one = self.fork();
        namespace.clone_into(&mut one.target.namespace);
        name.clone_into(&mut one.target.name);
        one.query = Query::default();
        one
    }

    async fn remove(&self, name: &str, options: &DeleteOptions) -> Result<Outcome, Status> {
        let key = self.key(name);
        loop {
            let entry = self.hub.read(&self.instance, key.as_str()).await?.ok_or_else(|| self.kind.not_found(name))?;
            self.check_deletion(&entry, options)?;
            let old = entry.object.tree(entry.modified);
            let review = self.review(Operation::Delete, "", Some(&old), options.is_dry(), name.to_owned());
            let mut nothing = Value::Null;
            self.admit(&review, &mut nothing).await?;
            let mut writes = self.admit_finally(&review, &mut nothing).await?;
            let (new, removes) = self.marked(&old, options);
            let Some(new) = new else { return Ok(Outcome::Pending(entry.clone(), entry.modified)) };
            let object = Arc::new(Object::encode(&new).map_err(Status::internal)?);
            if options.is_dry() {
                let stored = Entry { object, ..entry.clone() };
                return Ok(if removes {
                    Outcome::Removed(stored, entry.modified)
                } else {
                    Outcome::Pending(stored, entry.modified)
                });
            }
            let op = if removes { Op::Delete(Some(object.clone())) } else { Op::Put(object.clone()) };
            writes.push(Write { key: key.clone(), expect: Expect::At(entry.modified), op });
            match self.commit(writes).await {
                Ok(revision) => {
                    let stored = Entry { object, modified: revision, created: entry.created };
                    return Ok(if removes {
                        Outcome::Removed(stored, revision)
                    } else {
                        Outcome::Pending(stored, revision)
                    });
                }
                Err(CommitError::Taken(..)) => {} // changed meanwhile: look again; ends because each round sees a newer state
                Err(CommitError::Failed(status)) => return Err(status),
            }
        }
    }

    fn check_deletion(&self, entry: &Entry, options: &DeleteOptions) -> Result<(), Status> {
        let Some(wanted) = &options.preconditions else { return Ok(()) };
        let name = &entry.object.head.name;
        let failed = |what: &str, wanted: &str, is: &str, end: &str| {
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({is}). The object might have been {end}"
            );
            Err(Status::conflict(&self.kind.group, &self.kind.kind, name, why))
        };
        if let Some(uid) = wanted.uid.as_deref().filter(|uid| **uid != *entry.object.head.uid) {
            return failed("UID", uid, &entry.object.head.uid, "deleted and then recreated");
        }
        let modified = entry.modified.to_string();
        if let Some(revision) = wanted.resource_version.as_deref().filter(|revision| *revision != modified) {
            return failed("ResourceVersion", revision, &modified, "modified");
        }
        Ok(())
    }

    /// The object as it looks after the request, `None` if nothing changes; and whether it is gone.
    fn marked(&self, old: &Value, options: &DeleteOptions) -> (Option<Value>, bool) {
        let mut new = old.clone(); // the old tree is still needed for comparison
        metadata(&mut new).remove("resourceVersion");
        if &*self.kind.plural == "namespaces" && self.kind.group.is_empty() {
            return self.marked_namespace(new);
        }
        if self.is_definition() && old["metadata"]["deletionTimestamp"].is_null() {
            // Its objects come first, whatever the options say; it has no grace and no new generation.
            let now = self.timestamp();
            crate::crd::terminate(&mut new, &now);
            metadata(&mut new).insert("deletionTimestamp".into(), now.into());
            return (Some(new), false);
        }
        self.set_finalizers(&mut new, options);
        let finalizers = new["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        let grace = strategy::default_grace(
            &self.kind.group,
            &self.kind.kind,
            old,
            options.grace_period_seconds.map(|s| if s < 0 { 1 } else { s }),
        );
        let deleting = !old["metadata"]["deletionTimestamp"].is_null();
        let left = super::metadata::grace_left(old);
        match grace {
            Some(seconds) if seconds > 0 && !(deleting && left <= seconds) => {
                self.set_deletion(&mut new, seconds, deleting);
                (Some(new), false)
            }
            Some(seconds) if seconds > 0 => ((new["metadata"] != without_revision(old)).then_some(new), false),
            _ if finalizers => {
                if !deleting || left > 0 {
                    self.set_deletion(&mut new, 0, deleting);
                }
                ((new["metadata"] != without_revision(old)).then_some(new), false)
            }
            // What would have been given time to end goes with the marks of that.
            Some(_) => {
                self.set_deletion(&mut new, 0, deleting);
                (Some(new), true)
            }
            None => (Some(new), true),
        }
    }

    pub(crate) fn is_definition(&self) -> bool {
        *self.kind.group == *crate::crd::GROUP && *self.kind.plural == *crate::crd::PLURAL
    }

    /// A namespace goes in phases: first it terminates, then its content goes, then its finalizers.
    fn marked_namespace(&self, mut new: Value) -> (Option<Value>, bool) {
        let deleting = !new["metadata"]["deletionTimestamp"].is_null();
        let finalizers = super::metadata::has_namespace_finalizers(&new)
            || new["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        if !deleting {
            let now = self.timestamp();
            metadata(&mut new).insert("deletionTimestamp".into(), now.into());
            new["status"]["phase"] = "Terminating".into();
            return (Some(new), !finalizers);
        }
        if finalizers { (None, false) } else { (Some(new), true) }
    }

    fn set_deletion(&self, new: &mut Value, seconds: i64, deleting: bool) {
        let when = self.now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(self.now);
        let tracks = self.kind.tracks_generation();
        let meta = metadata(new);
        meta.insert("deletionTimestamp".into(), atoll_meta::time::format(when).into());
        meta.insert("deletionGracePeriodSeconds".into(), seconds.into());
        if tracks && !deleting {
            let generation = meta.get("generation").and_then(Value::as_i64).unwrap_or_default() + 1;
            meta.insert("generation".into(), generation.into());
        }
    }

    /// Orphan and foreground deletion are carried out by the garbage collector, which finalizers call.
    fn set_finalizers(&self, new: &mut Value, options: &DeleteOptions) {
        let policy = options.policy().map(ToOwned::to_owned).or_else(|| existing_policy(new)).unwrap_or_else(|| {
            strategy::delete_default_policy(&self.kind.group, &self.kind.version, &self.kind.kind).to_owned()
        });
        let meta = metadata(new);
        let mut list: Vec<Value> = meta.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
        list.retain(|item| item != ORPHAN && item != FOREGROUND);
        match policy.as_str() {
            "Orphan" => list.push(ORPHAN.into()),
            "Foreground" => list.push(FOREGROUND.into()),
            _ => {}
        }
        if list.is_empty() {
            meta.remove("finalizers");
        } else {
            meta.insert("finalizers".into(), list.into());
        }
    }
}

fn existing_policy(object: &Value) -> Option<String> {
    let list = object["metadata"]["finalizers"].as_array()?;
    if list.iter().any(|item| item == ORPHAN) {
        return Some("Orphan".into());
    }
    list.iter().any(|item| item == FOREGROUND).then(|| "Foreground".into())
}

fn without_revision(old: &Value) -> Value {
    let mut meta = old["metadata"].clone();
    if let Some(map) = meta.as_object_mut() {
        map.remove("resourceVersion");
    }
    meta
}
