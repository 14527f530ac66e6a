//! The container a request is about.

use std::sync::Arc;

use atoll_apiserver::Target;
use atoll_meta::{Reason, Status};
use serde_json::Value;

use crate::kubelet::{Program, Wishes, program_of};
use crate::pod::Pod;
use crate::time;
use crate::world::World;

/// A container of a pod.
#[derive(Clone)]
pub struct Container {
    /// The pod as it is now.
    pub pod: Arc<Pod>,
    /// Its tree.
    pub tree: Value,
    /// Name of the container.
    pub name: String,
    /// Its part of the spec.
    pub spec: Value,
    /// Its status; null before there is one.
    pub status: Value,
}

fn lists(tree: &Value, names: [&str; 3]) -> Vec<Value> {
    let place = |part: &str, list: &str| tree[part][list].as_array().cloned().unwrap_or_default();
    let part = if names[0].ends_with("Statuses") { "status" } else { "spec" };
    names.iter().flat_map(|list| place(part, list)).collect()
}

/// Finds a pod whose node answers.
pub fn pod(world: &World, target: &Target) -> Result<Arc<Pod>, Status> {
    let key = format!("{}/{}", target.namespace, target.name);
    let pod = world.book.read().pod(&key).ok_or_else(|| Status::not_found("", "pods", &target.name))?;
    if pod.node.is_empty() {
        return Err(Status::bad_request(format!("pod {} does not have a host assigned", target.name)));
    }
    let node = world.book.read().node(&pod.node).ok_or_else(|| Status::not_found("", "nodes", &pod.node))?;
    if !node.simulated {
        return Err(Status::new(501, Reason::Unknown, format!("node {} is not simulated", pod.node)));
    }
    if world.faults.is_down(node.name(), node.label("topology.kubernetes.io/zone")) {
        return Err(Status::internal(format!("dial tcp {}:10250: connect: no route to host", node.ip)));
    }
    Ok(pod)
}

/// Finds the container a request names, or the only one there is.
pub fn find(world: &World, target: &Target, wanted: Option<&str>) -> Result<Container, Status> {
    let pod = pod(world, target)?;
    let tree = pod.item.tree();
    let specs = lists(&tree, ["containers", "initContainers", "ephemeralContainers"]);
    let name = match wanted.filter(|name| !name.is_empty()) {
        Some(name) => name.to_owned(),
        None => the_only_one(&tree, &target.name)?,
    };
    let Some(spec) = specs.into_iter().find(|spec| spec["name"] == name.as_str()) else {
        return Err(Status::bad_request(format!("container {name} is not valid for pod {}", target.name)));
    };
    let statuses = lists(&tree, ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"]);
    let status = statuses.into_iter().find(|status| status["name"] == name.as_str()).unwrap_or_default();
    Ok(Container { pod, tree, name, spec, status })
}

fn the_only_one(tree: &Value, pod: &str) -> Result<String, Status> {
    let names: Vec<&str> =
        tree["spec"]["containers"].as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect();
    match names.as_slice() {
        [only] => Ok((*only).to_owned()),
        _ => Err(Status::bad_request(format!(
            "a container name must be specified for pod {pod}, choose one of: [{}]",
            names.join(" ")
        ))),
    }
}

impl Container {
    /// The same container as it is now; `None` when its pod is gone.
    pub fn refreshed(&self, world: &World) -> Option<Self> {
        let head = self.pod.head();
        let pod = world.book.read().pod(&format!("{}/{}", head.namespace, head.name))?;
        if pod.head().uid != head.uid {
            return None;
        }
        let tree = pod.item.tree();
        let statuses = lists(&tree, ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"]);
        let status = statuses.into_iter().find(|status| status["name"] == self.name.as_str()).unwrap_or_default();
        Some(Self { pod, tree, status, ..self.clone() })
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.status["state"].get("running").is_some()
    }

    /// Fails unless it runs.
    pub fn check_running(&self) -> Result<(), Status> {
        if self.is_running() {
            return Ok(());
        }
        if self.pod.is_finished() {
            let phase = self.tree["status"]["phase"].as_str().unwrap_or_default();
            return Err(Status::bad_request(format!(
                "cannot exec into a container in a completed pod; current phase is {phase}"
            )));
        }
        Err(Status::internal(format!("unable to upgrade connection: container not found (\"{}\")", self.name)))
    }

    /// What it says in one run: moments and lines from its start to its end, or to now.
    pub fn said(&self, world: &World, run: &Value, now: jiff::Timestamp) -> Vec<(jiff::Timestamp, String)> {
        let Some(start) = time::read(&run["startedAt"]) else { return Vec::new() };
        let end = time::read(&run["finishedAt"]).unwrap_or(now);
        self.program(world, run, start).between(start, end)
    }

    /// The next moment at which a running container says something.
    pub fn says_next(&self, world: &World, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let run = &self.status["state"]["running"];
        let start = time::read(&run["startedAt"])?;
        self.program(world, run, start).next_after(start, after)
    }

    /// What it does, or did, in a run.
    fn program(&self, world: &World, run: &Value, start: jiff::Timestamp) -> Program {
        let count = self.status["restartCount"].as_u64().unwrap_or_default();
        let last = self.status["lastState"]["terminated"].get("startedAt") == run.get("startedAt");
        let number = if last { count.saturating_sub(1) } else { count };
        world.memory.recall(&self.pod.head().uid, &self.name, number).unwrap_or_else(|| {
            let wishes = Wishes::of(&self.tree);
            let filled = world.variables.fill(&self.tree);
            let tree = filled.as_ref().unwrap_or(&self.tree);
            let specs = lists(tree, ["containers", "initContainers", "ephemeralContainers"]);
            let spec = specs.into_iter().find(|spec| spec["name"] == self.name.as_str()).unwrap_or_default();
            program_of(tree, &spec, &wishes, world.faults.crashes(self.pod.head()), start)
        })
    }
}
