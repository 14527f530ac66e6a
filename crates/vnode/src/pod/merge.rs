//! Labels and annotations of a pod and its physical pod, changed on both sides.

use atoll_api::kubeocean_names::{annotation, label};
use serde_json::Value;

use crate::binding::OWNER;
use crate::tree::{self, Strings};

/// Labels of physical pods that say what they are and never travel up.
const PHYSICAL_LABELS: [&str; 6] = [
    label::MANAGED_BY,
    label::VIRTUAL_NAMESPACE,
    label::WORKLOAD_TYPE,
    label::WORKLOAD_NAME,
    label::CLUSTER_BINDING,
    OWNER,
];

/// Annotations that say which pod belongs to which and never travel.
const LINKS: [&str; 9] = [
    annotation::VIRTUAL_POD_NAMESPACE,
    annotation::VIRTUAL_POD_NAME,
    annotation::VIRTUAL_POD_UID,
    annotation::VIRTUAL_NODE_NAME,
    annotation::PHYSICAL_POD_NAMESPACE,
    annotation::PHYSICAL_POD_NAME,
    annotation::PHYSICAL_POD_UID,
    annotation::EXPECTED_METADATA,
    annotation::LAST_SYNC_TIME,
];

fn without(map: Strings, keys: &[&str]) -> Strings {
    map.into_iter().filter(|(key, _)| !keys.contains(&key.as_str())).collect()
}

fn only(map: Strings, keys: &[&str]) -> Strings {
    map.into_iter().filter(|(key, _)| keys.contains(&key.as_str())).collect()
}

/// Labels that belong to the pod itself.
pub(crate) fn own_labels(pod: &Value) -> Strings {
    without(tree::labels(pod), &PHYSICAL_LABELS)
}

/// Annotations that belong to the pod itself.
pub(crate) fn own_annotations(pod: &Value) -> Strings {
    without(tree::annotations(pod), &LINKS)
}

/// Labels that only say what a pod is.
pub(crate) fn link_labels(pod: &Value) -> Strings {
    only(tree::labels(pod), &PHYSICAL_LABELS)
}

/// Annotations that only say which pod belongs to which.
pub(crate) fn link_annotations(pod: &Value) -> Strings {
    only(tree::annotations(pod), &LINKS)
}

/// Merges what both sides made of what they last agreed on; where both changed the same, the
/// computing cluster wins.
///
/// The original replaces the pod's metadata by that of the physical pod at every change of
/// status, so that a label set above can vanish before it got below.
pub(crate) fn merge(above: &Strings, below: &Strings, before: &Strings) -> Strings {
    let keys = above.keys().chain(below.keys());
    keys.filter_map(|key| {
        let changed_above = above.get(key) != before.get(key);
        let value = if changed_above { above.get(key) } else { below.get(key) };
        value.map(|value| (key.clone(), value.clone()))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Strings {
        text.split_whitespace()
            .filter_map(|pair| pair.split_once('='))
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .collect()
    }

    #[test]
    fn changes_of_either_side_reach_the_other() {
        for (above, below, before, merged) in [
            ("a=1", "a=1", "a=1", "a=1"),
            ("a=1 b=2", "a=1", "a=1", "a=1 b=2"),
            ("a=1", "a=1 b=2", "a=1", "a=1 b=2"),
            ("a=2", "a=1", "a=1", "a=2"),
            ("a=1", "a=2", "a=1", "a=2"),
            ("", "a=1", "a=1", ""),
            ("a=1", "", "a=1", ""),
            ("a=2", "a=3", "a=1", "a=2"),
            ("a=2", "", "a=1", "a=2"),
            ("", "", "", ""),
            ("a=1 c=3", "a=1 d=4", "a=1 e=5", "a=1 c=3 d=4"),
        ] {
            assert_eq!(merge(&map(above), &map(below), &map(before)), map(merged), "{above} | {below} | {before}");
        }
    }
}
