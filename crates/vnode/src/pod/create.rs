//! Making a physical pod.

use std::time::Duration;

use atoll_api::kubeocean::ResourceLeasingPolicy;
use atoll_api::kubeocean_names::{DEFAULT_PRIORITY, DEFAULT_PRIORITY_CLASS, MANAGED_BY, label};
use atoll_meta::Status;
use serde_json::{Value, json};

use super::allow;
use super::build::{Workload, physical_pod, workload};
use super::rewrite::Rewrite;
use super::step::Step;
use crate::binding::Binding;
use crate::resource;
use crate::syncer::Syncer;
use crate::tree;

impl Syncer {
    /// Makes the physical pod.
    pub(super) async fn create_physical(&self, pod: &Value, binding: &Binding) -> Result<Option<Duration>, Status> {
        if !self.reach.is_up() {
            return Err(Status::unavailable("the worker cluster does not answer"));
        }
        let priority = self.priority(binding).await?;
        let allowed = self.allowed(pod);
        let refused = allow::refused_pod(pod, priority, &allowed);
        if !refused.is_empty() {
            return self.refuse(pod, &refused).await;
        }
        let made = self.make(pod, binding, &allowed).await;
        self.settings.tallies.pod(&binding.name, made.is_err());
        match made {
            // The pod learns of it together with its first status, when the physical pod is seen.
            Ok(_) => {
                self.complaints.forget(&tree::key(tree::namespace(pod), tree::name(pod)));
                Ok(None)
            }
            Err(status) => {
                // Its class may be what is missing.
                self.priority.lock().take();
                self.complain(pod, "FailedCreatePod", &status.message).await;
                Err(status)
            }
        }
    }

    async fn make(&self, pod: &Value, binding: &Binding, allowed: &[String]) -> Result<Value, Status> {
        // None of them needs the others; the pod needs all of them.
        let (needs, tokens, object) = tokio::join!(
            self.bring_needs(pod, binding, allowed),
            self.bring_tokens(pod, binding),
            self.physical_object(pod, binding),
        );
        needs?;
        tokens?;
        self.submit(pod, binding, object?).await
    }

    async fn physical_object(&self, pod: &Value, binding: &Binding) -> Result<Value, Status> {
        let host = self.host_of(pod).ok_or_else(|| Status::unavailable("the virtual node is not known yet"))?;
        if host.physical.is_empty() {
            return Err(Status::internal(format!(
                "node {} does not say which node it stands for",
                pod["spec"]["nodeName"]
            )));
        }
        let intranet = self.intranet().await?;
        let rewrite = Rewrite {
            node: &host.physical,
            direct: binding.direct,
            priority_class: &binding.priority_class,
            intranet: &intranet,
        };
        let mut object = physical_pod(pod, binding, &self.computing.owner, &self.workload(pod).await?);
        object["spec"] = rewrite.spec(pod).map_err(Status::bad_request)?;
        Ok(object)
    }

    async fn submit(&self, pod: &Value, binding: &Binding, object: Value) -> Result<Value, Status> {
        let namespace = binding.mount_namespace.as_str();
        let pods = resource::pods();
        let mut result = self.below().create(&pods, Some(namespace), &object).await;
        if result.as_ref().is_err_and(|status| status.code == 404) {
            self.make_namespace(namespace).await?;
            result = self.below().create(&pods, Some(namespace), &object).await;
        }
        match result {
            Err(status) if status.code == 409 => {
                // Ours from before a crash, or somebody else's.
                let there = self.below().get(&pods, Some(namespace), tree::name(&object)).await?;
                match self.next_step(Some(pod), Some(&there), binding) {
                    Step::Keep => Ok(there),
                    _ => Err(status),
                }
            }
            result => result,
        }
    }

    pub(crate) async fn make_namespace(&self, name: &str) -> Result<(), Status> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {label::MANAGED_BY: MANAGED_BY}}});
        self.below().ensure(&resource::namespaces(), None, &namespace).await.map(drop)
    }

    /// What the policy of a pod's node allows.
    pub(super) fn allowed(&self, pod: &Value) -> Vec<String> {
        let Some(host) = self.host_of(pod) else { return Vec::new() };
        let policy = self.policies.get("", &host.policy).and_then(|item| item.decode::<ResourceLeasingPolicy>().ok());
        policy.map(|policy| policy.spec.allow).unwrap_or_default()
    }

    /// Says on a pod what is not allowed; it is looked at again when the policies or the binding change, and now and
    /// then, since nobody tells of a priority class that is made again with another value.
    async fn refuse(&self, pod: &Value, refused: &[String]) -> Result<Option<Duration>, Status> {
        self.priority.lock().take();
        let message = format!("the policy of the node's owner does not allow {}", refused.join(", "));
        self.complain(pod, "FailedCreatePod", &message).await;
        let mut status = pod["status"].clone();
        status["reason"] = "LeaseRefused".into();
        status["message"] = message.into();
        if let Some(patch) = tree::difference(&pod["status"], &status) {
            self.patch_pod(pod, "status", json!({"status": patch})).await?;
        }
        Ok(Some(RECONSIDER))
    }

    /// The priority leased pods have; the class is made if it is the usual one and missing.
    async fn priority(&self, binding: &Binding) -> Result<Option<i64>, Status> {
        let name = &binding.priority_class;
        if let Some((known, value)) = &*self.priority.lock()
            && known == name
        {
            return Ok(*value);
        }
        let classes = resource::priority_classes();
        let class = if name == DEFAULT_PRIORITY_CLASS {
            let class = json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": name, "labels": {label::MANAGED_BY: MANAGED_BY}},
                "value": DEFAULT_PRIORITY, "preemptionPolicy": "PreemptLowerPriority",
                "description": "pods of computing clusters",
            });
            match self.below().get_opt(&classes, None, name).await? {
                Some(class) => class,
                None => self.below().ensure(&classes, None, &class).await?,
            }
        } else {
            self.below().get(&classes, None, name).await?
        };
        let value = class["value"].as_i64();
        *self.priority.lock() = Some((name.clone(), value));
        Ok(value)
    }

    /// What a pod is part of; ReplicaSets are looked into for their Deployment.
    async fn workload(&self, pod: &Value) -> Result<Workload, Status> {
        let own = workload(pod);
        if own.kind != "replicaset" {
            return Ok(own);
        }
        let key = tree::key(tree::namespace(pod), &own.name);
        if let Some(known) = self.workloads.lock().get(&key) {
            return Ok(known.clone());
        }
        let set = self.above().get(&resource::replica_sets(), Some(tree::namespace(pod)), &own.name).await?;
        let found = match workload(&set) {
            above if above.kind == "deployment" => above,
            _ => own,
        };
        let mut known = self.workloads.lock();
        if known.len() >= KNOWN_WORKLOADS {
            known.clear();
        }
        known.insert(key, found.clone());
        Ok(found)
    }
}

/// How often a refused pod is looked at although nothing is heard of a change.
const RECONSIDER: Duration = Duration::from_mins(5);
/// How many ReplicaSets are remembered; forgetting them costs one read each.
const KNOWN_WORKLOADS: usize = 4096;
