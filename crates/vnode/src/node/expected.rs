//! What was last written on a virtual node, so that what people add there is kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tree::{Strings, list};
use atoll_api::kubeocean_names::{annotation, taint};

/// Labels, annotations and taints as last written; kept in an annotation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Expected {
    #[serde(default)]
    pub(crate) labels: Strings,
    #[serde(default)]
    pub(crate) annotations: Strings,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) taints: Vec<Value>,
}

impl Expected {
    pub(crate) fn encode(&self) -> String {
        STANDARD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads the annotation; a missing one is empty.
    pub(crate) fn decode(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let bytes = STANDARD.decode(text).map_err(|error| format!("{}: {error}", annotation::EXPECTED_METADATA))?;
        serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", annotation::EXPECTED_METADATA))
    }
}

/// What is wanted, and what others added; what was written before and is no longer wanted goes.
pub(crate) fn keep(existing: &Strings, before: &Strings, wanted: &Strings) -> Strings {
    let added = existing.iter().filter(|(key, _)| !before.contains_key(*key) && !OURS.contains(&key.as_str()));
    let mut out: Strings = added.map(|(key, value)| (key.clone(), value.clone())).collect();
    out.extend(wanted.clone());
    out
}

/// Keys that are never somebody else's.
const OURS: [&str; 2] = [annotation::EXPECTED_METADATA, annotation::DELETION_TAINT_TIME];

/// The same for taints, which are told apart by key.
pub(crate) fn keep_taints(existing: &[Value], before: &[Value], wanted: &[Value]) -> Vec<Value> {
    let among = |taints: &[Value], key: &Value| taints.iter().any(|taint| taint["key"] == *key);
    let added = existing
        .iter()
        .filter(|own| own["key"] != taint::DELETING && !among(before, &own["key"]) && !among(wanted, &own["key"]));
    wanted.iter().chain(added).cloned().collect()
}

/// The taints of a node.
pub(crate) fn taints(node: &Value) -> &[Value] {
    list(&node["spec"]["taints"])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn map(pairs: &[(&str, &str)]) -> Strings {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_people_add_stays_and_what_the_node_lost_goes() {
        let before = map(&[("a", "1"), ("b", "1")]);
        let existing = map(&[("a", "1"), ("b", "changed"), ("mine", "x")]);
        let wanted = map(&[("b", "2"), ("c", "3")]);
        assert_eq!(keep(&existing, &before, &wanted), map(&[("b", "2"), ("c", "3"), ("mine", "x")]));
    }

    #[test]
    fn the_deletion_taint_is_never_carried_over() {
        let taint = |key: &str| json!({"key": key, "effect": "NoSchedule"});
        let existing = [taint("mine"), taint("old"), taint(taint::DELETING)];
        assert_eq!(keep_taints(&existing, &[taint("old")], &[taint("new")]), [taint("new"), taint("mine")]);
    }

    #[test]
    fn the_annotation_comes_back_as_it_was_written() {
        let expected = Expected {
            labels: map(&[("ключ", "значение 🌊")]),
            annotations: map(&[("large", &"x".repeat(100_000))]),
            taints: vec![json!({"key": "k", "effect": "NoExecute"})],
        };
        assert_eq!(Expected::decode(&expected.encode()).unwrap(), expected);
        assert_eq!(Expected::decode("").unwrap(), Expected::default());
        assert!(Expected::decode("%%%").is_err());
        assert!(Expected::decode(&STANDARD.encode("not json")).is_err());
    }
}
