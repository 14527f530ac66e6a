//! ClusterTaintPolicy: taints that come and go with the conditions of a cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::placement::ClusterAffinity;
use crate::kind::kind;
kind! {
    /// Taints clusters by their conditions.
    ClusterTaintPolicy { spec: ClusterTaintPolicySpec, }
    group "policy.karmada.io", version "v1alpha1", plural "clustertaintpolicies", Cluster;
    short []; categories [];
    columns [];
}

/// Which taints, when, on which clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTaintPolicySpec {
    /// The clusters; all when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_clusters: Option<ClusterAffinity>,
    /// Taints are added when all of these hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_on_conditions: Vec<MatchCondition>,
    /// Taints are removed when all of these hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_on_conditions: Vec<MatchCondition>,
    /// The taints.
    #[schemars(extend("minItems" = 1))]
    pub taints: Vec<PolicyTaint>,
}

/// A test of a condition of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MatchCondition {
    /// The condition.
    pub condition_type: String,
    /// `In` or `NotIn`.
    pub operator: String,
    /// What its status is compared with.
    pub status_values: Vec<String>,
}

/// A taint to add or remove.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyTaint {
    /// Its key.
    pub key: String,
    /// Its effect.
    pub effect: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}
