//! What a replica needs.

use std::collections::BTreeMap;

use atoll_api::Quantity;
use atoll_api::work::{NodeClaim, ReplicaRequirements};

/// What one replica needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requirements {
    /// Which nodes it can run on.
    pub node_claim: Option<NodeClaim>,
    /// Its resources.
    pub requests: BTreeMap<String, Quantity>,
    /// The namespace whose quota counts.
    pub namespace: String,
    /// Its priority class.
    pub priority_class: String,
}

impl Requirements {
    /// Whether any node will do.
    pub(crate) fn is_nothing(&self) -> bool {
        self.node_claim.is_none() && self.requests.is_empty()
    }
}

impl From<ReplicaRequirements> for Requirements {
    fn from(from: ReplicaRequirements) -> Self {
        Requirements {
            node_claim: from.node_claim,
            requests: from.resource_request,
            namespace: from.namespace,
            priority_class: from.priority_class_name,
        }
    }
}

impl From<Requirements> for ReplicaRequirements {
    fn from(from: Requirements) -> Self {
        ReplicaRequirements {
            node_claim: from.node_claim,
            resource_request: from.requests,
            namespace: from.namespace,
            priority_class_name: from.priority_class,
        }
    }
}
