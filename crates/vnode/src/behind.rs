//! What a forced unbinding leaves in a worker cluster that does not answer.

use std::collections::BTreeSet;

use atoll_api::kubeocean::ClusterBinding;
use atoll_api::kubeocean_names::{annotation, label, physical, synced_by_label};
use atoll_meta::Status;
use atoll_runtime::Endpoint;
use serde_json::Value;

use crate::binding::Binding;
use crate::copy::Kind;
use crate::pod::token_secrets;
use crate::{resource, tree};

/// What a binding has in its worker cluster, as far as the computing cluster knows: one line for each object.
pub async fn left_behind(computing: &Endpoint, name: &str) -> Result<Vec<String>, Status> {
    let binding = computing.get(&resource::bindings(), None, name).await?;
    let binding: ClusterBinding = serde_json::from_value(binding).map_err(Status::internal)?;
    of(computing, &Binding::of(&binding)).await
}

pub(crate) async fn of(computing: &Endpoint, binding: &Binding) -> Result<Vec<String>, Status> {
    let mut behind = BTreeSet::new();
    for node in nodes(computing, binding).await? {
        behind.insert(format!(
            "label {} of Node {}",
            label::POLICY_APPLIED,
            tree::label(&node, label::PHYSICAL_NODE_NAME)
        ));
        for pod in pods(computing, tree::name(&node)).await? {
            behind.extend(of_pod(&pod, &binding.mount_namespace));
        }
    }
    for (kind, original) in marked(computing, binding).await? {
        let name = tree::annotation(&original, annotation::PHYSICAL_NAME);
        behind.insert(format!("{} {}", kind.name(), place(kind.below(&binding.mount_namespace), name)));
    }
    for namespace in &binding.service_namespaces {
        for service in computing.list(&resource::services(), Some(namespace), "").await?.items {
            let name = physical(namespace, tree::name(&service));
            behind.insert(format!("Service {}/{name} with its EndpointSlices", binding.mount_namespace));
        }
    }
    Ok(behind.into_iter().collect())
}

fn place(namespace: Option<&str>, name: &str) -> String {
    tree::key(namespace.unwrap_or_default(), name)
}

fn of_pod(pod: &Value, mount: &str) -> Vec<String> {
    if !tree::label(pod, label::HOST_PORT_FAKE_POD).is_empty() {
        return Vec::new();
    }
    let known = tree::annotation(pod, annotation::PHYSICAL_POD_NAME);
    let name = if known.is_empty() { physical(tree::namespace(pod), tree::name(pod)) } else { known.to_owned() };
    let secrets = token_secrets(pod).into_iter().map(|secret| format!("Secret {mount}/{secret}"));
    std::iter::once(format!("Pod {mount}/{name}")).chain(secrets).collect()
}

/// The virtual nodes of a binding.
pub(crate) async fn nodes(computing: &Endpoint, binding: &Binding) -> Result<Vec<Value>, Status> {
    let query = format!("labelSelector={}%3D{}", label::CLUSTER_BINDING, binding.name);
    Ok(computing.list(&resource::nodes(), None, &query).await?.items)
}

/// The pods bound to a node.
pub(crate) async fn pods(computing: &Endpoint, node: &str) -> Result<Vec<Value>, Status> {
    let query = format!("fieldSelector=spec.nodeName%3D{node}");
    Ok(computing.list(&resource::pods(), None, &query).await?.items)
}

/// Originals that carry the marks of a binding.
pub(crate) async fn marked(computing: &Endpoint, binding: &Binding) -> Result<Vec<(Kind, Value)>, Status> {
    let query = format!("labelSelector={}%3Dtrue", synced_by_label(&binding.cluster_id));
    let mut out = Vec::new();
    for kind in Kind::ALL {
        let list = computing.list(&kind.gvr(), None, &query).await?;
        out.extend(list.items.into_iter().map(|object| (kind, object)));
    }
    Ok(out)
}
