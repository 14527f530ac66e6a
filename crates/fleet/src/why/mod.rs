//! Why something runs where it does, or does not: from the template to the pods.

mod gather;
mod judge;
mod show;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::decision::Record;

pub use gather::{trace, trace_with};
pub use judge::obstacle;

/// The whole way of a template.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// `Kind namespace/name`.
    pub subject: String,
    /// The template, if it exists.
    pub template: Option<TemplateTrace>,
    /// The policy that holds it.
    pub policy: Option<PolicyTrace>,
    /// Its binding.
    pub binding: Option<BindingTrace>,
    /// Every cluster of the instance.
    pub clusters: Vec<ClusterTrace>,
    /// What stands in the way first, in one sentence.
    pub obstacle: Option<String>,
}

/// The template.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateTrace {
    /// Replicas it asks for.
    pub replicas: Option<i64>,
    /// Replicas that are ready, as it tells.
    pub ready: Option<i64>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// How many policies of its namespace and of the instance select its kind but not it.
    pub near_policies: usize,
    /// Why it is never propagated, whatever policies say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Why the interpreter cannot read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// The policy.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyTrace {
    /// `Kind namespace/name`.
    pub name: String,
    /// Whether it exists; a template may still name one that is gone.
    pub exists: bool,
    /// Whether it waits for a change of the template.
    pub lazy: bool,
    /// Override policies it waits for.
    pub missing_overrides: Vec<String>,
    /// The PriorityClass it names, if there is none of that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_priority_class: Option<String>,
}

/// The binding.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingTrace {
    /// Its name.
    pub name: String,
    /// Replicas to place.
    pub replicas: i32,
    /// The scheduler it is for.
    pub scheduler: String,
    /// Whether decisions are held back.
    pub suspended: bool,
    /// Where it goes, with how many replicas.
    pub clusters: BTreeMap<String, i32>,
    /// Clusters it is leaving, with the reason.
    pub leaving: BTreeMap<String, String>,
    /// The record of the decision.
    pub decision: Option<Record>,
}

/// One cluster.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTrace {
    /// Its name.
    pub name: String,
    /// Whether it is ready, and why not.
    pub ready: bool,
    /// The reason of its condition.
    pub trouble: String,
    /// Whether the template goes there.
    pub target: bool,
    /// Why it was chosen or refused.
    pub decision: Option<String>,
    /// Why no copy for it can be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmade: Option<String>,
    /// The work for it.
    pub work: Option<WorkTrace>,
    /// The object there.
    pub object: Option<ObjectTrace>,
}

/// The work for a cluster.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkTrace {
    /// Its name.
    pub name: String,
    /// `True`, `False`, or empty when nothing was tried yet.
    pub applied: String,
    /// What the member said.
    pub message: String,
    /// Whether it is held back.
    pub suspended: bool,
    /// What it has not caught up with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
}

/// The object in a member.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectTrace {
    /// Whether it is there; unknown when the member does not answer.
    pub exists: Option<bool>,
    /// Whether it is somebody else's, so that nothing is said of its state.
    pub foreign: bool,
    /// Why the member does not answer.
    pub error: String,
    /// `Healthy`, `Unhealthy` or `Unknown`.
    pub health: String,
    /// Replicas it asks for.
    pub replicas: Option<i64>,
    /// Replicas that are ready.
    pub ready: Option<i64>,
    /// Pods that are not ready.
    pub pods: Vec<PodTrace>,
}

/// A pod that is not ready.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodTrace {
    /// Its name.
    pub name: String,
    /// Its phase.
    pub phase: String,
    /// What keeps it.
    pub reason: String,
}

#[cfg(test)]
mod tests;
