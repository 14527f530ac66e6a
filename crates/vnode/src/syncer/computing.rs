//! What all syncers know of the computing cluster: virtual nodes and pods, followed once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use atoll_api::kubeocean_names::{MANAGED_BY, annotation, label, taint};
use atoll_meta::Status;
use atoll_runtime::{Cache, Change, Endpoint, Informer, Item, Selection};
use parking_lot::{Mutex, RwLock};
use serde::Deserialize;

use super::queues::Queues;
use super::replacement;
use crate::node::Ports;
use crate::resource;
use crate::tree;
use crate::trim;

/// The computing cluster as all syncers see it.
pub(crate) struct Computing {
    pub(crate) endpoint: Endpoint,
    /// Uid of its `kube-system`: whose objects in worker clusters are.
    pub(crate) owner: String,
    pub(crate) nodes: Cache,
    pub(crate) pods: Cache,
    pub(crate) csi_nodes: Cache,
    /// Ports of all virtual nodes: several bindings may share an address.
    pub(crate) ports: Ports,
    routes: Arc<Routes>,
    /// Dropping them ends the following.
    informers: [Informer; 3],
}

/// What pods need to know of the virtual node they are on; kept so that a node is read once, not once per pod.
#[derive(Debug)]
pub(crate) struct Host {
    /// The binding it belongs to.
    pub(crate) binding: String,
    pub(crate) cluster_id: String,
    /// Whether an annotation says so, which wins over the labels.
    pub(crate) named: bool,
    /// The node it stands for.
    pub(crate) physical: String,
    /// The policy that lends it.
    pub(crate) policy: String,
    /// Whether it is taken back by force: pods that come late go as those did that were there.
    reclaimed: bool,
}

impl Host {
    fn of(item: &Item) -> Self {
        let node = item.tree();
        let named = tree::annotation(&node, annotation::PHYSICAL_CLUSTER_NAME);
        let binding = if named.is_empty() { tree::label(&node, label::CLUSTER_BINDING) } else { named };
        Self {
            binding: binding.to_owned(),
            cluster_id: tree::label(&node, label::PHYSICAL_CLUSTER_ID).to_owned(),
            named: !named.is_empty(),
            physical: tree::label(&node, label::PHYSICAL_NODE_NAME).to_owned(),
            policy: tree::annotation(&node, annotation::POLICIES_APPLIED).to_owned(),
            reclaimed: tree::list(&node["spec"]["taints"])
                .iter()
                .any(|own| own["key"] == taint::OUT_OF_WINDOWS && own["effect"] == "NoExecute"),
        }
    }
}

/// Which syncer hears of what.
struct Routes {
    queues: RwLock<HashMap<String, Queues>>,
    by_node: Mutex<HashMap<String, HashSet<String>>>,
    hosts: RwLock<HashMap<String, Arc<Host>>>,
}

#[derive(Deserialize)]
struct Slim {
    #[serde(default)]
    spec: SlimSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimSpec {
    #[serde(default)]
    node_name: String,
}

/// The node a pod is bound to.
fn node_of(item: &Item) -> String {
    item.decode::<Slim>().map(|slim| slim.spec.node_name).unwrap_or_default()
}

impl Computing {
    /// Starts following.
    pub(crate) async fn start(endpoint: Endpoint) -> Result<Self, Status> {
        let system = endpoint.get(&resource::namespaces(), None, "kube-system").await?;
        let routes =
            Arc::new(Routes { queues: RwLock::default(), by_node: Mutex::default(), hosts: RwLock::default() });
        let selection =
            Selection { namespace: None, query: format!("labelSelector={}%3D{MANAGED_BY}", label::MANAGED_BY) };
        let sink = routes.clone();
        let nodes =
            Informer::start_slim(endpoint.clone(), resource::nodes(), selection.clone(), trim::bare, move |change| {
                sink.node(&change)
            });
        let sink = routes.clone();
        let everywhere = Selection::default();
        let pods = Informer::start_slim(endpoint.clone(), resource::pods(), everywhere, trim::above, move |change| {
            sink.pod(&change)
        });
        let sink = routes.clone();
        let csi_nodes = Informer::start(endpoint.clone(), crate::node::csi_nodes(), selection, move |change| {
            sink.csi_node(&change)
        });
        Ok(Self {
            endpoint,
            owner: tree::uid(&system).to_owned(),
            nodes: nodes.cache.clone(),
            pods: pods.cache.clone(),
            csi_nodes: csi_nodes.cache.clone(),
            ports: Ports::default(),
            routes,
            informers: [nodes, pods, csi_nodes],
        })
    }

    pub(crate) async fn synced(&self) {
        for informer in &self.informers {
            informer.synced().await;
        }
    }

