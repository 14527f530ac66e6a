//! Which of several policies counts for a node.

use std::collections::BTreeMap;

use atoll_api::kubeocean::{ResourceLeasingPolicy, ResourceLeasingPolicySpec};
use jiff::Timestamp;

use crate::selector::matches;

/// A policy and what is needed to choose among several.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created: Timestamp,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// What it says.
    pub spec: ResourceLeasingPolicySpec,
}

impl From<&ResourceLeasingPolicy> for Policy {
    fn from(policy: &ResourceLeasingPolicy) -> Self {
        let meta = &policy.metadata;
        Self {
            name: meta.name.clone().unwrap_or_default(),
            created: meta.creation_timestamp.as_ref().map(|time| time.0).unwrap_or_default(),
            deleting: meta.deletion_timestamp.is_some(),
            spec: policy.spec.clone(),
        }
    }
}

/// The policy for a node: of those for this binding whose selector means the node, the
/// oldest, by name among equally old ones.
pub fn choose<'a>(
    policies: impl IntoIterator<Item = &'a Policy>,
    binding: &str,
    node: &str,
    labels: &BTreeMap<String, String>,
) -> Option<&'a Policy> {
    policies
        .into_iter()
        .filter(|policy| !policy.deleting && policy.spec.cluster == binding)
        .filter(|policy| matches(policy.spec.node_selector.as_ref(), node, labels))
        .min_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn policy(name: &str, created: i64, cluster: &str) -> Policy {
        let spec = ResourceLeasingPolicySpec { cluster: cluster.into(), ..Default::default() };
        Policy { name: name.into(), created: Timestamp::from_second(created).unwrap(), deleting: false, spec }
    }

    #[test]
    fn the_oldest_policy_counts_then_the_first_by_name() {
        let labels = BTreeMap::new();
        let name = |policies: &[Policy]| choose(policies, "b", "n", &labels).map(|policy| policy.name.clone());
        let (p1, p2, p3) = (policy("p1", 1, "b"), policy("p2", 2, "b"), policy("p3", 2, "b"));
        assert_eq!(name(&[p3.clone(), p2.clone(), p1.clone()]).as_deref(), Some("p1"));
        assert_eq!(name(&[p3.clone(), p2.clone()]).as_deref(), Some("p2"));
        assert_eq!(name(&[Policy { deleting: true, ..p1 }, p3.clone()]).as_deref(), Some("p3"));
        assert_eq!(name(&[policy("other", 0, "c"), p3]).as_deref(), Some("p3"));
        assert_eq!(name(&[]), None);
    }
}
