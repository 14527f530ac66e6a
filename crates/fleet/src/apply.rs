//! One manifest of a work: its object in the member is made, changed and removed.

use std::sync::Arc;

use atoll_api::names;
use atoll_api::words::{annotation, condition as types, label};
use atoll_api::work::Work;
use atoll_meta::{Reason, Status};
use atoll_runtime::Patch;
use serde_json::{Value, json};

use crate::discovery::KindInfo;
use crate::execute::Executor;
use crate::order::{Attempt, Outcome, Piece, Trouble};
use crate::{condition, foreign, gvr, member, merge};

impl Executor {
    /// Brings the member's object to what the work says; gives what the member holds then.
    pub(crate) async fn apply(&self, piece: &Piece<'_>) -> Attempt {
        let info = self.kind(piece).await?;
        let informer = piece.member().follow(&piece.gvk, &info).await?;
        let namespace = piece.namespace().filter(|_| info.namespaced);
        let observed = informer.cache.get(namespace.unwrap_or_default(), piece.name());
        if piece.order.is_suspended() {
            return Ok(Outcome::found(observed.map(|item| item.tree())));
        }
        let observed = match observed {
            Some(item) => item.tree(),
            None => {
                if piece.member().written(&piece.order.name).is_some() {
                    // It was there; perhaps it went because the work did.
                    self.ensure_present(piece).await?;
                }
                match self.create(piece, &info, namespace).await {
                    Err(trouble) if is_taken(&trouble.status) => self.read(piece, &info, namespace).await?,
                    made => return made,
                }
            }
        };
        match self.adopt(piece, &info, observed).await {
            // What is followed may be late; a refusal should not wait until it has caught up.
            Err(status) if status.code == 409 => {
                let newest = self.read(piece, &info, namespace).await?;
                Ok(self.adopt(piece, &info, newest).await?)
            }
            // It went a moment ago; perhaps because the work did.
            Err(status) if status.code == 404 => {
                self.ensure_present(piece).await?;
                self.create(piece, &info, namespace).await
            }
            outcome => Ok(outcome?),
        }
    }

    /// Makes the member's object.
    async fn create(&self, piece: &Piece<'_>, info: &KindInfo, namespace: Option<&str>) -> Attempt {
        let created = match piece.member().endpoint.create(&info.gvr, namespace, piece.manifest).await {
            Err(status) if namespace.is_some_and(|namespace| lacks(&status, namespace)) => {
                return Err(self.miss(piece, namespace.unwrap_or_default()));
            }
            answer => genuine(piece, answer?)?,
        };
        note(piece, &created);
        Ok(Outcome::written(created))
    }

    /// The namespace of an object is not there. If its own work takes it to be there it was somebody else's, who deleted
    /// it: that work has to look again.
    fn miss(&self, piece: &Piece<'_>, namespace: &str) -> Trouble {
        let name = names::work("Namespace", namespace, "");
        let work = self.works.get(piece.order.namespace().unwrap_or_default(), &name);
        let work: Option<Work> = work.and_then(|item| item.decode().ok());
        if work
            .and_then(|work| work.status)
            .is_some_and(|status| condition::is_true(&status.conditions, types::APPLIED))
        {
            piece.member().queue.add(name.into());
        }
        Trouble::awaits(format!("namespace {namespace} is not in cluster {}", piece.member().name))
    }

    /// Reads the member's object.
    async fn read(&self, piece: &Piece<'_>, info: &KindInfo, namespace: Option<&str>) -> Result<Value, Status> {
        genuine(piece, piece.member().endpoint.get(&info.gvr, namespace, piece.name()).await?)
    }

    async fn kind(&self, piece: &Piece<'_>) -> Result<Arc<KindInfo>, Trouble> {
        if !piece.is_named() {
            return Err(Status::bad_request(format!("manifest {} has no kind or no name", piece.ordinal)).into());
        }
        let info = piece.member().kinds.get(&piece.gvk).await?;
        info.ok_or_else(|| Trouble::awaits(format!("member {} does not serve {}", piece.member().name, piece.gvk)))
    }

    /// Changes an object that is there already, if it needs to be and may be.
    async fn adopt(&self, piece: &Piece<'_>, info: &KindInfo, observed: Value) -> Result<Outcome, Status> {
        let ours = merge::is_ours(&observed);
        let is_namespace = foreign::is_namespace(&piece.gvk);
        let leaves = !ours && !merge::may_take_over(piece.manifest);
        if leaves && !is_namespace {
            return Err(Status::conflict(
                &info.gvr.group,
                &info.gvr.resource,
                piece.name(),
                format!(
                    "{} already exists in cluster {} and is not managed here; conflictResolution Overwrite would take it over",
                    piece.describe(),
                    piece.member().name
                ),
            ));
        }
        if !observed["metadata"]["deletionTimestamp"].is_null() {
            let why = format!("{} is being deleted in cluster {}", piece.describe(), piece.member().name);
            return Err(Status::unavailable(why));
        }
        if leaves {
            // Who made it may delete it; what goes into it needs no more than that it is there.
            let remark =
                format!("{} was in cluster {} before and is left as it is", piece.describe(), piece.member().name);
            return Ok(Outcome { remark: Some(remark), ..Outcome::found(Some(observed)) });
        }
        if ours && !is_of(piece, &observed) {
            self.ensure_present(piece).await?;
        }
        if ours && self.is_current(piece, &observed) {
            note(piece, &observed);
            return Ok(Outcome::found(Some(observed)));
        }
        let mut desired = merge::merge(piece.manifest, &observed, &self.interpreter.load())
            .map_err(|error| Status::bad_request(format!("{} cannot be retained: {error}", piece.describe())))?;
        if is_namespace {
            foreign::keep_mark(&mut desired, &observed);
        }
        let namespace = piece.namespace().filter(|_| info.namespaced);
        let stored = piece.member().endpoint.update(&info.gvr, namespace, piece.name(), &desired).await?;
        let stored = genuine(piece, stored)?;
        note(piece, &stored);
        Ok(Outcome::written(stored))
    }

