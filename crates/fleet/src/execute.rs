//! From works to objects in a member, and back from there to the status of the works.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use atoll_api::names;
use atoll_api::words::{annotation, condition as types, finalizer, label, reason};
use atoll_api::work::{ManifestStatus, ResourceHealth, ResourceIdentifier, Work, WorkStatus};
use atoll_interpreter::{Health, Interpreter};
use atoll_meta::{Gvk, Status};
use atoll_runtime::{Cache, Endpoint, Item, Patch};
use serde_json::{Value, json};

use crate::condition::{self, Wanted};
use crate::discovery::KindInfo;
use crate::member::{self, Handled, Member, Stamp, Told, Written};
use crate::options::Clock;
use crate::{diff, foreign, gvr, merge, stray};

/// How long one request to a member may take.
const DEADLINE: Duration = Duration::from_secs(30);

type Again = Result<Option<Duration>, Status>;

/// Carries works out; in the hub for members it reaches, in an agent for its own.
pub struct Executor {
    /// The instance.
    pub instance: Endpoint,
    /// The works.
    pub works: Cache,
    /// What resources mean.
    pub interpreter: Arc<ArcSwap<Interpreter>>,
    /// What tells the time.
    pub clock: Clock,
}

/// What came of an attempt.
struct Outcome {
    /// What the member holds.
    object: Option<Value>,
    /// Whether we just wrote it.
    wrote: bool,
    /// What is to be known of it, if it was left as somebody else made it.
    remark: Option<String>,
}

/// A work and what it is for.
struct Task<'a> {
    name: Arc<str>,
    work: Work,
    manifest: Value,
    gvk: Gvk,
    member: &'a Arc<Member>,
}

impl Task<'_> {
    fn generation(&self) -> i64 {
        self.work.metadata.generation.unwrap_or_default()
    }

    fn stamp(&self) -> Stamp {
        Stamp { uid: self.work.metadata.uid.as_deref().unwrap_or_default().into(), generation: self.generation() }
    }

    /// The permanent id of the work.
    fn id(&self) -> Option<&str> {
        self.work.metadata.labels.as_ref()?.get(label::WORK_ID).map(String::as_str)
    }

    fn object_name(&self) -> &str {
        self.manifest["metadata"]["name"].as_str().unwrap_or_default()
    }

    fn object_namespace(&self) -> Option<&str> {
        self.manifest["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty())
    }

    fn describe(&self) -> String {
        let namespace = self.object_namespace().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{} {namespace}{}", self.gvk.kind, self.object_name())
    }
}

impl Executor {
    /// Carries out one work of a member.
    pub async fn execute(&self, member: Arc<Member>, name: Arc<str>) -> Again {
        let namespace = names::execution_namespace(&member.name);
        let Some(item) = self.works.get(&namespace, &name) else {
            member.forget(&name);
            return stray::remove(&self.instance, &member, &name).await;
        };
        let head = &item.object.head;
        if !head.deleting && member.is_handled(head) {
            return Ok(None);
        }
        member.strays.forget(&name);
        let Some(task) = task(&item, name, &member) else { return Ok(None) };
        if item.object.head.deleting {
            return self.retire(task).await;
        }
        if !item.object.head.finalizers.iter().any(|own| **own == *finalizer::EXECUTION) {
            return self.add_finalizer(&task).await;
        }
        let before = member.written(&task.name).map(|written| written.work);
        let outcome = tokio::time::timeout(DEADLINE, self.apply(&task)).await;
        let outcome =
            outcome.unwrap_or_else(|_| Err(Status::timeout(format!("member {} does not answer", member.name), 1)));
        if task.gvk.kind == "CustomResourceDefinition" && outcome.is_ok() {
            // What it defines may be wanted next.
            member.rediscover.notify_one();
        }
        if outcome.as_ref().is_ok_and(|outcome| outcome.wrote) && before != Some(task.stamp()) {
            // Its first states follow soon and are told together with this.
            member.handle(&task.name, None);
            return Ok(Some(member.gather()));
        }
        self.tell(&task, outcome.as_ref()).await?;
        let observed = outcome.inspect_err(|_| member.handle(&task.name, None))?.object;
        member.handle(&task.name, observed.and_then(|observed| handled(&task, &observed)));
        Ok(None)
    }

