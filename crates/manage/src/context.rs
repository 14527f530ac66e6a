//! What every method needs: the hub, the index, and who asks.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use atoll_apiserver::auth::{self, Attributes};
use atoll_apiserver::{ApiService, Hub, Identity, Target, Verb};
use atoll_fleet::MemberResolver;
use atoll_index::{Index, Rights};
use atoll_meta::{Gvr, Status};
use atoll_runtime::{BodyStream, Endpoint, Transport};
use bytes::Bytes;
use serde_json::Value;

use crate::access::providers::Providers;
use crate::access::rights::CallerRights;
use crate::audit::Audit;
use crate::external::{Externals, Resting};
use crate::guard::Epoch;
use crate::kinds::{CLUSTER, Kind, SECRET};

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
    /// Who vouches for users elsewhere.
    pub providers: Providers,
    /// When rights may have changed.
    pub epoch: Epoch,
    /// Ways to members, once the controllers know them.
    pub members: OnceLock<Arc<dyn MemberResolver>>,
}

impl Core {
    /// A way into an instance of this hub with all rights, for our own work.
    pub fn own_endpoint(&self, instance: &str) -> Endpoint {
        in_process(&self.service, instance, Identity::master("system:atoll:manage"))
    }
}

/// The way to a member of an instance with the hub's own rights.
pub async fn member_of(core: &Core, instance: &str, member: &str) -> Result<Endpoint, Status> {
    let own = match core.hub.instance(instance) {
        Some(_) => core.own_endpoint(instance),
        None => {
            let all = Identity::master(AGENT);
            let external = core.externals.endpoint(core, instance, &all).await?;
            external.ok_or_else(|| Status::not_found("atoll.io", "instances", instance))?
        }
    };
    let cluster = own.get(&CLUSTER.gvr(), None, member).await?;
    let reference = &cluster["spec"]["secretRef"];
    let secret = match (reference["namespace"].as_str(), reference["name"].as_str()) {
        (Some(namespace), Some(name)) => own.get_opt(&SECRET.gvr(), Some(namespace), name).await?,
        _ => None,
    };
    let members = core.members.get().ok_or_else(|| Status::unavailable("members are not known yet"))?;
    members.resolve(&cluster, secret.as_ref()).await
}

fn in_process(service: &ApiService, instance: &str, identity: Identity) -> Endpoint {
    Endpoint::in_process(service.clone(), instance, AGENT, move |extensions| {
        extensions.insert(identity.clone());
    })
}

/// What a caller wishes beyond the request itself, said in headers.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Nothing is to be stored.
    pub dry_run: bool,
    /// The object must be at this resourceVersion.
    pub resource_version: Option<String>,
}

impl Wish {
    /// Reads `atoll-dry-run` and `atoll-resource-version`.
    pub fn read(headers: &http::HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty());
        Self {
            dry_run: text("atoll-dry-run").is_some_and(|text| text != "false"),
            resource_version: text("atoll-resource-version").map(ToOwned::to_owned),
        }
    }
}

/// Sends writes as trials: they are checked and answered, and nothing is stored.
struct Trial(Arc<dyn Transport>);

#[async_trait::async_trait]
impl Transport for Trial {
    async fn send(&self, mut request: http::Request<Bytes>) -> Result<http::Response<BodyStream>, Status> {
        if !matches!(request.method().as_str(), "GET" | "HEAD") {
            let sign = if request.uri().query().is_some() { '&' } else { '?' };
            let target = format!("{}{sign}dryRun=All", request.uri());
            *request.uri_mut() = target.parse().map_err(|error| Status::bad_request(format!("{target}: {error}")))?;
        }
        self.0.send(request).await
    }
}

/// One call.
#[derive(Clone)]
pub struct Ctx {
    /// What all calls share.
    pub core: Arc<Core>,
    /// Who asks.
    pub identity: Identity,
    /// How they want it done.
    pub wish: Wish,
}

impl Ctx {
    /// What the caller may see of the index.
    pub fn rights(&self) -> Arc<dyn Rights> {
        Arc::new(CallerRights::new(self.core.clone(), self.identity.clone()))
    }

    /// The way into an instance, as the caller: the instance decides what they may do.
    pub async fn endpoint(&self, instance: &str) -> Result<Endpoint, Status> {
        self.real_endpoint(instance).await.map(|endpoint| self.tried(endpoint))
    }

    fn tried(&self, endpoint: Endpoint) -> Endpoint {
        if !self.wish.dry_run {
            return endpoint;
        }
        Endpoint::new(endpoint.name(), Arc::new(Trial(endpoint.transport().clone())), AGENT)
    }

    async fn real_endpoint(&self, instance: &str) -> Result<Endpoint, Status> {
        if self.core.hub.instance(instance).is_some() {
            return Ok(in_process(&self.core.service, instance, self.identity.clone()));
        }
        let externals = &self.core.externals;
        if let Some(endpoint) = externals.endpoint(&self.core, instance, &self.identity).await? {
            if externals.may_write(&self.core, instance).await.is_ok() {
                return Ok(endpoint);
            }
            let resting = Resting { name: instance.to_owned(), inner: endpoint.transport().clone() };
            return Ok(Endpoint::new(instance, Arc::new(resting), AGENT));
        }
        // Who may not read instances learns nothing about which there are.
        self.may_in_root(Verb::Get, "instances", instance).await?;
        Err(Status::not_found("atoll.io", "instances", instance))
    }

    /// The way into `root`, as the caller.
    pub fn root(&self) -> Endpoint {
        self.tried(in_process(&self.core.service, "root", self.identity.clone()))
    }

    /// The way to a member of an instance with the hub's own rights: ask whether the caller may first.
    pub async fn member(&self, instance: &str, member: &str) -> Result<Endpoint, Status> {
        member_of(&self.core, instance, member).await
    }

    /// Allows or refuses a subresource in an instance, such as the log of a pod.
    pub async fn may_sub(&self, instance: &str, target: &Target, verb: Verb) -> Result<(), Status> {
        let Some(instance) = self.core.hub.instance(instance) else {
            return if self.identity.is_master() { Ok(()) } else { Err(Status::unauthorized()) };
        };
        let attributes = Attributes {
            verb,
            verb_word: None,
            group: &target.group,
            version: &target.version,
            resource: &target.resource,
            subresource: &target.subresource,
            namespace: &target.namespace,
            name: &target.name,
            url: None,
        };
        auth::authorize(&self.core.hub, &instance, &self.identity, &attributes).await
    }

    /// Allows or refuses or refuses something with our own resources in `root`.
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
        if self.wish.dry_run {
            return;
        }
        let Some(revision) = written["metadata"]["resourceVersion"].as_str() else { return };
        let index = &self.core.index;
        if index.shelf(instance, &kind.group, &kind.resource).is_some() {
            // A slow copy must not fail a write that is done.
            let _ = index.wait_for(instance, &kind.group, &kind.resource, revision, SETTLE).await;
        }
    }
}
