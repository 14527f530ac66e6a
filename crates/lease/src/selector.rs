//! Which nodes a selector means.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};

/// Whether a selector means a node: terms are alternatives, what a term asks for must all hold.
///
/// No selector, or one without terms, means every node; an empty term means none.
pub fn matches(selector: Option<&NodeSelector>, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let Some(selector) = selector.filter(|selector| !selector.node_selector_terms.is_empty()) else { return true };
    selector.node_selector_terms.iter().any(|term| term_matches(term, name, labels))
}

fn term_matches(term: &NodeSelectorTerm, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    expressions.iter().all(|wanted| label_matches(wanted, labels.get(&wanted.key).map(String::as_str)))
        && fields.iter().all(|wanted| field_matches(wanted, name))
}

/// The one field there is, and the one way to ask for it.
fn field_matches(wanted: &NodeSelectorRequirement, name: &str) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    wanted.key == "metadata.name" && wanted.operator == "In" && values.len() == 1 && values[0] == name
}

fn label_matches(wanted: &NodeSelectorRequirement, label: Option<&str>) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let among = |label: &str| values.iter().any(|value| value == label);
    let number = |text: &str| text.parse::<i64>().ok();
    let compare = |by: fn(&i64, &i64) -> bool| match (label.and_then(number), values) {
        (Some(label), [bound]) => number(bound).is_some_and(|bound| by(&label, &bound)),
        _ => false,
    };
    match wanted.operator.as_str() {
        "In" => label.is_some_and(among),
        "NotIn" => !label.is_some_and(among),
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        "Gt" => compare(i64::gt),
        "Lt" => compare(i64::lt),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    fn chosen(selector: Value) -> bool {
        let selector: Option<NodeSelector> = serde_json::from_value(selector).unwrap();
        let labels = [("zone", "a"), ("disk", "ssd"), ("cores", "16")].map(|(key, value)| (key.into(), value.into()));
        matches(selector.as_ref(), "node-1", &labels.into())
    }

    fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
        json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
    }

    #[test]
    fn no_selector_means_every_node_and_an_empty_term_none() {
        assert!(chosen(Value::Null));
        assert!(chosen(json!({"nodeSelectorTerms": []})));
        assert!(!chosen(json!({"nodeSelectorTerms": [{}]})));
    }

    #[test]
    fn every_operator_does_what_the_scheduler_does() {
        for (key, operator, values, expected) in [
            ("zone", "In", &["a", "b"][..], true),
            ("zone", "In", &["b"], false),
            ("none", "In", &["b"], false),
            ("zone", "NotIn", &["b"], true),
            ("none", "NotIn", &["b"], true),
            ("zone", "NotIn", &["a"], false),
            ("zone", "Exists", &[], true),
            ("none", "Exists", &[], false),
            ("none", "DoesNotExist", &[], true),
            ("zone", "DoesNotExist", &[], false),
            ("cores", "Gt", &["8"], true),
            ("cores", "Gt", &["16"], false),
            ("cores", "Lt", &["17"], true),
            ("zone", "Lt", &["17"], false),
            ("cores", "Gt", &["8", "9"], false),
            ("zone", "Like", &["a"], false),
        ] {
            let selector = json!({"nodeSelectorTerms": [expression(key, operator, values)]});
            assert_eq!(chosen(selector), expected, "{key} {operator} {values:?}");
        }
    }

    #[test]
    fn terms_are_alternatives_and_their_parts_all_hold() {
        let (yes, no) = (expression("zone", "In", &["a"]), expression("zone", "In", &["b"]));
        assert!(chosen(json!({"nodeSelectorTerms": [no.clone(), yes.clone()]})));
        let both = json!([yes["matchExpressions"][0], no["matchExpressions"][0]]);
        assert!(!chosen(json!({"nodeSelectorTerms": [{"matchExpressions": both}]})));
    }

    #[test]
    fn only_the_name_can_be_asked_for_as_a_field_and_only_one() {
        for (key, operator, values, expected) in [
            ("metadata.name", "In", json!(["node-1"]), true),
            ("metadata.name", "In", json!(["node-2"]), false),
            ("metadata.name", "In", json!(["node-1", "node-2"]), false),
            ("metadata.name", "NotIn", json!(["node-2"]), false),
            ("metadata.uid", "In", json!(["node-1"]), false),
        ] {
            let fields = json!([{"key": key, "operator": operator, "values": values}]);
            assert_eq!(chosen(json!({"nodeSelectorTerms": [{"matchFields": fields}]})), expected);
        }
    }
}
