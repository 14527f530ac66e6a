//! FederatedResourceQuota: limits for a namespace over all clusters.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Quantity;
use crate::kind::kind;
kind! {
    /// Limits what a namespace may use in all clusters together.
    FederatedResourceQuota { spec: FederatedResourceQuotaSpec, status: FederatedResourceQuotaStatus, }
    group "policy.karmada.io", version "v1alpha1", plural "federatedresourcequotas", Namespaced;
    short []; categories ["karmada-io"];
    columns [
        "OVERALL": "string" = ".status.overall",
        "OVERALL_USED": "string" = ".status.overallUsed",
    ];
}

/// The limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FederatedResourceQuotaSpec {
    /// For all clusters together.
    pub overall: BTreeMap<String, Quantity>,
    /// Shares of single clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_assignments: Vec<StaticClusterAssignment>,
}

/// The share of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaticClusterAssignment {
    /// The cluster.
    pub cluster_name: String,
    /// Its limits.
    pub hard: BTreeMap<String, Quantity>,
}

/// The limits in force and what is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FederatedResourceQuotaStatus {
    /// The limits in force.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overall: BTreeMap<String, Quantity>,
    /// What is used in all clusters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overall_used: BTreeMap<String, Quantity>,
    /// By cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregated_status: Vec<ClusterQuotaStatus>,
}

/// Limits and use in one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterQuotaStatus {
    /// The cluster.
    pub cluster_name: String,
    /// Its limits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hard: BTreeMap<String, Quantity>,
    /// What is used.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub used: BTreeMap<String, Quantity>,
}
