//! The life of nodes: conditions, taints, and pods that must leave.

use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Status;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Again, parent};
use crate::condition;
use crate::kind::Kind;
use crate::kubelet;
use crate::pod::Pod;
use crate::scheduler::{Toleration, Want};
use crate::teller::{self, Teller};
use crate::time;
use crate::world::{Work, World};
use crate::write;

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// The taints a node shall have; those of others stay.
pub fn taints(node: &Value, down: bool, now: &str) -> Vec<Value> {
    let mut list: Vec<Value> = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let mut keep = |key: &str, effect: &str, wanted: bool| {
        let place = list.iter().position(|taint| taint["key"] == key && taint["effect"] == effect);
        match (place, wanted) {
            (None, true) if effect == "NoExecute" => list.push(json!({"key": key, "effect": effect, "timeAdded": now})),
            (None, true) => list.push(json!({"key": key, "effect": effect})),
            (Some(at), false) => drop(list.remove(at)),
            _ => {}
        }
    };
    keep(CORDONED, "NoSchedule", node["spec"]["unschedulable"] == true);
    for effect in ["NoSchedule", "NoExecute"] {
        keep(UNREACHABLE, effect, down);
        if !down {
            keep(NOT_READY, effect, false);
        }
    }
    list
}

/// The conditions a node shall have; those of others stay.
pub fn conditions(node: &Value, down: bool, now: &str) -> Value {
    let mut list = node["status"]["conditions"].clone();
    let fresh = kubelet::ready_conditions(now);
    for wanted in fresh.as_array().into_iter().flatten() {
        let text = |field: &str| wanted[field].as_str().unwrap_or_default();
        let (status, reason, message) = if down {
            ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
        } else {
            (text("status"), text("reason"), text("message"))
        };
        let says = condition::Says { kind: text("type"), status, reason, message };
        let beat = condition::get(&list, text("type"))
            .map(|old| old["lastHeartbeatTime"].clone())
            .unwrap_or_else(|| now.into());
        if condition::set(&mut list, says, condition::Stamps::Transition, now) {
            let beat = if down { beat } else { now.into() };
            for one in list.as_array_mut().into_iter().flatten().filter(|one| one["type"] == text("type")) {
                one["lastHeartbeatTime"] = beat.clone();
            }
        }
    }
    list
}

/// When a pod must leave because of taints: never, at once or at a moment.
fn leaves_at(tolerations: &[Toleration], node: &Value, now: Timestamp) -> Option<Timestamp> {
    let mut earliest: Option<Timestamp> = None;
    for taint in node["spec"]["taints"].as_array().into_iter().flatten().filter(|taint| taint["effect"] == "NoExecute")
    {
        let parsed: crate::node::Taint = serde_json::from_value(json!({
            "key": taint["key"], "value": taint["value"].as_str().unwrap_or_default(), "effect": "NoExecute"}))
        .unwrap_or_default();
        let fitting: Vec<&Toleration> =
            tolerations.iter().filter(|one| crate::scheduler::tolerates(std::slice::from_ref(one), &parsed)).collect();
        if fitting.is_empty() {
            return Some(now);
        }
        let shortest = fitting.iter().filter_map(|one| one.toleration_seconds).min();
        if let Some(seconds) = shortest {
            let since = time::read(&taint["timeAdded"]).unwrap_or(now);
            let at = time::plus(since, seconds.max(0));
            earliest = Some(earliest.map_or(at, |known| known.min(at)));
        }
    }
    earliest
}

/// Looks after one node and the pods that must leave it.
pub async fn reconcile(world: &World, work: &Work) -> Again {
    let Some(node) = parent(world, Kind::Node, work) else { return bury(world, &work.key).await };
    let zone = node["metadata"]["labels"]["topology.kubernetes.io/zone"].as_str();
    let ours = kubelet::is_simulated(&node);
    let down = ours && world.faults.is_down(&work.key, zone);
    let now = time::text(world.now());
    let wanted = taints(&node, down, &now);
    if ours {
        report(world, work, &node, down, &now).await?;
        if wanted != *node["spec"]["taints"].as_array().unwrap_or(&Vec::new()) {
            let patch = json!({"spec": {"taints": wanted}});
            let written = write::merge(&world.manager, Kind::Node, ("", &work.key), "", &patch).await?;
            world.expect(work, written.revision());
        }
    }
    let mut tainted = node;
    tainted["spec"]["taints"] = wanted.into();
    evict(world, &work.key, &tainted, down).await
}

