//! Who a caller is and what they may do.
//!
//! `authenticate` finds out who, `impersonate` whom they act as, [`authorize`] whether they may
//! (`rbac`). [`Keys`] and [`Authority`] hold what proves identities; `review`, `access` and `token`
//! answer questions about them.

mod access;
mod account;
pub(crate) mod aggregate;
mod authenticate;
mod authority;
mod bootstrap_token;
pub(crate) mod cover;
mod credentials;
mod defaults;
mod documents;
mod extension;
mod impersonate;
mod keys;
pub(crate) mod rbac;
mod review;
pub(crate) mod signing;
mod token;
pub(crate) mod vault;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use atoll_meta::{Key, Object, Status};
use http::Request;

pub use authority::Authority;
pub use credentials::Credentials;
pub use documents::public_documents;
pub use extension::FRONT_PROXY;
pub use keys::{Authenticator, HubAuthority, Keys};
pub use rbac::{Attributes, Roles, Rule};
pub use review::{is_review, review, user_info};
pub use signing::sign_request;
pub use token::token;
pub use vault::NAMESPACE;

use crate::hub::Hub;
use crate::identity::Identity;
use crate::instance::Instance;

/// Parsed role rules of an instance, rebuilt after they change.
#[derive(Default)]
pub struct RoleCache {
    changes: AtomicU64,
    parsed: ArcSwapOption<(u64, Arc<Roles>)>,
}

impl RoleCache {
    /// Forgets what was parsed, because roles or bindings changed.
    pub fn invalidate(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.parsed.store(None);
    }

    /// The rules as of now.
    pub async fn get(&self, hub: &Hub, instance: &Instance) -> Result<Arc<Roles>, Status> {
        // Read before the snapshot: a change in between makes what is parsed here old.
        let changes = self.changes.load(Ordering::Acquire);
        if let Some(known) = self.parsed.load().as_ref().filter(|known| known.0 == changes) {
            return Ok(known.1.clone());
        }
        let roles = Arc::new(Roles::read(&hub.snapshot(instance).await?));
        self.parsed.store(Some(Arc::new((changes, roles.clone()))));
        Ok(roles)
    }
}

/// Finds out as whom a request acts, and removes from it what told so.
pub fn identify<'a, B>(
    hub: &'a Hub,
    instance: &'a Instance,
    request: &mut Request<B>,
) -> impl Future<Output = Result<Identity, Status>> + Send + use<'a, B> {
    let inside = request.extensions().get::<Identity>().cloned();
    let extensions = std::mem::take(request.extensions_mut());
    let shown = authenticate::Shown::take(request.headers_mut(), &extensions);
    *request.extensions_mut() = extensions;
    let wish = impersonate::Wish::read(request.headers());
    impersonate::strip(request.headers_mut());
    async move {
        let caller = match inside {
            // Callers inside the process carry their identity with them.
            Some(identity) => identity,
            None => authenticate::authenticate(hub, instance, &shown).await?,
        };
        match wish? {
            None => Ok(caller),
            Some(wish) => impersonate::impersonate(hub, instance, caller, wish).await,
        }
    }
}

/// Allows or refuses a request.
pub async fn authorize(
    hub: &Hub,
    instance: &Instance,
    identity: &Identity,
    attributes: &Attributes<'_>,
) -> Result<(), Status> {
    if identity.is_master() {
        return Ok(());
    }
    let roles = instance.roles.get(hub, instance).await?;
    if roles.allow(identity, attributes) { Ok(()) } else { Err(attributes.denied(identity)) }
}

/// The roles, bindings and priority classes every instance begins with, shared by all of them.
pub fn default_objects(now: &str) -> &'static [(Key, Arc<Object>)] {
    defaults::all(now)
}