    async fn add_finalizer(&self, task: &Task<'_>) -> Again {
        let mut finalizers = task.work.metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(finalizer::EXECUTION.to_owned());
        let patch =
            json!({"metadata": {"finalizers": finalizers, "resourceVersion": task.work.metadata.resource_version}});
        self.instance
            .brief()
            .patch(&gvr::works(), task.work.metadata.namespace.as_deref(), &task.name, "", Patch::Merge, &patch)
            .await?;
        Ok(None)
    }

    /// Brings the member's object to what the work says; gives what the member holds then.
    async fn apply(&self, task: &Task<'_>) -> Result<Outcome, Status> {
        let info = self.kind(task).await?;
        let informer = task.member.follow(&task.gvk, &info).await?;
        let namespace = task.object_namespace().filter(|_| info.namespaced);
        let observed = informer.cache.get(namespace.unwrap_or_default(), task.object_name());
        if task.work.spec.suspend_dispatching == Some(true) {
            return Ok(Outcome { object: observed.map(|item| item.tree()), wrote: false, remark: None });
        }
        let observed = match observed {
            Some(item) => item.tree(),
            None => {
                if task.member.written(&task.name).is_some() {
                    // It was there; perhaps it went because the work did.
                    self.ensure_present(task).await?;
                }
                match self.create(task, &info, namespace).await {
                    Err(status) if status.code == 409 && status.reason == atoll_meta::Reason::AlreadyExists => {
                        self.read(task, &info, namespace).await?
                    }
                    made => return made,
                }
            }
        };
        match self.adopt(task, &info, observed).await {
            // What is followed may be late; a refusal should not wait until it has caught up.
            Err(status) if status.code == 409 => {
                let newest = self.read(task, &info, namespace).await?;
                self.adopt(task, &info, newest).await
            }
            // It went a moment ago; perhaps because the work did.
            Err(status) if status.code == 404 => {
                self.ensure_present(task).await?;
                self.create(task, &info, namespace).await
            }
            outcome => outcome,
        }
    }

    /// Makes the member's object.
    async fn create(&self, task: &Task<'_>, info: &KindInfo, namespace: Option<&str>) -> Result<Outcome, Status> {
        let created = genuine(task, task.member.endpoint.create(&info.gvr, namespace, &task.manifest).await?)?;
        task.member.note(&task.name, Written { work: task.stamp(), version: version(&created) });
        Ok(Outcome { object: Some(created), wrote: true, remark: None })
    }

    /// Reads the member's object.
    async fn read(&self, task: &Task<'_>, info: &KindInfo, namespace: Option<&str>) -> Result<Value, Status> {
        genuine(task, task.member.endpoint.get(&info.gvr, namespace, task.object_name()).await?)
    }

    async fn kind(&self, task: &Task<'_>) -> Result<Arc<KindInfo>, Status> {
        let info = task.member.kinds.get(&task.gvk).await?;
        info.ok_or_else(|| Status::unavailable(format!("member {} does not serve {}", task.member.name, task.gvk)))
    }

    /// Changes an object that is there already, if it needs to be and may be.
    async fn adopt(&self, task: &Task<'_>, info: &KindInfo, observed: Value) -> Result<Outcome, Status> {
        let ours = merge::is_ours(&observed);
        let is_namespace = foreign::is_namespace(&task.gvk);
        let leaves = !ours && !merge::may_take_over(&task.manifest);
        if leaves && !is_namespace {
            return Err(Status::conflict(
                &info.gvr.group,
                &info.gvr.resource,
                task.object_name(),
                format!(
                    "{} already exists in cluster {} and is not managed here; conflictResolution Overwrite would take it over",
                    task.describe(),
                    task.member.name
                ),
            ));
        }
        if !observed["metadata"]["deletionTimestamp"].is_null() {
            return Err(Status::unavailable(format!(
                "{} is being deleted in cluster {}",
                task.describe(),
                task.member.name
            )));
        }
        if leaves {
            // Who made it may delete it; what goes into it needs no more than that it is there.
            let remark = format!("{} was in cluster {} before and is left as it is", task.describe(), task.member.name);
            return Ok(Outcome { object: Some(observed), wrote: false, remark: Some(remark) });
        }
        if ours && !is_of(task, &observed) {
            self.ensure_present(task).await?;
        }
        let written = Written { work: task.stamp(), version: version(&observed) };
        if ours && self.is_current(task, &observed, &written) {
            task.member.note(&task.name, written);
            return Ok(Outcome { object: Some(observed), wrote: false, remark: None });
        }
        let mut desired = merge::merge(&task.manifest, &observed, &self.interpreter.load())
            .map_err(|error| Status::bad_request(format!("{} cannot be retained: {error}", task.describe())))?;
        if is_namespace {
            foreign::keep_mark(&mut desired, &observed);
        }
        let namespace = task.object_namespace().filter(|_| info.namespaced);
        let stored = task.member.endpoint.update(&info.gvr, namespace, task.object_name(), &desired).await?;
        let stored = genuine(task, stored)?;
        task.member.note(&task.name, Written { work: task.stamp(), version: version(&stored) });
        Ok(Outcome { object: Some(stored), wrote: true, remark: None })
    }

