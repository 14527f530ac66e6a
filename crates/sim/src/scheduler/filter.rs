//! Which nodes a pod can run on at all.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use atoll_meta::selector::LabelSelector;

use super::affinity::{Rule, matches_node_affinity};
use super::spread::Even;
use super::want::{Toleration, Want};
use crate::book::Book;
use crate::node::{Node, Taint};
use crate::pod::Pod;
use crate::resources::Resources;

/// What a node says to a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It can run here.
    Fits,
    /// It cannot; others leaving might help.
    Refused(Vec<String>),
    /// It cannot, and nothing that leaves would help.
    Never(Vec<String>),
}

fn refused(why: &str) -> Verdict {
    Verdict::Refused(vec![why.to_owned()])
}

fn never(why: &str) -> Verdict {
    Verdict::Never(vec![why.to_owned()])
}

/// Whether a pod puts up with a taint.
pub fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|one| {
        (one.effect.is_empty() || one.effect == taint.effect)
            && (one.key == taint.key || one.key.is_empty() && one.operator == "Exists")
            && match one.operator.as_str() {
                "Exists" => true,
                "" | "Equal" => one.value == taint.value,
                operator => compares(operator, &one.value, &taint.value),
            }
    })
}

fn compares(operator: &str, own: &str, taint: &str) -> bool {
    match (own.parse::<i64>(), taint.parse::<i64>()) {
        (Ok(own), Ok(taint)) => operator == "Lt" && taint < own || operator == "Gt" && taint > own,
        _ => false,
    }
}

/// Where rules about other pods hold: values of a node label.
type Places = HashMap<String, HashSet<String>>;

/// A pod that looks for a node, with everything computed once for all nodes.
pub struct View<'a> {
    /// What it asks for.
    pub want: &'a Want,
    /// The pod.
    pub pod: &'a Pod,
    /// The book.
    pub book: &'a Book,
    /// Rules of places it must be in, and where they hold.
    near: Vec<(Rule, HashSet<String>)>,
    /// Whether it may found a group by itself.
    first: bool,
    away: Places,
    repelled: Places,
    spread: Vec<Even>,
}

impl<'a> View<'a> {
    /// Prepares a pod.
    pub fn new(
        want: &'a Want,
        pod: &'a Pod,
        nodes: &[Arc<Node>],
        book: &'a Book,
        namespaces: &dyn Fn(&LabelSelector) -> Vec<String>,
    ) -> Self {
        let head = pod.head();
        let rules = |terms: &[super::want::PodTerm]| -> Vec<Rule> {
            terms.iter().map(|term| Rule::of(term, head, namespaces)).collect()
        };
        let near_rules = rules(&want.affinity.pod_affinity.required);
        let away_rules = rules(&want.affinity.pod_anti_affinity.required);
        let labels: HashMap<&str, &Arc<Node>> = nodes.iter().map(|node| (node.name(), node)).collect();
        let value = |pod: &Pod, topology: &str| {
            labels.get(&*pod.node).and_then(|node| node.label(topology)).map(ToOwned::to_owned)
        };
        let mut near: Vec<(Rule, HashSet<String>)> =
            near_rules.into_iter().map(|rule| (rule, HashSet::new())).collect();
        let mut away = Places::new();
        if !near.is_empty() || !away_rules.is_empty() {
            for other in book.pods().filter(|other| other.takes_room()) {
                for (rule, places) in near.iter_mut().filter(|(rule, _)| rule.is_about(other.head())) {
                    places.extend(value(other, &rule.topology));
                }
                for rule in away_rules.iter().filter(|rule| rule.is_about(other.head())) {
                    away.entry(rule.topology.clone()).or_default().extend(value(other, &rule.topology));
                }
            }
        }
        // A group's first member finds nobody to be near to; it may start anywhere if it fits its own rules.
        let first = near.iter().all(|(rule, places)| places.is_empty() && rule.is_about(head));
        let repelled = repelled(book, pod, namespaces, &value);
        let spread =
            want.topology_spread_constraints.iter().filter_map(|one| Even::of(one, want, pod, nodes, book)).collect();
        Self { want, pod, book, near, first, away, repelled, spread }
    }

    /// Judges a node.
    pub fn judge(&self, node: &Node) -> Verdict {
        let verdicts = [
            Self::unschedulable as fn(&Self, &Node) -> Verdict,
            Self::taints,
            Self::affinity,
            Self::ports,
            Self::resources,
            Self::evenly,
            Self::others,
        ];
        verdicts
            .iter()
            .map(|judge| judge(self, node))
            .find(|verdict| *verdict != Verdict::Fits)
            .unwrap_or(Verdict::Fits)
    }

