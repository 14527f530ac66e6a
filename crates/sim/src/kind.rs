//! The kinds a simulated cluster looks at.

use std::sync::LazyLock;

use atoll_meta::Gvr;

/// A kind that is followed, or written, by the simulator.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
#[allow(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Kind {
    Pod,
    Node,
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
    ReplicationController,
    ControllerRevision,
    Service,
    Endpoints,
    EndpointSlice,
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
    PodDisruptionBudget,
    Namespace,
}

/// Group, version, plural and kind of every [`Kind`], in its order.
const TABLE: [(&str, &str, &str, &str); Kind::COUNT] = [
    ("", "v1", "pods", "Pod"),
    ("", "v1", "nodes", "Node"),
    ("apps", "v1", "deployments", "Deployment"),
    ("apps", "v1", "replicasets", "ReplicaSet"),
    ("apps", "v1", "statefulsets", "StatefulSet"),
    ("apps", "v1", "daemonsets", "DaemonSet"),
    ("batch", "v1", "jobs", "Job"),
    ("batch", "v1", "cronjobs", "CronJob"),
    ("", "v1", "replicationcontrollers", "ReplicationController"),
    ("apps", "v1", "controllerrevisions", "ControllerRevision"),
    ("", "v1", "services", "Service"),
    ("", "v1", "endpoints", "Endpoints"),
    ("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
    ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    ("", "v1", "persistentvolumes", "PersistentVolume"),
    ("storage.k8s.io", "v1", "storageclasses", "StorageClass"),
    ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    ("", "v1", "namespaces", "Namespace"),
];

static RESOURCES: LazyLock<Vec<Gvr>> =
    LazyLock::new(|| TABLE.iter().map(|(group, version, plural, _)| Gvr::new(group, version, plural)).collect());

impl Kind {
    /// How many kinds there are.
    pub const COUNT: usize = 18;

    /// All kinds.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Pod,
        Self::Node,
        Self::Deployment,
        Self::ReplicaSet,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::Job,
        Self::CronJob,
        Self::ReplicationController,
        Self::ControllerRevision,
        Self::Service,
        Self::Endpoints,
        Self::EndpointSlice,
        Self::PersistentVolumeClaim,
        Self::PersistentVolume,
        Self::StorageClass,
        Self::PodDisruptionBudget,
        Self::Namespace,
    ];

    /// Kinds that own pods directly.
    pub const POD_OWNERS: [Self; 5] =
        [Self::ReplicaSet, Self::StatefulSet, Self::DaemonSet, Self::Job, Self::ReplicationController];

    /// Its place in tables.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Where it is served.
    pub fn gvr(self) -> &'static Gvr {
        &RESOURCES[self.index()]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        TABLE[self.index()].3
    }

    /// Its `apiVersion`.
    pub fn api_version(self) -> String {
        self.gvr().api_version()
    }

    /// The kind whose objects are stored under this `resource.group`.
    pub fn stored(resource: &str) -> Option<Self> {
        let (plural, group) = resource.split_once('.')?;
        TABLE.iter().position(|row| row.2 == plural && row.0 == group).map(|at| Self::ALL[at])
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_row() {
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), at);
            assert_eq!(Kind::named(kind.name()), Some(kind));
            assert_eq!(Kind::stored(&format!("{}.{}", kind.gvr().resource, kind.gvr().group)), Some(kind));
        }
        assert_eq!(Kind::EndpointSlice.api_version(), "discovery.k8s.io/v1");
    }
}
