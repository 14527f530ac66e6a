//! A binding as its syncer uses it, and what makes one unusable.

use atoll_api::kubeocean::ClusterBinding;
use atoll_api::kubeocean_names::{DEFAULT_PRIORITY_CLASS, label};
use k8s_openapi::api::core::v1::NodeSelector;

/// Whose objects in a worker cluster are: the uid of the computing cluster's `kube-system`.
///
/// The original has no such mark; two computing clusters that share a namespace of a worker
/// would delete each other's pods.
pub(crate) const OWNER: &str = "atoll.io/computing-cluster";
/// On a binding that is being deleted: leave everything in the worker cluster behind.
pub const FORCE_UNBIND: &str = "atoll.io/force-unbind";

/// What a syncer needs to know of its binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Binding {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) cluster_id: String,
    pub(crate) selector: Option<NodeSelector>,
    pub(crate) mount_namespace: String,
    pub(crate) service_namespaces: Vec<String>,
    pub(crate) default_taint: bool,
    pub(crate) priority_class: String,
    pub(crate) daemon_sets: bool,
    pub(crate) direct: bool,
    pub(crate) deleting: bool,
}

impl Binding {
    pub(crate) fn of(binding: &ClusterBinding) -> Self {
        let (meta, spec) = (&binding.metadata, &binding.spec);
        Self {
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            cluster_id: spec.cluster_id.clone(),
            selector: spec.node_selector.clone(),
            mount_namespace: spec.mount_namespace.clone(),
            service_namespaces: spec.service_namespaces.clone(),
            default_taint: !spec.disable_node_default_taint,
            priority_class: match spec.pod_priority_class_name.as_str() {
                "" => DEFAULT_PRIORITY_CLASS.to_owned(),
                name => name.to_owned(),
            },
            daemon_sets: spec.running_daemonset_by_default,
            direct: spec.direct_scheduling,
            deleting: meta.deletion_timestamp.is_some(),
        }
    }

    /// Whether a Node of the computing cluster is one of this binding.
    pub(crate) fn owns_node(&self, label: impl Fn(&str) -> Option<String>) -> bool {
        label(label::MANAGED_BY).as_deref() == Some(atoll_api::kubeocean_names::MANAGED_BY)
            && label(label::CLUSTER_BINDING).as_deref() == Some(&self.name)
            && label(label::PHYSICAL_CLUSTER_ID).as_deref() == Some(&self.cluster_id)
    }
}

/// What is wrong with a binding, in words that name the field.
pub(crate) fn check(binding: &ClusterBinding) -> Result<(), String> {
    let spec = &binding.spec;
    let required = [
        ("spec.clusterID", spec.cluster_id.as_str()),
        ("spec.secretRef.name", spec.secret_ref.name.as_deref().unwrap_or_default()),
        ("spec.secretRef.namespace", spec.secret_ref.namespace.as_deref().unwrap_or_default()),
        ("spec.mountNamespace", &spec.mount_namespace),
    ];
    if let Some((field, _)) = required.iter().find(|(_, value)| value.is_empty()) {
        return Err(format!("{field} is required"));
    }
    let bad = !spec.cluster_id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if bad || spec.cluster_id.len() > 24 || spec.cluster_id.starts_with('-') || spec.cluster_id.ends_with('-') {
        return Err("spec.clusterID must be at most 24 lower-case letters, digits and inner dashes".to_owned());
    }
    match spec.service_namespaces.iter().position(String::is_empty) {
        Some(index) => Err(format!("spec.serviceNamespaces[{index}] must not be empty")),
        None => Ok(()),
    }
}

/// Another binding that uses the same cluster id and came first.
pub(crate) fn rival<'a>(
    binding: &ClusterBinding,
    others: impl IntoIterator<Item = &'a ClusterBinding>,
) -> Option<String> {
    let age = |binding: &ClusterBinding| {
        let created = binding.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (created, binding.metadata.name.clone().unwrap_or_default())
    };
    let older = others.into_iter().filter(|other| {
        other.spec.cluster_id == binding.spec.cluster_id
            && other.metadata.name != binding.metadata.name
            && age(other) < age(binding)
    });
    older.map(|other| other.metadata.name.clone().unwrap_or_default()).min()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    fn binding(name: &str, created: &str, spec: Value) -> ClusterBinding {
        serde_json::from_value(json!({"metadata": {"name": name, "creationTimestamp": created}, "spec": spec})).unwrap()
    }

    fn spec() -> Value {
        json!({"clusterID": "x", "secretRef": {"name": "s", "namespace": "n"}, "mountNamespace": "m"})
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(check(&binding("a", "2026-01-01T00:00:00Z", spec())), Ok(()));
        for (pointer, value, named) in [
            ("/clusterID", json!(""), "spec.clusterID"),
            ("/clusterID", json!("Upper"), "spec.clusterID"),
            ("/clusterID", json!("a-much-too-long-cluster-id"), "spec.clusterID"),
            ("/secretRef/name", json!(""), "spec.secretRef.name"),
            ("/secretRef/namespace", json!(""), "spec.secretRef.namespace"),
            ("/mountNamespace", json!(""), "spec.mountNamespace"),
        ] {
            let mut spec = spec();
            *spec.pointer_mut(pointer).unwrap() = value;
            let error = check(&binding("a", "2026-01-01T00:00:00Z", spec)).unwrap_err();
            assert!(error.starts_with(named), "{error}");
        }
        let mut spec = spec();
        spec["serviceNamespaces"] = json!(["a", ""]);
        let error = check(&binding("a", "2026-01-01T00:00:00Z", spec)).unwrap_err();
        assert!(error.starts_with("spec.serviceNamespaces[1]"), "{error}");
    }

    #[test]
    fn of_two_bindings_with_one_id_the_older_keeps_it() {
        let first = binding("b", "2026-01-01T00:00:00Z", spec());
        let second = binding("a", "2026-01-02T00:00:00Z", spec());
        assert_eq!(rival(&second, [&first, &second]), Some("b".into()));
        assert_eq!(rival(&first, [&first, &second]), None);
    }
}
