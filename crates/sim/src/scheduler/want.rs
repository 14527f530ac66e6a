//! What a pod asks of the node it runs on.

use std::collections::BTreeMap;

use atoll_runtime::Item;
use serde::Deserialize;
use serde_json::Value;

/// Which taints a pod puts up with.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Toleration {
    /// Key; all if empty.
    pub key: String,
    /// `Exists`, `Equal` (also if empty), `Lt` or `Gt`.
    pub operator: String,
    /// Value.
    pub value: String,
    /// Effect; all if empty.
    pub effect: String,
    /// For how long, where the effect is to be thrown out.
    pub toleration_seconds: Option<i64>,
}

/// The part of a pod's spec that is about where it runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Want {
    /// Labels the node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Rules about nodes and other pods.
    pub affinity: Affinity,
    /// Taints it puts up with.
    pub tolerations: Vec<Toleration>,
    /// How it is to be spread with its like.
    pub topology_spread_constraints: Vec<Spread>,
    /// Whether it may push others out.
    pub preemption_policy: String,
    /// Volumes.
    pub volumes: Vec<Volume>,
}

/// Rules about nodes and other pods.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Affinity {
    /// About nodes.
    pub node_affinity: NodeAffinity,
    /// Pods to be near to.
    pub pod_affinity: PodAffinity,
    /// Pods to be away from.
    pub pod_anti_affinity: PodAffinity,
}

/// Rules about nodes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeAffinity {
    /// Must hold.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
    /// Should hold.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: Vec<PreferredNode>,
}

/// Terms of which one must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSelector {
    /// The terms.
    pub node_selector_terms: Vec<NodeTerm>,
}

/// Expressions that must all hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeTerm {
    /// About labels.
    pub match_expressions: Vec<Expression>,
    /// About fields.
    pub match_fields: Vec<Expression>,
}

/// One expression.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Expression {
    /// Label or field.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    pub operator: String,
    /// Values.
    pub values: Vec<String>,
}

/// A rule about nodes with a weight.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PreferredNode {
    /// Weight.
    pub weight: i64,
    /// The rule.
    pub preference: NodeTerm,
}

/// Rules about other pods.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodAffinity {
    /// Must hold.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Vec<PodTerm>,
    /// Should hold.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: Vec<PreferredPod>,
}

/// A rule about other pods.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodTerm {
    /// Labels of the other pods.
    pub label_selector: Option<Value>,
    /// Their namespaces.
    pub namespaces: Vec<String>,
    /// Labels of their namespaces.
    pub namespace_selector: Option<Value>,
    /// Label of nodes that makes a place.
    pub topology_key: String,
    /// Labels of this pod that the others must have, too.
    pub match_label_keys: Vec<String>,
    /// Labels of this pod that the others must not have.
    pub mismatch_label_keys: Vec<String>,
}

/// A rule about other pods with a weight.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PreferredPod {
    /// Weight.
    pub weight: i64,
    /// The rule.
    pub pod_affinity_term: PodTerm,
}

/// How a pod is to be spread with its like.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Spread {
    /// Largest difference between places.
    pub max_skew: i64,
    /// Label of nodes that makes a place.
    pub topology_key: String,
    /// `DoNotSchedule` or `ScheduleAnyway`.
    pub when_unsatisfiable: String,
    /// Labels of its like.
    pub label_selector: Option<Value>,
    /// Least number of places.
    pub min_domains: Option<i64>,
    /// Whether nodes its affinity excludes count: `Honor` or `Ignore`.
    pub node_affinity_policy: Option<String>,
    /// Whether nodes with taints it does not tolerate count.
    pub node_taints_policy: Option<String>,
    /// Labels of this pod that its like must have, too.
    pub match_label_keys: Vec<String>,
}

/// A volume, as far as it matters here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Volume {
    name: String,
    persistent_volume_claim: Option<Claim>,
    ephemeral: Option<serde::de::IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Claim {
    claim_name: String,
}

#[derive(Deserialize)]
struct Body {
    spec: Want,
}

impl Want {
    /// Reads a pod.
    pub fn of(item: &Item) -> Option<Self> {
        item.decode::<Body>().ok().map(|body| body.spec)
    }

    /// Reads a pod template.
    pub fn of_template(template: &Value) -> Self {
        Self::deserialize(&template["spec"]).unwrap_or_default()
    }

    /// Claims of its volumes.
    pub fn claims<'a>(&'a self, pod: &'a str) -> impl Iterator<Item = String> + 'a {
        self.volumes.iter().filter_map(move |volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(claim), _) => Some(claim.claim_name.clone()),
            (None, Some(_)) => Some(format!("{pod}-{}", volume.name)),
            (None, None) => None,
        })
    }
}
