//! What every method needs: the hub, the index, and who asks.

use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::auth::{self, Attributes};
use atoll_apiserver::{ApiService, Hub, Identity, Verb};
use atoll_index::{Index, Rights};
use atoll_meta::{Gvr, Status};
use atoll_runtime::Endpoint;
use serde_json::Value;

use crate::access::rights::CallerRights;
use crate::audit::Audit;
use crate::external::Externals;
use crate::kinds::Kind;

/// The name under which writes are recorded.
pub const AGENT: &str = "atoll-manage";
/// How long an answer to a write waits until the write can be found.
const SETTLE: Duration = Duration::from_millis(1500);

/// What all calls share.
pub struct Core {
    /// The hub.
    pub hub: Arc<Hub>,
    /// The searchable copy.
    pub index: Index,
    /// The way into instances of this hub.
    pub service: ApiService,
    /// Ways to instances elsewhere.
    pub externals: Externals,
    /// Who did what.
    pub audit: Audit,
}

impl Core {
    /// A way into an instance of this hub with all rights, for our own work.
    pub fn own_endpoint(&self, instance: &str) -> Endpoint {
        in_process(&self.service, instance, Identity::master("system:atoll:manage"))
    }
}

fn in_process(service: &ApiService, instance: &str, identity: Identity) -> Endpoint {
    Endpoint::in_process(service.clone(), instance, AGENT, move |extensions| {
        extensions.insert(identity.clone());
    })
}

/// One call.
#[derive(Clone)]
pub struct Ctx {
    /// What all calls share.
    pub core: Arc<Core>,
    /// Who asks.
    pub identity: Identity,
}

impl Ctx {
    /// What the caller may see of the index.
    pub fn rights(&self) -> Arc<dyn Rights> {
        Arc::new(CallerRights::new(self.core.clone(), self.identity.clone()))
    }

    /// The way into an instance, as the caller: the instance decides what they may do.
    pub async fn endpoint(&self, instance: &str) -> Result<Endpoint, Status> {
        if self.core.hub.instance(instance).is_some() {
            return Ok(in_process(&self.core.service, instance, self.identity.clone()));
        }
        if let Some(endpoint) = self.core.externals.endpoint(&self.core, instance, &self.identity).await? {
            return Ok(endpoint);
        }
        // Who may not read instances learns nothing about which there are.
        self.may_in_root(Verb::Get, "instances", instance).await?;
        Err(Status::not_found("atoll.io", "instances", instance))
    }

    /// The way into `root`, as the caller.
    pub fn root(&self) -> Endpoint {
        in_process(&self.core.service, "root", self.identity.clone())
    }

    /// Allows or refuses something with our own resources in `root`.
    pub async fn may_in_root(&self, verb: Verb, resource: &str, name: &str) -> Result<(), Status> {
        let attributes = Attributes {
            verb,
            verb_word: None,
            group: "atoll.io",
            version: "v1alpha1",
            resource,
            subresource: "",
            namespace: "",
            name,
            url: None,
        };
        auth::authorize(&self.core.hub, &self.core.hub.root(), &self.identity, &attributes).await
    }

    /// Allows or refuses something in an instance of this hub.
    pub async fn may_in(&self, instance: &str, verb: Verb, gvr: &Gvr, namespace: &str) -> Result<bool, Status> {
        let Some(instance) = self.core.hub.instance(instance) else { return Ok(self.identity.is_master()) };
        let attributes = Attributes {
            verb,
            verb_word: None,
            group: &gvr.group,
            version: &gvr.version,
            resource: &gvr.resource,
            subresource: "",
            namespace,
            name: "",
            url: None,
        };
        match auth::authorize(&self.core.hub, &instance, &self.identity, &attributes).await {
            Ok(()) => Ok(true),
            Err(status) if status.code == 403 => Ok(false),
            Err(status) => Err(status),
        }
    }

    /// Waits a little until a write can be found, so that the next list shows it.
    pub async fn settle(&self, instance: &str, kind: &Kind, written: &Value) {
        let Some(revision) = written["metadata"]["resourceVersion"].as_str() else { return };
        let index = &self.core.index;
        if index.shelf(instance, &kind.group, &kind.resource).is_some() {
            // A slow copy must not fail a write that is done.
            let _ = index.wait_for(instance, &kind.group, &kind.resource, revision, SETTLE).await;
        }
    }
}
