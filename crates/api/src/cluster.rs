//! Cluster: a member as the instance sees it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Quantity;
use crate::kind::kind;
kind! {
    /// A member of the instance.
    Cluster { spec: ClusterSpec, status: ClusterStatus, }
    group "cluster.karmada.io", version "v1alpha1", plural "clusters", Cluster;
    short []; categories [];
    columns [
        "Version": "string" = ".status.kubernetesVersion",
        "Mode": "string" = ".spec.syncMode",
        "Ready": "string" = ".status.conditions[?(@.type==\"Ready\")].status" missing "Unknown",
        "Age": "date" = ".metadata.creationTimestamp",
        "Zones": "string" = ".spec.zones[*]" priority 1 missing "<none>",
        "Region": "string" = ".spec.region" priority 1 missing "<none>",
        "Provider": "string" = ".spec.provider" priority 1 missing "<none>",
        "API-Endpoint": "string" = ".spec.apiEndpoint" priority 1,
        "Proxy-URL": "string" = ".spec.proxyURL" priority 1 missing "<none>",
    ];
}

/// How the member is reached and what it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Uid of the member's namespace kube-system.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("maxLength" = 128000))]
    pub id: String,
    /// Who carries objects to the member.
    pub sync_mode: ClusterSyncMode,
    /// The address of its API server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_endpoint: String,
    /// The Secret with token and CA for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalSecretReference>,
    /// The Secret with the token for impersonation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impersonator_secret_ref: Option<LocalSecretReference>,
    /// Whether its certificate is not checked.
    #[serde(rename = "insecureSkipTLSVerification", default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure_skip_tls_verification: bool,
    /// A proxy on the way to it.
    #[serde(rename = "proxyURL", default, skip_serializing_if = "String::is_empty")]
    pub proxy_url: String,
    /// Headers for that proxy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub proxy_header: BTreeMap<String, String>,
    /// Its provider.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// Its region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// Old form of `zones`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// Its zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
    /// What keeps workloads away from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Grades of nodes by size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_models: Vec<ResourceModel>,
}

/// Who carries objects to a member.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ClusterSyncMode {
    /// The hub.
    #[default]
    Push,
    /// An agent in the member.
    Pull,
}

/// Names a Secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalSecretReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A grade of nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceModel {
    /// Its number, from 0 for the smallest.
    #[schemars(schema_with = "crate::structural::plain_integer", extend("minimum" = 0))]
    pub grade: i64,
    /// Its limits, by resource.
    pub ranges: Vec<ResourceModelRange>,
}

/// The limits of a grade for one resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceModelRange {
    /// The resource.
    pub name: String,
    /// The least, included.
    pub min: Quantity,
    /// The most, excluded.
    pub max: Quantity,
}

/// What is known of the member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// Its version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubernetes_version: String,
    /// The APIs it serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_enablements: Vec<ApiEnablement>,
    /// `Ready`, `CompleteAPIEnablements` and others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// How many nodes it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_summary: Option<NodeSummary>,
    /// What resources it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_summary: Option<ResourceSummary>,
    /// What is being done because of its conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedy_actions: Vec<String>,
}

/// A group and version the member serves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiEnablement {
    /// The group and version.
    pub group_version: String,
    /// The kinds in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ApiResource>,
}

/// A kind the member serves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiResource {
    /// The plural of the kind.
    pub name: String,
    /// The kind.
    pub kind: String,
}

/// How many nodes a member has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSummary {
    /// All.
    #[serde(default, skip_serializing_if = "crate::kind::is_zero")]
    pub total_num: i32,
    /// Those that are ready.
    #[serde(default, skip_serializing_if = "crate::kind::is_zero")]
    pub ready_num: i32,
}

/// What resources a member has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSummary {
    /// What its nodes can give.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, Quantity>,
    /// What pods ask for that have no node yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocating: BTreeMap<String, Quantity>,
    /// What pods on nodes have asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocated: BTreeMap<String, Quantity>,
    /// Nodes by grade.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocatable_modelings: Vec<AllocatableModeling>,
}

/// How many nodes of a grade there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllocatableModeling {
    /// The grade.
    #[schemars(schema_with = "crate::structural::plain_integer", extend("minimum" = 0))]
    pub grade: i64,
    /// How many.
    #[schemars(schema_with = "crate::structural::plain_integer")]
    pub count: i64,
}
