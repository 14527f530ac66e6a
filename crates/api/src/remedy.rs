//! Remedy: what to do about a cluster with a condition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
kind! {
    /// What to do about clusters with some condition.
    Remedy { spec: RemedySpec, }
    group "remedy.karmada.io", version "v1alpha1", plural "remedies", Cluster;
    short []; categories ["karmada-io"];
    columns [];
}

/// When to do what to which clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemedySpec {
    /// The clusters; all when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_affinity: Option<RemedyAffinity>,
    /// Any of these starts the actions; at once when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decision_matches: Vec<DecisionMatch>,
    /// `TrafficControl`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,
}

/// Clusters by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemedyAffinity {
    /// Their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_names: Vec<String>,
}

/// A test of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionMatch {
    /// A test of a condition of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_condition_match: Option<ClusterConditionRequirement>,
}

/// A test of a condition of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterConditionRequirement {
    /// The condition.
    pub condition_type: String,
    /// How its status is compared.
    pub operator: ConditionOperator,
    /// With what.
    pub condition_status: String,
}

/// How a status is compared.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConditionOperator {
    /// It must be the same.
    #[default]
    Equal,
    /// It must be another.
    NotEqual,
}
