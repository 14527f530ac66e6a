//! What the scheduler would see, as a caller can see it: clusters, bindings, and the room in members.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use atoll_api::cluster::{Cluster, ClusterSyncMode};
use atoll_api::words::condition as types;
use atoll_meta::Status;
use atoll_placement::Snapshot;
use atoll_runtime::{Endpoint, Item};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::binding::Binding;
use crate::company;
use crate::decision::{self, Hosts, Surroundings};
use crate::keys::BindingKey;
use crate::summary::Summary;
use crate::{condition, gvr};

/// Clusters and bindings of an instance at a moment.
pub struct Outlook<'a> {
    instance: &'a Endpoint,
    snapshot: Snapshot,
    /// Clusters whose nodes the hub counts itself.
    reached: Vec<Arc<str>>,
    bindings: BTreeMap<BindingKey, Binding>,
    /// Workloads of groups as they would be by now; others heed where they are.
    moved: Mutex<BTreeMap<BindingKey, Binding>>,
    /// Nodes and pods of those that could be asked; they are when they are needed first.
    rooms: OnceCell<HashMap<Arc<str>, Summary>>,
    components: bool,
    now: Timestamp,
}

impl<'a> Outlook<'a> {
    /// Looks at an instance.
    pub async fn of(instance: &'a Endpoint, now: Timestamp) -> Result<Self, Status> {
        let clusters = instance.list(&gvr::clusters(), None, "").await?.items;
        let clusters: Vec<Cluster> =
            clusters.into_iter().filter_map(|tree| serde_json::from_value(tree).ok()).collect();
        let snapshot = Snapshot::new(clusters.iter().map(atoll_placement::Cluster::from));
        let reached = clusters.iter().filter(|cluster| is_reached(cluster));
        let reached = reached.filter_map(|cluster| Some(cluster.metadata.name.as_deref()?.into())).collect();
        let mut bindings = BTreeMap::new();
        for namespaced in [true, false] {
            let trees = instance.list(&gvr::bindings(namespaced), None, "").await?.items;
            let known = trees.iter().filter_map(|tree| Binding::of(&Item::of(tree)?));
            bindings.extend(known.map(|binding| (binding.key(), binding)));
        }
        let moved = Mutex::default();
        Ok(Self { instance, snapshot, reached, bindings, moved, rooms: OnceCell::new(), components: false, now })
    }

    /// The same, with kinds of components placed as whole sets or not.
    pub fn with_components(self, components: bool) -> Self {
        Self { components, ..self }
    }

    /// The same without a cluster.
    pub fn without(mut self, cluster: &str) -> Result<Self, Status> {
        if self.snapshot.get(cluster).is_none() {
            return Err(Status::not_found("cluster.karmada.io", "clusters", cluster));
        }
        self.snapshot = self.snapshot.without(cluster);
        self.reached.retain(|name| **name != *cluster);
        for (key, binding) in self.bindings.iter().filter(|(_, binding)| company::groups(binding).is_some()) {
            let mut left = binding.clone();
            left.spec.clusters.retain(|target| target.name != cluster);
            self.moved.lock().insert(key.clone(), left);
        }
        Ok(self)
    }

    /// A binding.
    pub fn binding(&self, key: &BindingKey) -> Option<&Binding> {
        self.bindings.get(key)
    }

    /// All bindings, those of cluster-scoped templates first.
    pub fn bindings(&self) -> impl Iterator<Item = &Binding> {
        self.bindings.values()
    }

    /// Decides on a binding as the scheduler would, after those before it; whether anything changed.
    pub async fn settle(&self, binding: &mut Binding) -> bool {
        let estimates = if decision::asks_for_room(binding) { Some(self.estimates(binding).await) } else { None };
        let mut moved = self.moved.lock();
        let hosts = self.hosts(binding, &moved);
        let around = Surroundings {
            snapshot: &self.snapshot,
            estimates: estimates.as_ref(),
            affinity_hosts: hosts.together.as_ref(),
            anti_affinity_hosts: hosts.apart.as_ref(),
            components: self.components,
            now: self.now,
        };
        let changed = decision::settle(binding, &around);
        if company::groups(binding).is_some() {
            moved.insert(binding.key(), binding.clone());
        }
        changed
    }

    /// Where the groups of a binding are, with those that `moved`.
    fn hosts(&self, binding: &Binding, moved: &BTreeMap<BindingKey, Binding>) -> Hosts {
        let known = self.bindings.iter().filter(|(key, _)| !moved.contains_key(key)).map(|(_, known)| known);
        let here = |other: &&Binding| other.metadata.namespace == binding.metadata.namespace;
        let others: Vec<&Binding> = known.chain(moved.values()).filter(here).collect();
        Hosts::of(&others, binding)
    }

    /// The clusters whose nodes matter for a binding and could not be counted.
    pub fn uncounted(&self, binding: &Binding) -> Vec<String> {
        let Some(rooms) = self.rooms.get().filter(|_| decision::asks_for_room(binding)) else { return Vec::new() };
        self.reached.iter().filter(|name| !rooms.contains_key(*name)).map(ToString::to_string).collect()
    }

    async fn estimates(&self, binding: &Binding) -> HashMap<Arc<str>, i32> {
        let rooms = self.rooms.get_or_init(|| self.count()).await;
        let requirements = binding.spec.replica_requirements.as_ref();
        rooms.iter().map(|(name, summary)| (name.clone(), summary.estimate(requirements))).collect()
    }

    async fn count(&self) -> HashMap<Arc<str>, Summary> {
        let counts = self.reached.iter().map(|name| async move { Some((name.clone(), self.count_in(name).await?)) });
        futures::future::join_all(counts).await.into_iter().flatten().collect()
    }

    /// Counts nodes and pods of a member, as the caller; `None` if that cannot be done.
    async fn count_in(&self, cluster: &str) -> Option<Summary> {
        let mut summary = Summary::default();
        let base = format!("{}/proxy/api/v1", gvr::clusters().path(None, Some(cluster)));
        self.visit(&format!("{base}/nodes?limit=500"), |node| _ = summary.put_node(&node)).await?;
        let running = "fieldSelector=status.phase!%3DSucceeded%2Cstatus.phase!%3DFailed";
        let put = |pod: Value| {
            let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
            summary.put_pod(&format!("{}/{}", text("namespace"), text("name")), &pod);
        };
        self.visit(&format!("{base}/pods?limit=500&{running}"), put).await?;
        Some(summary)
    }

    /// Reads a collection page by page; `None` if a page is refused.
    async fn visit(&self, path: &str, mut each: impl FnMut(Value)) -> Option<()> {
        let mut next = String::new();
        loop {
            let page = format!("{path}{next}");
            let take = |text: &str, _: &str, _: &str| each(serde_json::from_str(text).unwrap_or_default());
            let (_, token) = self.instance.page(&page, take).await.ok()?;
            if token.is_empty() {
                return Some(());
            }
            next = format!("&continue={token}");
        }
    }
}

/// Whether the hub reaches a member itself and finds it well.
fn is_reached(cluster: &Cluster) -> bool {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    cluster.spec.sync_mode == ClusterSyncMode::Push && condition::is_true(conditions, types::READY)
}
