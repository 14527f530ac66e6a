//! Aggregated ClusterRoles: their rules are those of all roles their selectors match.

use atoll_meta::selector::LabelSelector;
use serde_json::Value;

/// Aggregated roles may be part of others; more levels than this make no sense.
const LEVELS: usize = 16;

/// Recomputes the rules of all aggregated roles among these; true for those that changed.
pub fn settle(roles: &mut [Value]) -> Vec<bool> {
    let mut changed = vec![false; roles.len()];
    let mut order: Vec<usize> = (0..roles.len()).collect();
    order.sort_by(|a, b| name(&roles[*a]).cmp(name(&roles[*b])));
    let selectors: Vec<Option<Vec<LabelSelector>>> = roles.iter().map(selectors).collect();
    for _ in 0..LEVELS {
        let mut moved = false;
        for at in 0..roles.len() {
            let Some(selectors) = &selectors[at] else { continue };
            let rules = union(roles, &order, at, selectors);
            if roles[at]["rules"] != rules {
                roles[at]["rules"] = rules;
                changed[at] = true;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    changed
}

/// Whether a role takes its rules from others.
pub fn is_aggregated(role: &Value) -> bool {
    role["aggregationRule"].is_object()
}

fn name(role: &Value) -> &str {
    role["metadata"]["name"].as_str().unwrap_or_default()
}

fn selectors(role: &Value) -> Option<Vec<LabelSelector>> {
    let list = role["aggregationRule"].as_object()?.get("clusterRoleSelectors").and_then(Value::as_array)?;
    Some(list.iter().filter_map(|selector| LabelSelector::from_value(selector).ok()).collect())
}

fn union(roles: &[Value], order: &[usize], own: usize, selectors: &[LabelSelector]) -> Value {
    let mut rules: Vec<Value> = Vec::new();
    for at in order.iter().copied().filter(|at| *at != own) {
        let part = &roles[at];
        if !selectors.iter().any(|selector| matches(selector, part)) {
            continue;
        }
        for rule in part["rules"].as_array().into_iter().flatten() {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    // Nothing at all, as the original has it.
    if rules.is_empty() { Value::Null } else { rules.into() }
}

fn matches(selector: &LabelSelector, role: &Value) -> bool {
    match role["metadata"]["labels"].as_object() {
        Some(labels) => selector.matches_map(labels),
        None => selector.matches_map(&serde_json::Map::new()),
    }
}
