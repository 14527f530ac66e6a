//! From works to objects in a member, and back from there to the status of the works.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use atoll_api::names;
use atoll_api::words::{annotation, finalizer};
use atoll_interpreter::Interpreter;
use atoll_meta::Status;
use atoll_runtime::{Cache, Endpoint, Patch};
use serde_json::{Value, json};

use crate::member::{Handled, Member, Told};
use crate::options::Clock;
use crate::order::{Attempt, Order, Piece, Trouble};
use crate::progress::{self, Progress};
use crate::{diff, gvr, stray};

/// How long one manifest may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// So many tries what an object needs may take to come before its absence counts as a failure: about five seconds.
const TRIES: u32 = 10;

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
        let Some(order) = Order::of(&item, name, &member) else { return Ok(None) };
        if head.deleting {
            return self.retire(&order).await;
        }
        if !head.finalizers.iter().any(|own| **own == *finalizer::EXECUTION) {
            return self.add_finalizer(&order).await;
        }
        self.carry_out(&order).await
    }

    /// Carries out all manifests of a work in their order, also when one fails, and tells what came of it.
    async fn carry_out(&self, order: &Order<'_>) -> Again {
        let (member, pieces) = (order.member, order.pieces());
        let before = member.written(&order.name).map(|written| written.work);
        let mut attempts = Vec::with_capacity(pieces.len());
        for piece in &pieces {
            attempts.push(self.attempt(piece).await);
        }
        let wrote = attempts.iter().flatten().any(|outcome| outcome.wrote);
        if wrote && attempts.iter().all(Result::is_ok) && before != Some(order.stamp()) {
            // Its first states follow soon and are told together with this.
            member.handle(&order.name, None);
            return Ok(Some(member.gather()));
        }
        let patient = member.queue.failures(&order.name) < TRIES;
        self.tell(&Progress { order, pieces: &pieces, attempts: &attempts, patient }).await?;
        let handled = match (pieces.as_slice(), attempts.as_slice()) {
            ([piece], [Ok(outcome)]) => outcome.object.as_ref().and_then(|observed| handled(piece, observed)),
            // Of several objects only a look at each can tell.
            _ => None,
        };
        member.handle(&order.name, handled);
        match attempts.into_iter().find_map(Result::err) {
            Some(trouble) => Err(trouble.status),
            None => Ok(None),
        }
    }

    /// Carries out one manifest, within its time.
    async fn attempt(&self, piece: &Piece<'_>) -> Attempt {
        let attempt = tokio::time::timeout(DEADLINE, self.apply(piece)).await.unwrap_or_else(|_| {
            Err(Trouble::from(Status::timeout(format!("member {} does not answer", piece.member().name), 1)))
        });
        if piece.gvk.kind == "CustomResourceDefinition" && attempt.is_ok() {
            // What it defines may be wanted next.
            piece.member().rediscover.notify_one();
        }
        attempt
    }

    async fn add_finalizer(&self, order: &Order<'_>) -> Again {
        let mut finalizers = order.work.metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(finalizer::EXECUTION.to_owned());
        let patch =
            json!({"metadata": {"finalizers": finalizers, "resourceVersion": order.work.metadata.resource_version}});
        let (works, brief) = (gvr::works(), self.instance.brief());
        brief.patch(&works, order.namespace(), &order.name, "", Patch::Merge, &patch).await?;
        Ok(None)
    }

    /// Writes the status of a work if it changed.
    async fn tell(&self, progress: &Progress<'_>) -> Result<(), Status> {
        let order = progress.order;
        let known = order.work.metadata.resource_version.clone().unwrap_or_default();
        // What we told a moment ago may not have come back yet.
        let (old, revision, mut before) = match order.member.told(&order.name, &known) {
            Some(told) => (told.status, told.after, told.before),
            None => (order.work.status.clone().unwrap_or_default(), known, Vec::new()),
        };
        let new = progress.status(&old, &self.interpreter.load(), (self.clock)());
        if old == new {
            return Ok(());
        }
        let trees = (serde_json::to_value(&old).unwrap_or_default(), serde_json::to_value(&new).unwrap_or_default());
        let Some(patch) = diff::merge_patch(&trees.0, &trees.1) else { return Ok(()) };
        // It is told of this work as we know it: what comes late must not speak for a newer state or a newer work.
        let body = json!({"metadata": {"resourceVersion": revision}, "status": patch});
        let (works, brief) = (gvr::works(), self.instance.brief());
        let stored = brief.patch(&works, order.namespace(), &order.name, "status", Patch::Merge, &body).await?;
        before.push(revision);
        order.member.tell(&order.name, Told { before, after: stored.revision, status: new });
        if let Some(item) = self.works.get(order.namespace().unwrap_or_default(), &order.name) {
            // It may have come back before this was noted.
            order.member.heard(&order.name, &item.revision);
        }
        if !progress.waits() && !progress::is_failed(&old.conditions) {
            self.complain(progress).await;
        }
        Ok(())
    }

    /// Sends events about what failed, if anything did.
    async fn complain(&self, progress: &Progress<'_>) {
        let order = progress.order;
        let mut failures = progress.failures().peekable();
        if failures.peek().is_none() {
            return;
        }
        let about = json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work", "metadata": order.work.metadata});
        self.instance.event(&about, "Warning", "SyncFailed", &progress.complaint(), (self.clock)()).await;
        for (piece, failure) in failures {
            // People look at the template.
            let message = format!("cluster {}: {failure}", order.member.name);
            self.instance.event(&template(piece.manifest), "Warning", "SyncFailed", &message, (self.clock)()).await;
        }
    }

    /// The work goes: the copies first, unless they are to stay or were never ours.
    async fn retire(&self, order: &Order<'_>) -> Again {
        if !order.work.metadata.finalizers.iter().flatten().any(|own| own == finalizer::EXECUTION) {
            return Ok(None);
        }
        let (mut gone, mut refusal) = (true, None);
        for piece in &order.pieces() {
            let removed = tokio::time::timeout(DEADLINE, self.remove(piece)).await;
            let late = || Status::timeout(format!("member {} does not answer", order.member.name), 1);
            match removed.unwrap_or_else(|_| Err(late())) {
                Ok(removed) => gone &= removed,
                Err(status) => refusal = Some(status),
            }
        }
        if let Some(status) = refusal {
            return Err(status);
        }
        if !gone {
            return Ok(Some(Duration::from_millis(500)));
        }
        // Before anybody can know that it is gone.
        if let Some(id) = order.id().filter(|_| !order.preserves()) {
            order.member.strays.bury(id);
        }
        let finalizers: Vec<&String> =
            order.work.metadata.finalizers.iter().flatten().filter(|own| *own != finalizer::EXECUTION).collect();
        let patch =
            json!({"metadata": {"finalizers": finalizers, "resourceVersion": order.work.metadata.resource_version}});
        match self.instance.patch(&gvr::works(), order.namespace(), &order.name, "", Patch::Merge, &patch).await {
            Err(status) if status.reason != atoll_meta::Reason::NotFound => return Err(status),
            _ => {}
        }
        order.member.forget(&order.name);
        Ok(None)
    }
}

/// What a manifest was made from, as events refer to it.
fn template(manifest: &Value) -> Value {
    let meta = &manifest["metadata"];
    json!({"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": {
        "name": meta["name"], "namespace": meta["namespace"], "uid": meta["annotations"][annotation::TEMPLATE_UID]}})
}

fn handled(piece: &Piece<'_>, observed: &Value) -> Option<Handled> {
    let info = piece.member().kinds.known().get(&piece.gvk)?;
    Some(Handled {
        work: piece.order.stamp(),
        namespace: piece.namespace().filter(|_| info.namespaced).unwrap_or_default().into(),
        name: piece.name().into(),
        revision: observed["metadata"]["resourceVersion"].as_str()?.into(),
        gvr: info.gvr.clone(),
    })
}
