//! The older version of the bindings, still served.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Quantity;
use crate::kind::kind;
kind! {
    /// ResourceBinding as v1alpha1.
    ResourceBindingV1Alpha1 as "ResourceBinding" { spec: ResourceBindingSpecV1Alpha1, status: ResourceBindingStatusV1Alpha1, }
    group "work.karmada.io", version "v1alpha1", plural "resourcebindings", Namespaced;
    short ["rb"]; categories ["karmada-io"];
    columns [];
}

kind! {
    /// ClusterResourceBinding as v1alpha1.
    ClusterResourceBindingV1Alpha1 as "ClusterResourceBinding" { spec: ResourceBindingSpecV1Alpha1, status: ResourceBindingStatusV1Alpha1, }
    group "work.karmada.io", version "v1alpha1", plural "clusterresourcebindings", Cluster;
    short ["crb"]; categories ["karmada-io"];
    columns [];
}

/// The template and where it goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceBindingSpecV1Alpha1 {
    /// The template, and what it needs.
    pub resource: ObjectReferenceV1Alpha1,
    /// Where it goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<TargetClusterV1Alpha1>,
}

/// Names a template and says what it needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReferenceV1Alpha1 {
    /// Its group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The version that was seen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// The resources of one replica.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource_per_replicas: BTreeMap<String, Quantity>,
    /// How many replicas are wanted.
    #[serde(default, skip_serializing_if = "crate::kind::is_zero")]
    pub replicas: i32,
}

/// A cluster that takes the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetClusterV1Alpha1 {
    /// The cluster.
    pub name: String,
    /// How many replicas it takes.
    #[serde(default, skip_serializing_if = "crate::kind::is_zero")]
    pub replicas: i32,
}

/// What became of the decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceBindingStatusV1Alpha1 {
    /// `Scheduled` and `FullyApplied`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The status in each cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregated_status: Vec<AggregatedStatusItemV1Alpha1>,
}

/// The status of the template in one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AggregatedStatusItemV1Alpha1 {
    /// The cluster.
    pub cluster_name: String,
    /// The reported status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::structural::raw_object")]
    pub status: Option<Value>,
    /// Whether the cluster has accepted it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub applied: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub applied_message: String,
}
