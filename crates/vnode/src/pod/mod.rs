//! Top-down and back: a pod on a virtual node and its physical pod.

mod allow;
mod build;
mod complaint;
mod create;
mod event;
mod keep;
mod merge;
mod network;
mod refs;
mod rewrite;
mod status;
mod step;
mod token;
mod unplaced;

use std::sync::Arc;
use std::time::Duration;

use atoll_api::kubeocean_names::{annotation, physical};
use atoll_meta::Status;
use atoll_runtime::Patch;
use serde_json::{Value, json};

use crate::binding::Binding;
use crate::resource;
use crate::syncer::{Host, Syncer};
use crate::tree;
pub(crate) use build::{Workload, marks};
pub(crate) use complaint::Complaints;
pub(crate) use event::events;
pub(crate) use network::{Intranet, offered};
pub(crate) use refs::references;
pub(crate) use rewrite::token_secrets;
use step::{Context, Step, step};
pub(crate) use token::SWEEP;
pub(crate) use unplaced::Unplaced;

impl Syncer {
    /// Brings one pod and its physical pod in line.
    pub(crate) async fn pod(self: Arc<Self>, key: String) -> Result<Option<Duration>, Status> {
        let (namespace, name) = tree::split(&key);
        let binding = self.binding();
        let pod = self.computing.pods.get_key(&key).map(|item| item.tree());
        if pod.is_none() {
            self.drop_needs(&key);
            self.complaints.forget(&key);
            self.unplaced.forget(&key);
        }
        let place = self.physical_place(pod.as_ref(), &binding, namespace, name);
        let below = self.pods.get(&place.0, &place.1).map(|item| item.tree());
        let step = self.next_step(pod.as_ref(), below.as_ref(), &binding);
        self.carry_out(step, &binding, &key, pod, below).await
    }

    fn next_step(&self, pod: Option<&Value>, below: Option<&Value>, binding: &Binding) -> Step {
        let on_our_node = pod.is_some_and(|pod| self.is_on_our_node(pod, binding));
        step(pod, below, &Context { owner: &self.computing.owner, binding, on_our_node })
    }

    /// Whether a pod is bound to a virtual node of this binding.
    fn is_on_our_node(&self, pod: &Value, binding: &Binding) -> bool {
        let ours =
            |host: Arc<Host>| host.binding == binding.name && (host.named || host.cluster_id == binding.cluster_id);
        self.host_of(pod).is_some_and(ours)
    }

    /// The virtual node a pod is bound to.
    fn host_of(&self, pod: &Value) -> Option<Arc<Host>> {
        self.computing.host(pod["spec"]["nodeName"].as_str()?)
    }

    /// Namespace and name of the physical pod: where it was put, or else where it would be.
    fn physical_place(&self, pod: Option<&Value>, binding: &Binding, namespace: &str, name: &str) -> (String, String) {
        let known = |key: &str| {
            pod.map(|pod| tree::annotation(pod, key)).filter(|text| !text.is_empty()).map(ToOwned::to_owned)
        };
        (
            known(annotation::PHYSICAL_POD_NAMESPACE).unwrap_or_else(|| binding.mount_namespace.clone()),
            known(annotation::PHYSICAL_POD_NAME).unwrap_or_else(|| physical(namespace, name)),
        )
    }

    async fn carry_out(
        &self,
        step: Step,
        binding: &Binding,
        key: &str,
        pod: Option<Value>,
        below: Option<Value>,
    ) -> Result<Option<Duration>, Status> {
        match (step, pod, below) {
            (Step::Create, Some(pod), _) => self.create_physical(&pod, binding).await,
            (Step::Keep, Some(pod), Some(below)) => self.keep(&pod, &below).await,
            (Step::Lost, Some(pod), _) => self.confirm_lost(&pod, binding).await.map(|()| None),
            (Step::Delete(grace), pod, Some(below)) => {
                self.delete_physical(key, pod.as_ref(), &below, grace).await.map(|()| None)
            }
            (Step::Finish, Some(pod), _) => self.finish(&pod, binding).await.map(|()| None),
            (Step::Conflict, Some(pod), Some(below)) => {
                let why = format!(
                    "the worker cluster has a pod {} that is not ours",
                    tree::key(tree::namespace(&below), tree::name(&below))
                );
                self.complain(&pod, "FailedCreatePod", &why).await;
                Err(Status::internal(why))
            }
            _ => Ok(None),
        }
    }

