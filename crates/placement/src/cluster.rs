//! What a decision knows of the clusters.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use atoll_api::cluster as api;

use crate::capacity::Capacity;

/// A taint that keeps workloads away.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Its effect.
    pub effect: String,
}

impl Taint {
    /// Whether it keeps new workloads away, rather than only advising against.
    pub fn is_hard(&self) -> bool {
        self.effect == "NoSchedule" || self.effect == "NoExecute"
    }
}

/// One cluster as it was when the snapshot was taken.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Its name.
    pub name: Arc<str>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its provider, or empty.
    pub provider: String,
    /// Its region, or empty.
    pub region: String,
    /// Its zones; the first one is its group when spreading by zone.
    pub zones: Vec<String>,
    /// Its taints.
    pub taints: Vec<Arc<Taint>>,
    /// What it serves, each as `apiVersion/Kind`.
    pub apis: HashSet<Box<str>>,
    /// What it has room for.
    pub capacity: Capacity,
    /// Whether it is being removed.
    pub deleting: bool,
}

impl Cluster {
    /// Whether it serves a kind, given as `apiVersion/Kind`.
    pub fn serves(&self, api: &str) -> bool {
        self.apis.contains(api)
    }
}

impl From<&api::Cluster> for Cluster {
    fn from(cluster: &api::Cluster) -> Self {
        let (spec, meta) = (&cluster.spec, &cluster.metadata);
        let zones =
            if spec.zones.is_empty() && !spec.zone.is_empty() { vec![spec.zone.clone()] } else { spec.zones.clone() };
        let taints = spec.taints.iter().map(|taint| {
            Arc::new(Taint {
                key: taint.key.clone(),
                value: taint.value.clone().unwrap_or_default(),
                effect: taint.effect.clone(),
            })
        });
        let status = cluster.status.as_ref();
        let apis = status.into_iter().flat_map(|status| &status.api_enablements).flat_map(|enablement| {
            let version = &enablement.group_version;
            enablement.resources.iter().map(move |resource| format!("{version}/{}", resource.kind).into())
        });
        Cluster {
            name: meta.name.as_deref().unwrap_or_default().into(),
            labels: meta.labels.clone().unwrap_or_default(),
            provider: spec.provider.clone(),
            region: spec.region.clone(),
            zones,
            taints: taints.collect(),
            apis: apis.collect(),
            capacity: Capacity::of(cluster),
            deleting: meta.deletion_timestamp.is_some(),
        }
    }
}

/// All clusters at one moment; shared by all decisions made of it.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    clusters: Vec<Arc<Cluster>>,
}

impl Snapshot {
    /// A snapshot of these clusters.
    pub fn new(clusters: impl IntoIterator<Item = Cluster>) -> Self {
        Self::of_shared(clusters.into_iter().map(Arc::new))
    }

    /// A snapshot of clusters that another one may share; the last of a name wins.
    pub fn of_shared(clusters: impl IntoIterator<Item = Arc<Cluster>>) -> Self {
        let by_name: BTreeMap<Arc<str>, Arc<Cluster>> =
            clusters.into_iter().map(|cluster| (cluster.name.clone(), cluster)).collect();
        Snapshot { clusters: by_name.into_values().collect() }
    }

    /// The clusters, sorted by name.
    pub fn clusters(&self) -> &[Arc<Cluster>] {
        &self.clusters
    }

    /// The cluster of a name.
    pub fn get(&self, name: &str) -> Option<&Arc<Cluster>> {
        let at = self.clusters.binary_search_by(|cluster| (*cluster.name).cmp(name)).ok()?;
        self.clusters.get(at)
    }

    /// The snapshot as if a cluster were gone.
    pub fn without(&self, name: &str) -> Self {
        Snapshot { clusters: self.clusters.iter().filter(|cluster| *cluster.name != *name).cloned().collect() }
    }
}