    /// Lets a syncer hear of its nodes and pods until the registration is dropped.
    pub(crate) fn register(&self, binding: &str, queues: Queues) -> Registration {
        self.routes.queues.write().insert(binding.to_owned(), queues);
        Registration { routes: self.routes.clone(), binding: binding.to_owned() }
    }

    /// Keys of the pods on a virtual node.
    pub(crate) fn pods_on(&self, node: &str) -> Vec<String> {
        self.routes.by_node.lock().get(node).into_iter().flatten().cloned().collect()
    }

    /// What pods need to know of a virtual node.
    pub(crate) fn host(&self, node: &str) -> Option<Arc<Host>> {
        self.routes.hosts.read().get(node).cloned()
    }

    /// The virtual nodes of a binding.
    pub(crate) fn nodes_of(&self, binding: &str) -> Vec<Item> {
        let mut nodes = self.nodes.list();
        nodes.retain(|node| node.object.head.label(label::CLUSTER_BINDING) == Some(binding));
        nodes
    }
}

/// Ends with the syncer.
pub(crate) struct Registration {
    routes: Arc<Routes>,
    binding: String,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.routes.queues.write().remove(&self.binding);
    }
}

impl Routes {
    fn node(&self, change: &Change) {
        let head = &change.item().object.head;
        // Another policy may allow what the one before did not.
        let relent = match change {
            Change::Deleted(_) => {
                self.hosts.write().remove(&*head.name);
                false
            }
            Change::Added(item) | Change::Updated(_, item) => {
                let host = Arc::new(Host::of(item));
                let before = self.hosts.write().insert(head.name.to_string(), host.clone());
                before.is_none_or(|before| before.policy != host.policy)
            }
        };
        let Some(binding) = head.label(label::CLUSTER_BINDING) else { return };
        let queues = self.queues.read();
        let Some(queues) = queues.get(binding) else { return };
        if let Some(physical) = head.label(label::PHYSICAL_NODE_NAME) {
            queues.nodes.add(physical.to_owned());
        }
        if relent {
            let by_node = self.by_node.lock();
            for pod in by_node.get(&*head.name).into_iter().flatten() {
                queues.pods.add(pod.clone());
            }
        }
    }

    fn csi_node(&self, change: &Change) {
        let head = &change.item().object.head;
        let queues = self.queues.read();
        let queues = head.label(label::CLUSTER_BINDING).and_then(|binding| queues.get(binding));
        if let (Some(queues), Some(physical)) = (queues, head.label(label::PHYSICAL_NODE_NAME)) {
            queues.nodes.add(physical.to_owned());
        }
    }

    fn pod(&self, change: &Change) {
        if let Some(both) = replacement(change) {
            return both.iter().for_each(|change| self.pod(change));
        }
        let item = change.item();
        let node = node_of(item);
        if node.is_empty() {
            return;
        }
        let key = item.key();
        let gone = matches!(change, Change::Deleted(_));
        let mut comes = false;
        {
            let mut by_node = self.by_node.lock();
            if !gone {
                comes = by_node.entry(node.clone()).or_default().insert(key.clone());
            } else if let Some(keys) = by_node.get_mut(&node) {
                keys.remove(&key);
                if keys.is_empty() {
                    by_node.remove(&node);
                }
            }
        }
        let host = self.hosts.read().get(&node).cloned();
        let queues = self.queues.read();
        match host {
            Some(host) => {
                let Some(queues) = queues.get(&host.binding) else { return };
                queues.pods.add(key);
                // A node that is being taken back waits for its last pod.
                let late = comes && host.reclaimed;
                let matters = gone || late || item.object.head.label(label::HOST_PORT_FAKE_POD).is_some();
                if matters {
                    queues.nodes.add(host.physical.clone());
                }
            }
            // The node may be one we have not heard of yet; whoever it belongs to will know.
            None if node.starts_with(trim::VIRTUAL) => queues.values().for_each(|queues| queues.pods.add(key.clone())),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn pod(uid: &str, node: &str) -> Item {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": node},
            "metadata": {"name": "db-0", "namespace": "n", "uid": uid, "resourceVersion": "1"}});
        Item::of(&pod).unwrap()
    }

    #[test]
    fn a_pod_is_never_on_the_node_of_an_earlier_one_of_its_name() {
        let routes = Routes { queues: RwLock::default(), by_node: Mutex::default(), hosts: RwLock::default() };
        let on = |node: &str| routes.by_node.lock().get(node).is_some_and(|keys| keys.contains("n/db-0"));
        routes.pod(&Change::Added(pod("1", "vnode-a")));
        assert!(on("vnode-a"));
        // The end of the first was missed: it would be evicted with a node it is not on.
        routes.pod(&Change::Updated(pod("1", "vnode-a"), pod("2", "vnode-b")));
        assert!(!on("vnode-a") && on("vnode-b"));
        routes.pod(&Change::Updated(pod("2", "vnode-b"), pod("3", "")));
        assert!(!on("vnode-b"));
    }
}
