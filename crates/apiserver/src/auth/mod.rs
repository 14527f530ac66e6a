//! Who a caller is and what they may do.

mod defaults;
mod rbac;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use atoll_meta::Status;
use http::{Extensions, HeaderMap, Response};
use http::header::AUTHORIZATION;
use parking_lot::RwLock;

pub use rbac::{Attributes, Roles, Rule};

use crate::body::Body;
use crate::call::Call;
use crate::hub::Hub;
use crate::identity::Identity;
use crate::instance::Instance;
use crate::kind::Kind;
use crate::request::Verb;

/// Parsed role rules of an instance, rebuilt after they change.
#[derive(Default)]
pub struct RoleCache {
    parsed: ArcSwapOption<Roles>,
}

impl RoleCache {
    /// Forgets what was parsed, because roles or bindings changed.
    pub fn invalidate(&self) {
        self.parsed.store(None);
    }

    /// The rules as of now.
    pub async fn get(&self, hub: &Hub, instance: &Instance) -> Result<Arc<Roles>, Status> {
        if let Some(roles) = self.parsed.load_full() {
            return Ok(roles);
        }
        let roles = Arc::new(Roles::read(&hub.snapshot(instance).await?));
        self.parsed.store(Some(roles.clone()));
        Ok(roles)
    }
}

/// Credentials the hub itself knows.
#[derive(Default)]
pub struct Keys {
    tokens: RwLock<HashMap<String, Identity>>,
}

impl Keys {
    /// Accepts a bearer token, in all instances.
    pub fn add_token(&self, token: &str, identity: Identity) {
        self.tokens.write().insert(token.to_owned(), identity);
    }
}

/// Finds out who makes a request; no credentials at all make an anonymous caller.
pub async fn authenticate(hub: &Hub, _instance: &Instance, headers: &HeaderMap, _extensions: &Extensions) -> Result<Identity, Status> {
    let Some(header) = headers.get(AUTHORIZATION) else { return Ok(Identity::anonymous()) };
    let token = header.to_str().ok().and_then(|text| text.strip_prefix("Bearer ")).ok_or_else(Status::unauthorized)?;
    hub.keys.tokens.read().get(token.trim()).cloned().ok_or_else(Status::unauthorized)
}

/// Allows or refuses a request.
pub async fn authorize(hub: &Hub, instance: &Instance, identity: &Identity, attributes: &Attributes<'_>) -> Result<(), Status> {
    if identity.is_master() {
        return Ok(());
    }
    let roles = instance.roles.get(hub, instance).await?;
    if roles.allow(identity, attributes) { Ok(()) } else { Err(attributes.denied(identity)) }
}

/// The roles and bindings every instance begins with.
pub fn default_roles(now: &str) -> Vec<(atoll_meta::Key, serde_json::Value)> {
    defaults::all(now)
}

/// Whether a kind is a question to the server rather than an object.
pub fn is_review(kind: &Kind) -> bool {
    matches!(&*kind.group, "authentication.k8s.io" | "authorization.k8s.io")
}

/// Answers a review.
pub async fn review(call: &Call, _verb: Verb, _body: &[u8]) -> Result<Response<Body>, Status> {
    Err(Status::method_not_allowed(&call.kind.group, &call.kind.plural, "create"))
}

/// Issues a token for a service account.
pub async fn token(call: &Call, _body: &[u8]) -> Result<Response<Body>, Status> {
    Err(call.not_found())
}

/// Keys and issuer of service-account tokens, for other verifiers.
pub fn public_documents(_hub: &Hub, _instance: &Instance, _path: &str) -> Option<Response<Body>> {
    None
}
