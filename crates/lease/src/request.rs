//! What a pod asks of a node, counted as the scheduler counts it.

use atoll_meta::Quantity;
use serde_json::Value;

use crate::amount::{Amounts, add, maximum, read_amounts};

/// What matters about a pod of the worker cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodFacts {
    /// The node it is on; empty while it waits.
    pub node: String,
    /// What it asks for.
    pub requests: Amounts,
    /// Whether it ended.
    pub over: bool,
    /// Whether it runs for the computing cluster, whose own scheduler counts it.
    pub leased: bool,
}

impl PodFacts {
    /// Reads a pod; `leased` says whether it runs for the computing cluster.
    pub fn of(pod: &Value, leased: bool) -> Self {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
        Self { node, requests: requests(pod), over: is_over(pod), leased }
    }
}

/// Whether a pod ended.
pub fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// What a pod asks for: containers and sidecars together, or the largest moment of its
/// start-up if that is more; what the pod as a whole states wins; overhead on top.
pub fn requests(pod: &Value) -> Amounts {
    let spec = &pod["spec"];
    let mut total = Amounts::new();
    for container in list(&spec["containers"]) {
        add(&mut total, &requested(container));
    }
    let mut sidecars = Amounts::new();
    let mut starting = Amounts::new();
    for container in list(&spec["initContainers"]) {
        let own = requested(container);
        if container["restartPolicy"] == "Always" {
            add(&mut sidecars, &own);
            add(&mut total, &own);
            maximum(&mut starting, &sidecars);
        } else {
            let mut moment = sidecars.clone();
            add(&mut moment, &own);
            maximum(&mut starting, &moment);
        }
    }
    maximum(&mut total, &starting);
    for (name, amount) in read_amounts(&spec["resources"]["requests"]) {
        total.insert(name, amount);
    }
    add(&mut total, &read_amounts(&spec["overhead"]));
    total.insert("pods".to_owned(), Quantity::from_value(1));
    total
}

/// Requests of a container; a limit alone is a request too.
fn requested(container: &Value) -> Amounts {
    let mut amounts = read_amounts(&container["resources"]["limits"]);
    amounts.extend(read_amounts(&container["resources"]["requests"]));
    amounts
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn container(cpu: &str) -> Value {
        json!({"resources": {"requests": {"cpu": cpu}}})
    }

    fn sidecar(cpu: &str) -> Value {
        json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}})
    }

    fn cpu(spec: Value) -> String {
        requests(&json!({"spec": spec}))["cpu"].to_string()
    }

    #[test]
    fn requests_are_counted_as_the_scheduler_counts_them() {
        for (spec, expected, why) in [
            (json!({"containers": [container("1"), container("500m")]}), "1500m", "containers run together"),
            (
                json!({"containers": [container("1")], "initContainers": [container("3"), container("2")]}),
                "3",
                "start-up runs one by one",
            ),
            (json!({"containers": [container("2")], "initContainers": [container("1")]}), "2", "the larger of both"),
            (
                json!({"containers": [container("1")], "initContainers": [sidecar("1"), container("2")]}),
                "3",
                "a sidecar runs beside later start-up",
            ),
            (
                json!({"containers": [container("1")], "initContainers": [container("2"), sidecar("1")]}),
                "2",
                "but not beside earlier",
            ),
            (json!({"containers": [container("1")], "overhead": {"cpu": "250m"}}), "1250m", "overhead is on top"),
            (
                json!({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}),
                "4",
                "the pod as a whole may state it",
            ),
            (json!({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}), "2", "a limit alone is a request"),
        ] {
            assert_eq!(cpu(spec), expected, "{why}");
        }
    }
}
