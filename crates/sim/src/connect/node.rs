//! `nodes/proxy`: what a kubelet itself answers.

use atoll_apiserver::{Body, Visit, json as answer, response};
use atoll_meta::{Reason, Status};
use http::Response;
use serde_json::{Value, json};

use super::metrics;
use crate::node::Node;
use crate::pod::Phase;
use crate::time;
use crate::world::World;

/// Answers a request to a kubelet.
pub fn serve(world: &World, visit: &Visit) -> Result<Response<Body>, Status> {
    let name = visit.target.name.split(':').next().unwrap_or_default();
    let node = world.book.read().node(name).ok_or_else(|| Status::not_found("", "nodes", name))?;
    if !node.simulated {
        return Err(Status::new(501, Reason::Unknown, format!("node {name} is not simulated")));
    }
    if world.faults.is_down(name, node.label("topology.kubernetes.io/zone")) {
        return Err(Status::internal(format!("dial tcp {}:10250: connect: no route to host", node.ip)));
    }
    match visit.target.rest.trim_end_matches('/') {
        "/healthz" | "/livez" => Ok(response(200, "text/plain", "ok")),
        "/pods" | "/runningpods" => Ok(answer(200, &pods(world, name))),
        "/stats/summary" => Ok(answer(200, &summary(world, &node))),
        "/metrics/resource" | "/metrics" => Ok(response(200, "text/plain; version=0.0.4", exposition(world, &node))),
        "/configz" => Ok(answer(
            200,
            &json!({"kubeletconfig": {"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"}}),
        )),
        _ => Ok(response(404, "text/plain", "404 page not found\n")),
    }
}

fn pods(world: &World, node: &str) -> Value {
    let items: Vec<Value> = world.book.read().pods_on(node).iter().map(|pod| pod.item.tree()).collect();
    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
}

fn summary(world: &World, node: &Node) -> Value {
    let now = world.now();
    let stamp = time::text(now);
    let part = |used: super::usage::Usage| json!({"cpu": {"time": stamp, "usageNanoCores": used.cpu}, "memory": {"time": stamp, "workingSetBytes": used.memory, "usageBytes": used.memory}});
    let mut pods = Vec::new();
    for pod in world.book.read().pods_on(node.name()).iter().filter(|pod| pod.phase == Phase::Running) {
        let containers: Vec<Value> = metrics::of_pod(pod, now)
            .into_iter()
            .map(|(name, used)| {
                let mut one = part(used);
                one["name"] = name.into();
                one
            })
            .collect();
        let head = pod.head();
        pods.push(json!({"podRef": {"name": head.name, "namespace": head.namespace, "uid": head.uid}, "containers": containers}));
    }
    let mut own = part(metrics::of_node(world, node));
    own["nodeName"] = node.name().into();
    json!({"node": own, "pods": pods})
}

fn exposition(world: &World, node: &Node) -> String {
    let used = metrics::of_node(world, node);
    let cores = |nano: i64| nano as f64 / 1e9;
    let mut out =
        String::from("# TYPE node_cpu_usage_seconds_total counter\n# TYPE node_memory_working_set_bytes gauge\n");
    let uptime = world.now().as_second() % 86_400;
    out.push_str(&format!("node_cpu_usage_seconds_total {:.3}\n", cores(used.cpu) * uptime as f64));
    out.push_str(&format!("node_memory_working_set_bytes {}\n", used.memory));
    for pod in world.book.read().pods_on(node.name()).iter().filter(|pod| pod.phase == Phase::Running) {
        for (name, used) in metrics::of_pod(pod, world.now()) {
            let labels = format!("container={name:?},namespace={:?},pod={:?}", pod.head().namespace, pod.head().name);
            out.push_str(&format!("container_memory_working_set_bytes{{{labels}}} {}\n", used.memory));
        }
    }
    out
}
