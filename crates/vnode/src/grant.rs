//! What the owner of a worker cluster makes before lending: an account with the least rights.

use std::time::Duration;

use atoll_meta::{Gvr, Status};
use atoll_runtime::{Endpoint, Patch};
use serde_json::{Value, json};

use crate::strict::strict;
use crate::{Features, definitions, resource, worker_roles};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Has an account in the mount namespace with the rights of [`worker_roles`], and gives a token of it.
/// Running it again brings the rights up to date and gives a new token.
pub async fn grant(
    worker: &Endpoint,
    name: &str,
    mount: &str,
    without: &Features,
    lasting: Duration,
) -> Result<String, Status> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": mount}});
    worker.ensure(&resource::namespaces(), None, &namespace).await?;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": mount}});
    worker.ensure(&accounts(), Some(mount), &account).await?;
    let [everywhere, here] = worker_roles(name, mount, without);
    apply(worker, "clusterroles", None, &everywhere).await?;
    apply(worker, "roles", Some(mount), &here).await?;
    apply(worker, "clusterrolebindings", None, &binding("ClusterRole", name, mount)).await?;
    apply(worker, "rolebindings", Some(mount), &binding("Role", name, mount)).await?;
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": [], "expirationSeconds": lasting.as_secs()},
    });
    let answer = worker.create_sub(&accounts(), Some(mount), name, "token", &request).await?;
    let token = answer["status"]["token"].as_str().filter(|token| !token.is_empty());
    token.map(ToOwned::to_owned).ok_or_else(|| Status::internal("the worker cluster gave no token"))
}

fn accounts() -> Gvr {
    Gvr::new("", "v1", "serviceaccounts")
}

fn binding(kind: &str, name: &str, mount: &str) -> Value {
    let mut binding = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": format!("{kind}Binding"), "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": mount}],
    });
    if kind == "Role" {
        binding["metadata"]["namespace"] = mount.into();
    }
    binding
}

async fn apply(worker: &Endpoint, plural: &str, namespace: Option<&str>, object: &Value) -> Result<(), Status> {
    let gvr = Gvr::new(RBAC, "v1", plural);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let language = Patch::Apply { manager: crate::manager::AGENT, force: true };
    worker.patch(&gvr, namespace, name, "", language, object).await.map(drop)
}

/// How often a cluster is asked whether it serves a definition yet, and for how long.
const ASKED: (usize, Duration) = (100, Duration::from_millis(100));

/// Has a cluster serve one of our [`definitions`], by its plural name.
pub async fn define(cluster: &Endpoint, plural: &str) -> Result<(), Status> {
    let gvr = Gvr::new("cloud.tencent.com", "v1beta1", plural);
    if serves(cluster, &gvr).await? {
        return Ok(());
    }
    let all = definitions();
    let definition = all.iter().find(|own| own["spec"]["names"]["plural"] == *plural);
    let definition = definition.ok_or_else(|| Status::internal(format!("there is no definition of {plural}")))?;
    let kinds = Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    match cluster.ensure(&kinds, None, &strict(definition.clone())).await {
        // A cluster that does not know such rules is told by the binding's and the policy's status.
        Err(status) if matches!(status.code, 400 | 422) => cluster.ensure(&kinds, None, definition).await.map(drop)?,
        result => result.map(drop)?,
    }
    for _ in 0..ASKED.0 {
        if serves(cluster, &gvr).await? {
            return Ok(());
        }
        tokio::time::sleep(ASKED.1).await;
    }
    Err(Status::unavailable(format!("the definition of {plural} was stored but is not served")))
}

async fn serves(cluster: &Endpoint, gvr: &Gvr) -> Result<bool, Status> {
    match cluster.list(gvr, None, "limit=1").await {
        Err(status) if status.code == 404 => Ok(false),
        result => result.map(|_| true),
    }
}
