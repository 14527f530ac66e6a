//! PropagationPolicy and ClusterPropagationPolicy: which objects go where.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::placement::Placement;
use crate::kind::kind;
kind! {
    /// Spreads objects of its namespace over clusters.
    PropagationPolicy { spec: PropagationSpec, }
    group "policy.karmada.io", version "v1alpha1", plural "propagationpolicies", Namespaced;
    short ["pp"]; categories ["karmada-io"];
    columns [
        "CONFLICT-RESOLUTION": "string" = ".spec.conflictResolution",
        "PRIORITY": "string" = ".spec.priority",
        "AGE": "date" = ".metadata.creationTimestamp",
    ];
}

kind! {
    /// Spreads objects of any namespace, and cluster-scoped ones, over clusters.
    ClusterPropagationPolicy { spec: PropagationSpec, }
    group "policy.karmada.io", version "v1alpha1", plural "clusterpropagationpolicies", Cluster;
    short ["cpp"]; categories ["karmada-io"];
    columns [
        "CONFLICT-RESOLUTION": "string" = ".spec.conflictResolution",
        "PRIORITY": "string" = ".spec.priority",
        "AGE": "date" = ".metadata.creationTimestamp",
    ];
}

/// What a propagation policy asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PropagationSpec {
    /// The objects it is for.
    #[schemars(extend("minItems" = 1))]
    pub resource_selectors: Vec<ResourceSelector>,
    /// Old name of `propagateDeps`; has no effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub association: bool,
    /// Whether objects the template refers to go along.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub propagate_deps: bool,
    /// Where the objects go.
    #[serde(default)]
    pub placement: Placement,
    /// Which policy wins when several select an object: the highest.
    #[serde(default)]
    pub priority: i32,
    /// Whether it takes over objects of a policy with lower priority.
    #[serde(default)]
    pub preemption: PreemptionBehavior,
    /// Override policies that must exist before anything is sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependent_overrides: Vec<String>,
    /// The scheduler that is to decide.
    #[serde(default = "default_scheduler")]
    pub scheduler_name: String,
    /// What happens when an application or a cluster fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<FailoverBehavior>,
    /// What happens when the object is already in the member.
    #[serde(default)]
    pub conflict_resolution: ConflictResolution,
    /// When changes of the policy take effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation_preference: Option<ActivationPreference>,
    /// What is held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
    /// Whether objects stay in the members when the template is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserve_resources_on_deletion: Option<bool>,
    /// The place of the workload in the queue of the scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_priority: Option<SchedulePriority>,
}

fn default_scheduler() -> String {
    crate::words::DEFAULT_SCHEDULER.to_owned()
}

/// Selects templates; a name wins over a label selector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSelector {
    /// Group and version of the objects.
    pub api_version: String,
    /// Kind of the objects.
    pub kind: String,
    /// Their namespace; any when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Their name; any when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// Whether a policy takes over objects of another.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PreemptionBehavior {
    /// It does when its priority is higher.
    Always,
    /// It never does.
    #[default]
    Never,
}

/// What happens when the object is already in the member.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConflictResolution {
    /// Leave it alone and report.
    #[default]
    Abort,
    /// Take it over.
    Overwrite,
}

/// When changes of a policy take effect.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ActivationPreference {
    /// With the next change of the template.
    #[default]
    Lazy,
}

/// What happens on failure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailoverBehavior {
    /// When the application is unhealthy in a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationFailoverBehavior>,
    /// When a cluster is to be left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterFailoverBehavior>,
}

/// What happens when the application is unhealthy in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationFailoverBehavior {
    /// When it counts as failed.
    pub decision_conditions: DecisionConditions,
    /// How the old copy is removed.
    #[serde(default = "gracefully")]
    pub purge_mode: PurgeMode,
    /// How long the old copy may stay at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i32>,
    /// What the new copy is told of the old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_preservation: Option<StatePreservation>,
}

fn gracefully() -> PurgeMode {
    PurgeMode::Gracefully
}

/// When an application counts as failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionConditions {
    /// How long it may be unhealthy.
    #[serde(default = "three_hundred")]
    pub toleration_seconds: i32,
}

fn three_hundred() -> i32 {
    300
}

/// How the old copy of a moved workload is removed.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("enum" = ["Directly", "Gracefully", "Never", "Immediately", "Graciously"]))]
pub enum PurgeMode {
    /// At once, before the new one is made.
    #[serde(alias = "Immediately")]
    Directly,
    /// When the new one is healthy, or after a time.
    #[default]
    #[serde(alias = "Graciously")]
    Gracefully,
    /// Not by us.
    Never,
}

/// What happens when a cluster is to be left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterFailoverBehavior {
    /// How the old copy is removed.
    #[serde(default)]
    pub purge_mode: ClusterPurgeMode,
    /// What the new copy is told of the old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_preservation: Option<StatePreservation>,
}

/// How the old copy is removed when a cluster is left.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ClusterPurgeMode {
    /// At once, before the new one is made.
    Directly,
    /// When the new one is healthy, or after a time.
    #[default]
    Gracefully,
}

/// What the new copy of a workload is told of the old one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatePreservation {
    /// Each gives one label.
    pub rules: Vec<StatePreservationRule>,
}

/// One label of the new copy, from the status of the old one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatePreservationRule {
    /// The label.
    pub alias_label_name: String,
    /// Where its value is in the status.
    pub json_path: String,
}

/// What is held back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Suspension {
    /// Nothing is sent to any cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatching: Option<bool>,
    /// Nothing is sent to these clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatching_on_clusters: Option<SuspendClusters>,
}

/// Clusters by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuspendClusters {
    /// Their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_names: Vec<String>,
}

/// The place of the workload in the queue of the scheduler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulePriority {
    /// What kind of priority class is named.
    pub priority_class_source: PriorityClassSource,
    /// The name of the class.
    pub priority_class_name: String,
}

/// What kind of priority class is named.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PriorityClassSource {
    /// A PriorityClass of scheduling.k8s.io.
    #[default]
    KubePriorityClass,
}
