//! Where the kubelet API of a virtual node is.

use std::net::IpAddr;

use serde_json::Value;

use super::build::internal_ip;
use crate::proxier::Kubelets;
use crate::syncer::Syncer;
use crate::tree;

/// The address a virtual node announces.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Address {
    /// That of the leased node: nobody serves a kubelet API for it.
    OfNode,
    /// None yet: nobody who serves is ready.
    Pending,
    /// This one.
    Is(IpAddr),
}

impl Syncer {
    /// The address of a virtual node. Of several who serve, a node stays with the one it has.
    pub(super) fn kubelet_address(&self, existing: Option<&Value>) -> Address {
        match &self.settings.kubelets {
            Kubelets::Nowhere => Address::OfNode,
            Kubelets::Here(proxier) => Address::Is(proxier.options.advertise),
            Kubelets::Elsewhere => {
                let mut pods = self.proxiers.as_ref().map(atoll_runtime::Cache::list).unwrap_or_default();
                pods.sort_by_key(atoll_runtime::Item::key);
                let serving: Vec<IpAddr> = pods.iter().filter_map(|pod| serving(&pod.tree())).collect();
                choose(announced(existing), &serving)
            }
        }
    }
}

/// The address of a proxier that is ready.
fn serving(pod: &Value) -> Option<IpAddr> {
    let ready = super::is_ready(pod) && !tree::is_deleting(pod);
    pod["status"]["podIP"].as_str().filter(|_| ready)?.parse().ok()
}

/// The address a virtual node announced so far, if it was one of a proxier.
fn announced(node: Option<&Value>) -> Option<IpAddr> {
    let node = node.filter(|node| node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].is_u64())?;
    internal_ip(node)?.parse().ok()
}

/// The known address while somebody serves there, or while nobody serves anywhere.
fn choose(known: Option<IpAddr>, serving: &[IpAddr]) -> Address {
    let kept = known.filter(|known| serving.is_empty() || serving.contains(known));
    kept.or_else(|| serving.first().copied()).map_or(Address::Pending, Address::Is)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_stays_with_its_proxier_until_another_serves_instead() {
        let [one, two]: [IpAddr; 2] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
        for (known, serving, expected) in [
            (None, vec![], Address::Pending),
            (None, vec![one, two], Address::Is(one)),
            (Some(two), vec![one, two], Address::Is(two)),
            (Some(two), vec![one], Address::Is(one)),
            (Some(two), vec![], Address::Is(two)),
        ] {
            assert_eq!(choose(known, &serving), expected, "{known:?} {serving:?}");
        }
    }

    #[test]
    fn only_a_proxier_that_is_ready_serves() {
        let pod =
            |ready: &str| json!({"status": {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": ready}]}});
        assert!(serving(&pod("True")).is_some());
        assert!(serving(&pod("False")).is_none());
        let mut going = pod("True");
        going["metadata"]["deletionTimestamp"] = "2026-01-05T12:00:00Z".into();
        assert!(serving(&going).is_none());
    }
}
