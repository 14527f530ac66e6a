//! What a policy would lend, from objects as a cluster has them.

use atoll_api::kubeocean::{ClusterBinding, ResourceLeasingPolicy};
use atoll_api::kubeocean_names::{MANAGED_BY, label};
use atoll_lease::{NodeFacts, PodFacts, Policy, Preview};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::tree;

/// Tries a policy on the nodes and pods of a worker cluster. Shown as text it reads
/// `this policy lends 12 of 48 CPU and … on 3 nodes, next window 20:00`.
pub fn preview(
    policy: &ResourceLeasingPolicy,
    binding: Option<&ClusterBinding>,
    nodes: &[Value],
    pods: &[Value],
    now: Timestamp,
    zone: &TimeZone,
) -> Preview {
    let nodes: Vec<NodeFacts> = nodes.iter().map(NodeFacts::of).collect();
    let leased = |pod: &Value| tree::label(pod, label::MANAGED_BY) == MANAGED_BY;
    let pods: Vec<PodFacts> = pods.iter().map(|pod| PodFacts::of(pod, leased(pod))).collect();
    let selector = binding.and_then(|binding| binding.spec.node_selector.as_ref());
    atoll_lease::preview(&Policy::from(policy), selector, &nodes, &pods, now, zone)
}
