//! What the built-in kinds mean.

mod aggregate;
mod dependencies;
mod field;
mod health;
mod job;
mod pod;
mod reflect;
mod replicas;
mod retain;

use serde_json::Value;

use crate::Operation;

pub use aggregate::aggregate;
pub use dependencies::dependencies;
pub use health::health;
pub use pod::{pod_dependencies, requirements, try_requirements};
pub use reflect::reflect;
pub use replicas::{replicas, revise};
pub use retain::retain;

/// A kind that is understood without being told about it.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Kind {
    /// apps
    Deployment,
    /// apps
    StatefulSet,
    /// apps
    ReplicaSet,
    /// apps
    DaemonSet,
    /// batch
    Job,
    /// batch
    CronJob,
    /// core
    Pod,
    /// core
    Service,
    /// core
    ServiceAccount,
    /// core
    Secret,
    /// core
    PersistentVolume,
    /// core
    PersistentVolumeClaim,
    /// networking.k8s.io
    Ingress,
    /// policy
    PodDisruptionBudget,
    /// autoscaling
    HorizontalPodAutoscaler,
    /// multicluster.x-k8s.io
    ServiceImport,
}

impl Kind {
    /// The kind of that name in a group and version.
    pub fn find(api_version: &str, kind: &str) -> Option<Kind> {
        Some(match (atoll_meta::split_api_version(api_version).0, kind) {
            ("apps", "Deployment") => Kind::Deployment,
            ("apps", "StatefulSet") => Kind::StatefulSet,
            ("apps", "ReplicaSet") => Kind::ReplicaSet,
            ("apps", "DaemonSet") => Kind::DaemonSet,
            ("batch", "Job") => Kind::Job,
            ("batch", "CronJob") => Kind::CronJob,
            ("", "Pod") => Kind::Pod,
            ("", "Service") => Kind::Service,
            ("", "ServiceAccount") => Kind::ServiceAccount,
            ("", "Secret") => Kind::Secret,
            ("", "PersistentVolume") => Kind::PersistentVolume,
            ("", "PersistentVolumeClaim") => Kind::PersistentVolumeClaim,
            ("networking.k8s.io", "Ingress") => Kind::Ingress,
            ("policy", "PodDisruptionBudget") => Kind::PodDisruptionBudget,
            ("autoscaling", "HorizontalPodAutoscaler") => Kind::HorizontalPodAutoscaler,
            ("multicluster.x-k8s.io", "ServiceImport") => Kind::ServiceImport,
            _ => return None,
        })
    }

    /// The kind of an object.
    pub fn of(object: &Value) -> Option<Kind> {
        Kind::find(object["apiVersion"].as_str()?, object["kind"].as_str()?)
    }

    /// Whether an operation does something special for the kind.
    pub fn handles(self, operation: Operation) -> bool {
        use Kind::*;
        match operation {
            Operation::Replicas => matches!(self, Deployment | StatefulSet | ReplicaSet | Job | Pod),
            Operation::Components => false,
            Operation::Revise => matches!(self, Deployment | StatefulSet | ReplicaSet | Job),
            Operation::Retain => matches!(
                self,
                Deployment | Pod | Service | ServiceAccount | Secret | PersistentVolumeClaim | PersistentVolume | Job
            ),
            Operation::Reflect => matches!(
                self,
                Deployment
                    | StatefulSet
                    | ReplicaSet
                    | DaemonSet
                    | Service
                    | Ingress
                    | Job
                    | PodDisruptionBudget
                    | HorizontalPodAutoscaler
            ),
            Operation::Aggregate => !matches!(self, ServiceAccount | Secret | ServiceImport),
            Operation::Health => matches!(
                self,
                Deployment
                    | StatefulSet
                    | ReplicaSet
                    | DaemonSet
                    | Service
                    | Ingress
                    | PersistentVolumeClaim
                    | Pod
                    | PodDisruptionBudget
            ),
            Operation::Dependencies => self.pod_template_path().is_some() || matches!(self, Ingress | ServiceImport),
        }
    }

    /// Where the template of the pods is that a workload makes.
    fn pod_template_path(self) -> Option<&'static str> {
        match self {
            Kind::Pod => Some(""),
            Kind::CronJob => Some("/spec/jobTemplate/spec/template"),
            Kind::Deployment | Kind::StatefulSet | Kind::ReplicaSet | Kind::DaemonSet | Kind::Job => {
                Some("/spec/template")
            }
            _ => None,
        }
    }
}
