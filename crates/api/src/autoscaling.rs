//! FederatedHPA and CronFederatedHPA: scaling over all clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use k8s_openapi::api::autoscaling::v2::{
    CrossVersionObjectReference, HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerStatus, MetricSpec,
};
kind! {
    /// Scales a workload by metrics of all clusters.
    FederatedHPA { spec: FederatedHPASpec, status: HorizontalPodAutoscalerStatus, }
    group "autoscaling.karmada.io", version "v1alpha1", plural "federatedhpas", Namespaced;
    short ["fhpa"]; categories ["karmada-io"];
    columns [
        "REFERENCE-KIND": "string" = ".spec.scaleTargetRef.kind",
        "REFERENCE-NAME": "string" = ".spec.scaleTargetRef.name",
        "MINPODS": "integer" = ".spec.minReplicas",
        "MAXPODS": "integer" = ".spec.maxReplicas",
        "REPLICAS": "integer" = ".status.currentReplicas",
        "AGE": "date" = ".metadata.creationTimestamp",
    ];
}

kind! {
    /// Scales a workload by the clock.
    CronFederatedHPA { spec: CronFederatedHPASpec, status: CronFederatedHPAStatus, }
    group "autoscaling.karmada.io", version "v1alpha1", plural "cronfederatedhpas", Namespaced;
    short ["cronfhpa"]; categories ["karmada-io"];
    columns [
        "REFERENCE-KIND": "string" = ".spec.scaleTargetRef.kind",
        "REFERENCE-NAME": "string" = ".spec.scaleTargetRef.name",
        "AGE": "date" = ".metadata.creationTimestamp",
    ];
}

/// What is scaled, and by what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FederatedHPASpec {
    /// What is scaled.
    pub scale_target_ref: CrossVersionObjectReference,
    /// The fewest replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// The most replicas.
    pub max_replicas: i32,
    /// The metrics to go by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricSpec>,
    /// How fast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
}

/// What is scaled, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CronFederatedHPASpec {
    /// What is scaled.
    pub scale_target_ref: CrossVersionObjectReference,
    /// When, and to what.
    pub rules: Vec<CronFederatedHPARule>,
}

/// One time table entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CronFederatedHPARule {
    /// Its name.
    #[schemars(extend("minLength" = 1), extend("maxLength" = 32))]
    pub name: String,
    /// When, as cron.
    pub schedule: String,
    /// To how many replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_replicas: Option<i32>,
    /// To which least number of replicas of a FederatedHPA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_min_replicas: Option<i32>,
    /// To which greatest number of replicas of a FederatedHPA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_max_replicas: Option<i32>,
    /// Whether it is switched off.
    #[serde(default)]
    pub suspend: bool,
    /// The time zone of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// How many successes are remembered.
    #[serde(default = "three")]
    #[schemars(extend("minimum" = 1), extend("maximum" = 32))]
    pub successful_history_limit: i32,
    /// How many failures are remembered.
    #[serde(default = "three")]
    #[schemars(extend("minimum" = 0), extend("maximum" = 32))]
    pub failed_history_limit: i32,
}

fn three() -> i32 {
    3
}

/// What has been done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CronFederatedHPAStatus {
    /// By rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub execution_histories: Vec<ExecutionHistory>,
}

/// What a rule has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionHistory {
    /// The rule.
    pub rule_name: String,
    /// When it is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_execution_time: Option<Time>,
    /// Its last successes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub successful_executions: Vec<SuccessfulExecution>,
    /// Its last failures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_executions: Vec<FailedExecution>,
}

/// One success of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuccessfulExecution {
    /// When it was due.
    pub schedule_time: Time,
    /// When it was done.
    pub execution_time: Time,
    /// The number of replicas set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_replicas: Option<i32>,
    /// The least number of replicas set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_min_replicas: Option<i32>,
    /// The greatest number of replicas set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_max_replicas: Option<i32>,
}

/// One failure of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedExecution {
    /// When it was due.
    pub schedule_time: Time,
    /// When it was tried.
    pub execution_time: Time,
    /// What went wrong.
    pub message: String,
}
