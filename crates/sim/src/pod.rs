//! What controllers and the scheduler look at in a pod.

use atoll_meta::Head;
use atoll_runtime::Item;
use jiff::Timestamp;
use serde::Deserialize;

use crate::resources::{Named, Resources};

/// Where a pod is in its life.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Ord, PartialOrd, Deserialize)]
#[allow(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Phase {
    #[default]
    Pending,
    Unknown,
    Running,
    Succeeded,
    Failed,
}

/// A pod taken apart once, for all who look at it.
#[derive(Clone, Debug)]
pub struct Pod {
    /// The object itself.
    pub item: Item,
    /// Where it is in its life.
    pub phase: Phase,
    /// Node it is bound to; empty before.
    pub node: Box<str>,
    /// Since when it is ready, if it is.
    pub ready: Option<Timestamp>,
    /// When it was made.
    pub created: Timestamp,
    /// When its last container ended; only for finished pods.
    pub finished: Option<Timestamp>,
    /// How often its containers were started again.
    pub restarts: i64,
    /// What it asks of a node.
    pub request: Resources,
    /// Ports of the node it takes.
    pub ports: Box<[HostPort]>,
    /// Its address.
    pub ip: Box<str>,
    /// Its priority.
    pub priority: i32,
    /// What it costs to delete it, if that was said.
    pub deletion_cost: i32,
    /// Whether it refuses to share a place with some other pods.
    pub repels: bool,
    /// Whether it waits for the default scheduler.
    pub waits: bool,
    /// Node that others leave for it; empty unless that was arranged.
    pub nominated: Box<str>,
}

/// A port of a node that a pod takes.
#[derive(Clone, Debug, Eq, PartialEq, Ord, PartialOrd)]
pub struct HostPort {
    /// Address of the node; all if empty or `0.0.0.0`.
    pub ip: Box<str>,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Box<str>,
    /// Number.
    pub port: u16,
}

impl HostPort {
    /// Whether both cannot be on one node.
    pub fn collides(&self, other: &Self) -> bool {
        let any = |ip: &str| ip.is_empty() || ip == "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (any(&self.ip) || any(&other.ip) || self.ip == other.ip)
    }
}

impl Pod {
    /// Takes an object apart; `None` if it is not a pod.
    pub fn of(item: &Item) -> Option<Self> {
        let body: Body = item.decode().ok()?;
        let ready = body.status.conditions.iter().find(|c| c.kind == "Ready" && c.status == "True");
        let statuses = &body.status.container_statuses;
        let finished = matches!(body.status.phase, Phase::Succeeded | Phase::Failed).then(|| {
            let ends = statuses.iter().filter_map(|status| status.state.terminated.as_ref()?.finished_at);
            ends.max().unwrap_or(body.metadata.creation_timestamp)
        });
        let cost = body.metadata.annotations.as_ref().and_then(|all| all.cost.as_deref()?.parse().ok());
        Some(Self {
            phase: body.status.phase,
            ready: ready.map(|c| c.last_transition_time.unwrap_or(body.metadata.creation_timestamp)),
            created: body.metadata.creation_timestamp,
            finished,
            restarts: statuses.iter().map(|status| status.restart_count).sum(),
            request: body.spec.request(),
            ports: body.spec.ports(),
            repels: body.spec.repels(),
            waits: body.spec.node_name.is_empty()
                && body.spec.scheduling_gates.is_empty()
                && matches!(body.spec.scheduler_name.as_str(), "" | "default-scheduler"),
            node: body.spec.node_name.into(),
            ip: body.status.pod_ip.into(),
            priority: body.spec.priority,
            deletion_cost: cost.unwrap_or_default(),
            nominated: body.status.nominated_node_name.into(),
            item: item.clone(),
        })
    }

    /// Its metadata.
    pub fn head(&self) -> &Head {
        &self.item.object.head
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.head().name
    }

    /// Whether it is finished, well or not.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Whether it counts for those who want a number of pods.
    pub fn is_active(&self) -> bool {
        !self.is_finished() && !self.head().deleting
    }

    /// Whether it takes room on its node.
    pub fn takes_room(&self) -> bool {
        !self.node.is_empty() && !self.is_finished()
    }

    /// Whether it has been ready for so many seconds.
    pub fn is_available(&self, min_ready: i64, now: Timestamp) -> bool {
        self.ready.is_some_and(|since| min_ready == 0 || crate::time::plus(since, min_ready) <= now)
    }
}

#[derive(Deserialize)]
struct Body {
    metadata: Meta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    creation_timestamp: Timestamp,
    annotations: Option<Annotations>,
}

#[derive(Deserialize)]
struct Annotations {
    #[serde(rename = "controller.kubernetes.io/pod-deletion-cost")]
    cost: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: String,
    scheduler_name: String,
    scheduling_gates: Vec<serde::de::IgnoredAny>,
    priority: i32,
    host_network: bool,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    overhead: Named,
    resources: Wants,
    affinity: Option<Affinity>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    resources: Wants,
    ports: Vec<Port>,
    restart_policy: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wants {
    requests: Named,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Port {
    #[serde(rename = "hostIP")]
    host_ip: String,
    host_port: u16,
    container_port: u16,
    protocol: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Affinity {
    pod_anti_affinity: Option<Terms>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Terms {
    required_during_scheduling_ignored_during_execution: Vec<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    phase: Phase,
    nominated_node_name: String,
    #[serde(rename = "podIP")]
    pod_ip: String,
    conditions: Vec<Condition>,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    status: String,
    last_transition_time: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerStatus {
    restart_count: i64,
    state: State,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct State {
    terminated: Option<Terminated>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terminated {
    finished_at: Option<Timestamp>,
}

impl Spec {
    /// Containers add up; init containers run one after another, except those that stay.
    fn request(&self) -> Resources {
        let mut sum = Resources::default();
        for container in &self.containers {
            sum.add(&Resources::of(&container.resources.requests));
        }
        let mut beside = Resources::default();
        let mut peak = Resources::default();
        for container in &self.init_containers {
            let own = Resources::of(&container.resources.requests);
            if container.restart_policy == "Always" {
                beside.add(&own);
                peak.at_least(&beside);
            } else {
                let mut here = beside.clone();
                here.add(&own);
                peak.at_least(&here);
            }
        }
        sum.add(&beside);
        sum.at_least(&peak);
        // What is asked for the pod as a whole replaces what its containers ask.
        let whole = Resources::of(&self.resources.requests);
        for (name, units) in [(whole.cpu, &mut sum.cpu), (whole.memory, &mut sum.memory)] {
            if name > 0 {
                *units = name;
            }
        }
        sum.add(&Resources::of(&self.overhead));
        sum
    }

    fn ports(&self) -> Box<[HostPort]> {
        let all = self.containers.iter().chain(&self.init_containers).flat_map(|container| &container.ports);
        let taken = all.filter_map(|port| {
            let number = if port.host_port == 0 && self.host_network { port.container_port } else { port.host_port };
            (number > 0).then(|| HostPort {
                ip: port.host_ip.as_str().into(),
                protocol: if port.protocol.is_empty() { "TCP".into() } else { port.protocol.as_str().into() },
                port: number,
            })
        });
        taken.collect()
    }

    fn repels(&self) -> bool {
        let terms = self.affinity.as_ref().and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        terms.is_some_and(|terms| !terms.required_during_scheduling_ignored_during_execution.is_empty())
    }
}

#[cfg(test)]
#[path = "pod_tests.rs"]
mod tests;