async fn report(world: &World, work: &Work, node: &Value, down: bool, now: &str) -> Result<(), Status> {
    let mut status = node["status"].clone();
    status["conditions"] = conditions(node, down, now);
    let was_ready = condition::is_true(&node["status"]["conditions"], "Ready");
    if let Some(written) = write::status(&world.manager, Kind::Node, node, &status).await? {
        world.expect(work, written.revision());
        let name = &work.key;
        if was_ready && down {
            let text = format!("Node {name} status is now: NodeNotReady");
            teller::tell(world, Teller::Controller, node, "Normal", "NodeNotReady", &text).await;
        } else if !was_ready && !down {
            let text = format!("Node {name} status is now: NodeReady");
            teller::tell(world, Teller::Kubelet(name), node, "Normal", "NodeReady", &text).await;
        }
    }
    Ok(())
}

/// Deletes the pods whose patience with the node's taints has ended.
async fn evict(world: &World, name: &str, node: &Value, down: bool) -> Again {
    let pods = world.book.read().pods_on(name);
    let now = world.now();
    let mut next: Option<Duration> = None;
    for pod in pods {
        if down && pod.ready.is_some() {
            mark_unready(world, &pod).await?;
        }
        if pod.head().deleting {
            continue;
        }
        let Some(want) = Want::of(&pod.item) else { continue };
        match leaves_at(&want.tolerations, node, now) {
            None => {}
            Some(at) if at > now => {
                let wait = time::until(now, at);
                next = Some(next.map_or(wait, |known| known.min(wait)));
            }
            Some(_) => throw_out(world, &pod).await?,
        }
    }
    Ok(next)
}

async fn mark_unready(world: &World, pod: &Pod) -> Result<(), Status> {
    let tree = pod.item.tree();
    let mut status = tree["status"].clone();
    let mut conditions = status["conditions"].take();
    let says = condition::Says { kind: "Ready", status: "False", reason: "", message: "" };
    condition::set(&mut conditions, says, condition::Stamps::Probe, &time::text(world.now()));
    status["conditions"] = conditions;
    match write::status(&world.manager, Kind::Pod, &tree, &status).await {
        Err(status) if status.code != 404 && status.code != 409 => Err(status),
        _ => Ok(()),
    }
}

async fn throw_out(world: &World, pod: &Pod) -> Result<(), Status> {
    let head = pod.head();
    let tree = pod.item.tree();
    let text = format!("Marking for deletion Pod {}/{}", head.namespace, head.name);
    teller::tell(world, Teller::TaintEviction, &tree, "Normal", "TaintManagerEviction", &text).await;
    let mut status = tree["status"].clone();
    let mut conditions = status["conditions"].take();
    let says = condition::Says {
        kind: "DisruptionTarget",
        status: "True",
        reason: "DeletionByTaintManager",
        message: "Taint manager: deleting due to NoExecute taint",
    };
    condition::set(&mut conditions, says, condition::Stamps::Probe, &time::text(world.now()));
    status["conditions"] = conditions;
    write::status(&world.manager, Kind::Pod, &tree, &status).await?;
    write::delete(&world.manager, Kind::Pod, (&head.namespace, &head.name), &head.uid, None).await.map(drop)
}

/// A node that is gone takes its pods with it.
async fn bury(world: &World, name: &str) -> Again {
    let pods: Vec<Arc<Pod>> = world.book.read().pods_on(name);
    for pod in pods {
        let head = pod.head();
        write::delete(&world.manager, Kind::Pod, (&head.namespace, &head.name), &head.uid, Some(0)).await?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_node_is_tainted_and_a_found_one_is_not() {
        let own = json!({"spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}], "unschedulable": true}});
        let keys = |list: &[Value]| -> Vec<String> {
            list.iter()
                .map(|t| {
                    format!("{}:{}", t["key"].as_str().unwrap_or_default(), t["effect"].as_str().unwrap_or_default())
                })
                .collect()
        };
        let down = taints(&own, true, "t");
        assert_eq!(
            keys(&down),
            [
                "mine:NoSchedule",
                "node.kubernetes.io/unschedulable:NoSchedule",
                "node.kubernetes.io/unreachable:NoSchedule",
                "node.kubernetes.io/unreachable:NoExecute"
            ]
        );
        let up = taints(&json!({"spec": {"taints": down}}), false, "t");
        assert_eq!(keys(&up), ["mine:NoSchedule"]);
    }

    #[test]
    fn pods_leave_when_their_patience_ends() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().expect("a moment");
        let node = json!({"spec": {"taints": [{"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": "2026-01-01T00:09:00Z"}]}});
        let patience = |seconds: Option<i64>| {
            vec![Toleration {
                key: UNREACHABLE.into(),
                operator: "Exists".into(),
                toleration_seconds: seconds,
                ..Toleration::default()
            }]
        };
        assert_eq!(leaves_at(&[], &node, now), Some(now));
        assert_eq!(leaves_at(&patience(None), &node, now), None);
        assert_eq!(
            leaves_at(&patience(Some(300)), &node, now),
            Some("2026-01-01T00:14:00Z".parse().expect("a moment"))
        );
        assert_eq!(leaves_at(&[], &json!({"spec": {}}), now), None);
    }
}
