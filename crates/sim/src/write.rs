//! Writes to the cluster's API. Only what is needed of the answers is read.

use atoll_meta::Status;
use atoll_runtime::{Endpoint, Patch};
use serde_json::{Value, json};

use crate::diff;
use crate::kind::Kind;

/// What a write left behind.
#[derive(Clone, Debug, Default)]
pub struct Written {
    name: String,
    revision: u64,
}

impl From<atoll_runtime::Written> for Written {
    fn from(written: atoll_runtime::Written) -> Self {
        Self { revision: written.revision.parse().unwrap_or_default(), name: written.name }
    }
}

impl Written {
    /// The revision of the object.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn optional(namespace: &str) -> Option<&str> {
    (!namespace.is_empty()).then_some(namespace)
}

/// Creates an object.
pub async fn create(endpoint: &Endpoint, kind: Kind, namespace: &str, tree: &Value) -> Result<Written, Status> {
    endpoint.brief().create(kind.gvr(), optional(namespace), tree).await.map(Written::from)
}

/// Merges a patch into an object (`sub` empty) or a subresource.
pub async fn merge(
    endpoint: &Endpoint,
    kind: Kind,
    key: (&str, &str),
    sub: &str,
    patch: &Value,
) -> Result<Written, Status> {
    endpoint.brief().patch(kind.gvr(), optional(key.0), key.1, sub, Patch::Merge, patch).await.map(Written::from)
}

/// Merges a patch in Kubernetes' own language into an object.
pub async fn strategic(endpoint: &Endpoint, kind: Kind, key: (&str, &str), patch: &Value) -> Result<Written, Status> {
    endpoint.brief().patch(kind.gvr(), optional(key.0), key.1, "", Patch::Strategic, patch).await.map(Written::from)
}

/// Replaces the status of an object by one patch, if it differs.
pub async fn status(endpoint: &Endpoint, kind: Kind, object: &Value, new: &Value) -> Result<Option<Written>, Status> {
    let Some(patch) = diff::merge(&object["status"], new) else { return Ok(None) };
    let meta = &object["metadata"];
    let key = (meta["namespace"].as_str().unwrap_or_default(), meta["name"].as_str().unwrap_or_default());
    // The uid keeps a status off a successor of the same name.
    let body = json!({"metadata": {"uid": meta["uid"]}, "status": patch});
    merge(endpoint, kind, key, "status", &body).await.map(Some)
}

/// Deletes an object if it still is this one; one that is gone is no error.
pub async fn delete(
    endpoint: &Endpoint,
    kind: Kind,
    key: (&str, &str),
    uid: &str,
    grace: Option<i64>,
) -> Result<Written, Status> {
    let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}});
    if let Some(seconds) = grace {
        options["gracePeriodSeconds"] = seconds.into();
    }
    delete_with(endpoint, kind, key, &options).await
}

/// Deletes an object with these options; one that is gone is no error.
pub async fn delete_with(
    endpoint: &Endpoint,
    kind: Kind,
    key: (&str, &str),
    options: &Value,
) -> Result<Written, Status> {
    match endpoint.brief().delete(kind.gvr(), optional(key.0), key.1, options).await {
        Ok(written) => Ok(written.into()),
        Err(status) if status.code == 404 => Ok(Written::default()),
        Err(status) => Err(status),
    }
}
