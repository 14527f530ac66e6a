//! What the scheduler and controllers look at in a node.

use atoll_runtime::Item;
use serde::Deserialize;

use crate::resources::{Named, Resources};

/// A taint of a node.
#[derive(Clone, Debug, Default, Eq, PartialEq, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value; may be empty.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// A node taken apart.
#[derive(Clone, Debug)]
pub struct Node {
    /// The object itself.
    pub item: Item,
    /// What pods may use.
    pub allocatable: Resources,
    /// Pods it takes.
    pub max_pods: i64,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Whether new pods are kept off.
    pub unschedulable: bool,
    /// Network of its pods, such as `10.244.3.0/24`.
    pub cidr: Box<str>,
    /// Its own address.
    pub ip: Box<str>,
    /// Whether its kubelet is ours.
    pub simulated: bool,
}

/// Annotation of nodes whose kubelet is simulated; pods on others are not touched.
pub const SIMULATED: &str = "sim.atoll.io/node";

#[derive(Deserialize)]
struct Body {
    metadata: Meta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    taints: Vec<Taint>,
    unschedulable: bool,
    #[serde(rename = "podCIDR")]
    cidr: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    allocatable: Named,
    addresses: Vec<Address>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Address {
    r#type: String,
    address: String,
}

impl Node {
    /// Takes an object apart; `None` if it is not a node.
    pub fn of(item: &Item) -> Option<Self> {
        let body: Body = item.decode().ok()?;
        let mut allocatable = Resources::of(&body.status.allocatable);
        let max_pods = allocatable.get("pods");
        allocatable.other.retain(|(name, _)| &**name != "pods");
        let inner = body.status.addresses.iter().find(|address| address.r#type == "InternalIP");
        Some(Self {
            item: item.clone(),
            // A virtual node carries the annotations of the node it stands for, but another kubelet runs it.
            simulated: body.metadata.annotations.get(SIMULATED).is_some_and(|value| value == "true")
                && item.object.head.label("type") != Some("virtual-kubelet"),
            allocatable,
            max_pods,
            taints: body.spec.taints,
            unschedulable: body.spec.unschedulable,
            cidr: body.spec.cidr.into(),
            ip: inner.map(|address| address.address.as_str().into()).unwrap_or_default(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.item.object.head.name
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.item.object.head.label(key)
    }
}
