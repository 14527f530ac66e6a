//! Writes to the cluster's API. Only what is needed of the answers is read.

use atoll_meta::Status;
use atoll_runtime::Endpoint;
use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::diff;
use crate::kind::Kind;

/// What a write left behind.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Written {
    #[serde(default)]
    metadata: Meta,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    name: String,
    resource_version: String,
}

impl Written {
    /// The revision of the object.
    pub fn revision(&self) -> u64 {
        self.metadata.resource_version.parse().unwrap_or_default()
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }
}

fn optional(namespace: &str) -> Option<&str> {
    (!namespace.is_empty()).then_some(namespace)
}

fn read(bytes: &[u8]) -> Written {
    serde_json::from_slice(bytes).unwrap_or_default()
}

fn encode(tree: &Value) -> Bytes {
    // A tree always serialises.
    serde_json::to_vec(tree).unwrap_or_default().into()
}

/// Creates an object.
pub async fn create(endpoint: &Endpoint, kind: Kind, namespace: &str, tree: &Value) -> Result<Written, Status> {
    let path = kind.gvr().path(optional(namespace), None);
    endpoint.send(Method::POST, &path, "application/json", encode(tree)).await.map(|bytes| read(&bytes))
}

/// Merges a patch into an object (`sub` empty) or a subresource.
pub async fn merge(
    endpoint: &Endpoint,
    kind: Kind,
    key: (&str, &str),
    sub: &str,
    patch: &Value,
) -> Result<Written, Status> {
    send_patch(endpoint, kind, key, sub, "application/merge-patch+json", patch).await
}

/// Merges a patch in Kubernetes' own language into an object.
pub async fn strategic(endpoint: &Endpoint, kind: Kind, key: (&str, &str), patch: &Value) -> Result<Written, Status> {
    send_patch(endpoint, kind, key, "", "application/strategic-merge-patch+json", patch).await
}

async fn send_patch(
    endpoint: &Endpoint,
    kind: Kind,
    key: (&str, &str),
    sub: &str,
    language: &str,
    patch: &Value,
) -> Result<Written, Status> {
    let mut path = kind.gvr().path(optional(key.0), Some(key.1));
    if !sub.is_empty() {
        path.push('/');
        path.push_str(sub);
    }
    endpoint.send(Method::PATCH, &path, language, encode(patch)).await.map(|bytes| read(&bytes))
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
    let path = kind.gvr().path(optional(key.0), Some(key.1));
    match endpoint.send(Method::DELETE, &path, "application/json", encode(options)).await {
        Ok(bytes) => Ok(read(&bytes)),
        Err(status) if status.code == 404 => Ok(Written::default()),
        Err(status) => Err(status),
    }
}
