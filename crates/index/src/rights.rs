//! What a caller may see of the index.

use std::sync::Arc;

use atoll_apiserver::auth::{self, Attributes};
use atoll_apiserver::{Hub, Identity, Verb};
use atoll_meta::Status;
use tokio::sync::watch;

/// A resource of a source, and perhaps one namespace or object of it.
#[derive(Copy, Clone, Debug)]
pub struct Place<'a> {
    /// The source: `instance` or `instance/member`.
    pub source: &'a str,
    /// API group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Plural resource.
    pub resource: &'a str,
    /// One namespace; `None` asks for all of them, or for a resource outside namespaces.
    pub namespace: Option<&'a str>,
    /// One object; `None` asks for all.
    pub name: Option<&'a str>,
}

impl Place<'_> {
    /// The instance that the source belongs to.
    pub fn instance(&self) -> &str {
        self.source.split('/').next().unwrap_or_default()
    }
}

/// Decides what may be seen. Asked once for each resource and, unless all of it may be seen, for
/// each namespace that has objects; never for each object.
#[async_trait::async_trait]
pub trait Rights: Send + Sync {
    /// Whether all objects of the place may be seen. 503 means that it cannot be known now: a search leaves the
    /// place out, a watch ends.
    async fn may_see(&self, place: Place<'_>) -> Result<bool, Status>;

    /// Tells when answers may have become others; without it a watch only looks again from time to time.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}

/// Sees everything: for the hub's own controllers and tests.
#[derive(Copy, Clone, Debug, Default)]
pub struct Everything;

#[async_trait::async_trait]
impl Rights for Everything {
    async fn may_see(&self, _place: Place<'_>) -> Result<bool, Status> {
        Ok(true)
    }
}

/// The rights a caller has by the roles of an instance; they hold for its members too.
pub struct ByRoles {
    hub: Arc<Hub>,
    identity: Identity,
}

impl ByRoles {
    /// For a caller.
    pub fn new(hub: Arc<Hub>, identity: Identity) -> Self {
        Self { hub, identity }
    }
}

#[async_trait::async_trait]
impl Rights for ByRoles {
    async fn may_see(&self, place: Place<'_>) -> Result<bool, Status> {
        let Some(instance) = self.hub.instance(place.instance()) else { return Ok(self.identity.is_master()) };
        let attributes = Attributes {
            verb: if place.name.is_some() { Verb::Get } else { Verb::List },
            verb_word: None,
            group: place.group,
            version: place.version,
            resource: place.resource,
            subresource: "",
            namespace: place.namespace.unwrap_or_default(),
            name: place.name.unwrap_or_default(),
            url: None,
        };
        match auth::authorize(&self.hub, &instance, &self.identity, &attributes).await {
            Ok(()) => Ok(true),
            Err(status) if status.code == 403 => Ok(false),
            Err(status) => Err(status),
        }
    }
}
