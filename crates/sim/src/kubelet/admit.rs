//! What a kubelet refuses: pods that were put on its node without asking the scheduler, and do not fit.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::condition;
use crate::node::Node;
use crate::pod::Pod;
use crate::scheduler::{Want, matches_node_affinity};
use crate::time;
use crate::world::World;

/// Why a node refuses a pod: reason and message.
fn refusal(pod: &Pod, node: &Node, others: &[Arc<Pod>]) -> Option<(&'static str, &'static str)> {
    let want = Want::of(&pod.item)?;
    if !matches_node_affinity(&want, node) {
        return Some((
            "NodeAffinity",
            "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        ));
    }
    let own = &pod.head().uid;
    let beside = others.iter().filter(|other| other.head().uid != *own && other.takes_room());
    let mut taken = beside.flat_map(|other| other.ports.iter());
    taken.any(|port| pod.ports.iter().any(|wanted| wanted.collides(port))).then_some((
        "NodePorts",
        "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
    ))
}

/// The status of a pod that its node refuses. What the scheduler put there, or already lives, is not asked again.
pub fn refused(world: &World, pod: &Pod, tree: &Value, node: &Node) -> Option<Value> {
    let status = &tree["status"];
    let lives = status.get("startTime").is_some() || !tree["metadata"]["deletionTimestamp"].is_null();
    if lives || condition::get(&status["conditions"], "PodScheduled").is_some() {
        return None;
    }
    let others = world.book.read().pods_on(node.name());
    let (reason, message) = refusal(pod, node, &others)?;
    let mut new = status.clone();
    for (field, value) in [("phase", "Failed"), ("reason", reason), ("message", message)] {
        new[field] = value.into();
    }
    new["startTime"] = json!(time::text(world.now()));
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn ports_that_are_taken_and_labels_that_are_missing_are_refused() {
        let ports =
            json!([{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}]}]);
        let with = |name: &str| testing::pod(name).node("n").set(&["spec", "containers"], ports.clone()).build();
        let node = testing::node("n", json!({}), json!({}));
        let (a, b) = (with("a"), with("b"));
        assert_eq!(refusal(&a, &node, std::slice::from_ref(&a)), None, "it does not stand in its own way");
        assert_eq!(refusal(&a, &node, &[a.clone(), b]).map(|(reason, _)| reason), Some("NodePorts"));
        let picky = testing::pod("p").node("n").set(&["spec", "nodeSelector"], json!({"disk": "fast"})).build();
        assert_eq!(refusal(&picky, &node, &[]).map(|(reason, _)| reason), Some("NodeAffinity"));
    }
}