    /// Refuses to go on with a work that is not there any more, or that goes and was not known to. Before a copy of
    /// another work of the same name is touched it must be sure that this work is not the older one: who was held up for
    /// long knows nothing of the newer.
    async fn ensure_present(&self, piece: &Piece<'_>) -> Result<(), Status> {
        let order = piece.order;
        let present = self.instance.get_opt(&gvr::works(), order.namespace(), &order.name).await?.unwrap_or_default();
        let goes = !present["metadata"]["deletionTimestamp"].is_null();
        if present["metadata"]["uid"].as_str() == order.work.metadata.uid.as_deref()
            && (!goes || order.work.metadata.deletion_timestamp.is_some())
        {
            return Ok(());
        }
        Err(Status::unavailable(format!("work {} is there no more", order.name)))
    }

    /// Whether nothing needs to be written: we wrote this generation and nobody changed the object since.
    fn is_current(&self, piece: &Piece<'_>, observed: &Value) -> bool {
        let order = piece.order;
        let written = piece.member().written(&order.name);
        if let Some(written) = &written {
            if written.work != order.stamp() {
                return false;
            }
            if let Some(known) = written.version(piece.ordinal) {
                let meta = (&piece.manifest["metadata"], &observed["metadata"]);
                return known == version(observed) && merge::is_within(meta.0, meta.1);
            }
        }
        // After a restart: what the work tells of itself, and a look at the object.
        let conditions = order.work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let told = condition::get(conditions, types::APPLIED)
            .is_some_and(|applied| applied.status == "True" && applied.observed_generation == Some(order.generation()));
        told && merge::merge(piece.manifest, observed, &self.interpreter.load())
            .is_ok_and(|desired| merge::is_within(&desired, observed))
    }

    /// Removes the copy, or our traces from it; whether that is done.
    pub(crate) async fn remove(&self, piece: &Piece<'_>) -> Result<bool, Status> {
        if !piece.is_named() {
            return Ok(true);
        }
        let Some(info) = piece.member().kinds.get(&piece.gvk).await? else { return Ok(true) };
        let (endpoint, gvr) = (&piece.member().endpoint, &info.gvr);
        let namespace = piece.namespace().filter(|_| info.namespaced);
        let observed = endpoint.get_opt(gvr, namespace, piece.name()).await.inspect_err(|status| {
            if status.code == 404 {
                // The kind may have gone since it was last asked for.
                piece.member().rediscover.notify_one();
            }
        })?;
        let Some(observed) = observed else { return Ok(true) };
        let observed = genuine(piece, observed)?;
        if !merge::is_ours(&observed) || !is_by_name(piece, &observed) {
            return Ok(true);
        }
        if !is_of(piece, &observed) {
            self.ensure_present(piece).await?;
        }
        let stays = foreign::is_namespace(&piece.gvk) && foreign::may_be_shared(&observed);
        if stays || piece.order.preserves() {
            endpoint.patch(gvr, namespace, piece.name(), "", Patch::Merge, &merge::release(&observed)).await?;
            return Ok(true);
        }
        if !observed["metadata"]["deletionTimestamp"].is_null() {
            return Ok(false);
        }
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
                             "preconditions": {"uid": observed["metadata"]["uid"], "resourceVersion": observed["metadata"]["resourceVersion"]}});
        endpoint.delete(gvr, namespace, piece.name(), &options).await?;
        Ok(endpoint.get_opt(gvr, namespace, piece.name()).await?.is_none())
    }
}

/// Notes an object as we wrote it, or as it needs not be written.
fn note(piece: &Piece<'_>, object: &Value) {
    piece.member().note(&piece.order.name, piece.order.stamp(), piece.ordinal, version(object));
}

/// Whether an object of this name is there already.
fn is_taken(status: &Status) -> bool {
    status.code == 409 && status.reason == Reason::AlreadyExists
}

/// Whether a member says that it has no such namespace.
fn lacks(status: &Status, namespace: &str) -> bool {
    let details = status.details.as_ref();
    status.code == 404 && details.is_some_and(|about| about.kind == "namespaces" && about.name == namespace)
}

/// An object that a member answers with. Whatever stands between it and us may say that all is well and answer anything;
/// taken for the object, it would end the work on it.
fn genuine(piece: &Piece<'_>, object: Value) -> Result<Value, Status> {
    let meta = &object["metadata"];
    if meta["name"] == piece.name() && meta["uid"].is_string() {
        return Ok(object);
    }
    let why = format!("member {} answered with something else than {}", piece.member().name, piece.describe());
    Err(Status::unavailable(why))
}

/// Whether an object in the member carries the id of this work and not that of another one of its name.
fn is_of(piece: &Piece<'_>, observed: &Value) -> bool {
    let id = observed["metadata"]["labels"][label::WORK_ID].as_str();
    id.is_none() || piece.order.id().is_none() || id == piece.order.id()
}

/// Whether an object in the member was put there by a work of this name.
fn is_by_name(piece: &Piece<'_>, observed: &Value) -> bool {
    let annotations = &observed["metadata"]["annotations"];
    let name = annotations[annotation::WORK_NAME].as_str();
    name.is_none_or(|name| *name == *piece.order.name)
}

fn version(object: &Value) -> String {
    let meta = &object["metadata"];
    let text = |field: &str| meta[field].as_str().unwrap_or_default();
    member::version(text("uid"), meta["generation"].as_i64().unwrap_or_default(), text("resourceVersion"))
}
