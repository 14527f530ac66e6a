//! Clusterpedia's kinds: what is collected from which clusters into the index.

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
kind! {
    /// A cluster whose objects are collected.
    PediaCluster { optional spec: PediaClusterSpec, status: PediaClusterStatus, }
    group "cluster.clusterpedia.io", version "v1alpha2", plural "pediaclusters", Cluster;
    short []; categories [];
    columns [
        "Ready": "string" = ".status.conditions[?(@.type == 'Ready')].status",
        "Version": "string" = ".status.version",
        "APIServer": "string" = ".status.apiserver",
        "Validated": "string" = ".status.conditions[?(@.type == 'Validated')].reason" priority 10,
        "SynchroRunning": "string" = ".status.conditions[?(@.type == 'SynchroRunning')].reason" priority 10,
        "ClusterHealthy": "string" = ".status.conditions[?(@.type == 'ClusterHealthy')].reason" priority 10,
        "ShardingName": "string" = ".status.shardingName" priority 10,
    ];
}

kind! {
    /// A list of kinds to collect that clusters can refer to.
    ClusterSyncResources { optional spec: ClusterSyncResourcesSpec, }
    group "cluster.clusterpedia.io", version "v1alpha2", plural "clustersyncresources", Cluster;
    short []; categories [];
    columns [];
}

kind! {
    /// How objects of some kind become PediaClusters.
    ClusterImportPolicy { optional spec: ClusterImportPolicySpec, status: ClusterImportPolicyStatus, }
    group "policy.clusterpedia.io", version "v1alpha1", plural "clusterimportpolicies", Cluster;
    short []; categories [];
    columns [
        "Validated": "string" = ".status.conditions[?(@.type == 'Validated')].reason",
        "Reconciling": "string" = ".status.conditions[?(@.type == 'Reconciling')].reason",
    ];
}

kind! {
    /// The life of one PediaCluster that a policy made.
    PediaClusterLifecycle { optional spec: PediaClusterLifecycleSpec, status: PediaClusterLifecycleStatus, }
    group "policy.clusterpedia.io", version "v1alpha1", plural "pediaclusterlifecycles", Cluster;
    short []; categories [];
    columns [
        "Created": "string" = ".status.conditions[?(@.type == 'Created')].reason",
        "Updating": "string" = ".status.conditions[?(@.type == 'Updating')].reason",
    ];
}

/// How the cluster is reached and what is collected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PediaClusterSpec {
    /// The address of its API server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub apiserver: String,
    /// A kubeconfig for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::structural::byte_string")]
    pub kubeconfig: Option<ByteString>,
    /// The CA of its certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::structural::byte_string")]
    pub ca_data: Option<ByteString>,
    /// A bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::structural::byte_string")]
    pub token_data: Option<ByteString>,
    /// A client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::structural::byte_string")]
    pub cert_data: Option<ByteString>,
    /// The key of that certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::structural::byte_string")]
    pub key_data: Option<ByteString>,
    /// Secrets that hold the above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication_from: Option<ClusterAuthentication>,
    /// What is collected.
    pub sync_resources: Vec<ClusterGroupResources>,
    /// Whether all custom resources are collected as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sync_all_custom_resources: bool,
    /// A shared list of what is collected.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sync_resources_ref_name: String,
    /// The part of the collector that is responsible.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sharding_name: String,
}

/// Secrets with credentials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAuthentication {
    /// A kubeconfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<SecretKey>,
    /// The CA of the server's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<SecretKey>,
    /// A bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<SecretKey>,
    /// A client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<SecretKey>,
    /// The key of that certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SecretKey>,
}

/// A key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKey {
    /// The Secret.
    pub name: String,
    /// The key.
    pub key: String,
}

/// Kinds of one group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterGroupResources {
    /// The group.
    pub group: String,
    /// The versions; the preferred ones when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
    /// The plurals of the kinds; `*` is all.
    #[schemars(extend("minItems" = 1))]
    pub resources: Vec<String>,
    /// Kinds whose events are collected as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events_involved_resources: Vec<String>,
}

/// The state of the collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PediaClusterStatus {
    /// The address in use.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub apiserver: String,
    /// The version of the cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// `Ready` and others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// By group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sync_resources: Vec<ClusterGroupResourcesStatus>,
    /// The part of the collector at work.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sharding_name: String,
}

/// The state of the kinds of one group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterGroupResourcesStatus {
    /// The group.
    pub group: String,
    /// By kind.
    pub resources: Vec<ClusterResourceStatus>,
}

/// The state of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterResourceStatus {
    /// The plural of the kind.
    pub name: String,
    /// The kind.
    pub kind: String,
    /// Whether its objects have a namespace.
    pub namespaced: bool,
    /// By version.
    pub sync_conditions: Vec<ClusterResourceSyncCondition>,
}

/// The state of one version of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterResourceSyncCondition {
    /// The version.
    pub version: String,
    /// The version that is read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sync_version: String,
    /// The resource that is read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sync_resource: String,
    /// The version that is stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub storage_version: String,
    /// The resource that is stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub storage_resource: String,
    /// Whether the first list is being read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub initial_list_phase: bool,
    /// The state.
    pub status: String,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    pub last_transition_time: Time,
}

/// What is collected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSyncResourcesSpec {
    /// By group.
    pub sync_resources: Vec<ClusterGroupResources>,
}

/// From what, and how, PediaClusters are made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterImportPolicySpec {
    /// The objects they are made from.
    pub source: ImportSource,
    /// Other objects the template needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["key"]))]
    pub references: Vec<ImportReference>,
    /// The name of the PediaCluster.
    pub name_template: String,
    /// Its spec.
    pub template: String,
    /// When it is made.
    pub creation_condition: String,
}

/// A kind that PediaClusters are made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportSource {
    /// Its group.
    pub group: String,
    /// Its versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
    /// Its plural.
    pub resource: String,
    /// Which of its objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub selector_template: String,
}

/// An object a template needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportReference {
    /// Its name in the template.
    pub key: String,
    /// Its group.
    pub group: String,
    /// Its versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
    /// Its plural.
    pub resource: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace_template: String,
    /// Its name.
    pub name_template: String,
}

/// The state of the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterImportPolicyStatus {
    /// `Validated` and `Reconciling`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// From what one PediaCluster is made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PediaClusterLifecycleSpec {
    /// The object it is made from.
    pub source: LifecycleSource,
    /// Other objects the template needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["key"]))]
    pub references: Vec<LifecycleReference>,
    /// Its spec.
    pub template: String,
    /// When it is made.
    pub creation_condition: String,
}

/// One object by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleSource {
    /// Its group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its plural.
    pub resource: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// An object a template needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleReference {
    /// Its name in the template.
    pub key: String,
    /// Its group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its plural.
    pub resource: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace_template: String,
    /// Its name.
    pub name_template: String,
}

/// The state of one PediaCluster that a policy made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PediaClusterLifecycleStatus {
    /// The objects it was made from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<LifecycleSource>,
    /// `Created` and `Updating`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
