//! What an object costs, in the names quotas use.

use std::collections::{BTreeMap, BTreeSet};

use atoll_meta::Quantity;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::super::pod::{Amounts, amounts, containers, quantity, total};

/// Kinds counted under their plain name besides `count/…`.
const PLAIN: [&str; 7] =
    ["configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services", "pods"];
const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
/// Where a quota names these, each container must say how much of them it wants.
const DEMANDED: [&str; 6] = ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// The name under which all objects of a kind are counted.
fn count_name(plural: &str, group: &str) -> String {
    if group.is_empty() { format!("count/{plural}") } else { format!("count/{plural}.{group}") }
}

/// What an object costs.
pub fn of(plural: &str, group: &str, object: &Value, now: Timestamp) -> Amounts {
    let mut cost = Amounts::from([(count_name(plural, group), Quantity::from_value(1))]);
    if !group.is_empty() {
        return cost;
    }
    match plural {
        "pods" => pod(object, now, &mut cost),
        "services" => service(object, &mut cost),
        "persistentvolumeclaims" => claim(object, &mut cost),
        _ if PLAIN.contains(&plural) => drop(cost.insert(plural.to_owned(), Quantity::from_value(1))),
        _ => {}
    }
    cost
}

/// Whether objects of a kind can cost something under this name.
pub fn can_cost(plural: &str, group: &str, name: &str) -> bool {
    if name == count_name(plural, group) {
        return true;
    }
    group.is_empty() && source(name).is_some_and(|source| source == plural)
}

/// The core kind that costs under this name.
fn source(name: &str) -> Option<&str> {
    if let Some(plain) = PLAIN.iter().find(|plain| **plain == name) {
        return Some(plain);
    }
    match name {
        "services.loadbalancers" | "services.nodeports" => Some("services"),
        "requests.storage" => Some("persistentvolumeclaims"),
        _ if name.contains(STORAGE_CLASS) => Some("persistentvolumeclaims"),
        "cpu" | "memory" | "ephemeral-storage" => Some("pods"),
        _ if name.starts_with("requests.") || name.starts_with("limits.") || name.starts_with("hugepages-") => {
            Some("pods")
        }
        _ => None,
    }
}

/// The kinds, as plural and group, that cost something under these names.
pub fn sources<'a>(names: impl Iterator<Item = &'a String>) -> BTreeSet<(String, String)> {
    names
        .filter_map(|name| match name.strip_prefix("count/") {
            Some(rest) => {
                let (plural, group) = rest.split_once('.').unwrap_or((rest, ""));
                Some((plural.to_owned(), group.to_owned()))
            }
            None => source(name).map(|plural| (plural.to_owned(), String::new())),
        })
        .collect()
}

/// Pods that ended cost nothing but their place in the store.
fn pod(object: &Value, now: Timestamp, cost: &mut Amounts) {
    if matches!(object["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) || is_overdue(object, now) {
        return;
    }
    cost.insert("pods".into(), Quantity::from_value(1));
    for (name, amount) in total(object, "requests") {
        match name.as_str() {
            "cpu" | "memory" | "ephemeral-storage" => drop(cost.insert(name.clone(), amount)),
            _ if name.starts_with("hugepages-") => drop(cost.insert(name.clone(), amount)),
            _ => {}
        }
        cost.insert(format!("requests.{name}"), amount);
    }
    for (name, amount) in total(object, "limits") {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            cost.insert(format!("limits.{name}"), amount);
        }
    }
}

/// Whether a pod should be gone: its node may be lost, which must not cost the namespace anything.
fn is_overdue(object: &Value, now: Timestamp) -> bool {
    let end = object["metadata"]["deletionTimestamp"].as_str().and_then(atoll_meta::time::parse);
    let grace = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    end.and_then(|end| end.checked_add(SignedDuration::from_secs(grace)).ok()).is_some_and(|end| now > end)
}

