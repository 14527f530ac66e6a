//! What every namespace has: a default service account and the certificates of the server.

use atoll_meta::{Gvr, Key, Status};
use serde_json::json;

use crate::hands::Hands;

/// Makes what is missing in a namespace, and repairs it.
pub async fn furnish(hands: &Hands, namespace: &str, root_ca: &str) -> Result<(), Status> {
    let snapshot = hands.snapshot().await?;
    let own = Key::new("", "namespaces", "", namespace);
    if snapshot.get(own.as_str()).is_none_or(|entry| entry.object.head.deleting) {
        return Ok(());
    }
    let account = Key::new("", "serviceaccounts", namespace, "default");
    if snapshot.get(account.as_str()).is_none() {
        let tree = json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default", "namespace": namespace}});
        settled(hands.endpoint.create(&Gvr::new("", "v1", "serviceaccounts"), Some(namespace), &tree).await)?;
    }
    let maps = Gvr::new("", "v1", "configmaps");
    let tree = json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": "kube-root-ca.crt", "namespace": namespace, "annotations": {
            "kubernetes.io/description": "Authorities that certificates of this API server are signed by."}},
        "data": {"ca.crt": root_ca},
    });
    let key = Key::new("", "configmaps", namespace, "kube-root-ca.crt");
    match snapshot.get(key.as_str()) {
        None => settled(hands.endpoint.create(&maps, Some(namespace), &tree).await),
        Some(entry) if entry.object.tree(entry.modified)["data"] != tree["data"] => {
            settled(hands.endpoint.update(&maps, Some(namespace), "kube-root-ca.crt", &tree).await)
        }
        Some(_) => Ok(()),
    }
}

/// Somebody else made it, or the namespace is going: both are fine.
fn settled<T>(result: Result<T, Status>) -> Result<(), Status> {
    match result {
        Err(status) if !matches!(status.code, 403 | 404 | 409) => Err(status),
        _ => Ok(()),
    }
}
