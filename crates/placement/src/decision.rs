//! What was decided, and why.

use std::sync::Arc;

use atoll_api::words::reason;
use serde::Serialize;

use crate::rule::Rule;

/// A chosen cluster.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Target {
    /// The cluster.
    pub name: Arc<str>,
    /// How many replicas it takes; 0 for what is not a workload.
    pub replicas: i32,
}

/// Why one cluster was chosen or refused.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReason {
    /// The cluster.
    pub cluster: Arc<str>,
    /// How many replicas it takes, if it was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<i32>,
    /// Its score: 100 if it already has the workload.
    pub score: i64,
    /// How many replicas it has room for, with those it has; if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<i64>,
    /// The rule that refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_by: Option<Rule>,
}

/// An affinity term that was tried in vain before the one that was taken.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Skipped {
    /// Its name.
    pub affinity: String,
    /// Why it did not do.
    pub error: DecisionError,
}

/// Why there is no decision.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum DecisionError {
    /// No cluster passes all filters.
    #[error("0/{total} clusters are available{}", counted(.refusals))]
    NoClusterFits {
        /// How many there are.
        total: usize,
        /// How many were refused for what.
        refusals: Vec<(usize, String)>,
    },
    /// The spread constraints cannot be met.
    #[error("spread by {by}: {found} found, at least {least} needed")]
    TooFewGroups {
        /// What groups are made by.
        by: String,
        /// How many there are.
        found: usize,
        /// How many are needed.
        least: usize,
    },
    /// The spread constraints contradict each other or what there is.
    #[error("no choice of clusters meets the spread constraints by {by}")]
    NoChoice {
        /// What groups are made by.
        by: String,
    },
    /// The clusters that may be taken have no room.
    #[error("{clusters} clusters have room for {available} replicas, {needed} needed")]
    TooLittleRoom {
        /// How many clusters may be taken.
        clusters: usize,
        /// How many replicas they have room for.
        available: i64,
        /// How many are needed.
        needed: i64,
    },
}

impl DecisionError {
    /// The reason of the condition `Scheduled`.
    pub fn reason(&self) -> &'static str {
        match self {
            DecisionError::NoClusterFits { .. } => reason::NO_CLUSTER_FIT,
            DecisionError::TooFewGroups { .. } | DecisionError::NoChoice { .. } => reason::SCHEDULER_ERROR,
            DecisionError::TooLittleRoom { .. } => reason::UNSCHEDULABLE,
        }
    }

    /// Whether the clusters of the last decision are to be left.
    pub fn clears_clusters(&self) -> bool {
        matches!(self, DecisionError::NoClusterFits { .. })
    }
}

fn counted(refusals: &[(usize, String)]) -> String {
    if refusals.is_empty() {
        return String::new();
    }
    let texts: Vec<String> = refusals.iter().map(|(count, what)| format!("{count} {what}")).collect();
    format!(": {}", texts.join(", "))
}

/// A decision with its reasons.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The chosen clusters, sorted by name; empty when there is an error.
    pub clusters: Vec<Target>,
    /// Every cluster, sorted by name.
    pub reasons: Vec<ClusterReason>,
    /// The affinity term that was taken; empty when there is only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub affinity: String,
    /// The terms that were tried before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// Why there is no decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<DecisionError>,
}

impl Decision {
    /// How many replicas were placed in all.
    pub fn replicas(&self) -> i64 {
        self.clusters.iter().map(|target| i64::from(target.replicas)).sum()
    }

    /// How many replicas a cluster takes, if it was chosen.
    pub fn replicas_in(&self, cluster: &str) -> Option<i32> {
        self.clusters.iter().find(|target| *target.name == *cluster).map(|target| target.replicas)
    }
}