    /// Refuses to go on with a work that is not there any more, or that goes and was not known to. Before a copy of
    /// another work of the same name is touched it must be sure that this work is not the older one: who was held up for
    /// long knows nothing of the newer.
    async fn ensure_present(&self, task: &Task<'_>) -> Result<(), Status> {
        let namespace = task.work.metadata.namespace.as_deref();
        let present = self.instance.get_opt(&gvr::works(), namespace, &task.name).await?.unwrap_or_default();
        let goes = !present["metadata"]["deletionTimestamp"].is_null();
        if present["metadata"]["uid"].as_str() == task.work.metadata.uid.as_deref()
            && (!goes || task.work.metadata.deletion_timestamp.is_some())
        {
            return Ok(());
        }
        Err(Status::unavailable(format!("work {} is there no more", task.name)))
    }

    /// Whether nothing needs to be written: we wrote this generation and nobody changed the object since.
    fn is_current(&self, task: &Task<'_>, observed: &Value, written: &Written) -> bool {
        match task.member.written(&task.name) {
            Some(known) if known == *written => merge::is_within(&task.manifest["metadata"], &observed["metadata"]),
            Some(_) => false,
            // After a restart: what the work tells of itself, and a look at the object.
            None => {
                let conditions =
                    task.work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
                let told = condition::get(conditions, types::APPLIED).is_some_and(|applied| {
                    applied.status == "True" && applied.observed_generation == Some(task.generation())
                });
                told && merge::merge(&task.manifest, observed, &self.interpreter.load())
                    .is_ok_and(|desired| merge::is_within(&desired, observed))
            }
        }
    }

    /// Writes the status of a work if it changed.
    async fn tell(&self, task: &Task<'_>, outcome: Result<&Outcome, &Status>) -> Result<(), Status> {
        let known = task.work.metadata.resource_version.clone().unwrap_or_default();
        // What we told a moment ago may not have come back yet.
        let (old, revision, mut before) = match task.member.told(&task.name, &known) {
            Some(told) => (told.status, told.after, told.before),
            None => (task.work.status.clone().unwrap_or_default(), known, Vec::new()),
        };
        let new = status(task, &old, outcome, &self.interpreter.load(), (self.clock)());
        if old == new {
            return Ok(());
        }
        let trees = (serde_json::to_value(&old).unwrap_or_default(), serde_json::to_value(&new).unwrap_or_default());
        let Some(patch) = diff::merge_patch(&trees.0, &trees.1) else { return Ok(()) };
        let namespace = task.work.metadata.namespace.as_deref();
        // It is told of this work as we know it: what comes late must not speak for a newer state or a newer work.
        let body = json!({"metadata": {"resourceVersion": revision}, "status": patch});
        let works = gvr::works();
        let stored = self.instance.brief().patch(&works, namespace, &task.name, "status", Patch::Merge, &body).await?;
        before.push(revision);
        task.member.tell(&task.name, Told { before, after: stored.revision, status: new });
        if let Some(item) = self.works.get(namespace.unwrap_or_default(), &task.name) {
            // It may have come back before this was noted.
            task.member.heard(&task.name, &item.revision);
        }
        if let Err(failure) = outcome
            && (condition::is_true(&old.conditions, types::APPLIED) || old.conditions.is_empty())
        {
            let about =
                json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work", "metadata": task.work.metadata});
            self.instance.event(&about, "Warning", "SyncFailed", &failure.message, (self.clock)()).await;
            // People look at the template.
            let message = format!("cluster {}: {}", task.member.name, failure.message);
            self.instance.event(&template(&task.manifest), "Warning", "SyncFailed", &message, (self.clock)()).await;
        }
        Ok(())
    }

