//! Small worlds to decide about.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod any;

use atoll_api::policy::{
    ClusterAffinity, ClusterPreferences, DynamicWeightFactor, Placement, ReplicaDivisionPreference,
    ReplicaSchedulingStrategy, ReplicaSchedulingType, SpreadConstraint, SpreadField, StaticClusterWeight,
};
use atoll_api::work::{ObjectReference, ResourceBindingSpec, TargetCluster};
use atoll_placement::{Capacity, Cluster, Decision, Mode, Request, Snapshot, decide};

pub const API: &str = "apps/v1/Deployment";

/// A cluster with room for so many pods.
pub fn cluster(name: &str, pods: i64) -> Cluster {
    Cluster { name: name.into(), apis: [API.into()].into(), capacity: Capacity::new(pods, []), ..Cluster::default() }
}

/// A cluster in a region.
pub fn cluster_in(name: &str, region: &str, pods: i64) -> Cluster {
    Cluster { region: region.to_owned(), ..cluster(name, pods) }
}

pub fn names(names: &[&str]) -> ClusterAffinity {
    ClusterAffinity { cluster_names: names.iter().map(|name| (*name).to_owned()).collect(), ..Default::default() }
}

pub fn duplicated() -> Placement {
    strategy(ReplicaSchedulingStrategy {
        replica_scheduling_type: ReplicaSchedulingType::Duplicated,
        ..Default::default()
    })
}

pub fn aggregated() -> Placement {
    strategy(ReplicaSchedulingStrategy {
        replica_division_preference: Some(ReplicaDivisionPreference::Aggregated),
        ..Default::default()
    })
}

pub fn dynamic() -> Placement {
    weighted(Some(ClusterPreferences {
        dynamic_weight: Some(DynamicWeightFactor::AvailableReplicas),
        ..Default::default()
    }))
}

pub fn fixed(weights: &[(&str, i64)]) -> Placement {
    let entry = |(name, weight): &(&str, i64)| StaticClusterWeight { target_cluster: names(&[name]), weight: *weight };
    weighted(Some(ClusterPreferences { static_weight_list: weights.iter().map(entry).collect(), ..Default::default() }))
}

pub fn weighted(weight_preference: Option<ClusterPreferences>) -> Placement {
    strategy(ReplicaSchedulingStrategy {
        replica_division_preference: Some(ReplicaDivisionPreference::Weighted),
        weight_preference,
        ..Default::default()
    })
}

fn strategy(strategy: ReplicaSchedulingStrategy) -> Placement {
    Placement { replica_scheduling: Some(strategy), ..Default::default() }
}

pub fn by(field: SpreadField, min_groups: i64, max_groups: i64) -> SpreadConstraint {
    SpreadConstraint { spread_by_field: Some(field), min_groups, max_groups, ..Default::default() }
}

pub fn by_label(key: &str, min_groups: i64, max_groups: i64) -> SpreadConstraint {
    SpreadConstraint { spread_by_label: key.to_owned(), min_groups, max_groups, ..Default::default() }
}

/// A binding of a Deployment.
pub fn binding(placement: &Placement, replicas: i32, previous: &[(&str, i32)]) -> ResourceBindingSpec {
    let target = |(name, replicas): &(&str, i32)| TargetCluster {
        name: (*name).to_owned(),
        replicas: *replicas,
        ..Default::default()
    };
    ResourceBindingSpec {
        resource: ObjectReference {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            name: "web".to_owned(),
            ..Default::default()
        },
        replicas,
        clusters: previous.iter().map(target).collect(),
        placement: Some(placement.clone()),
        ..Default::default()
    }
}

pub fn decide_for(clusters: &[Cluster], spec: &ResourceBindingSpec) -> Decision {
    decide(&Snapshot::new(clusters.iter().cloned()), &Request::of(spec, None))
}

pub fn decide_fresh(clusters: &[Cluster], spec: &ResourceBindingSpec) -> Decision {
    let request = Request { mode: Mode::Fresh, ..Request::of(spec, None) };
    decide(&Snapshot::new(clusters.iter().cloned()), &request)
}

/// A decision in short: `m1=3 m2=2`, or the error.
pub fn short(decision: &Decision) -> String {
    match &decision.error {
        Some(error) => error.to_string(),
        None => {
            let targets = decision.clusters.iter().map(|target| format!("{}={}", target.name, target.replicas));
            targets.collect::<Vec<_>>().join(" ")
        }
    }
}

/// Why a cluster was refused: `plugin: message`.
pub fn why(decision: &Decision, cluster: &str) -> String {
    let reason = decision.reasons.iter().find(|reason| *reason.cluster == *cluster);
    let rule = reason.and_then(|reason| reason.refused_by.as_ref());
    rule.map_or_else(String::new, |rule| format!("{}: {rule}", rule.plugin()))
}
