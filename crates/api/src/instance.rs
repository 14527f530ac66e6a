//! Instance: an isolated control plane of this hub, or a known one elsewhere.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Quantity;
use crate::kind::kind;
kind! {
    /// An isolated control plane.
    Instance { spec: InstanceSpec, status: InstanceStatus, }
    group "atoll.io", version "v1alpha1", plural "instances", Cluster;
    short ["inst"]; categories ["atoll"];
    columns [
        "Type": "string" = ".spec.type",
        "Phase": "string" = ".status.phase",
        "Clusters": "integer" = ".status.statistics.clusters",
        "Ready-Clusters": "integer" = ".status.statistics.readyClusters",
        "Version": "string" = ".status.version",
        "Age": "date" = ".metadata.creationTimestamp",
        "Alias": "string" = ".spec.alias" priority 1,
    ];
}

/// What the instance is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceSpec {
    /// Where it is.
    #[serde(default)]
    pub r#type: InstanceType,
    /// A name for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("maxLength" = 63))]
    pub alias: String,
    /// The Secret with the kubeconfig of an external one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_secret_ref: Option<InstanceSecretReference>,
    /// What it may use of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<InstanceLimits>,
    /// Whether it cannot be deleted.
    #[serde(default)]
    pub deletion_protection: bool,
    /// Whether its controllers rest.
    #[serde(default)]
    pub paused: bool,
}

/// Where an instance is.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize, JsonSchema)]
pub enum InstanceType {
    /// In this hub.
    #[default]
    Hosted,
    /// A control plane elsewhere, reached by kubeconfig.
    External,
}

/// A key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceSecretReference {
    /// Its namespace.
    #[schemars(extend("minLength" = 1))]
    pub namespace: String,
    /// Its name.
    #[schemars(extend("minLength" = 1))]
    pub name: String,
    /// The key that holds the kubeconfig.
    #[serde(default = "kubeconfig")]
    pub key: String,
}

fn kubeconfig() -> String {
    "kubeconfig".to_owned()
}

/// What an instance may use of the hub. Left out: a million objects, 8 GiB, 20,000 watches, requests at any pace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceLimits {
    /// How many objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    pub objects: Option<i64>,
    /// How many bytes of objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    pub bytes: Option<i64>,
    /// How many watches at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    pub watches: Option<i64>,
    /// How many requests each second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    pub requests_per_second: Option<i64>,
}

/// The state of the instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceStatus {
    /// The state in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<InstancePhase>,
    /// The state by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// What is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<InstanceStatistics>,
    /// The version it speaks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The generation that was handled.
    #[serde(default, skip_serializing_if = "crate::kind::is_zero")]
    pub observed_generation: i64,
}

/// The state of an instance in one word.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize, JsonSchema)]
pub enum InstancePhase {
    /// It is being set up.
    #[default]
    Pending,
    /// It answers.
    Ready,
    /// Its controllers rest.
    Paused,
    /// It does not answer.
    Failed,
    /// It is being removed.
    Terminating,
}

/// What is in an instance, over all members.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceStatistics {
    /// Members.
    #[serde(default, skip_serializing_if = "crate::kind::is_zero")]
    pub clusters: i64,
    /// Members that are ready.
    #[serde(default, skip_serializing_if = "crate::kind::is_zero")]
    pub ready_clusters: i64,
    /// Nodes.
    #[serde(default, skip_serializing_if = "crate::kind::is_zero")]
    pub nodes: i64,
    /// Nodes that are ready.
    #[serde(default, skip_serializing_if = "crate::kind::is_zero")]
    pub ready_nodes: i64,
    /// Pods.
    #[serde(default, skip_serializing_if = "crate::kind::is_zero")]
    pub pods: i64,
    /// Pods that run.
    #[serde(default, skip_serializing_if = "crate::kind::is_zero")]
    pub running_pods: i64,
    /// CPU there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_capacity: Option<Quantity>,
    /// CPU asked for by pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_allocated: Option<Quantity>,
    /// Memory there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_capacity: Option<Quantity>,
    /// Memory asked for by pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_allocated: Option<Quantity>,
}