    fn unschedulable(&self, node: &Node) -> Verdict {
        let cordon =
            Taint { key: "node.kubernetes.io/unschedulable".into(), value: String::new(), effect: "NoSchedule".into() };
        if node.unschedulable && !tolerates(&self.want.tolerations, &cordon) {
            return never("node(s) were unschedulable");
        }
        Verdict::Fits
    }

    fn taints(&self, node: &Node) -> Verdict {
        let hard = node.taints.iter().filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"));
        match hard.into_iter().find(|taint| !tolerates(&self.want.tolerations, taint)) {
            Some(taint) => {
                Verdict::Never(vec![format!("node(s) had untolerated taint {{{}: {}}}", taint.key, taint.value)])
            }
            None => Verdict::Fits,
        }
    }

    fn affinity(&self, node: &Node) -> Verdict {
        if matches_node_affinity(self.want, node) {
            Verdict::Fits
        } else {
            never("node(s) didn't match Pod's node affinity/selector")
        }
    }

    fn ports(&self, node: &Node) -> Verdict {
        let taken = self.book.usage(node.name()).map(|usage| usage.ports.as_slice()).unwrap_or_default();
        let promised = self.expected(node).flat_map(|other| other.ports.iter());
        let mut all = taken.iter().chain(promised);
        if !self.pod.ports.is_empty() && all.any(|other| self.pod.ports.iter().any(|port| port.collides(other))) {
            return refused("node(s) didn't have free ports for the requested pod ports");
        }
        Verdict::Fits
    }

    fn resources(&self, node: &Node) -> Verdict {
        let usage = self.book.usage(node.name());
        let (mut taken, mut count) =
            usage.map_or((Resources::default(), 0), |usage| (usage.requested.clone(), usage.pods.len()));
        for other in self.expected(node) {
            taken.add(&other.request);
            count += 1;
        }
        let mut why = Vec::new();
        let mut hopeless = false;
        if i64::try_from(count).unwrap_or(i64::MAX) >= node.max_pods {
            why.push("Too many pods".to_owned());
        }
        for (name, units) in self.pod.request.iter() {
            let has = node.allocatable.get(name);
            if units > has - taken.get(name) {
                why.push(format!("Insufficient {name}"));
                hopeless |= units > has;
            }
        }
        match (why.is_empty(), hopeless) {
            (true, _) => Verdict::Fits,
            (false, false) => Verdict::Refused(why),
            (false, true) => Verdict::Never(why),
        }
    }

    /// Pods at least as important that others leave this node for.
    fn expected<'s>(&'s self, node: &'s Node) -> impl Iterator<Item = &'s Arc<Pod>> {
        let own = self.pod.head();
        self.book
            .nominated_on(node.name())
            .filter(move |other| other.priority >= self.pod.priority && other.head().uid != own.uid)
    }

    fn evenly(&self, node: &Node) -> Verdict {
        for even in &self.spread {
            match even.allows(node) {
                Some(true) => {}
                Some(false) => return refused("node(s) didn't match pod topology spread constraints"),
                None => return never("node(s) didn't match pod topology spread constraints (missing required label)"),
            }
        }
        Verdict::Fits
    }

    fn others(&self, node: &Node) -> Verdict {
        let at = |places: &Places| {
            places.iter().any(|(topology, values)| node.label(topology).is_some_and(|value| values.contains(value)))
        };
        let near = self
            .near
            .iter()
            .all(|(rule, places)| node.label(&rule.topology).is_some_and(|value| places.contains(value) || self.first));
        if !near {
            return never("node(s) didn't match pod affinity rules");
        }
        if at(&self.away) {
            return refused("node(s) didn't match pod anti-affinity rules");
        }
        if at(&self.repelled) {
            return refused("node(s) didn't satisfy existing pods anti-affinity rules");
        }
        Verdict::Fits
    }
}

/// Places from which pods that are there already keep this one away.
fn repelled(
    book: &Book,
    pod: &Pod,
    namespaces: &dyn Fn(&LabelSelector) -> Vec<String>,
    value: &dyn Fn(&Pod, &str) -> Option<String>,
) -> Places {
    let mut places = Places::new();
    for other in book.repelling().filter(|other| other.takes_room()) {
        let Some(want) = Want::of(&other.item) else { continue };
        for term in &want.affinity.pod_anti_affinity.required {
            let rule = Rule::of(term, other.head(), namespaces);
            if rule.is_about(pod.head()) {
                places.entry(rule.topology.clone()).or_default().extend(value(other, &rule.topology));
            }
        }
    }
    places
}
