//! What the rules of a CRD may cost by estimate: each for itself, and all together.

use atoll_meta::{FieldError, FieldPath};

use super::tree::RuleTree;
use super::{Cel, Rules as _, size};
use crate::Schema;

/// What one rule may cost on the largest object.
const PER_RULE: u64 = 10_000_000;
/// What all rules of a schema may cost on the largest object.
const PER_SCHEMA: u64 = 100_000_000;
/// What a rule costs at least that is named when it is all of them together.
const WORTH_NAMING: u64 = PER_SCHEMA / 100;
/// How many of the most expensive rules are named when it is all of them together.
const NAMED: usize = 4;

/// Complaints about rules that could cost too much.
pub(crate) fn check_costs(tree: &RuleTree, schema: &Schema, path: &FieldPath) -> Vec<FieldError> {
    let mut bill = Bill { items: Vec::new(), errors: Vec::new() };
    bill.node(tree, schema, Some(1), path);
    bill.sum(path);
    bill.errors
}

struct Bill {
    items: Vec<(u64, FieldPath)>,
    errors: Vec<FieldError>,
}

impl Bill {
    /// `times` is how often the node can occur; `None` if nothing but the size of a request bounds that.
    fn node(&mut self, tree: &RuleTree, schema: &Schema, times: Option<u64>, path: &FieldPath) {
        let below = times.zip(size::children(schema)).map(|(times, each)| times.saturating_mul(each));
        for (name, child) in &tree.properties {
            if let Some(property) = schema.properties.get(name) {
                self.node(child, property, below, &path.child("properties").key(name));
            }
        }
        if let (Some(child), Some(values)) = (tree.additional.as_deref(), schema.additional.as_deref()) {
            self.node(child, values, below, &path.child("additionalProperties"));
        }
        if let (Some(child), Some(items)) = (tree.items.as_deref(), schema.items.as_deref()) {
            self.node(child, items, below, &path.child("items"));
        }
        let often = times.unwrap_or_else(|| size::in_a_request(schema));
        for (at, ready) in tree.rules.iter().enumerate() {
            let path = path.child("x-kubernetes-validations").index(at);
            self.item(Cel.estimate(&ready.program), often, &path.child("rule"), "estimated rule cost");
            if let Some(message) = &ready.message {
                let path = path.child("messageExpression");
                self.item(Cel.estimate(message), often, &path, "estimated messageExpression cost");
            }
        }
    }

    fn item(&mut self, each: u64, often: u64, path: &FieldPath, what: &str) {
        let cost = each.saturating_mul(often);
        if cost > PER_RULE {
            self.errors.push(FieldError::forbidden(path.clone(), too_much(what, cost, PER_RULE)));
        }
        self.items.push((cost, path.clone()));
    }

    fn sum(&mut self, path: &FieldPath) {
        let total = self.items.iter().fold(0u64, |sum, (cost, _)| sum.saturating_add(*cost));
        if total <= PER_SCHEMA {
            return;
        }
        self.items.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        for (_, path) in self.items.iter().take_while(|(cost, _)| *cost >= WORTH_NAMING).take(NAMED) {
            let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.errors.push(FieldError::forbidden(path.clone(), why));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        self.errors.push(FieldError::forbidden(path.clone(), too_much(what, total, PER_SCHEMA)));
    }
}

fn too_much(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
