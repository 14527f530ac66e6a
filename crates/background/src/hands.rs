//! How background work reads and writes an instance: through the same API as everyone.

use std::sync::Arc;

use atoll_apiserver::{ApiService, Hub, Identity, Instance, Kind};
use atoll_meta::{Gvr, InstanceId, Key, Status};
use atoll_runtime::Endpoint;
use atoll_store::Snapshot;
use serde_json::{Value, json};

/// Access to one instance.
pub struct Hands {
    /// The hub.
    pub hub: Arc<Hub>,
    /// The instance.
    pub instance: Arc<Instance>,
    /// Its API, with all rights.
    pub endpoint: Endpoint,
}

impl Hands {
    /// Reaches into an instance; `None` when it is gone.
    pub fn reach(hub: &Arc<Hub>, id: InstanceId, agent: &str) -> Option<Self> {
        let instance = hub.instance_by_id(id)?;
        let identity = Identity::master(&format!("system:serviceaccount:kube-system:{agent}"));
        let endpoint = Endpoint::in_process(ApiService::new(hub.clone()), &instance.name, agent, move |extensions| {
            extensions.insert(identity.clone());
        });
        Some(Self { hub: hub.clone(), instance, endpoint })
    }

    /// Everything in the instance as of now.
    pub async fn snapshot(&self) -> Result<Snapshot, Status> {
        self.hub.snapshot(&self.instance).await
    }

    /// The kind whose objects are stored under this `resource.group`.
    pub fn kind_of(&self, key: &Key) -> Option<Arc<Kind>> {
        let (plural, group) = key.resource().split_once('.')?;
        self.instance.kinds().into_iter().find(|kind| *kind.plural == *plural && *kind.group == *group)
    }

    /// Where the objects of a kind are in the API.
    pub fn gvr(kind: &Kind) -> Gvr {
        Gvr::new(&kind.group, &kind.version, &kind.plural)
    }

    /// Deletes one object under a propagation policy, if it is still the one with this uid.
    pub async fn delete(&self, key: &Key, uid: &str, policy: &str) -> Result<(), Status> {
        let Some(kind) = self.kind_of(key) else { return Ok(()) };
        let (namespace, name) = place(key);
        let options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1",
            "propagationPolicy": policy, "preconditions": {"uid": uid},
        });
        match self.endpoint.delete(&Self::gvr(&kind), namespace, name, &options).await {
            Err(status) if status.code == 409 => Ok(()), // another object of that name: not ours to delete
            result => result,
        }
    }

    /// Applies a merge patch to one object.
    pub async fn merge(&self, key: &Key, patch: &Value) -> Result<(), Status> {
        let Some(kind) = self.kind_of(key) else { return Ok(()) };
        let (namespace, name) = place(key);
        match self.endpoint.patch(&Self::gvr(&kind), namespace, name, "", atoll_runtime::Patch::Merge, patch).await {
            Err(status) if status.code == 404 => Ok(()),
            result => result.map(drop),
        }
    }
}

/// Namespace and name in a key.
pub fn place(key: &Key) -> (Option<&str>, &str) {
    let mut parts = key.as_str().split('/').skip(1);
    match (parts.next(), parts.next()) {
        (Some(namespace), Some(name)) => (Some(namespace), name),
        (Some(name), None) => (None, name),
        _ => (None, ""),
    }
}
