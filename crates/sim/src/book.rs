//! Pods and nodes of a cluster as of now: who owns what, what is taken where, who waits.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use atoll_runtime::Change;

use crate::node::Node;
use crate::pod::{HostPort, Pod};
use crate::resources::Resources;

/// What is taken on a node.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Sum of what its pods ask for.
    pub requested: Resources,
    /// Its pods, by key.
    pub pods: BTreeSet<Arc<str>>,
    /// Ports its pods take.
    pub ports: Vec<HostPort>,
}

/// The book, kept up to date by events.
#[derive(Default)]
pub struct Book {
    pods: HashMap<Arc<str>, Arc<Pod>>,
    owned: HashMap<Box<str>, HashSet<Arc<str>>>,
    orphans: BTreeSet<Arc<str>>,
    nodes: HashMap<Box<str>, Arc<Node>>,
    usage: HashMap<Box<str>, Usage>,
    /// Decisions of the scheduler that no event has confirmed yet.
    assumed: HashMap<Arc<str>, Box<str>>,
    waiting: BTreeSet<Arc<str>>,
    /// Pods that no node takes at present.
    parked: BTreeSet<Arc<str>>,
    /// Pods that refuse to share a place with others.
    repelling: BTreeSet<Arc<str>>,
    /// Pods without a node that others leave one for.
    nominated: BTreeSet<Arc<str>>,
}

impl Book {
    /// Takes note of a change of a pod; returns what is known of it now, and was before.
    pub fn pod_changed(&mut self, change: &Change) -> (Option<Arc<Pod>>, Option<Arc<Pod>>) {
        let item = change.item();
        let key: Arc<str> = item.key().into();
        let before = self.forget(&key);
        if let Some(before) = &before
            && before.item.object.head.uid != item.object.head.uid
        {
            self.assumed.remove(&key);
        }
        if matches!(change, Change::Deleted(_)) {
            self.assumed.remove(&key);
            self.parked.remove(&key);
            return (None, before);
        }
        let Some(mut pod) = Pod::of(item) else { return (None, before) };
        if pod.node.is_empty() {
            // The event may be older than the scheduler's decision.
            if let Some(node) = self.assumed.get(&key) {
                pod.node = node.clone();
            }
        } else {
            self.assumed.remove(&key);
        }
        let pod = Arc::new(pod);
        self.remember(&key, &pod);
        (Some(pod), before)
    }

    fn remember(&mut self, key: &Arc<str>, pod: &Arc<Pod>) {
        match pod.head().controller() {
            Some(owner) => drop(self.owned.entry(owner.uid.clone()).or_default().insert(key.clone())),
            None => drop(self.orphans.insert(key.clone())),
        }
        if pod.takes_room() {
            let usage = self.usage.entry(pod.node.clone()).or_default();
            usage.requested.add(&pod.request);
            usage.pods.insert(key.clone());
            usage.ports.extend(pod.ports.iter().cloned());
        }
        if pod.repels && !pod.is_finished() {
            self.repelling.insert(key.clone());
        }
        if pod.node.is_empty() && !pod.nominated.is_empty() && pod.is_active() {
            self.nominated.insert(key.clone());
        }
        if pod.waits && pod.node.is_empty() && pod.is_active() {
            if !self.parked.contains(key) {
                self.waiting.insert(key.clone());
            }
        } else {
            self.parked.remove(key);
        }
        self.pods.insert(key.clone(), pod.clone());
    }

    fn forget(&mut self, key: &Arc<str>) -> Option<Arc<Pod>> {
        let old = self.pods.remove(key)?;
        match old.head().controller() {
            Some(owner) => {
                if let Some(keys) = self.owned.get_mut(&owner.uid) {
                    keys.remove(key);
                    if keys.is_empty() {
                        self.owned.remove(&owner.uid);
                    }
                }
            }
            None => drop(self.orphans.remove(key)),
        }
        if old.takes_room()
            && let Some(usage) = self.usage.get_mut(&old.node)
        {
            usage.requested.subtract(&old.request);
            usage.pods.remove(key);
            for port in &old.ports {
                if let Some(at) = usage.ports.iter().position(|taken| taken == port) {
                    usage.ports.swap_remove(at);
                }
            }
        }
        self.repelling.remove(key);
        self.nominated.remove(key);
        self.waiting.remove(key);
        Some(old)
    }

    /// Takes note of a change of a node.
    pub fn node_changed(&mut self, change: &Change) {
        let item = change.item();
        let name = item.object.head.name.clone();
        match change {
            Change::Deleted(_) => drop(self.nodes.remove(&name)),
            _ => {
                if let Some(node) = Node::of(item) {
                    self.nodes.insert(name, Arc::new(node));
                }
            }
        }
    }

