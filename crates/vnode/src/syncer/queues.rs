//! What a syncer still has to look at.

use atoll_runtime::Queue;

/// The queues of one syncer. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Queues {
    /// Names of nodes of the worker cluster.
    pub(crate) nodes: Queue<String>,
    /// `namespace/name` of pods of the computing cluster.
    pub(crate) pods: Queue<String>,
    /// Names of policies.
    pub(crate) policies: Queue<String>,
}
