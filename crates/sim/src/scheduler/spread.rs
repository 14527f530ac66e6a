//! Spreading pods evenly over places.

use std::collections::HashMap;
use std::sync::Arc;

use atoll_meta::selector::{LabelSelector, Operator};

use super::affinity::{matches_node_affinity, with_keys};
use super::filter::tolerates;
use super::want::{Spread, Want};
use crate::book::Book;
use crate::node::Node;
use crate::pod::Pod;

/// One constraint, with the present numbers.
pub struct Even {
    topology: String,
    max_skew: i64,
    counts: HashMap<String, i64>,
    least: i64,
    /// Whether the pod itself counts.
    own: i64,
}

impl Even {
    /// Counts a constraint that must hold; others are left to the score.
    pub fn of(one: &Spread, want: &Want, pod: &Pod, nodes: &[Arc<Node>], book: &Book) -> Option<Self> {
        if one.when_unsatisfiable == "ScheduleAnyway" {
            return None;
        }
        let selector = match &one.label_selector {
            Some(value) => LabelSelector::from_value(value).unwrap_or_else(|_| LabelSelector::nothing()),
            None => LabelSelector::nothing(),
        };
        let selector = with_keys(selector, pod.head(), one.match_label_keys.iter().map(|key| (key, Operator::In)));
        let mut counts: HashMap<String, i64> = HashMap::new();
        for node in nodes.iter().filter(|node| counts_in(one, want, node)) {
            let Some(place) = node.label(&one.topology_key) else { continue };
            let pods = book.pods_on(node.name());
            let same = pods.iter().filter(|other| {
                other.head().namespace == pod.head().namespace
                    && !other.head().deleting
                    && selector.matches_head(other.head())
            });
            *counts.entry(place.to_owned()).or_default() += i64::try_from(same.count()).unwrap_or(i64::MAX);
        }
        let few = one.min_domains.is_some_and(|least| i64::try_from(counts.len()).unwrap_or(i64::MAX) < least);
        let least = if few { 0 } else { counts.values().copied().min().unwrap_or(0) };
        let own = i64::from(selector.matches_head(pod.head()));
        Some(Self { topology: one.topology_key.clone(), max_skew: one.max_skew, counts, least, own })
    }

    /// Whether the pod may go to a node; `None` if the node is in no place.
    pub fn allows(&self, node: &Node) -> Option<bool> {
        let place = node.label(&self.topology)?;
        let there = self.counts.get(place).copied().unwrap_or(0);
        Some(there + self.own - self.least <= self.max_skew)
    }
}

fn counts_in(one: &Spread, want: &Want, node: &Node) -> bool {
    let affinity = one.node_affinity_policy.as_deref() == Some("Ignore") || matches_node_affinity(want, node);
    let taints = one.node_taints_policy.as_deref() != Some("Honor")
        || node
            .taints
            .iter()
            .filter(|taint| taint.effect != "PreferNoSchedule")
            .all(|taint| tolerates(&want.tolerations, taint));
    affinity && taints
}
