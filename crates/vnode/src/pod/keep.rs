//! A pod and its physical pod side by side.

use std::time::Duration;

use atoll_api::kubeocean_names::{MANAGED_BY, annotation, label};
use atoll_meta::Status;
use atoll_runtime::Patch;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::merge::{link_annotations, link_labels, merge, own_annotations, own_labels};
use super::status::mirrored;
use crate::feature::Feature;
use crate::node::Expected;
use crate::resource;
use crate::syncer::Syncer;
use crate::tree;

/// How long the worker's scheduler may take.
const SCHEDULING: Duration = Duration::from_mins(5);

impl Syncer {
    /// Carries changes of either side to the other.
    pub(super) async fn keep(&self, pod: &Value, below: &Value) -> Result<Option<Duration>, Status> {
        let mut wanted = pod.clone();
        wanted["status"] = mirrored(&pod["status"], &below["status"]);
        for (key, value) in [
            (annotation::PHYSICAL_POD_NAMESPACE, tree::namespace(below)),
            (annotation::PHYSICAL_POD_NAME, tree::name(below)),
            (annotation::PHYSICAL_POD_UID, tree::uid(below)),
        ] {
            wanted["metadata"]["annotations"][key] = value.into();
        }
        wanted["metadata"]["labels"][label::MANAGED_BY] = MANAGED_BY.into();
        if let Some(agreed) = agreement(pod, below) {
            apply_above(&mut wanted, &agreed);
            self.keep_below(pod, below, &agreed).await?;
        }
        self.write_above(pod, &wanted).await?;
        if tree::is_deleting(below) || atoll_lease::is_over(below) {
            return Ok(None);
        }
        let tokens = self.bring_tokens(pod, &self.binding()).await?;
        self.keep_spec(pod, below).await?;
        Ok([tokens, self.await_place(pod, below).await?].into_iter().flatten().min())
    }

    /// Writes what changed about the pod: status and metadata in one request.
    async fn write_above(&self, pod: &Value, wanted: &Value) -> Result<(), Status> {
        let Some(mut patch) = tree::difference(pod, wanted) else { return Ok(()) };
        patch["metadata"]["annotations"][annotation::LAST_SYNC_TIME] = atoll_meta::time::format(self.now()).into();
        self.patch_pod(pod, "status", patch).await
    }

    async fn keep_below(&self, pod: &Value, below: &Value, agreed: &Expected) -> Result<(), Status> {
        let mut wanted = below.clone();
        let mut labels = agreed.labels.clone();
        labels.extend(link_labels(below));
        // Pods the original made get their owner's mark.
        labels.extend(super::build::marks(&self.binding(), &self.computing.owner));
        let mut annotations = agreed.annotations.clone();
        annotations.extend(link_annotations(below));
        annotations.insert(annotation::EXPECTED_METADATA.to_owned(), agreed.encode());
        wanted["metadata"]["labels"] = json!(labels);
        wanted["metadata"]["annotations"] = json!(annotations);
        let deadline = &pod["spec"]["activeDeadlineSeconds"];
        if below["spec"]["activeDeadlineSeconds"] != *deadline && !tree::is_deleting(below) {
            wanted["spec"]["activeDeadlineSeconds"] = deadline.clone();
        }
        match tree::difference(below, &wanted) {
            Some(patch) => self.patch_below(below, "", patch).await,
            None => Ok(()),
        }
    }

