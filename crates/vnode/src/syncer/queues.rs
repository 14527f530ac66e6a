//! What a syncer still has to look at.

use atoll_runtime::Queue;

use crate::copy::Thing;
use crate::service::Traffic;

/// The queues of one syncer. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Queues {
    /// Names of nodes of the worker cluster.
    pub(crate) nodes: Queue<String>,
    /// `namespace/name` of pods of the computing cluster.
    pub(crate) pods: Queue<String>,
    /// Names of policies.
    pub(crate) policies: Queue<String>,
    /// Originals that have, or had, copies.
    pub(crate) objects: Queue<Thing>,
    /// Services and their endpoints.
    pub(crate) traffic: Queue<Traffic>,
    /// `namespace/name` of events in the mount namespace.
    pub(crate) events: Queue<String>,
    /// `namespace/name` of pods in the worker cluster that are ours but do not say for whom.
    pub(crate) strays: Queue<String>,
}
