//! What admission asks about pods: their containers and what they request.

use std::collections::BTreeMap;

use atoll_meta::Quantity;
use serde_json::Value;

use super::{Operation, Review};

/// Amounts by resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// Whether a pod is being made.
pub fn is_created(review: &Review<'_>) -> bool {
    review.is("", "pods") && review.operation == Operation::Create
}

/// Containers under a field of the pod's spec.
pub fn containers<'a>(pod: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    pod["spec"][field].as_array().into_iter().flatten()
}

/// The amounts in a map of quantities; what is no quantity is left out.
pub fn amounts(value: &Value) -> Amounts {
    let map = value.as_object().into_iter().flatten();
    map.filter_map(|(name, value)| Some((name.clone(), quantity(value)?))).collect()
}

/// A quantity, as text or number.
pub fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
        _ => None,
    }
}

/// Adds amounts.
pub fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let own = sum.entry(name.clone()).or_default();
        *own = own.checked_add(*amount).unwrap_or(*amount);
    }
}

fn raise(sum: &mut Amounts, floor: &Amounts) {
    for (name, amount) in floor {
        let own = sum.entry(name.clone()).or_default();
        if *own < *amount {
            *own = *amount;
        }
    }
}

/// What a pod as a whole asks for under `requests` or `limits`.
///
/// Containers and sidecars run together; each other init container runs with the sidecars started before it.
pub fn total(pod: &Value, field: &str) -> Amounts {
    let mut sum = Amounts::new();
    for container in containers(pod, "containers") {
        add(&mut sum, &amounts(&container["resources"][field]));
    }
    let (mut sidecars, mut start) = (Amounts::new(), Amounts::new());
    for container in containers(pod, "initContainers") {
        let own = amounts(&container["resources"][field]);
        let mut peak = sidecars.clone();
        add(&mut peak, &own);
        raise(&mut start, &peak);
        if container["restartPolicy"] == "Always" {
            add(&mut sidecars, &own);
        }
    }
    add(&mut sum, &sidecars);
    raise(&mut sum, &start);
    // What is said for the pod as a whole counts instead of the sum.
    for (name, amount) in amounts(&pod["spec"]["resources"][field]) {
        sum.insert(name, amount);
    }
    let overhead = amounts(&pod["spec"]["overhead"]);
    for (name, amount) in overhead {
        // Overhead adds to limits only where there is a limit.
        if field == "requests" || sum.get(&name).is_some_and(|limit| !limit.is_zero()) {
            add(&mut sum, &Amounts::from([(name, amount)]));
        }
    }
    sum
}
