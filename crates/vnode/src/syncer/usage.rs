//! What the pods of the worker cluster use, node by node.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use atoll_api::kubeocean_names::{MANAGED_BY, annotation, label};
use atoll_lease::PodFacts;
use atoll_runtime::Change;
use parking_lot::Mutex;
use serde_json::Value;

use super::queues::Queues;
use super::replacement;
use crate::binding::OWNER;
use crate::tree;

/// Facts of all pods of the worker cluster, and on which node they are.
#[derive(Default)]
pub(crate) struct Usage {
    pods: Mutex<HashMap<String, BTreeMap<String, Arc<PodFacts>>>>,
}

/// Whether a pod in the worker cluster runs for this computing cluster. Those the original
/// made carry no owner and count as ours, as they do there.
pub(crate) fn is_ours(pod: &Value, owner: &str) -> bool {
    tree::label(pod, label::MANAGED_BY) == MANAGED_BY && ["", owner].contains(&tree::label(pod, OWNER))
}

/// The pod of the computing cluster that a pod of the worker cluster runs for.
pub(crate) fn original_of(pod: &Value) -> Option<String> {
    let name = tree::annotation(pod, annotation::VIRTUAL_POD_NAME);
    (!name.is_empty()).then(|| tree::key(tree::annotation(pod, annotation::VIRTUAL_POD_NAMESPACE), name))
}

/// These facts; those of a neighbour if they are the same, for pods come in many of a kind.
fn shared(on_node: &BTreeMap<String, Arc<PodFacts>>, facts: &PodFacts) -> Arc<PodFacts> {
    let near = on_node.values().take(4).chain(on_node.values().next_back());
    near.into_iter().find(|known| ***known == *facts).cloned().unwrap_or_else(|| Arc::new(facts.clone()))
}

impl Usage {
    /// Takes in a change and says who has to look again.
    pub(crate) fn hear(&self, change: &Change, owner: &str, queues: &Queues) {
        if let Some(both) = replacement(change) {
            return both.iter().for_each(|change| self.hear(change, owner, queues));
        }
        let item = change.item();
        let pod = item.tree();
        let ours = is_ours(&pod, owner);
        if ours {
            match original_of(&pod) {
                Some(key) => queues.pods.add(key),
                None => queues.strays.add(item.key()),
            }
        }
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if node.is_empty() {
            return;
        }
        let facts = PodFacts::of(&pod, ours);
        let counts = !ours && !facts.over;
        let mut pods = self.pods.lock();
        let on_node = pods.entry(node.to_owned()).or_default();
        let before = match change {
            Change::Deleted(_) => on_node.remove(&item.key()),
            _ => on_node.insert(item.key(), shared(on_node, &facts)),
        };
        let changed = match change {
            Change::Deleted(_) => counts,
            _ => {
                before.as_deref() != Some(&facts)
                    && (counts || before.is_some_and(|before| !before.over && !before.leased))
            }
        };
        if on_node.is_empty() {
            pods.remove(node);
        }
        drop(pods);
        if changed {
            queues.nodes.add(node.to_owned());
        }
    }

    /// The pods on a node.
    pub(crate) fn on(&self, node: &str) -> Vec<PodFacts> {
        let pods = self.pods.lock();
        pods.get(node).into_iter().flat_map(BTreeMap::values).map(|facts| PodFacts::clone(facts)).collect()
    }

    /// Keys of the pods on a node that are not ours.
    pub(crate) fn foreign_on(&self, node: &str) -> Vec<String> {
        let pods = self.pods.lock();
        let on_node = pods.get(node).into_iter().flatten();
        on_node.filter(|(_, facts)| !facts.leased && !facts.over).map(|(key, _)| key.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use atoll_runtime::Item;
    use serde_json::json;

    fn pod(uid: &str, node: &str) -> Item {
        let container = json!({"name": "c", "resources": {"requests": {"cpu": "1"}}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": node, "containers": [container]},
            "metadata": {"name": "db-0", "namespace": "n", "uid": uid, "resourceVersion": "1"}});
        Item::of(&pod).unwrap()
    }

    #[test]
    fn a_pod_uses_nothing_of_the_node_of_an_earlier_one_of_its_name() {
        let (usage, queues) = (Usage::default(), Queues::default());
        usage.hear(&Change::Added(pod("1", "a")), "me", &queues);
        assert_eq!((usage.on("a").len(), queues.nodes.len()), (1, 1));
        usage.hear(&Change::Updated(pod("1", "a"), pod("2", "b")), "me", &queues);
        assert_eq!((usage.on("a").len(), usage.on("b").len()), (0, 1));
        assert_eq!(queues.nodes.len(), 2, "both nodes are looked at");
    }
}
