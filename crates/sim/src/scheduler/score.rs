//! Which of the fitting nodes is best.

use std::sync::Arc;

use super::affinity::{Rule, matches_term};
use super::filter::{View, tolerates};
use crate::node::Node;
use crate::pod::Pod;

/// The best node: highest score, then fewest pods, then name.
pub fn best<'n>(view: &View<'_>, nodes: &[&'n Arc<Node>]) -> Option<&'n Arc<Node>> {
    let neighbours = neighbours(view);
    let key = |node: &Arc<Node>| {
        let pods = view.book.usage(node.name()).map_or(0, |usage| usage.pods.len());
        (score(view, node, &neighbours), std::cmp::Reverse(pods))
    };
    let mut best: Option<(&'n Arc<Node>, (i64, std::cmp::Reverse<usize>))> = None;
    for node in nodes {
        let own = key(node);
        if best.as_ref().is_none_or(|(_, known)| own > *known) {
            best = Some((node, own));
        }
    }
    best.map(|(node, _)| node)
}

/// Rules that should hold: weight, rule and the pods it is about.
fn neighbours(view: &View<'_>) -> Vec<(i64, Rule, Vec<Arc<Pod>>)> {
    let nowhere = |_: &atoll_meta::selector::LabelSelector| Vec::new();
    let affinity = &view.want.affinity;
    let near = affinity.pod_affinity.preferred.iter().map(|one| (one.weight, &one.pod_affinity_term));
    let away = affinity.pod_anti_affinity.preferred.iter().map(|one| (-one.weight, &one.pod_affinity_term));
    let spread = view.want.topology_spread_constraints.iter().filter(|one| one.when_unsatisfiable == "ScheduleAnyway");
    let mut all: Vec<(i64, Rule)> =
        near.chain(away).map(|(weight, term)| (weight, Rule::of(term, view.pod.head(), &nowhere))).collect();
    for one in spread {
        let term = super::want::PodTerm {
            label_selector: one.label_selector.clone(),
            topology_key: one.topology_key.clone(),
            match_label_keys: one.match_label_keys.clone(),
            ..Default::default()
        };
        all.push((-20, Rule::of(&term, view.pod.head(), &nowhere)));
    }
    all.into_iter()
        .map(|(weight, rule)| {
            let about = view.book.pods().filter(|pod| pod.takes_room() && rule.is_about(pod.head())).cloned().collect();
            (weight, rule, about)
        })
        .collect()
}

fn score(view: &View<'_>, node: &Node, neighbours: &[(i64, Rule, Vec<Arc<Pod>>)]) -> i64 {
    let mut score = room(view, node);
    for one in &view.want.affinity.node_affinity.preferred {
        if matches_term(&one.preference, node) {
            score += 2 * one.weight;
        }
    }
    for taint in node.taints.iter().filter(|taint| taint.effect == "PreferNoSchedule") {
        if !tolerates(&view.want.tolerations, taint) {
            score -= 300;
        }
    }
    for (weight, rule, pods) in neighbours {
        let Some(place) = node.label(&rule.topology) else { continue };
        let here = pods
            .iter()
            .filter(|pod| view.book.node(&pod.node).is_some_and(|other| other.label(&rule.topology) == Some(place)));
        score += 2 * weight * i64::try_from(here.count()).unwrap_or(0);
    }
    score
}

/// Up to 100 for a node that is empty, less the fuller it would be.
fn room(view: &View<'_>, node: &Node) -> i64 {
    let taken = view.book.usage(node.name()).map(|usage| &usage.requested);
    let part = |has: i64, taken: i64, more: i64| {
        if has <= 0 { 0 } else { (has - taken - more).max(0) * 100 / has }
    };
    let cpu = part(node.allocatable.cpu, taken.map_or(0, |t| t.cpu), view.pod.request.cpu);
    let memory = part(node.allocatable.memory, taken.map_or(0, |t| t.memory), view.pod.request.memory);
    (cpu + memory) / 2
}