    /// The work goes: the copy first, unless it is to stay or was never ours.
    async fn retire(&self, task: Task<'_>) -> Again {
        if !task.work.metadata.finalizers.iter().flatten().any(|own| own == finalizer::EXECUTION) {
            return Ok(None);
        }
        let removed = tokio::time::timeout(DEADLINE, self.remove(&task)).await;
        if !removed
            .unwrap_or_else(|_| Err(Status::timeout(format!("member {} does not answer", task.member.name), 1)))?
        {
            return Ok(Some(Duration::from_millis(500)));
        }
        // Before anybody can know that it is gone.
        if let Some(id) = task.id().filter(|_| task.work.spec.preserve_resources_on_deletion != Some(true)) {
            task.member.strays.bury(id);
        }
        let finalizers: Vec<&String> =
            task.work.metadata.finalizers.iter().flatten().filter(|own| *own != finalizer::EXECUTION).collect();
        let patch =
            json!({"metadata": {"finalizers": finalizers, "resourceVersion": task.work.metadata.resource_version}});
        let namespace = task.work.metadata.namespace.as_deref();
        match self.instance.patch(&gvr::works(), namespace, &task.name, "", Patch::Merge, &patch).await {
            Err(status) if status.reason != atoll_meta::Reason::NotFound => return Err(status),
            _ => {}
        }
        task.member.forget(&task.name);
        Ok(None)
    }

    /// Removes the copy, or our traces from it; whether that is done.
    async fn remove(&self, task: &Task<'_>) -> Result<bool, Status> {
        let Some(info) = task.member.kinds.get(&task.gvk).await? else { return Ok(true) };
        let (endpoint, gvr) = (&task.member.endpoint, &info.gvr);
        let namespace = task.object_namespace().filter(|_| info.namespaced);
        let observed = endpoint.get_opt(gvr, namespace, task.object_name()).await.inspect_err(|status| {
            if status.code == 404 {
                // The kind may have gone since it was last asked for.
                task.member.rediscover.notify_one();
            }
        })?;
        let Some(observed) = observed else { return Ok(true) };
        let observed = genuine(task, observed)?;
        if !merge::is_ours(&observed) || !is_named(task, &observed) {
            return Ok(true);
        }
        if !is_of(task, &observed) {
            self.ensure_present(task).await?;
        }
        let stays = foreign::is_namespace(&task.gvk) && foreign::may_be_shared(&observed);
        if stays || task.work.spec.preserve_resources_on_deletion == Some(true) {
            endpoint.patch(gvr, namespace, task.object_name(), "", Patch::Merge, &merge::release(&observed)).await?;
            return Ok(true);
        }
        if !observed["metadata"]["deletionTimestamp"].is_null() {
            return Ok(false);
        }
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
                             "preconditions": {"uid": observed["metadata"]["uid"], "resourceVersion": observed["metadata"]["resourceVersion"]}});
        endpoint.delete(gvr, namespace, task.object_name(), &options).await?;
        Ok(endpoint.get_opt(gvr, namespace, task.object_name()).await?.is_none())
    }
}

/// What a manifest was made from, as events refer to it.
fn template(manifest: &Value) -> Value {
    let meta = &manifest["metadata"];
    json!({"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": {
        "name": meta["name"], "namespace": meta["namespace"], "uid": meta["annotations"][annotation::TEMPLATE_UID]}})
}

/// An object that a member answers with. Whatever stands between it and us may say that all is well and answer anything;
/// taken for the object, it would end the work on it.
fn genuine(task: &Task<'_>, object: Value) -> Result<Value, Status> {
    let meta = &object["metadata"];
    if meta["name"] == task.object_name() && meta["uid"].is_string() {
        return Ok(object);
    }
    let why = format!("member {} answered with something else than {}", task.member.name, task.describe());
    Err(Status::unavailable(why))
}