fn service(object: &Value, cost: &mut Amounts) {
    cost.insert("services".into(), Quantity::from_value(1));
    let ports = object["spec"]["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let kind = object["spec"]["type"].as_str().unwrap_or_default();
    let node_ports = match kind {
        "NodePort" => ports.len(),
        "LoadBalancer" if object["spec"]["allocateLoadBalancerNodePorts"] == false => {
            ports.iter().filter(|port| port["nodePort"].as_i64().is_some_and(|port| port != 0)).count()
        }
        "LoadBalancer" => ports.len(),
        _ => 0,
    };
    let count = |number: usize| Quantity::from_value(i64::try_from(number).unwrap_or(i64::MAX));
    cost.insert("services.nodeports".into(), count(node_ports));
    cost.insert("services.loadbalancers".into(), count(usize::from(kind == "LoadBalancer")));
}

fn claim(object: &Value, cost: &mut Amounts) {
    let one = Quantity::from_value(1);
    cost.insert("persistentvolumeclaims".into(), one);
    let storage = quantity(&object["spec"]["resources"]["requests"]["storage"]);
    let class = object["spec"]["storageClassName"].as_str().unwrap_or_default();
    if !class.is_empty() {
        cost.insert(format!("{class}{STORAGE_CLASS}persistentvolumeclaims"), one);
    }
    let Some(storage) = storage else { return };
    cost.insert("requests.storage".into(), storage);
    if !class.is_empty() {
        cost.insert(format!("{class}{STORAGE_CLASS}requests.storage"), storage);
    }
}

/// What containers must say and do not, in the words of the refusal.
pub fn unspecified(pod: &Value, concerned: &BTreeSet<&String>) -> Option<String> {
    let whole = |field: &str| amounts(&pod["spec"]["resources"][field]);
    let (pod_requests, pod_limits) = (whole("requests"), whole("limits"));
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for demanded in DEMANDED.iter().filter(|name| concerned.iter().any(|concerned| concerned == *name)) {
        let (field, resource) = match demanded.split_once('.') {
            Some((field, resource)) => (field, resource),
            None => ("requests", *demanded),
        };
        let said = if field == "limits" { &pod_limits } else { &pod_requests };
        if said.contains_key(resource) {
            continue;
        }
        for container in containers(pod, "containers").chain(containers(pod, "initContainers")) {
            if container["resources"][field].get(resource).is_none() {
                missing.entry(demanded).or_default().insert(container["name"].as_str().unwrap_or_default());
            }
        }
    }
    if missing.is_empty() {
        return None;
    }
    let texts: Vec<String> = missing
        .iter()
        .map(|(name, who)| format!("{name} for: {}", who.iter().copied().collect::<Vec<_>>().join(",")))
        .collect();
    Some(format!("must specify {}", texts.join("; ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cost(plural: &str, group: &str, object: Value) -> Value {
        json!(
            of(plural, group, &object, Timestamp::UNIX_EPOCH)
                .iter()
                .map(|(k, v)| (k.clone(), v.to_string()))
                .collect::<BTreeMap<_, _>>()
        )
    }

    #[test]
    fn objects_cost_what_the_original_says() {
        let container =
            |cpu: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu}, "limits": {"memory": "1Gi"}}});
        let table = [
            ("configmaps", "", json!({}), json!({"count/configmaps": "1", "configmaps": "1"})),
            ("deployments", "apps", json!({}), json!({"count/deployments.apps": "1"})),
            (
                "pods",
                "",
                json!({"spec": {"containers": [container("1"), container("500m")], "initContainers": [container("2")]}}),
                json!({"count/pods": "1", "pods": "1", "cpu": "2", "requests.cpu": "2", "limits.memory": "2Gi"}),
            ),
            (
                "pods",
                "",
                json!({"spec": {"containers": [container("1")]}, "status": {"phase": "Succeeded"}}),
                json!({"count/pods": "1"}),
            ),
            (
                "services",
                "",
                json!({"spec": {"type": "LoadBalancer", "ports": [{}, {}]}}),
                json!({"count/services": "1", "services": "1", "services.nodeports": "2", "services.loadbalancers": "1"}),
            ),
            (
                "persistentvolumeclaims",
                "",
                json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1Gi"}}}}),
                json!({"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "1Gi",
                    "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1", "gold.storageclass.storage.k8s.io/requests.storage": "1Gi"}),
            ),
        ];
        for (plural, group, object, expected) in table {
            assert_eq!(cost(plural, group, object), expected, "{plural}");
        }
    }

    #[test]
    fn names_lead_to_the_kinds_that_cost_them() {
        let names: Vec<String> = ["pods", "requests.cpu", "count/jobs.batch", "services.nodeports", "requests.storage"]
            .iter()
            .map(ToString::to_string)
            .collect();
        let found: Vec<String> =
            sources(names.iter()).into_iter().map(|(plural, group)| format!("{plural}.{group}")).collect();
        assert_eq!(found, ["jobs.batch", "persistentvolumeclaims.", "pods.", "services."]);
        assert!(can_cost("pods", "", "limits.memory") && !can_cost("secrets", "", "limits.memory"));
    }
}
