//! Whether a node is lent, how much of it, and until when that holds.

use std::collections::BTreeMap;
use std::fmt;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::NodeSelector;
use serde_json::Value;

use crate::amount::{Amounts, limited, read_amounts, remaining};
use crate::choose::{Policy, choose};
use crate::request::PodFacts;
use crate::selector::matches;
use crate::validate::check_policy;
use crate::window::{Window, is_open, next_edge};

/// What matters about a node of the worker cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What its pods may use.
    pub allocatable: Amounts,
    /// Whether it is being deleted.
    pub deleting: bool,
}

impl NodeFacts {
    /// Reads a node.
    pub fn of(node: &Value) -> Self {
        let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
        let allocatable = read_amounts(&node["status"]["allocatable"]);
        Self {
            name: node["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            labels: labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect(),
            allocatable: if allocatable.is_empty() { read_amounts(&node["status"]["capacity"]) } else { allocatable },
            deleting: !node["metadata"]["deletionTimestamp"].is_null(),
        }
    }

    /// Whether the node is itself a virtual one, of whatever make.
    fn is_virtual(&self) -> bool {
        let kind = |label: &str| {
            self.labels.get(label).is_some_and(|kind| matches!(kind.as_str(), "external" | "vnode" | "eklet"))
        };
        kind("node.kubernetes.io/instance-type")
            || kind("beta.kubernetes.io/instance-type")
            || self.labels.get("type").is_some_and(|kind| kind == "virtual-kubelet")
    }
}

/// Why a node is not lent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Withheld {
    /// It is itself a virtual node.
    Virtual,
    /// It is being deleted.
    Deleting,
    /// The binding does not select it.
    NotSelected,
    /// No policy is for it.
    NoPolicy,
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Virtual => "it is itself a virtual node",
            Self::Deleting => "it is being deleted",
            Self::NotSelected => "the binding does not select it",
            Self::NoPolicy => "no policy of the binding selects it",
        })
    }
}

/// Whether pods may come and stay.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum State {
    /// They may.
    Open,
    /// No window is open: no new pods; `force` asks those there to go after `grace`.
    Closed {
        /// Whether pods are evicted.
        force: bool,
        /// How long they may stay then.
        grace: SignedDuration,
    },
    /// The policy is malformed: no new pods, but nobody is evicted because of a typing error.
    Invalid(String),
}

/// A node that is lent.
#[derive(Clone, Debug, PartialEq)]
pub struct Loan {
    /// The policy that counts.
    pub policy: String,
    /// How much is lent.
    pub amounts: Amounts,
    /// Whether pods may come and stay.
    pub state: State,
    /// When that changes next.
    pub next_edge: Option<Timestamp>,
}

/// What becomes of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// It is not lent.
    Withheld(Withheld),
    /// It is lent.
    Lent(Loan),
}

/// Decides on one node. `zone` is the time zone of windows that name none.
pub fn decide<'a>(
    binding: (&str, Option<&NodeSelector>),
    node: &NodeFacts,
    pods: impl IntoIterator<Item = &'a PodFacts>,
    policies: impl IntoIterator<Item = &'a Policy>,
    now: Timestamp,
    zone: &TimeZone,
) -> Decision {
    let (name, selector) = binding;
    if node.is_virtual() {
        return Decision::Withheld(Withheld::Virtual);
    }
    if node.deleting {
        return Decision::Withheld(Withheld::Deleting);
    }
    if !matches(selector, &node.name, &node.labels) {
        return Decision::Withheld(Withheld::NotSelected);
    }
    let Some(policy) = choose(policies, name, &node.name, &node.labels) else {
        return Decision::Withheld(Withheld::NoPolicy);
    };
    let amounts = limited(remaining(&node.allocatable, pods), &policy.spec.resource_limits);
    let (state, next_edge) = state(policy, now, zone);
    Decision::Lent(Loan { policy: policy.name.clone(), amounts, state, next_edge })
}