    /// Reads the physical pod from the worker cluster itself; the cache may be a moment behind.
    async fn read_physical(&self, pod: &Value, binding: &Binding) -> Result<Option<Value>, Status> {
        let (namespace, name) = self.physical_place(Some(pod), binding, tree::namespace(pod), tree::name(pod));
        self.below().get_opt(&resource::pods(), Some(&namespace), &name).await
    }

    /// Deletes a physical pod; when the pod it runs for seems to be gone, only after asking for it once more: what we
    /// know may be old, and another syncer may have made this one for a pod we have not heard of.
    async fn delete_physical(
        &self,
        key: &str,
        pod: Option<&Value>,
        below: &Value,
        grace: Option<i64>,
    ) -> Result<(), Status> {
        let uid = tree::annotation(below, annotation::VIRTUAL_POD_UID);
        if pod.is_none_or(|pod| tree::uid(pod) != uid) {
            let (namespace, name) = tree::split(key);
            let still = self.above().get_opt(&resource::pods(), Some(namespace), name).await?;
            if still.is_some_and(|pod| tree::uid(&pod) == uid) {
                return Err(Status::unavailable("the pod is there again"));
            }
        }
        let uid = tree::uid(below);
        let options = grace.map_or_else(|| tree::only(uid), |seconds| tree::only_within(uid, seconds));
        self.below().delete(&resource::pods(), Some(tree::namespace(below)), tree::name(below), &options).await
    }

    /// Deletes a physical pod that is certainly ours and does not say for whom it runs.
    pub(crate) async fn stray(self: Arc<Self>, key: String) -> Result<Option<Duration>, Status> {
        let Some(below) = self.pods.get_key(&key).map(|item| item.tree()) else { return Ok(None) };
        let ours = tree::label(&below, crate::binding::OWNER) == self.computing.owner;
        let here = tree::label(&below, atoll_api::kubeocean_names::label::CLUSTER_BINDING) == self.binding().name;
        if ours && here && crate::syncer::original_of(&below).is_none() && !tree::is_deleting(&below) {
            self.below()
                .delete(
                    &resource::pods(),
                    Some(tree::namespace(&below)),
                    tree::name(&below),
                    &tree::only(tree::uid(&below)),
                )
                .await?;
        }
        Ok(None)
    }

    /// Lets a pod go whose physical pod is gone, or never was.
    async fn finish(&self, pod: &Value, binding: &Binding) -> Result<(), Status> {
        if let Some(below) = self.read_physical(pod, binding).await?
            && self.next_step(Some(pod), Some(&below), binding) != Step::Finish
        {
            return Err(Status::unavailable("the physical pod is still there"));
        }
        self.drop_tokens(pod, binding).await?;
        let options = tree::only_within(tree::uid(pod), 0);
        self.above().delete(&resource::pods(), Some(tree::namespace(pod)), tree::name(pod), &options).await
    }

    /// Fails a pod whose physical pod vanished, after asking for it once more.
    async fn confirm_lost(&self, pod: &Value, binding: &Binding) -> Result<(), Status> {
        if self.read_physical(pod, binding).await?.is_some() {
            return Err(Status::unavailable("the physical pod is there again"));
        }
        let patch = json!({"status": tree::difference(&pod["status"], &status::lost(&pod["status"]))});
        self.patch_pod(pod, "status", patch).await
    }

    /// Patches this very pod, never another of its name.
    async fn patch_pod(&self, pod: &Value, sub: &str, mut patch: Value) -> Result<(), Status> {
        patch["metadata"]["uid"] = tree::uid(pod).into();
        let (namespace, name) = (tree::namespace(pod), tree::name(pod));
        match self.above().brief().patch(&resource::pods(), Some(namespace), name, sub, Patch::Merge, &patch).await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }

    /// Tells the owner of a pod what is wrong, once for each reason.
    pub(crate) async fn complain(&self, pod: &Value, reason: &str, message: &str) {
        if self.complaints.is_news(pod, message) {
            self.above().event(pod, "Warning", reason, message, self.now()).await;
        }
    }
}
