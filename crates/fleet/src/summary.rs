//! What a member has and what is in use, kept up to date node by node and pod by pod.

use std::collections::{BTreeMap, HashMap};

use atoll_api::Quantity;
use atoll_api::cluster::{AllocatableModeling, NodeSummary, ResourceModel, ResourceSummary};
use atoll_api::work::{NodeClaim, ReplicaRequirements};
use atoll_meta::quantity::Quantity as Amount;
use k8s_openapi::api::core::v1::{NodeSelectorTerm, Taint};
use serde_json::Value;

type Amounts = BTreeMap<String, Amount>;

#[derive(Clone, Debug, Default, PartialEq)]
struct Node {
    allocatable: Amounts,
    ready: bool,
    labels: BTreeMap<String, String>,
    taints: Vec<Taint>,
    cordoned: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Pod {
    node: String,
    requests: Amounts,
}

/// Nodes and pods of a member, and their sums.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    nodes: HashMap<String, Node>,
    pods: HashMap<String, Pod>,
    /// What pods on each node ask for; those without a node are under the empty name.
    used: HashMap<String, Amounts>,
}

fn read(map: &Value) -> Amounts {
    let entries = map.as_object().into_iter().flatten();
    entries
        .filter_map(|(name, amount)| {
            let text = amount.as_str().map_or_else(|| amount.to_string(), ToOwned::to_owned);
            Some((name.clone(), Amount::parse(&text).ok()?))
        })
        .collect()
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let own = sum.entry(name.clone()).or_insert(Amount::ZERO);
        *own += *amount;
    }
}

fn subtract(sum: &mut Amounts, less: &Amounts) {
    for (name, amount) in less {
        if let Some(own) = sum.get_mut(name) {
            *own = own.checked_sub(*amount).unwrap_or(Amount::ZERO);
        }
    }
    sum.retain(|_, amount| !amount.is_zero());
}

/// Whether a pod with this claim may run on a node.
fn fits(node: &Node, claim: Option<&NodeClaim>) -> bool {
    let none = NodeClaim::default();
    let claim = claim.unwrap_or(&none);
    let bears = |taint: &Taint| claim.tolerations.iter().any(|toleration| crate::evict::tolerates(toleration, taint));
    let selected = claim.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value));
    let terms = claim.hard_node_affinity.as_ref().map(|affinity| affinity.node_selector_terms.as_slice());
    let term_fits = |term: &NodeSelectorTerm| {
        term.match_fields.is_none()
            && term.match_expressions.iter().flatten().all(|requirement| {
                let label = node.labels.get(&requirement.key);
                let values = requirement.values.as_deref().unwrap_or_default();
                let number = |text: Option<&String>| text.and_then(|text| text.parse::<i64>().ok());
                match requirement.operator.as_str() {
                    "In" => label.is_some_and(|label| values.contains(label)),
                    "NotIn" => label.is_none_or(|label| !values.contains(label)),
                    "Exists" => label.is_some(),
                    "DoesNotExist" => label.is_none(),
                    "Gt" => number(label).zip(number(values.first())).is_some_and(|(own, limit)| own > limit),
                    "Lt" => number(label).zip(number(values.first())).is_some_and(|(own, limit)| own < limit),
                    _ => false,
                }
            })
    };
    selected
        && terms.is_none_or(|terms| terms.iter().any(term_fits))
        && node.taints.iter().filter(|taint| taint.effect != "PreferNoSchedule").all(bears)
}

impl Summary {
    /// A node came or changed; whether in what counts: heartbeats do not.
    pub fn put_node(&mut self, node: &Value) -> bool {
        let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
        let ready =
            conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        let name = node["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let node = Node {
            allocatable: read(&node["status"]["allocatable"]),
            ready,
            labels: serde_json::from_value(node["metadata"]["labels"].clone()).unwrap_or_default(),
            taints: serde_json::from_value(node["spec"]["taints"].clone()).unwrap_or_default(),
            cordoned: node["spec"]["unschedulable"] == true,
        };
        if self.nodes.get(&name) == Some(&node) {
            return false;
        }
        self.nodes.insert(name, node);
        true
    }

    /// A node is gone; whether it was known.
    pub fn remove_node(&mut self, name: &str) -> bool {
        self.nodes.remove(name).is_some()
    }

