//! Fake kubelets: nodes that exist, and pods that live on them.

mod address;
mod admit;
mod agnhost;
mod container;
mod image;
mod memory;
mod node;
mod probe;
mod program;
mod stage;
mod status;
mod subpath;
mod variables;
mod wishes;

use std::time::Duration;

pub use address::Addresses;
pub use agnhost::{ports as agnhost_ports, subcommand as agnhost_program};
pub use memory::{Memory, Mount, mounts};
pub use node::{ensure_nodes, is_simulated, ready_conditions};
pub use probe::page_of;
pub use program::{Program, environment, program_of};
pub use variables::{Variables, all_of, entries};
pub use wishes::Wishes;

use serde_json::Value;

use crate::controllers::{Again, split};
use crate::kind::Kind;
use crate::teller::{self, Teller};
use crate::world::{Task, Work, World};
use crate::write;
use stage::{Around, Step};

/// Lets one pod live on: looks where it is, writes the next step, asks to be called for the one after.
pub async fn reconcile(world: &World, work: &Work) -> Again {
    let Some(pod) = world.book.read().pod(&work.key) else { return Ok(None) };
    if pod.node.is_empty() {
        return Ok(None);
    }
    let Some(node) = world.book.read().node(&pod.node) else { return Ok(None) };
    let zone = node.label("topology.kubernetes.io/zone");
    if !node.simulated || world.faults.is_down(node.name(), zone) {
        return Ok(None);
    }
    let tree = pod.item.tree();
    if tree["spec"]["nodeName"].as_str().unwrap_or_default().is_empty() {
        // Only assumed so far; the event of the binding calls again.
        return Ok(None);
    }
    if let Some(status) = admit::refused(world, &pod, &tree, &node) {
        let step = Step { status: Some(status), ..Step::default() };
        return carry_out(world, work, &tree, step).await;
    }
    let host = tree["spec"]["hostNetwork"] == true;
    let ip = if host { node.ip.to_string() } else { world.addresses.lock().take(&node.cidr, &pod.head().uid, &pod.ip) };
    let around = Around {
        now: world.now(),
        ip: &ip,
        host_ip: &node.ip,
        crashes: world.faults.crashes(pod.head()),
        memory: Some(&world.memory),
        unready: &unready(world, &tree),
    };
    world.variables.learn(world, &tree).await;
    let filled = world.variables.fill(&tree);
    let step = stage::step(filled.as_ref().unwrap_or(&tree), &around);
    carry_out(world, work, &tree, step).await
}

/// Names of the containers of a pod whose readiness probes fail.
fn unready(world: &World, tree: &Value) -> Vec<String> {
    let containers = tree["spec"]["containers"].as_array().into_iter().flatten();
    let probed = containers.filter(|one| one["readinessProbe"].is_object());
    let uid = tree["metadata"]["uid"].as_str().unwrap_or_default();
    probed
        .filter_map(|one| {
            let name = one["name"].as_str().unwrap_or_default().to_owned();
            let files = world.files.lock().get(&(uid.into(), name.clone())).cloned();
            probe::fails(tree, one, files.as_ref()).then_some(name)
        })
        .collect()
}

async fn carry_out(world: &World, work: &Work, tree: &Value, step: Step) -> Again {
    if let Some(status) = &step.status
        && let Some(written) = write::status(&world.kubelet, Kind::Pod, tree, status).await?
    {
        world.expect(work, written.revision());
    }
    for (kind, reason, message) in &step.events {
        if *kind == "Warning" || world.spec.verbose_events && world.spec.kubelet_events {
            let node = tree["spec"]["nodeName"].as_str().unwrap_or_default();
            teller::tell(world, Teller::Kubelet(node), tree, kind, reason, message).await;
        }
    }
    if step.remove {
        let uid = tree["metadata"]["uid"].as_str().unwrap_or_default();
        match write::delete(&world.kubelet, Kind::Pod, split(&work.key), uid, Some(0)).await {
            Ok(_) => {}
            // Another pod has the name now.
            Err(status) if status.code == 409 => {}
            Err(status) => return Err(status),
        }
    }
    Ok(step.again.map(|delay| delay.max(Duration::from_millis(1))))
}

/// Calls all pods of a node, because the node changed.
pub fn wake_node(world: &World, node: &str) {
    for pod in world.book.read().pods_on(node) {
        world.add(Task::Pod, pod.item.key());
    }
}
