//! The pods behind a service, with the ports they really listen on.

use std::sync::Arc;

use atoll_meta::selector::LabelSelector;
use serde_json::{Value, json};

use crate::pod::Pod;
use crate::world::World;

/// A pod behind a service.
#[derive(Clone, Debug, PartialEq)]
pub struct Backend {
    /// Its address.
    pub ip: String,
    /// Its node.
    pub node: String,
    /// Zone of its node.
    pub zone: Option<String>,
    /// Name, if the service gives it one.
    pub hostname: Option<String>,
    /// `targetRef`.
    pub target: Value,
    /// Whether it takes requests.
    pub ready: bool,
    /// Whether it would, were it not going.
    pub serving: bool,
    /// Whether it is going.
    pub terminating: bool,
    /// Ports, resolved.
    pub ports: Value,
}

/// The selector of a service; `None` if somebody else looks after its endpoints.
pub fn selector(service: &Value) -> Option<LabelSelector> {
    let labels = service["spec"]["selector"].as_object().filter(|labels| !labels.is_empty())?;
    (service["spec"]["type"] != "ExternalName").then(|| LabelSelector::from_labels(labels).ok()).flatten()
}

/// The pods behind a service.
pub fn backends(world: &World, service: &Value, selector: &LabelSelector) -> Vec<Backend> {
    let namespace = service["metadata"]["namespace"].as_str().unwrap_or_default();
    let book = world.book.read();
    let mut pods: Vec<Arc<Pod>> = book
        .pods()
        .filter(|pod| {
            *pod.head().namespace == *namespace
                && !pod.ip.is_empty()
                && !pod.is_finished()
                && selector.matches_head(pod.head())
        })
        .cloned()
        .collect();
    pods.sort_by(|a, b| a.name().cmp(b.name()));
    let zone =
        |node: &str| book.node(node).and_then(|node| node.label("topology.kubernetes.io/zone").map(ToOwned::to_owned));
    pods.iter().map(|pod| backend(service, pod, zone(&pod.node))).collect()
}

fn backend(service: &Value, pod: &Pod, zone: Option<String>) -> Backend {
    let tree = pod.item.tree();
    let head = pod.head();
    let always = service["spec"]["publishNotReadyAddresses"] == true;
    let serving = pod.ready.is_some();
    let named = tree["spec"]["subdomain"] == service["metadata"]["name"];
    let hostname = tree["spec"]["hostname"].as_str().filter(|name| named && !name.is_empty());
    Backend {
        ip: pod.ip.to_string(),
        node: pod.node.to_string(),
        zone,
        hostname: hostname.map(ToOwned::to_owned),
        target: json!({"kind": "Pod", "namespace": head.namespace, "name": head.name, "uid": head.uid}),
        ready: always || serving && !head.deleting,
        serving: serving || always,
        terminating: head.deleting,
        ports: ports(service, &tree),
    }
}

/// The ports of a service as this pod has them; a name no container knows is left out.
fn ports(service: &Value, pod: &Value) -> Value {
    let mut all = Vec::new();
    for port in service["spec"]["ports"].as_array().into_iter().flatten() {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        let number = match &port["targetPort"] {
            Value::String(name) => named_port(pod, name, protocol),
            Value::Number(number) if number.as_i64() != Some(0) => number.as_i64(),
            _ => port["port"].as_i64(),
        };
        let Some(number) = number else { continue };
        let mut one = json!({"port": number, "protocol": protocol});
        for field in ["name", "appProtocol"] {
            if let Some(value) = port.get(field) {
                one[field] = value.clone();
            }
        }
        all.push(one);
    }
    all.into()
}

fn named_port(pod: &Value, name: &str, protocol: &str) -> Option<i64> {
    let containers =
        ["containers", "initContainers"].iter().flat_map(|list| pod["spec"][*list].as_array().into_iter().flatten());
    let mut ports = containers.flat_map(|container| container["ports"].as_array().into_iter().flatten());
    let found = ports.find(|port| port["name"] == name && port["protocol"].as_str().unwrap_or("TCP") == protocol)?;
    found["containerPort"].as_i64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ports_are_resolved() {
        let service = json!({"spec": {"ports": [
            {"name": "web", "port": 80, "targetPort": "http"}, {"name": "raw", "port": 90, "targetPort": 9090},
            {"name": "same", "port": 70}, {"name": "lost", "port": 60, "targetPort": "nobody"}]}});
        let pod = json!({"spec": {"containers": [{"ports": [{"name": "http", "containerPort": 8080}]}]}});
        let found: Vec<i64> =
            ports(&service, &pod).as_array().expect("a list").iter().filter_map(|port| port["port"].as_i64()).collect();
        assert_eq!(found, [8080, 9090, 70]);
    }
}
