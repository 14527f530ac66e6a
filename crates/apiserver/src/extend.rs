//! Places where other parts of Atoll plug into the server.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{Request, Response};

use crate::body::Body;
use crate::hub::Hub;
use crate::identity::Identity;
use crate::instance::Instance;
use crate::request::{RequestInfo, Target};

/// A request body as it arrives, before anything is read from it.
pub type Incoming = http_body_util::combinators::UnsyncBoxBody<Bytes, crate::body::BodyError>;

/// What a request turned out to be: who asked which instance for what.
#[derive(Clone)]
pub struct Asked {
    /// The instance it is for.
    pub instance: Arc<Instance>,
    /// Who asks.
    pub identity: Identity,
    /// What for.
    pub info: RequestInfo,
    /// The path inside the instance.
    pub path: String,
}

/// Put into the extensions of a request, it tells afterwards what the request turned out to be.
#[derive(Clone, Default)]
pub struct Witness(pub Arc<OnceLock<Asked>>);

/// A request that passed authentication and authorisation.
pub struct Visit {
    /// The hub.
    pub hub: Arc<Hub>,
    /// The instance it is for.
    pub instance: Arc<Instance>,
    /// Who asks.
    pub identity: Identity,
    /// What for; empty for requests on a group or version itself.
    pub target: Target,
    /// The path inside the instance.
    pub path: String,
    /// The HTTP request; upgrades are possible.
    pub request: Request<Incoming>,
}

/// Serves a streaming subresource: logs, exec, proxy.
#[async_trait::async_trait]
pub trait Connect: Send + Sync {
    /// Answers, or `None` when this connector is not for that instance.
    async fn connect(&self, visit: Visit) -> Result<Response<Body>, atoll_meta::Status>;

    /// Whether it serves this instance.
    fn serves(&self, instance: &Instance) -> bool;
}

/// A resource of a mounted group, for discovery.
#[derive(Clone, Debug)]
pub struct MountedResource {
    /// Plural name.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Kind.
    pub kind: String,
    /// Whether it lives in namespaces.
    pub namespaced: bool,
    /// Verbs.
    pub verbs: Vec<String>,
    /// Short names.
    pub short_names: Vec<String>,
}

impl MountedResource {
    /// One that can be read and listed.
    pub fn readable(plural: &str, kind: &str, namespaced: bool) -> Self {
        Self {
            plural: plural.into(),
            singular: String::new(),
            kind: kind.into(),
            namespaced,
            verbs: vec!["get".into(), "list".into()],
            short_names: Vec::new(),
        }
    }
}

/// Serves a whole API group that is computed, not stored (metrics, search).
#[async_trait::async_trait]
pub trait Mount: Send + Sync {
    /// The group.
    fn group(&self) -> &str;
    /// Its one version.
    fn version(&self) -> &str;
    /// Its resources.
    fn resources(&self) -> Vec<MountedResource>;
    /// Whether it serves this instance.
    fn serves(&self, instance: &Instance) -> bool;
    /// Answers a request below `/apis/{group}/{version}/`.
    async fn handle(&self, visit: Visit) -> Result<Response<Body>, atoll_meta::Status>;
}
