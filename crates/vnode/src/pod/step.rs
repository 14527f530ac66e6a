//! What to do about a pod, from what both clusters know of it.

use atoll_api::kubeocean_names::{MANAGED_BY, annotation, label};
use serde_json::Value;

use crate::binding::{Binding, OWNER};
use crate::node::SYSTEM_NAMESPACES;
use crate::syncer::is_ours;
use crate::tree;

/// The next step.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// Nothing is ours here.
    Ignore,
    /// Make the physical pod.
    Create,
    /// Both exist and belong together: bring them in line.
    Keep,
    /// The physical pod went behind our back.
    Lost,
    /// Somebody else's pod has the name ours would have.
    Conflict,
    /// Delete the physical pod, with so many seconds to end if it matters.
    Delete(Option<i64>),
    /// The physical pod is on its way out; its end will be told.
    Wait,
    /// The pod may go for good.
    Finish,
}

/// What else matters.
pub(crate) struct Context<'a> {
    pub(crate) owner: &'a str,
    pub(crate) binding: &'a Binding,
    /// Whether the pod is bound to a virtual node of this binding.
    pub(crate) on_our_node: bool,
}

/// What a physical pod is to a pod.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kinship {
    /// It runs for this very pod.
    Own,
    /// It ran for an earlier pod of the same name.
    Stale,
    /// It is somebody else's.
    Foreign,
}

fn kinship(pod: &Value, physical: &Value, owner: &str) -> Kinship {
    let of = |key: &str| tree::annotation(physical, key);
    let named = of(annotation::VIRTUAL_POD_NAMESPACE) == tree::namespace(pod)
        && of(annotation::VIRTUAL_POD_NAME) == tree::name(pod);
    match () {
        () if !is_ours(physical, owner) || !named => Kinship::Foreign,
        () if of(annotation::VIRTUAL_POD_UID) == tree::uid(pod) => Kinship::Own,
        () => Kinship::Stale,
    }
}

/// Whether a physical pod certainly is of this computing cluster.
fn is_marked(physical: &Value, owner: &str) -> bool {
    tree::label(physical, label::MANAGED_BY) == MANAGED_BY && tree::label(physical, OWNER) == owner
}

/// Decides what to do about a pod and the physical pod of its name.
pub(crate) fn step(pod: Option<&Value>, physical: Option<&Value>, context: &Context<'_>) -> Step {
    let Some(pod) = pod else {
        return match physical {
            Some(physical) if is_marked(physical, context.owner) && !tree::is_deleting(physical) => Step::Delete(None),
            _ => Step::Ignore,
        };
    };
    let kin = physical.map(|physical| (physical, kinship(pod, physical, context.owner)));
    if !context.on_our_node {
        return match kin {
            Some((physical, Kinship::Stale)) if is_marked(physical, context.owner) => removal(physical, None),
            _ => Step::Ignore,
        };
    }
    if tree::is_deleting(pod) {
        return match kin {
            Some((physical, Kinship::Own)) => removal(physical, pod["metadata"]["deletionGracePeriodSeconds"].as_i64()),
            Some((physical, Kinship::Stale)) => removal(physical, None),
            None | Some((_, Kinship::Foreign)) => Step::Finish,
        };
    }
    match kin {
        Some((_, Kinship::Own)) => Step::Keep,
        _ if !is_eligible(pod, context.binding) => Step::Ignore,
        _ if atoll_lease::is_over(pod) => Step::Ignore,
        Some((physical, Kinship::Stale)) => removal(physical, None),
        Some((_, Kinship::Foreign)) => Step::Conflict,
        None if !tree::annotation(pod, annotation::PHYSICAL_POD_UID).is_empty() => Step::Lost,
        None => Step::Create,
    }
}

/// Deletes a physical pod that does not go yet, or not soon enough.
fn removal(physical: &Value, grace: Option<i64>) -> Step {
    let left = physical["metadata"]["deletionGracePeriodSeconds"].as_i64();
    match (tree::is_deleting(physical), grace, left) {
        (false, ..) => Step::Delete(grace),
        (true, Some(grace), Some(left)) if grace < left => Step::Delete(Some(grace)),
        _ => Step::Wait,
    }
}

/// Whether a pod on a virtual node is one to run in the worker cluster.
fn is_eligible(pod: &Value, binding: &Binding) -> bool {
    let daemon = tree::list(&pod["metadata"]["ownerReferences"]).iter().any(|owner| owner["kind"] == "DaemonSet");
    let wanted = binding.daemon_sets || tree::annotation(pod, annotation::RUNNING_DAEMONSET) == "true";
    !SYSTEM_NAMESPACES.contains(&tree::namespace(pod))
        && tree::label(pod, label::HOST_PORT_FAKE_POD).is_empty()
        && (!daemon || wanted)
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
