//! Amounts of resources: what remains of a node, and what a policy leaves of that.

use std::collections::BTreeMap;

use atoll_api::kubeocean::ResourceLimit;
use atoll_meta::Quantity;
use serde_json::Value;

use crate::request::PodFacts;

/// Resource name to amount.
pub type Amounts = BTreeMap<String, Quantity>;

/// Reads a resource list; what is malformed is left out.
pub fn read_amounts(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    entries.filter_map(|(name, value)| Some((name.clone(), quantity(value)?))).collect()
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
        _ => None,
    }
}

pub(crate) fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *total.entry(name.clone()).or_default() += *amount;
    }
}

pub(crate) fn maximum(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let known = total.entry(name.clone()).or_insert(*amount);
        *known = (*known).max(*amount);
    }
}

/// What a node has left beside the pods of its own cluster.
pub fn remaining<'a>(allocatable: &Amounts, pods: impl IntoIterator<Item = &'a PodFacts>) -> Amounts {
    let mut used = Amounts::new();
    for pod in pods.into_iter().filter(|pod| !pod.over && !pod.leased) {
        add(&mut used, &pod.requests);
    }
    let left = allocatable.iter().map(|(name, amount)| {
        let used = used.get(name).copied().unwrap_or_default();
        let left = if used >= *amount { Quantity::ZERO.with_format(amount.format()) } else { *amount - used };
        (name.clone(), whole(name, left))
    });
    left.collect()
}

/// What the limits of a policy leave of what remains, in the order they are given.
pub fn limited(mut amounts: Amounts, limits: &[ResourceLimit]) -> Amounts {
    for limit in limits {
        let Some(amount) = amounts.get_mut(&limit.resource) else { continue };
        let mut most = *amount;
        if let Some(quantity) = limit.quantity.as_ref().and_then(|text| Quantity::parse(&text.0).ok()) {
            let quantity = if quantity.is_negative() { Quantity::ZERO } else { quantity };
            most = most.min(quantity.with_format(amount.format()));
        }
        if let Some(percent) = limit.percent {
            let share = amount.checked_scale(i64::from(percent.clamp(0, 100)), 100);
            most = most.min(share.unwrap_or_default());
        }
        *amount = whole(&limit.resource, most);
    }
    amounts
}

/// Rounds down to what can be lent: thousandths of CPUs, whole bytes, whole devices.
fn whole(name: &str, amount: Quantity) -> Quantity {
    if name == "cpu" {
        let milli = amount.milli_value();
        let floor = if Quantity::from_milli(milli) > amount { milli - 1 } else { milli };
        return Quantity::from_milli(floor).with_format(amount.format());
    }
    let value = amount.value();
    let floor = if Quantity::from_value(value) > amount { value - 1 } else { value };
    Quantity::from_value(floor).with_format(amount.format())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn limits(list: Value) -> Vec<ResourceLimit> {
        serde_json::from_value(list).unwrap()
    }

    fn pod(list: Value) -> PodFacts {
        PodFacts { requests: read_amounts(&list), ..PodFacts::default() }
    }

    #[test]
    fn what_remains_is_cut_by_quantity_and_percent() {
        let node = read_amounts(&json!({"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": 3, "pods": "110"}));
        let left = remaining(&node, &[pod(json!({"cpu": "1", "memory": "2Gi"}))]);
        assert_eq!((left["cpu"].to_string(), left["memory"].to_string()), ("3".into(), "6Gi".into()));
        for (resource, limit, expected) in [
            ("cpu", json!([{"resource": "cpu", "percent": 50}]), "1500m"),
            ("memory", json!([{"resource": "memory", "percent": 75}]), "4608Mi"),
            ("cpu", json!([{"resource": "cpu", "quantity": "3", "percent": 50}]), "1500m"),
            ("memory", json!([{"resource": "memory", "quantity": "2Gi", "percent": 75}]), "2Gi"),
            ("cpu", json!([{"resource": "cpu", "quantity": "1", "percent": 80}]), "1"),
            ("memory", json!([{"resource": "memory", "quantity": "5Gi", "percent": 50}]), "3Gi"),
            ("cpu", json!([{"resource": "cpu", "quantity": 2}]), "2"),
            ("cpu", json!([{"resource": "cpu", "quantity": "64"}]), "3"),
            ("cpu", json!([{"resource": "cpu", "percent": 50}, {"resource": "cpu", "percent": 50}]), "750m"),
            ("cpu", json!([{"resource": "fpga", "percent": 50}]), "3"),
            ("nvidia.com/gpu", json!([{"resource": "nvidia.com/gpu", "percent": 50}]), "1"),
            ("nvidia.com/gpu", json!([{"resource": "nvidia.com/gpu", "percent": 20}]), "0"),
            // Where the original lends everything, nothing is what was asked for.
            ("cpu", json!([{"resource": "cpu", "percent": 0}]), "0"),
            ("cpu", json!([{"resource": "cpu", "quantity": "0"}]), "0"),
        ] {
            assert_eq!(limited(left.clone(), &limits(limit.clone()))[resource].to_string(), expected, "{limit}");
        }
    }

    #[test]
    fn pods_that_ended_and_leased_pods_take_nothing() {
        let node = read_amounts(&json!({"cpu": "4"}));
        let over = PodFacts { over: true, ..pod(json!({"cpu": "1"})) };
        let leased = PodFacts { leased: true, ..pod(json!({"cpu": "1"})) };
        assert_eq!(remaining(&node, &[over, leased, pod(json!({"cpu": "9"}))])["cpu"].to_string(), "0");
        let over = PodFacts { over: true, ..pod(json!({"cpu": "1"})) };
        assert_eq!(remaining(&node, &[over, pod(json!({"cpu": "1500m"}))])["cpu"].to_string(), "2500m");
    }

    proptest! {
        #[test]
        fn never_more_than_remains_never_less_than_nothing_and_monotone(
            has in 0i64..100_000, used in 0i64..100_000, quantity in proptest::option::of(-10i64..100_000),
            percent in proptest::option::of(-10i32..200), name in prop::sample::select(vec!["cpu", "memory", "nvidia.com/gpu"]),
        ) {
            let node: Amounts = [(name.to_owned(), Quantity::from_milli(has))].into();
            let left = remaining(&node, &[PodFacts { requests: [(name.to_owned(), Quantity::from_milli(used))].into(), ..PodFacts::default() }]);
            prop_assert!(left[name] <= node[name] && !left[name].is_negative());
            let limit = ResourceLimit {
                resource: name.to_owned(),
                quantity: quantity.map(|milli| atoll_api::Quantity(format!("{milli}m"))),
                percent,
            };
            let lent = limited(left.clone(), std::slice::from_ref(&limit));
            prop_assert!(lent[name] <= left[name] && !lent[name].is_negative());
            if name != "cpu" {
                prop_assert_eq!(lent[name].milli_value() % 1000, 0, "whole devices and bytes");
            }
            let more = ResourceLimit { percent: limit.percent.map(|percent| percent + 5), ..limit };
            prop_assert!(limited(left, &[more])[name] >= lent[name], "a larger share never lends less");
        }
    }
}
