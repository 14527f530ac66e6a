//! The spec of a physical pod, from that of its pod.

use atoll_api::kubeocean_names::{annotation, physical, token_secret};
use serde_json::{Value, json};

use super::network::{self, Intranet};
use super::refs::visit;
use crate::tree::{self, list, list_mut};

/// What a physical spec follows from besides the pod.
pub(crate) struct Rewrite<'a> {
    /// The leased node.
    pub(crate) node: &'a str,
    /// Whether the node is named outright instead of passing the worker's scheduler.
    pub(crate) direct: bool,
    pub(crate) priority_class: &'a str,
    /// How pods reach the computing cluster.
    pub(crate) intranet: &'a Intranet,
}

impl Rewrite<'_> {
    /// The spec of the physical pod.
    pub(crate) fn spec(&self, pod: &Value) -> Result<Value, String> {
        let mut spec = pod["spec"].clone();
        let hostname = match spec["hostname"].as_str() {
            Some(hostname) if !hostname.is_empty() => hostname.to_owned(),
            _ => hostname(tree::name(pod))?,
        };
        self.place(&mut spec);
        spec["priorityClassName"] = self.priority_class.into();
        spec["hostname"] = hostname.clone().into();
        // The pod's own tokens are mounted as Secrets; those of the worker cluster are none of its business.
        spec["automountServiceAccountToken"] = false.into();
        let namespace = tree::namespace(pod);
        visit(&mut spec, &mut |_, name, _| *name = physical(namespace, name));
        tokens(&mut spec, pod);
        fields(&mut spec);
        network::apply(&mut spec, namespace, &hostname, self.intranet)?;
        Ok(spec)
    }

    /// Which node, and nothing else about scheduling: that was decided above.
    fn place(&self, spec: &mut Value) {
        if let Some(map) = spec.as_object_mut() {
            for field in [
                "nodeName",
                "nodeSelector",
                "affinity",
                "schedulerName",
                "priority",
                "preemptionPolicy",
                "topologySpreadConstraints",
                "schedulingGates",
                "serviceAccountName",
                "serviceAccount",
            ] {
                map.remove(field);
            }
        }
        if self.direct {
            spec["nodeName"] = self.node.into();
            return;
        }
        spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [self.node]}]},
        ]}}});
    }
}

/// Rewrites containers that are added to a pod that runs: what they refer to is copied, too, and nothing else of the
/// worker cluster can be meant.
pub(crate) fn added(spec: &mut Value, namespace: &str) {
    visit(spec, &mut |_, name, _| *name = physical(namespace, name));
    fields(spec);
}

/// A name as a host name: one label of at most 63 characters.
pub(crate) fn hostname(name: &str) -> Result<String, String> {
    let cut: String = name.chars().take(63).map(|c| if c == '.' { '-' } else { c }).collect();
    match cut.trim_end_matches('-') {
        "" => Err(format!("no host name can be made of {name:?}")),
        cut => Ok(cut.to_owned()),
    }
}

/// One token a pod wants mounted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TokenWish {
    /// The Secret it is kept in below.
    pub(crate) secret: String,
    /// The key in the Secret.
    pub(crate) key: String,
    /// Whom it is for; empty for the API server.
    pub(crate) audience: String,
    /// How long it is to hold.
    pub(crate) seconds: Option<i64>,
}

/// The tokens a pod wants mounted.
pub(crate) fn token_wishes(pod: &Value) -> Vec<TokenWish> {
    let mut wishes = Vec::new();
    for volume in list(&pod["spec"]["volumes"]) {
        let sources = list(&volume["projected"]["sources"]).iter().map(|source| &source["serviceAccountToken"]);
        for (index, source) in sources.filter(|source| source.is_object()).enumerate() {
            wishes.push(TokenWish {
                secret: token_name(pod, volume),
                key: token_key(index),
                audience: source["audience"].as_str().unwrap_or_default().to_owned(),
                seconds: source["expirationSeconds"].as_i64(),
            });
        }
    }
    wishes
}

/// Names of the Secrets that hold the tokens of a pod.
pub(crate) fn token_secrets(pod: &Value) -> std::collections::BTreeSet<String> {
    token_wishes(pod).into_iter().map(|wish| wish.secret).collect()
}

fn token_name(pod: &Value, volume: &Value) -> String {
    token_secret(tree::namespace(pod), tree::name(pod), volume["name"].as_str().unwrap_or_default(), tree::uid(pod))
}

fn token_key(index: usize) -> String {
    if index == 0 { "token".to_owned() } else { format!("token-{index}") }
}

/// Replaces projected tokens by the Secrets that hold them, whose names are final.
fn tokens(spec: &mut Value, pod: &Value) {
    for volume in list_mut(spec, "/volumes") {
        let name = token_name(pod, volume);
        let sources = list_mut(volume, "/projected/sources");
        for (index, source) in sources.filter(|source| source["serviceAccountToken"].is_object()).enumerate() {
            let path = source["serviceAccountToken"]["path"].clone();
            *source = json!({"secret": {"name": name, "items": [{"key": token_key(index), "path": path}]}});
        }
    }
}

/// Where a pod finds what it would see above under this path.
fn field_path(path: &str) -> Option<String> {
    let key = match path {
        "metadata.name" => annotation::VIRTUAL_POD_NAME,
        "metadata.namespace" => annotation::VIRTUAL_POD_NAMESPACE,
        "spec.nodeName" => annotation::VIRTUAL_NODE_NAME,
        _ => return None,
    };
    Some(format!("metadata.annotations['{key}']"))
}

/// Lets the pod see the name, namespace and node it has above.
fn fields(spec: &mut Value) {
    let translate = |reference: &mut Value| {
        if let Some(path) = reference["fieldPath"].as_str().and_then(field_path) {
            reference["fieldPath"] = path.into();
        }
    };
    for group in ["/containers", "/initContainers", "/ephemeralContainers"] {
        for container in list_mut(spec, group) {
            for env in list_mut(container, "/env") {
                env.pointer_mut("/valueFrom/fieldRef").into_iter().for_each(translate);
            }
        }
    }
    for volume in list_mut(spec, "/volumes") {
        for item in list_mut(volume, "/downwardAPI/items") {
            item.get_mut("fieldRef").into_iter().for_each(translate);
        }
        for source in list_mut(volume, "/projected/sources") {
            for item in list_mut(source, "/downwardAPI/items") {
                item.get_mut("fieldRef").into_iter().for_each(translate);
            }
        }
    }
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
