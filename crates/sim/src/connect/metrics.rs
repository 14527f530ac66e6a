//! The metrics API of simulated clusters.

use std::sync::Weak;

use atoll_apiserver::{Body, Hub, Instance, Mount, MountedResource, Query, Visit, json as answer};
use atoll_meta::Status;
use http::Response;
use serde_json::{Value, json};

use super::usage::{self, Usage};
use crate::node::Node;
use crate::pod::{Phase, Pod};
use crate::registry;
use crate::time;
use crate::world::World;

const GROUP: &str = "metrics.k8s.io";
const VERSION: &str = "v1beta1";

/// Serves `metrics.k8s.io`.
pub struct Metrics {
    hub: Weak<Hub>,
}

impl Metrics {
    /// For the simulated clusters of a hub.
    pub fn new(hub: Weak<Hub>) -> Self {
        Self { hub }
    }
}

#[async_trait::async_trait]
impl Mount for Metrics {
    fn group(&self) -> &str {
        GROUP
    }

    fn version(&self) -> &str {
        VERSION
    }

    fn resources(&self) -> Vec<MountedResource> {
        vec![
            MountedResource::readable("nodes", "NodeMetrics", false),
            MountedResource::readable("pods", "PodMetrics", true),
        ]
    }

    fn serves(&self, instance: &Instance) -> bool {
        self.hub.upgrade().is_some_and(|hub| registry::find(&hub, &instance.name).is_some())
    }

    async fn handle(&self, visit: Visit) -> Result<Response<Body>, Status> {
        let world = registry::find(&visit.hub, &visit.instance.name)
            .ok_or_else(|| Status::unavailable("the simulated cluster is not running"))?;
        let query = Query::parse(visit.request.uri().query());
        let selector = query.labels()?;
        let target = &visit.target;
        let (kind, all) = match target.resource.as_str() {
            "nodes" => ("NodeMetrics", nodes(&world, &|node| selector.matches_head(&node.item.object.head))),
            "pods" => {
                let fits = |pod: &Pod| {
                    (target.namespace.is_empty() || *pod.head().namespace == *target.namespace)
                        && selector.matches_head(pod.head())
                };
                ("PodMetrics", pods(&world, &fits))
            }
            other => return Err(Status::not_found(GROUP, other, &target.name)),
        };
        if target.name.is_empty() {
            let list = json!({"kind": format!("{kind}List"), "apiVersion": format!("{GROUP}/{VERSION}"), "metadata": {}, "items": all});
            return Ok(answer(200, &list));
        }
        let mut found = all.into_iter().find(|one| one["metadata"]["name"] == target.name.as_str());
        match found.take() {
            Some(mut one) => {
                one["kind"] = kind.into();
                one["apiVersion"] = format!("{GROUP}/{VERSION}").into();
                Ok(answer(200, &one))
            }
            None => Err(Status::not_found(GROUP, &target.resource, &target.name)),
        }
    }
}

/// What a pod uses, by container.
pub fn of_pod(pod: &Pod, now: jiff::Timestamp) -> Vec<(String, Usage)> {
    let tree = pod.item.tree();
    let containers = tree["spec"]["containers"].as_array().into_iter().flatten();
    containers
        .map(|one| (one["name"].as_str().unwrap_or_default().to_owned(), usage::of_container(&tree, one, now)))
        .collect()
}

fn pods(world: &World, fits: &dyn Fn(&Pod) -> bool) -> Vec<Value> {
    let now = world.now();
    let book = world.book.read();
    let mut list: Vec<_> = book.pods().filter(|pod| pod.phase == Phase::Running && fits(pod)).cloned().collect();
    drop(book);
    list.sort_by_key(|pod| pod.item.key());
    let row = |pod: &Pod| {
        let containers: Vec<Value> =
            of_pod(pod, now).into_iter().map(|(name, used)| json!({"name": name, "usage": used.value()})).collect();
        let head = pod.head();
        let labels: serde_json::Map<String, Value> =
            head.labels.iter().map(|(key, value)| (key.to_string(), (**value).into())).collect();
        json!({"metadata": {"name": head.name, "namespace": head.namespace, "labels": labels, "creationTimestamp": time::text(now)},
               "timestamp": time::text(now), "window": "30s", "containers": containers})
    };
    list.iter().map(|pod| row(pod)).collect()
}

/// What a node uses.
pub fn of_node(world: &World, node: &Node) -> Usage {
    let now = world.now();
    let mut sum = usage::of_system(node.name(), now);
    for pod in world.book.read().pods_on(node.name()).iter().filter(|pod| pod.phase == Phase::Running) {
        of_pod(pod, now).into_iter().for_each(|(_, used)| sum.add(used));
    }
    sum
}

fn nodes(world: &World, fits: &dyn Fn(&Node) -> bool) -> Vec<Value> {
    let now = world.now();
    let list = world.book.read().nodes();
    let up = |node: &Node| !world.faults.is_down(node.name(), node.label("topology.kubernetes.io/zone"));
    let row = |node: &Node| {
        let labels: serde_json::Map<String, Value> =
            node.item.object.head.labels.iter().map(|(key, value)| (key.to_string(), (**value).into())).collect();
        json!({"metadata": {"name": node.name(), "labels": labels, "creationTimestamp": time::text(now)},
               "timestamp": time::text(now), "window": "30s", "usage": of_node(world, node).value()})
    };
    list.iter().filter(|node| node.simulated && up(node) && fits(node)).map(|node| row(node)).collect()
}