    /// A pod came or changed; one that has ended uses nothing. Whether it changed in what counts.
    pub fn put_pod(&mut self, key: &str, pod: &Value) -> bool {
        if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
            return self.remove_pod(key);
        }
        let mut requests: Amounts = BTreeMap::new();
        let needs = atoll_interpreter::builtin::requirements(pod);
        for (name, amount) in needs.requests {
            if let Ok(amount) = Amount::parse(&amount.0) {
                requests.insert(name, amount);
            }
        }
        requests.insert("pods".to_owned(), Amount::from_value(1));
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
        let pod = Pod { node, requests };
        if self.pods.get(key) == Some(&pod) {
            return false;
        }
        self.remove_pod(key);
        add(self.used.entry(pod.node.clone()).or_default(), &pod.requests);
        self.pods.insert(key.to_owned(), pod);
        true
    }

    /// A pod is gone; whether it was known.
    pub fn remove_pod(&mut self, key: &str) -> bool {
        let Some(pod) = self.pods.remove(key) else { return false };
        if let Some(used) = self.used.get_mut(&pod.node) {
            subtract(used, &pod.requests);
        }
        true
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> NodeSummary {
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        NodeSummary {
            total_num: count(self.nodes.len()),
            ready_num: count(self.nodes.values().filter(|node| node.ready).count()),
        }
    }

    /// What there is and what is in use.
    pub fn resources(&self, models: &[ResourceModel]) -> ResourceSummary {
        let (mut allocatable, mut allocated) = (Amounts::new(), Amounts::new());
        for node in self.nodes.values() {
            add(&mut allocatable, &node.allocatable);
        }
        for (node, used) in &self.used {
            if !node.is_empty() {
                add(&mut allocated, used);
            }
        }
        let allocating = self.used.get("").cloned().unwrap_or_default();
        let write =
            |amounts: Amounts| amounts.into_iter().map(|(name, amount)| (name, Quantity(amount.to_string()))).collect();
        ResourceSummary {
            allocatable: write(allocatable),
            allocating: write(allocating),
            allocated: write(allocated),
            allocatable_modelings: self.grades(models),
        }
    }

    /// How many replicas its nodes have room for, node by node.
    pub fn estimate(&self, requirements: Option<&ReplicaRequirements>) -> i32 {
        let claim = requirements.and_then(|requirements| requirements.node_claim.as_ref());
        let mut needs: Amounts = requirements
            .into_iter()
            .flat_map(|requirements| &requirements.resource_request)
            .filter_map(|(name, amount)| Some((name.clone(), Amount::parse(&amount.0).ok()?)))
            .filter(|(_, amount)| !amount.is_zero())
            .collect();
        needs.insert("pods".to_owned(), Amount::from_value(1));
        let mut total = 0_i64;
        for (name, node) in &self.nodes {
            if !node.ready || node.cordoned || !fits(node, claim) {
                continue;
            }
            let used = self.used.get(name);
            let room = needs.iter().map(|(resource, need)| {
                let whole = node.allocatable.get(resource).copied().unwrap_or(Amount::ZERO);
                let taken = used.and_then(|used| used.get(resource)).copied().unwrap_or(Amount::ZERO);
                let left = whole.checked_sub(taken).filter(|left| !left.is_negative()).unwrap_or(Amount::ZERO);
                left.checked_div(*need).unwrap_or(0)
            });
            total = total.saturating_add(room.min().unwrap_or(0));
        }
        i32::try_from(total).unwrap_or(i32::MAX)
    }

    /// How many nodes fall into each grade by what they have left.
    fn grades(&self, models: &[ResourceModel]) -> Vec<AllocatableModeling> {
        let mut counts = vec![0_i64; models.len()];
        for (name, node) in self.nodes.iter().filter(|(_, node)| node.ready) {
            let mut left = node.allocatable.clone();
            if let Some(used) = self.used.get(name) {
                subtract(&mut left, used);
            }
            let grade = models.iter().rposition(|model| {
                model.ranges.iter().all(|range| {
                    let least = Amount::parse(&range.min.0).unwrap_or(Amount::ZERO);
                    left.get(&range.name).copied().unwrap_or(Amount::ZERO) >= least
                })
            });
            if let Some(count) = grade.and_then(|grade| counts.get_mut(grade)) {
                *count += 1;
            }
        }
        models.iter().zip(counts).map(|(model, count)| AllocatableModeling { grade: model.grade, count }).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn node(name: &str, cpu: &str, ready: &str) -> Value {
        json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"},
               "conditions": [{"type": "Ready", "status": ready}]}})
    }

    fn pod(node: &str, cpu: &str, phase: &str) -> Value {
        json!({"spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": cpu}}}]}, "status": {"phase": phase}})
    }

    #[test]
    fn sums_follow_nodes_and_pods() {
        let mut summary = Summary::default();
        summary.put_node(&node("a", "4", "True"));
        summary.put_node(&node("b", "2", "False"));
        summary.put_pod("d/one", &pod("a", "500m", "Running"));
        summary.put_pod("d/two", &pod("", "1", "Pending"));
        summary.put_pod("d/old", &pod("a", "1", "Succeeded"));
        assert_eq!(summary.nodes(), NodeSummary { total_num: 2, ready_num: 1 });
        let resources = summary.resources(&[]);
        assert_eq!(resources.allocatable["cpu"].0, "6");
        assert_eq!((resources.allocated["cpu"].0.as_str(), resources.allocated["pods"].0.as_str()), ("500m", "1"));
        assert_eq!(resources.allocating["cpu"].0, "1");
        summary.put_pod("d/two", &pod("b", "1", "Running"));
        assert_eq!(summary.resources(&[]).allocated["cpu"].0, "1500m");
        summary.remove_pod("d/one");
        summary.remove_node("b");
        let resources = summary.resources(&[]);
        assert_eq!((resources.allocatable["cpu"].0.as_str(), resources.allocated["cpu"].0.as_str()), ("4", "1"));
    }

    #[test]
    fn room_is_counted_node_by_node() {
        let mut summary = Summary::default();
        let mut one = node("a", "4", "True");
        one["metadata"]["labels"] = json!({"disk": "ssd"});
        summary.put_node(&one);
        let mut two = node("b", "3", "True");
        two["spec"] = json!({"taints": [{"key": "gpu", "effect": "NoSchedule"}]});
        summary.put_node(&two);
        summary.put_node(&node("c", "64", "False"));
        summary.put_pod("d/one", &pod("a", "500m", "Running"));
        let need = |more: Value| -> ReplicaRequirements {
            let mut all = json!({"resourceRequest": {"cpu": "2"}});
            atoll_patch::merge_patch(&mut all, &more);
            serde_json::from_value(all).unwrap()
        };
        for (requirements, expected) in [
            (need(json!({})), 1),
            (need(json!({"nodeClaim": {"tolerations": [{"key": "gpu", "operator": "Exists"}]}})), 2),
            (need(json!({"nodeClaim": {"nodeSelector": {"disk": "hdd"}}})), 0),
            (
                need(
                    json!({"nodeClaim": {"hardNodeAffinity": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}}}),
                ),
                1,
            ),
            (need(json!({"resourceRequest": {"cpu": "500m", "memory": "2Gi"}})), 4),
            (need(json!({"resourceRequest": {"nvidia.com/gpu": "1"}})), 0),
        ] {
            assert_eq!(summary.estimate(Some(&requirements)), expected, "{requirements:?}");
        }
        assert_eq!(summary.estimate(None), 109, "without needs only pods count");
    }

    #[test]
    fn nodes_are_graded_by_what_they_have_left() {
        let model = |grade: i64, min: &str| -> ResourceModel {
            serde_json::from_value(json!({"grade": grade, "ranges": [{"name": "cpu", "min": min, "max": "99"}]}))
                .unwrap()
        };
        let models = [model(0, "0"), model(1, "2"), model(2, "4")];
        let mut summary = Summary::default();
        summary.put_node(&node("a", "4", "True"));
        summary.put_node(&node("b", "3", "True"));
        let counts = |summary: &Summary| {
            summary.resources(&models).allocatable_modelings.iter().map(|grade| grade.count).collect::<Vec<_>>()
        };
        assert_eq!(counts(&summary), [0, 1, 1]);
        summary.put_pod("d/one", &pod("a", "3", "Running"));
        assert_eq!(counts(&summary), [1, 1, 0]);
    }
}
