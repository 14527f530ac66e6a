//! The nodes of a simulated cluster.

use atoll_meta::{Gvr, Status};
use futures::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};

use super::image::digest;
use crate::kind::Kind;
use crate::node::SIMULATED;
use crate::spec::Spec;
use crate::world::World;
use crate::{time, write};

/// How many nodes are made at once.
const WIDTH: usize = 16;

/// Makes the nodes that are missing.
pub async fn ensure_nodes(world: &World) -> Result<(), Status> {
    let there = world.manager.list(Kind::Node.gvr(), None, "").await?;
    let known: Vec<&str> = there.items.iter().filter_map(|node| node["metadata"]["name"].as_str()).collect();
    let missing = (0..world.spec.nodes).filter(|index| !known.contains(&name(world, *index).as_str()));
    let creating: Vec<_> = missing.map(|index| create(world, index).boxed()).collect();
    let mut made = futures::stream::iter(creating).buffer_unordered(WIDTH);
    while let Some(result) = made.next().await {
        result?;
    }
    Ok(())
}

async fn create(world: &World, index: usize) -> Result<(), Status> {
    let now = time::text(world.now());
    let name = name(world, index);
    let node = object(&world.spec, &name, index, &now);
    let status = node["status"].clone();
    match write::create(&world.kubelet, Kind::Node, "", &node).await {
        Err(status) if status.code == 409 => return Ok(()),
        result => result.map(drop)?,
    }
    write::merge(&world.kubelet, Kind::Node, ("", &name), "status", &json!({"status": status})).await?;
    let leases = Gvr::new("coordination.k8s.io", "v1", "leases");
    let lease = lease_of(&name, &atoll_meta::time::format_micro(world.now()));
    world.kubelet.ensure(&leases, Some("kube-node-lease"), &lease).await?;
    Ok(())
}

fn name(world: &World, index: usize) -> String {
    format!("{}-node-{}", world.name, index + 1)
}

/// Whether a node's kubelet is simulated.
pub fn is_simulated(node: &Value) -> bool {
    node["metadata"]["annotations"][SIMULATED] == "true" && node["metadata"]["labels"]["type"] != "virtual-kubelet"
}

/// The lease by which a node shows that it lives.
pub fn lease_of(name: &str, now: &str) -> Value {
    json!({
        "kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now},
    })
}

/// The conditions of a healthy node.
pub fn ready_conditions(now: &str) -> Value {
    let row = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": status, "reason": reason, "message": message,
               "lastHeartbeatTime": now, "lastTransitionTime": now})
    };
    json!([
        row("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        row("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        row("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        row("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ])
}

fn object(spec: &Spec, name: &str, index: usize, now: &str) -> Value {
    let mut labels = json!({
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": spec.region, "topology.kubernetes.io/zone": spec.zone(index),
        "node.kubernetes.io/instance-type": format!("{}.{}x{}", spec.provider, spec.cpu, spec.memory).to_lowercase(),
    });
    for (key, value) in &spec.labels {
        labels[key] = value.clone().into();
    }
    let network = format!("10.{}.{}.0/24", 244 + (index / 256) % 11, index % 256);
    json!({
        "kind": "Node", "apiVersion": "v1",
        "metadata": {"name": name, "labels": labels, "annotations": {SIMULATED: "true"}},
        "spec": {"podCIDR": network, "podCIDRs": [network], "providerID": format!("{}://{}/{name}", spec.provider, spec.zone(index))},
        "status": status(spec, name, index, now),
    })
}

fn status(spec: &Spec, name: &str, index: usize, now: &str) -> Value {
    let mut capacity = json!({
        "cpu": spec.cpu, "memory": spec.memory, "pods": spec.pods.to_string(), "ephemeral-storage": "100Gi",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0",
    });
    for (resource, amount) in &spec.extended {
        capacity[resource] = amount.clone().into();
    }
    let id = digest(name);
    json!({
        "capacity": capacity, "allocatable": capacity, "conditions": ready_conditions(now),
        "addresses": [
            {"type": "InternalIP", "address": format!("172.18.{}.{}", index / 250, index % 250 + 2)},
            {"type": "Hostname", "address": name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64", "operatingSystem": "linux", "osImage": "Simulated Linux", "kernelVersion": "6.12.0",
            "containerRuntimeVersion": "containerd://2.2.0", "kubeletVersion": spec.kubelet_version, "kubeProxyVersion": "",
            "machineID": &id[..32], "systemUUID": &id[32..], "bootID": &id[16..48],
        },
    })
}
