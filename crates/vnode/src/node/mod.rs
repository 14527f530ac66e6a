//! Bottom-up: from a node of the worker cluster to a virtual Node.

mod address;
mod build;
mod csi;
mod evict;
mod expected;
mod hostport;
mod lease;
mod port;
mod silence;
mod taint;
mod withdraw;

use std::sync::Arc;
use std::time::Duration;

use atoll_api::kubeocean_names::{self, label};
use atoll_lease::{Decision, Loan, NodeFacts, Withheld, decide};
use atoll_meta::Status;
use atoll_runtime::Patch;
use serde_json::{Value, json};

pub(crate) use build::is_ready;
pub(crate) use csi::csi_nodes;
pub(crate) use expected::Expected;
pub(crate) use port::Ports;
pub(crate) use withdraw::SYSTEM_NAMESPACES;

use crate::resource;
use crate::syncer::Syncer;
use crate::tree;

impl Syncer {
    /// Brings the virtual Node of one node in line.
    pub(crate) async fn node(self: Arc<Self>, name: String) -> Result<Option<Duration>, Status> {
        let binding = self.binding();
        let virtual_name = kubeocean_names::virtual_node(&binding.cluster_id, &name);
        let existing = self.computing.nodes.get("", &virtual_name).map(|item| item.tree());
        let physical = self.nodes.get("", &name).map(|item| item.tree());
        if let Some(existing) = &existing
            && !binding.owns_node(|key| Some(tree::label(existing, key).to_owned()))
        {
            return Err(Status::internal(format!("node {virtual_name} exists and is not one of this binding")));
        }
        let Some(physical) = physical else {
            return self.withdraw(None, existing.as_ref(), "the node is gone").await;
        };
        if binding.deleting {
            return self.withdraw(Some(&physical), existing.as_ref(), "the binding is being deleted").await;
        }
        if let Some(existing) = &existing {
            if tree::is_deleting(existing) {
                return self.withdraw(Some(&physical), Some(existing), "the virtual node is being deleted").await;
            }
            if tree::label(existing, label::PHYSICAL_NODE_UID) != tree::uid(&physical) {
                return self
                    .withdraw(Some(&physical), Some(existing), "the node was replaced by another of its name")
                    .await;
            }
        }
        let facts = NodeFacts::of(&physical);
        let policies = self.all_policies();
        let pods = self.usage.on(&name);
        let selector = (binding.name.as_str(), binding.selector.as_ref());
        match decide(selector, &facts, &pods, &policies, self.now(), &self.settings.zone) {
            Decision::Withheld(Withheld::Virtual) => Ok(None),
            Decision::Withheld(why) => self.withdraw(Some(&physical), existing.as_ref(), &why.to_string()).await,
            Decision::Lent(loan) => {
                let policy = policies.iter().find(|policy| policy.name == loan.policy);
                let labelled = existing.as_ref().map_or("", |node| tree::label(node, label::PROXIER_PORT));
                let port = self.kubelet_port(&virtual_name, labelled).await;
                let node = build::Draft {
                    name: &virtual_name,
                    binding: &binding,
                    physical: &physical,
                    loan: &loan,
                    policy,
                    existing: existing.as_ref(),
                    address: self.kubelet_address(existing.as_ref()),
                    port,
                    reachable: self.reach.is_up(),
                    now: self.now(),
                }
                .node();
                self.lend(&physical, existing.as_ref(), node, &loan).await
            }
        }
    }

    /// Writes a virtual Node and everything that goes with it.
    async fn lend(
        &self,
        physical: &Value,
        existing: Option<&Value>,
        node: Value,
        loan: &Loan,
    ) -> Result<Option<Duration>, Status> {
        let written = self.write_node(existing, &node).await?;
        if !self.reach.is_up() {
            return Ok(None);
        }
        if existing.is_none() {
            self.renew_lease(&written).await?;
        }
        if tree::label(physical, label::POLICY_APPLIED) != loan.policy && self.may_mark(physical) {
            self.mark_physical(tree::name(physical), json!(loan.policy)).await?;
        }
        self.keep_csi_node(tree::name(physical), tree::name(&node)).await?;
        self.keep_host_ports(tree::name(physical), tree::name(&node)).await?;
        let evict = self.evict(&node, &loan.state).await?;
        let edge = loan.next_edge.map(|edge| self.until(edge));
        Ok([evict, edge].into_iter().flatten().min())
    }

    async fn write_node(&self, existing: Option<&Value>, node: &Value) -> Result<Value, Status> {
        let Some(existing) = existing else {
            return self.above().create(&resource::nodes(), None, node).await;
        };
        let name = tree::name(node);
        let mut revision = existing["metadata"]["resourceVersion"].clone();
        if (&existing["metadata"], &existing["spec"]) != (&node["metadata"], &node["spec"]) {
            let written = self.above().update(&resource::nodes(), None, name, node).await?;
            revision = written["metadata"]["resourceVersion"].clone();
        }
        if existing["status"] != node["status"] {
            let mut node = node.clone();
            node["metadata"]["resourceVersion"] = revision;
            self.above().update_sub(&resource::nodes(), None, name, "status", &node).await?;
        }
        Ok(node.clone())
    }

    /// Whether the mark on a leased node is ours to change. Another computing cluster may lease it, too;
    /// then the first one's mark stays until it goes.
    pub(crate) fn may_mark(&self, physical: &Value) -> bool {
        let policy = self.policies.get("", tree::label(physical, label::POLICY_APPLIED));
        policy.is_none_or(|policy| policy.tree()["spec"]["cluster"] == *self.binding().name)
    }

    /// Says on the leased node which policy lends it; null says that none does.
    pub(crate) async fn mark_physical(&self, name: &str, policy: Value) -> Result<(), Status> {
        let patch = json!({"metadata": {"labels": {label::POLICY_APPLIED: policy}}});
        match self.below().patch(&resource::nodes(), None, name, "", Patch::Merge, &patch).await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }
}