    /// The few fields of a running pod that may change.
    async fn keep_spec(&self, pod: &Value, below: &Value) -> Result<(), Status> {
        let (wanted, there) =
            (tree::list(&pod["spec"]["ephemeralContainers"]), tree::list(&below["spec"]["ephemeralContainers"]));
        let missing = |own: &&Value| !there.iter().any(|known| known["name"] == own["name"]);
        let added: Vec<Value> = wanted.iter().filter(missing).cloned().collect();
        if added.is_empty() {
            return Ok(());
        }
        let (mut spec, allowed) = (json!({"ephemeralContainers": added}), self.allowed(pod));
        let mut refused = super::allow::refused(&spec, None, &allowed);
        if self.worker.withheld.contains(&Feature::Debug) {
            refused.push("containers added later, which the worker cluster does not grant (debug)".to_owned());
        }
        if !refused.is_empty() {
            self.complain(pod, "FailedCreatePod", &format!("not allowed: {}", refused.join(", "))).await;
            return Ok(());
        }
        // What the pod itself needed was brought before it was made, and may be gone since.
        let news = json!({"metadata": pod["metadata"], "spec": spec});
        if let Err(status) = self.bring_needs(&news, &self.binding(), &allowed).await {
            self.complain(pod, "FailedCreatePod", &status.message).await;
            return Err(status);
        }
        super::rewrite::added(&mut spec, tree::namespace(pod));
        let all: Vec<Value> = there.iter().chain(tree::list(&spec["ephemeralContainers"])).cloned().collect();
        self.patch_below(below, "ephemeralcontainers", json!({"spec": {"ephemeralContainers": all}})).await
    }

    /// Patches this very physical pod, never another of its name.
    async fn patch_below(&self, below: &Value, sub: &str, mut patch: Value) -> Result<(), Status> {
        patch["metadata"]["uid"] = tree::uid(below).into();
        let (namespace, name) = (tree::namespace(below), tree::name(below));
        match self.below().brief().patch(&resource::pods(), Some(namespace), name, sub, Patch::Merge, &patch).await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }

    /// Waits for the worker's scheduler, and says when it takes too long. A pod that its controller makes again is
    /// given up then, so that it may find a place elsewhere; the original gives up all, also those nobody makes again.
    /// The time counts from when it was first seen here: the worker's clock may be another.
    async fn await_place(&self, pod: &Value, below: &Value) -> Result<Option<Duration>, Status> {
        let key = tree::key(tree::namespace(pod), tree::name(pod));
        if below["spec"]["nodeName"].is_string() {
            self.unplaced.forget(&key);
            return Ok(None);
        }
        let left = SCHEDULING.saturating_sub(self.unplaced.since(&key, tree::uid(below), Instant::now()));
        if !left.is_zero() {
            return Ok(Some(left));
        }
        let mut conditions = tree::list(&below["status"]["conditions"]).iter();
        let said = conditions.find(|own| own["type"] == "PodScheduled").and_then(|own| own["message"].as_str());
        let why = format!(
            "the worker cluster found no place for the pod in five minutes: {}",
            said.unwrap_or("its scheduler does not say why")
        );
        if tree::list(&pod["metadata"]["ownerReferences"]).iter().any(|owner| owner["controller"] == true) {
            let (namespace, name) = (tree::namespace(below), tree::name(below));
            // As it was seen: one that found its place meanwhile is a conflict, and looked at again.
            self.below().delete(&resource::pods(), Some(namespace), name, &tree::only_as_seen(below)).await?;
        }
        self.complain(pod, "FailedSchedulingPod", &why).await;
        Ok(None)
    }
}

/// What both sides should say, unless it cannot be told what they last agreed on.
fn agreement(pod: &Value, below: &Value) -> Option<Expected> {
    let text = tree::annotation(below, annotation::EXPECTED_METADATA);
    let before = (!text.is_empty()).then(|| Expected::decode(text)).and_then(Result::ok)?;
    Some(Expected {
        labels: merge(&own_labels(pod), &own_labels(below), &before.labels),
        annotations: merge(&own_annotations(pod), &own_annotations(below), &before.annotations),
        taints: Vec::new(),
    })
}

fn apply_above(pod: &mut Value, agreed: &Expected) {
    let mut labels = agreed.labels.clone();
    labels.extend(link_labels(pod));
    let mut annotations = agreed.annotations.clone();
    annotations.extend(link_annotations(pod));
    pod["metadata"]["labels"] = json!(labels);
    pod["metadata"]["annotations"] = json!(annotations);
}