/// Whether a policy lends now, and when that changes.
pub(crate) fn state(policy: &Policy, now: Timestamp, zone: &TimeZone) -> (State, Option<Timestamp>) {
    if let Err(why) = check_policy(&policy.spec) {
        return (State::Invalid(why), None);
    }
    let windows: Vec<Window> =
        policy.spec.time_windows.iter().filter_map(|window| Window::read(window, zone).ok()).collect();
    let grace = SignedDuration::from_secs(i64::from(policy.spec.graceful_reclaim_period_seconds));
    let state =
        if is_open(&windows, now) { State::Open } else { State::Closed { force: policy.spec.force_reclaim, grace } };
    (state, next_edge(&windows, now))
}

/// When pods are evicted because the windows closed at `since`; `None` when they may stay.
pub fn evict_at(state: &State, since: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    match state {
        State::Closed { force: true, grace } => Some(since.unwrap_or(now).checked_add(*grace).unwrap_or(now)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use atoll_api::kubeocean::ResourceLeasingPolicySpec;
    use serde_json::json;

    fn policy(spec: Value) -> Policy {
        let spec: ResourceLeasingPolicySpec = serde_json::from_value(spec).unwrap();
        Policy { name: "p".into(), spec, ..Policy::default() }
    }

    fn node(labels: Value) -> NodeFacts {
        NodeFacts::of(&json!({"metadata": {"name": "n", "labels": labels}, "status": {"capacity": {"cpu": "4"}}}))
    }

    fn decided(node: &NodeFacts, policy: &Policy, now: &str) -> Decision {
        decide(("b", None), node, &[], [policy], now.parse().unwrap(), &TimeZone::UTC)
    }

    #[test]
    fn virtual_nodes_are_never_lent_again() {
        for labels in [
            json!({"type": "virtual-kubelet"}),
            json!({"node.kubernetes.io/instance-type": "vnode"}),
            json!({"node.kubernetes.io/instance-type": "eklet"}),
            json!({"beta.kubernetes.io/instance-type": "external"}),
        ] {
            let decision = decided(&node(labels), &policy(json!({"cluster": "b"})), "2026-01-05T12:00:00Z");
            assert_eq!(decision, Decision::Withheld(Withheld::Virtual));
        }
    }

    #[test]
    fn outside_its_windows_a_node_is_lent_but_closed() {
        let spec = json!({"cluster": "b", "timeWindows": [{"start": "20:00", "end": "21:00"}], "forceReclaim": true, "gracefulReclaimPeriodSeconds": 5});
        let Decision::Lent(loan) = decided(&node(json!({})), &policy(spec), "2026-01-05T12:00:00Z") else {
            panic!("not lent")
        };
        assert_eq!(loan.state, State::Closed { force: true, grace: SignedDuration::from_secs(5) });
        assert_eq!(loan.next_edge, Some("2026-01-05T20:00:00Z".parse().unwrap()));
        assert_eq!(loan.amounts["cpu"].to_string(), "4");
    }

    #[test]
    fn a_malformed_policy_takes_no_new_pods_and_evicts_nobody() {
        let spec = json!({"cluster": "b", "timeWindows": [{"start": "8", "end": "21:00"}], "forceReclaim": true});
        let Decision::Lent(loan) = decided(&node(json!({})), &policy(spec), "2026-01-05T12:00:00Z") else {
            panic!("not lent")
        };
        assert!(matches!(loan.state, State::Invalid(_)));
        assert_eq!(evict_at(&loan.state, None, Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn pods_go_a_grace_period_after_the_windows_closed() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let closed = |force, grace| State::Closed { force, grace: SignedDuration::from_secs(grace) };
        for (state, since, expected) in [
            (State::Open, Some(10), None),
            (closed(false, 0), Some(10), None),
            (closed(true, 0), Some(10), Some(10)),
            (closed(true, 5), Some(10), Some(15)),
            (closed(true, 5), None, Some(25)),
        ] {
            assert_eq!(evict_at(&state, since.map(at), at(20)), expected.map(at), "{state:?}");
        }
    }
}
