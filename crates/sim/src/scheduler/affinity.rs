//! Rules about nodes and about other pods.

use atoll_meta::Head;
use atoll_meta::selector::{LabelSelector, Operator, Requirement};

use super::want::{Expression, NodeTerm, PodTerm, Want};
use crate::node::Node;

/// Whether a node fits the selector and the required rules of a pod.
pub fn matches_node_affinity(want: &Want, node: &Node) -> bool {
    let labels = want.node_selector.iter().all(|(key, value)| node.label(key) == Some(value));
    labels
        && want
            .affinity
            .node_affinity
            .required
            .as_ref()
            .is_none_or(|selector| matches_terms(&selector.node_selector_terms, node))
}

/// Whether one of the terms holds for a node.
pub fn matches_terms(terms: &[NodeTerm], node: &Node) -> bool {
    terms.iter().any(|term| matches_term(term, node))
}

/// Whether a term holds; one without expressions holds never.
pub fn matches_term(term: &NodeTerm, node: &Node) -> bool {
    if term.match_expressions.is_empty() && term.match_fields.is_empty() {
        return false;
    }
    term.match_expressions.iter().all(|expression| holds(expression, node.label(&expression.key)))
        && term
            .match_fields
            .iter()
            .all(|expression| holds(expression, (expression.key == "metadata.name").then(|| node.name())))
}

fn holds(expression: &Expression, value: Option<&str>) -> bool {
    let listed = || value.is_some_and(|value| expression.values.iter().any(|one| one == value));
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let bound = number(expression.values.first().map(String::as_str));
    match expression.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number(value).zip(bound).is_some_and(|(is, bound)| is > bound),
        "Lt" => number(value).zip(bound).is_some_and(|(is, bound)| is < bound),
        _ => false,
    }
}

/// A rule about other pods, ready to be asked.
pub struct Rule {
    selector: LabelSelector,
    namespaces: Vec<String>,
    everywhere: bool,
    /// Label of nodes that makes a place.
    pub topology: String,
}

impl Rule {
    /// Prepares a rule of a pod; `namespaces` finds namespaces by their labels.
    pub fn of(term: &PodTerm, own: &Head, namespaces: &dyn Fn(&LabelSelector) -> Vec<String>) -> Self {
        let read = |value: &Option<serde_json::Value>| match value {
            Some(value) => LabelSelector::from_value(value).unwrap_or_else(|_| LabelSelector::nothing()),
            None => LabelSelector::nothing(),
        };
        let mut selector = read(&term.label_selector);
        let keys = term.match_label_keys.iter().map(|key| (key, Operator::In));
        let keys = keys.chain(term.mismatch_label_keys.iter().map(|key| (key, Operator::NotIn)));
        selector = with_keys(selector, own, keys);
        let mut names = term.namespaces.clone();
        let mut everywhere = false;
        if let Some(value) = &term.namespace_selector {
            let of_namespaces = LabelSelector::from_value(value).unwrap_or_else(|_| LabelSelector::nothing());
            everywhere = of_namespaces.is_everything();
            if !everywhere {
                names.extend(namespaces(&of_namespaces));
            }
        } else if names.is_empty() {
            names.push(own.namespace.to_string());
        }
        Self { selector, namespaces: names, everywhere, topology: term.topology_key.clone() }
    }

    /// Whether the rule is about this pod.
    pub fn is_about(&self, pod: &Head) -> bool {
        (self.everywhere || self.namespaces.iter().any(|name| **name == *pod.namespace))
            && self.selector.matches_head(pod)
    }
}

/// Adds labels of the pod itself to a selector.
pub fn with_keys<'a>(
    selector: LabelSelector,
    own: &Head,
    keys: impl Iterator<Item = (&'a String, Operator)>,
) -> LabelSelector {
    if selector.is_nothing() {
        return selector;
    }
    let mut all = selector.requirements().to_vec();
    let before = all.len();
    for (key, operator) in keys {
        if let Some(value) = own.label(key)
            && let Ok(requirement) = Requirement::new(key, operator, vec![value.to_owned()])
        {
            all.push(requirement);
        }
    }
    if all.len() == before { selector } else { LabelSelector::new(all) }
}
