//! Whether a binding needs a new decision.

use atoll_api::policy::{ClusterAffinityTerm, Placement};
use atoll_api::work::{ResourceBindingSpec, ResourceBindingStatus};
use serde::Serialize;

use crate::cluster::Snapshot;
use crate::request::{Request, Strategy, is_triggered};

/// Why a binding needs a new decision.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Trigger {
    /// The policy says something else than at the last decision.
    PlacementChanged,
    /// The number of replicas is not the one that was shared out.
    ReplicasChanged,
    /// Someone asked for it.
    Requested,
    /// A cluster it is in is being removed.
    ClusterDeleting,
    /// It is cheap to decide anew: each cluster has a full copy.
    Copied,
}

/// Why a binding needs a new decision; `applied` is the placement of the last one.
pub fn trigger(
    snapshot: &Snapshot,
    spec: &ResourceBindingSpec,
    status: Option<&ResourceBindingStatus>,
    applied: Option<&Placement>,
) -> Option<Trigger> {
    let request = Request::of(spec, status);
    if applied.is_none_or(|applied| is_other(applied, request.placement, request.observed_affinity)) {
        return Some(Trigger::PlacementChanged);
    }
    if replicas_changed(&request) {
        return Some(Trigger::ReplicasChanged);
    }
    if is_triggered(spec, status) {
        return Some(Trigger::Requested);
    }
    let mut targets = spec.clusters.iter().filter_map(|target| snapshot.get(&target.name));
    if targets.any(|cluster| cluster.deleting) {
        return Some(Trigger::ClusterDeleting);
    }
    (!request.is_workload() || request.strategy() == Strategy::Duplicated).then_some(Trigger::Copied)
}

fn replicas_changed(request: &Request<'_>) -> bool {
    if request.replicas <= 0 {
        return !request.components.is_empty() && request.previous.is_empty();
    }
    if request.strategy() == Strategy::Duplicated {
        return request.previous.iter().any(|target| target.replicas != request.replicas);
    }
    let sum: i64 = request.previous.iter().map(|target| i64::from(target.replicas)).sum();
    sum != i64::from(request.replicas)
}

/// Whether a placement differs in what matters; of the affinity terms only the one in use does.
fn is_other(applied: &Placement, wanted: &Placement, observed: &str) -> bool {
    let term = |placement: &Placement| -> Option<ClusterAffinityTerm> {
        placement.cluster_affinities.iter().find(|term| term.affinity_name == observed).cloned()
    };
    let terms_differ = if wanted.cluster_affinities.is_empty() {
        !applied.cluster_affinities.is_empty()
    } else {
        term(wanted).is_none() || term(applied) != term(wanted)
    };
    terms_differ
        || applied.cluster_affinity != wanted.cluster_affinity
        || applied.cluster_tolerations != wanted.cluster_tolerations
        || applied.spread_constraints != wanted.spread_constraints
        || applied.replica_scheduling != wanted.replica_scheduling
        || applied.workload_affinity != wanted.workload_affinity
}