    /// Counts a pod to a node before the event says so.
    pub fn assume(&mut self, key: &Arc<str>, node: &str) {
        if let Some(pod) = self.forget(key) {
            let mut moved = Pod::clone(&pod);
            moved.node = node.into();
            self.assumed.insert(key.clone(), node.into());
            self.remember(key, &Arc::new(moved));
        }
    }

    /// Takes a decision back because it could not be stored.
    pub fn withdraw(&mut self, key: &Arc<str>) {
        if self.assumed.remove(key).is_some()
            && let Some(pod) = self.forget(key)
        {
            let mut back = Pod::clone(&pod);
            back.node = "".into();
            self.remember(key, &Arc::new(back));
        }
    }

    /// Notes that others leave a node for a pod, before the event says so; empty takes it back.
    pub fn nominate(&mut self, key: &Arc<str>, node: &str) {
        if let Some(pod) = self.forget(key) {
            let mut moved = Pod::clone(&pod);
            moved.nominated = node.into();
            self.remember(key, &Arc::new(moved));
        }
    }

    /// Pods without a node that others leave this one for.
    pub fn nominated_on(&self, node: &str) -> impl Iterator<Item = &Arc<Pod>> {
        self.nominated.iter().filter_map(|key| self.pods.get(key)).filter(move |pod| &*pod.nominated == node)
    }

    /// Takes a pod out to see what would be without it; [`Self::put_back`] must follow.
    pub fn take_out(&mut self, pod: &Pod) {
        self.forget(&pod.item.key().into());
    }

    /// Puts a pod back that was taken out.
    pub fn put_back(&mut self, pod: &Arc<Pod>) {
        self.remember(&pod.item.key().into(), pod);
    }

    /// The lowest priority of the pods that take room.
    pub fn lowest_priority(&self) -> Option<i32> {
        self.pods.values().filter(|pod| pod.takes_room()).map(|pod| pod.priority).min()
    }

    /// Puts a pod aside that no node takes.
    pub fn park(&mut self, key: &Arc<str>) {
        if self.waiting.remove(key) {
            self.parked.insert(key.clone());
        }
    }

    /// Lets pods that were put aside try again.
    pub fn unpark(&mut self) {
        let parked = std::mem::take(&mut self.parked);
        self.waiting.extend(parked);
    }

    /// Pods that wait for a node: the most important and oldest first.
    pub fn waiting(&self) -> Vec<Arc<Pod>> {
        let mut list: Vec<_> = self.waiting.iter().filter_map(|key| self.pods.get(key).cloned()).collect();
        list.sort_by(|a, b| (b.priority, a.created).cmp(&(a.priority, b.created)).then_with(|| a.name().cmp(b.name())));
        list
    }

    /// Whether any pod waits.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A pod by key.
    pub fn pod(&self, key: &str) -> Option<Arc<Pod>> {
        self.pods.get(key).cloned()
    }

    /// All pods.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods.values()
    }

    /// Pods of a controller, by name.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<Pod>> {
        let keys = self.owned.get(uid).into_iter().flatten();
        let mut list: Vec<_> = keys.filter_map(|key| self.pods.get(key).cloned()).collect();
        list.sort_by(|a, b| a.name().cmp(b.name()));
        list
    }

    /// Pods of a namespace that nobody controls.
    pub fn orphans_in(&self, namespace: &str) -> Vec<Arc<Pod>> {
        let prefix = format!("{namespace}/");
        let from: Arc<str> = prefix.as_str().into();
        let keys = self.orphans.range(from..).take_while(|key| key.starts_with(&prefix));
        keys.filter_map(|key| self.pods.get(key).cloned()).collect()
    }

    /// Pods that refuse to share a place with others.
    pub fn repelling(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.repelling.iter().filter_map(|key| self.pods.get(key))
    }

    /// A node by name.
    pub fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes.get(name).cloned()
    }

    /// All nodes, by name.
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        let mut list: Vec<_> = self.nodes.values().cloned().collect();
        list.sort_by(|a, b| a.name().cmp(b.name()));
        list
    }

    /// What is taken on a node.
    pub fn usage(&self, node: &str) -> Option<&Usage> {
        self.usage.get(node)
    }

    /// Pods on a node.
    pub fn pods_on(&self, node: &str) -> Vec<Arc<Pod>> {
        let keys = self.usage.get(node).into_iter().flat_map(|usage| &usage.pods);
        keys.filter_map(|key| self.pods.get(key).cloned()).collect()
    }
}
