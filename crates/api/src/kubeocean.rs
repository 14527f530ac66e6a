//! ClusterBinding and ResourceLeasingPolicy: nodes of worker clusters lent to a computing cluster.

use k8s_openapi::api::core::v1::{NodeSelector, SecretReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Quantity;
use crate::kind::kind;
kind! {
    /// A worker cluster whose nodes may be leased.
    ClusterBinding { optional spec: ClusterBindingSpec, status: ClusterBindingStatus, }
    group "cloud.tencent.com", version "v1beta1", plural "clusterbindings", Cluster;
    short ["cb"]; categories [];
    columns [
        "Phase": "string" = ".status.phase",
        "Age": "date" = ".metadata.creationTimestamp",
    ];
}

kind! {
    /// How much of which nodes is lent, and when.
    ResourceLeasingPolicy { optional spec: ResourceLeasingPolicySpec, status: ResourceLeasingPolicyStatus, }
    group "cloud.tencent.com", version "v1beta1", plural "resourceleasingpolicies", Cluster;
    short ["rlp"]; categories [];
    columns [
        "Cluster": "string" = ".spec.cluster",
        "Phase": "string" = ".status.phase",
        "Active": "boolean" = ".status.activeTimeWindow",
        "Age": "date" = ".metadata.creationTimestamp",
    ];
}

/// How the worker cluster is reached and used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterBindingSpec {
    /// Its short name, part of the names of virtual nodes.
    #[serde(rename = "clusterID")]
    #[schemars(extend("maxLength" = 24), extend("pattern" = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub cluster_id: String,
    /// The Secret with its kubeconfig.
    pub secret_ref: SecretReference,
    /// The nodes that may be leased; all when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<NodeSelector>,
    /// The namespace its pods run in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mount_namespace: String,
    /// Namespaces whose Services are of interest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_namespaces: Vec<String>,
    /// Whether virtual nodes go without the default taint.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disable_node_default_taint: bool,
    /// The priority class of its pods.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_priority_class_name: String,
    /// Whether pods of DaemonSets run without opting in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub running_daemonset_by_default: bool,
    /// Whether pods name their node instead of passing the worker's scheduler.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct_scheduling: bool,
}

/// The state of the worker cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterBindingStatus {
    /// `Pending`, `Ready` or `Failed`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// `Ready`, `Connected`, `SyncerReady` and `ProxierReady`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// When it was last brought in line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sync_time: Option<Time>,
}

/// How much of which nodes is lent, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLeasingPolicySpec {
    /// The ClusterBinding.
    pub cluster: String,
    /// The nodes; all of the binding when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<NodeSelector>,
    /// When; always when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub time_windows: Vec<TimeWindow>,
    /// How much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_limits: Vec<ResourceLimit>,
    /// Whether pods are evicted outside the windows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force_reclaim: bool,
    /// How long they may stay then.
    #[serde(default, skip_serializing_if = "crate::kind::is_zero")]
    pub graceful_reclaim_period_seconds: i32,
    /// What leased pods may do beyond the ordinary: `Privileged`, `HostPath`, `HostNetwork`,
    /// `HostPID`, `HostIPC`, `Capabilities`, `Priority`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
}

/// A time of day on some days.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimeWindow {
    /// From, as HH:MM.
    pub start: String,
    /// To, as HH:MM.
    pub end: String,
    /// The days it begins on; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<String>,
    /// The time zone of its hours, such as `Asia/Shanghai`; when missing that of the syncer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub time_zone: String,
}

/// How much of a resource is lent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLimit {
    /// The resource.
    pub resource: String,
    /// At most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<Quantity>,
    /// At most this share of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<i32>,
}

/// The state of the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLeasingPolicyStatus {
    /// `Pending`, `Active`, `Inactive` or `Failed`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// `Valid` and `Active`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// When it was last applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_time: Option<Time>,
    /// Whether a window is open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub active_time_window: bool,
}