/// Whether an object in the member carries the id of this work and not that of another one of its name.
fn is_of(task: &Task<'_>, observed: &Value) -> bool {
    let id = observed["metadata"]["labels"][label::WORK_ID].as_str();
    id.is_none() || task.id().is_none() || id == task.id()
}

/// Whether an object in the member was put there by a work of this name.
fn is_named(task: &Task<'_>, observed: &Value) -> bool {
    let annotations = &observed["metadata"]["annotations"];
    let name = annotations[annotation::WORK_NAME].as_str();
    name.is_none_or(|name| *name == *task.name)
}

fn task<'a>(item: &Item, name: Arc<str>, member: &'a Arc<Member>) -> Option<Task<'a>> {
    let mut work: Work = item.decode().ok()?;
    work.metadata.resource_version = Some(item.revision.to_string());
    let manifest = std::mem::take(&mut work.spec.workload.manifests).into_iter().next()?;
    let gvk = Gvk::of(manifest["apiVersion"].as_str()?, manifest["kind"].as_str()?);
    Some(Task { name, work, manifest, gvk, member })
}

fn handled(task: &Task<'_>, observed: &Value) -> Option<Handled> {
    let info = task.member.kinds.known().get(&task.gvk)?;
    Some(Handled {
        work: task.stamp(),
        namespace: task.object_namespace().filter(|_| info.namespaced).unwrap_or_default().into(),
        name: task.object_name().into(),
        revision: observed["metadata"]["resourceVersion"].as_str()?.into(),
        gvr: info.gvr.clone(),
    })
}

fn version(object: &Value) -> String {
    let meta = &object["metadata"];
    let text = |field: &str| meta[field].as_str().unwrap_or_default();
    member::version(text("uid"), meta["generation"].as_i64().unwrap_or_default(), text("resourceVersion"))
}

/// The status of a work after an attempt.
fn status(
    task: &Task<'_>,
    old: &WorkStatus,
    outcome: Result<&Outcome, &Status>,
    interpreter: &Interpreter,
    now: jiff::Timestamp,
) -> WorkStatus {
    let mut status = old.clone();
    let generation = task.generation();
    let suspended = task.work.spec.suspend_dispatching == Some(true);
    if suspended || condition::get(&status.conditions, types::DISPATCHING).is_some() {
        let (value, why, message) = if suspended {
            ("False", reason::SUSPEND_DISPATCHING, "Work dispatching is in a suspended state.")
        } else {
            ("True", "Dispatching", "Work is being dispatched to the member cluster.")
        };
        let wanted =
            Wanted { type_: types::DISPATCHING, status: value, reason: why, message: message.to_owned(), generation };
        condition::set(&mut status.conditions, wanted, now);
    }
    if !suspended {
        let (value, why, message) = match outcome {
            Ok(outcome) => {
                let remark = outcome.remark.as_deref().unwrap_or("Manifest has been successfully applied");
                ("True", reason::APPLIED_SUCCESSFUL, remark.to_owned())
            }
            Err(failure) => {
                ("False", reason::APPLIED_FAILED, format!("Failed to apply all manifests (0/1): {}", failure.message))
            }
        };
        condition::set(
            &mut status.conditions,
            Wanted { type_: types::APPLIED, status: value, reason: why, message, generation },
            now,
        );
    }
    if let Ok(Outcome { object: Some(observed), .. }) = outcome {
        status.manifest_statuses = vec![manifest_status(task, observed, interpreter)];
    }
    status
}

fn manifest_status(task: &Task<'_>, observed: &Value, interpreter: &Interpreter) -> ManifestStatus {
    let health = match interpreter.health(observed) {
        Health::Healthy => ResourceHealth::Healthy,
        Health::Unhealthy => ResourceHealth::Unhealthy,
        Health::Unknown => ResourceHealth::Unknown,
    };
    let plural = task.member.kinds.known().get(&task.gvk).map(|info| info.gvr.resource.clone());
    ManifestStatus {
        identifier: ResourceIdentifier {
            ordinal: 0,
            group: task.gvk.group.clone(),
            version: task.gvk.version.clone(),
            kind: task.gvk.kind.clone(),
            resource: plural.unwrap_or_default(),
            namespace: task.object_namespace().unwrap_or_default().to_owned(),
            name: task.object_name().to_owned(),
        },
        status: interpreter.reflect(observed),
        health: Some(health),
    }
}
