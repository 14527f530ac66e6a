//! One resource request on its way through the registry.

use std::sync::Arc;

use atoll_meta::{Key, Status};
use http::HeaderMap;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::hub::Hub;
use crate::identity::Identity;
use crate::instance::Instance;
use crate::kind::Kind;
use crate::negotiate::{self, Accept, Offer};
use crate::query::Query;
use crate::request::Target;

/// Everything the handlers of a resource need to know about a request.
pub struct Call {
    /// The hub.
    pub hub: Arc<Hub>,
    /// The instance it is for.
    pub instance: Arc<Instance>,
    /// Who asks.
    pub identity: Identity,
    /// What kind of object.
    pub kind: Arc<Kind>,
    /// Which one.
    pub target: Target,
    /// With which parameters.
    pub query: Query,
    /// Headers, for negotiation.
    pub headers: HeaderMap,
    /// When it arrived.
    pub now: Timestamp,
    /// Warnings for the client, sent as headers.
    pub warnings: Mutex<Vec<String>>,
    /// What the request holds until it is answered.
    pub(crate) held: Mutex<Option<tokio::sync::OwnedMutexGuard<()>>>,
}

impl Call {
    /// The storage key of an object of this kind in the request's namespace.
    pub fn key(&self, name: &str) -> Key {
        let namespace = if self.kind.namespaced { self.target.namespace.as_str() } else { "" };
        Key::new(&self.kind.storage_group, &self.kind.plural, namespace, name)
    }

    /// What all keys in the scope of the request begin with.
    pub fn prefix(&self) -> String {
        let namespace = if self.kind.namespaced { self.target.namespace.as_str() } else { "" };
        Key::prefix(&self.kind.storage_group, &self.kind.plural, namespace)
    }

    /// The `resource.group` under which events of this kind are logged.
    pub fn resource(&self) -> String {
        format!("{}.{}", self.kind.plural, self.kind.storage_group)
    }

    /// The moment of the request as objects show it.
    pub fn timestamp(&self) -> String {
        atoll_meta::time::format(self.now)
    }

    /// What the client wants to get back.
    pub fn accept(&self, list: bool) -> Result<Accept, Status> {
        let offer = Offer { protobuf: self.kind.custom().is_none(), list, watch: false, forms: true };
        negotiate::accept(&self.headers, offer)
            .map_err(|status| negotiate::wrong_number(&self.headers, list, &self.program_type()).unwrap_or(status))
    }

    /// What programs of the original call the type, for messages.
    fn program_type(&self) -> String {
        if self.kind.custom().is_some() {
            return "unstructured.Unstructured".to_owned();
        }
        let package = self.kind.storage_group.split('.').next().filter(|name| !name.is_empty()).unwrap_or("core");
        format!("{package}.{}", self.kind.kind)
    }

    /// What the client wants to see of a watch.
    pub fn accept_watch(&self) -> Result<Accept, Status> {
        let offer = Offer { protobuf: self.kind.custom().is_none(), list: true, watch: true, forms: true };
        negotiate::accept(&self.headers, offer)
    }

    /// Who is recorded as manager of the fields this request writes.
    pub fn manager(&self) -> Result<String, Status> {
        if let Some(name) = self.query.field_manager()? {
            return Ok(name.to_owned());
        }
        let agent =
            self.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("unknown");
        let name: String =
            agent.split('/').next().unwrap_or("unknown").chars().filter(|c| !c.is_control()).take(128).collect();
        Ok(if name.is_empty() { "unknown".to_owned() } else { name })
    }

    /// A copy for work that outlives the handler.
    pub fn fork(&self) -> Self {
        Self {
            hub: self.hub.clone(),
            instance: self.instance.clone(),
            identity: self.identity.clone(),
            kind: self.kind.clone(),
            target: self.target.clone(),
            query: self.query.clone(),
            headers: self.headers.clone(),
            now: self.now,
            warnings: Mutex::default(),
            held: Mutex::default(),
        }
    }

    /// Waits for a turn and keeps it until the request is answered. There is one such gate per instance,
    /// and nothing waits for another request while holding it.
    pub(crate) async fn hold(&self, gate: &Arc<tokio::sync::Mutex<()>>) {
        if self.held.lock().is_none() {
            let guard = gate.clone().lock_owned().await;
            *self.held.lock() = Some(guard);
        }
    }

    /// Tells the client something without failing.
    pub fn warn(&self, text: impl Into<String>) {
        let text = text.into();
        let mut warnings = self.warnings.lock();
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    /// 404 of the named object.
    pub fn not_found(&self) -> Status {
        self.kind.not_found(&self.target.name)
    }

    /// 409 of a lost race.
    pub fn modified(&self) -> Status {
        Status::modified(&self.kind.group, &self.kind.plural, &self.target.name)
    }

    /// The strategy context of built-in kinds.
    pub fn strategy<'a>(&'a self, now: &'a str) -> atoll_builtin::strategy::Context<'a> {
        atoll_builtin::strategy::Context {
            group: &self.kind.storage_group,
            version: &self.kind.storage_version,
            kind: &self.kind.kind,
            now,
        }
    }
}
