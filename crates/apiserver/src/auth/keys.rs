//! What the hub itself knows: its serving CA, static tokens, and the authorities of its instances.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use atoll_meta::{InstanceId, Status};
use atoll_pki::{Ca, PemPair, PkiError};
use atoll_store::{Engine, Expect};
use jiff::Timestamp;
use parking_lot::RwLock;
use serde_json::{Value, json};

use super::authority::{Authority, Digest, digest, secret_name};
use super::vault::{self, Fields};
use crate::hub::Hub;
use crate::identity::Identity;
use crate::instance::Instance;

const HUB: &str = "hub";
const TOKENS: &str = "tokens";

/// The authorities of the hub: one for its serving certificates, one for calls to extension servers.
pub struct HubAuthority {
    /// Issues the certificates the hub serves with.
    pub serving: Ca,
    /// Issues the certificate the hub shows to extension servers.
    pub front_proxy: Ca,
}

/// Recognises bearer tokens the hub itself does not know: of sessions, of identity providers.
#[async_trait::async_trait]
pub trait Authenticator: Send + Sync {
    /// Whose token it is; `None` when it is not one of theirs, or no longer good.
    async fn identify(&self, token: &str) -> Result<Option<Identity>, Status>;
}

/// Credentials the hub itself knows.
#[derive(Default)]
pub struct Keys {
    authenticators: RwLock<Vec<Arc<dyn Authenticator>>>,
    own: OnceLock<HubAuthority>,
    /// By digest: the tokens themselves are not kept.
    tokens: RwLock<HashMap<Digest, Identity>>,
    /// Like `tokens`, but of the Secret that all replicas share.
    shared_tokens: RwLock<HashMap<Digest, Identity>>,
    authorities: RwLock<HashMap<InstanceId, Arc<Authority>>>,
}

impl Keys {
    /// Accepts a bearer token, in all instances, until the process ends.
    pub fn add_token(&self, token: &str, identity: Identity) {
        self.tokens.write().insert(digest([token.as_bytes()]), authenticated(identity));
    }

    /// Accepts, in all instances, tokens that somebody else recognises.
    pub fn add_authenticator(&self, authenticator: Arc<dyn Authenticator>) {
        self.authenticators.write().push(authenticator);
    }

    /// Whose token this is, by those who were added.
    pub(super) async fn recognised(&self, token: &str) -> Result<Option<Identity>, Status> {
        let all = self.authenticators.read().clone();
        for authenticator in all {
            if let Some(identity) = authenticator.identify(token).await? {
                return Ok(Some(authenticated(identity)));
            }
        }
        Ok(None)
    }

    /// Whose static token this is.
    pub(super) fn static_token(&self, token: &str) -> Option<Identity> {
        // Looking up a digest reveals nothing about the tokens, whatever the time it takes.
        let print = digest([token.as_bytes()]);
        self.tokens.read().get(&print).or(self.shared_tokens.read().get(&print)).cloned()
    }

    /// Reads, or makes, what all replicas share.
    pub(crate) async fn load(&self, engine: &dyn Engine, now: Timestamp) -> Result<(), Status> {
        let fields = vault::keep(
            engine,
            HUB,
            &atoll_meta::time::format(now),
            |fields| fields.contains_key("serving.key") && fields.contains_key("front-proxy.key"),
            || make(now),
        )
        .await?;
        let own = HubAuthority {
            serving: ca(&fields, "serving").map_err(Status::internal)?,
            front_proxy: ca(&fields, "front-proxy").map_err(Status::internal)?,
        };
        // Loaded twice it is the same: the store keeps one.
        let _ = self.own.set(own);
        self.reload_tokens(engine).await
    }

    /// Reads the static tokens all replicas share.
    pub(crate) async fn reload_tokens(&self, engine: &dyn Engine) -> Result<(), Status> {
        let stored = vault::read(engine, TOKENS).await?.map(|(fields, _)| fields).unwrap_or_default();
        *self.shared_tokens.write() = stored.values().filter_map(|text| read_token(text)).collect();
        Ok(())
    }

    /// The hub's own authorities.
    pub fn own(&self) -> &HubAuthority {
        self.own.get().expect("a hub loads its keys before it is handed out")
    }

    pub(super) fn authority(&self, instance: InstanceId) -> Option<Arc<Authority>> {
        self.authorities.read().get(&instance).cloned()
    }

    pub(super) fn remember(&self, instance: InstanceId, authority: &Arc<Authority>) {
        self.authorities.write().insert(instance, authority.clone());
    }

    /// Forgets an instance's authority, because it changed or went.
    pub(crate) fn forget(&self, instance: InstanceId) {
        self.authorities.write().remove(&instance);
    }

    /// Forgets all of them, because changes may have been missed.
    pub(crate) fn forget_all(&self) {
        self.authorities.write().clear();
    }
}

impl Hub {
    /// Credentials the hub itself knows.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Accepts a bearer token in all instances and on all replicas. Only its digest is stored.
    pub async fn add_token(&self, name: &str, token: &str, identity: Identity) -> Result<(), Status> {
        let now = atoll_meta::time::format(self.now());
        let text = write_token(token, &authenticated(identity));
        loop {
            let (mut fields, expect) = match vault::read(&*self.engine, TOKENS).await? {
                Some((fields, revision)) => (fields, Expect::At(revision)),
                None => (Fields::default(), Expect::Absent),
            };
            fields.insert(name.to_owned(), text.clone());
            if vault::put(&*self.engine, TOKENS, &now, &fields, expect).await? {
                return self.keys.reload_tokens(&*self.engine).await;
            }
        }
    }

    /// Reacts to changes of the hub's own Secrets, made here or by another replica.
    pub(crate) async fn secrets_changed(&self, names: &BTreeSet<String>, all: bool) -> Result<(), Status> {
        for name in names {
            if let Some(instance) = name.strip_prefix("instance-").and_then(|name| self.instance(name)) {
                self.keys.forget(instance.id);
            }
        }
        if all || names.contains(TOKENS) { self.keys.reload_tokens(&*self.engine).await } else { Ok(()) }
    }

    /// Forgets everything an instance vouched with.
    pub(crate) async fn forget_authority(&self, instance: &Instance) -> Result<(), Status> {
        self.keys.forget(instance.id);
        vault::remove(&*self.engine, &secret_name(&instance.name)).await
    }
}

fn authenticated(mut identity: Identity) -> Identity {
    if !identity.in_group("system:authenticated") {
        identity.groups.push("system:authenticated".into());
    }
    identity
}

fn make(now: Timestamp) -> Result<Fields, Status> {
    let mut fields = Fields::new();
    for name in ["serving", "front-proxy"] {
        let pair = Ca::generate(&format!("atoll {name} CA"), now).map_err(Status::internal)?.to_pem();
        fields.insert(format!("{name}.crt"), pair.cert);
        fields.insert(format!("{name}.key"), pair.key);
    }
    Ok(fields)
}

fn ca(fields: &Fields, name: &str) -> Result<Ca, PkiError> {
    let text = |ending: &str| fields.get(&format!("{name}.{ending}")).cloned().unwrap_or_default();
    Ca::from_pem(&PemPair { cert: text("crt"), key: text("key") })
}

fn write_token(token: &str, identity: &Identity) -> String {
    let print: String = digest([token.as_bytes()]).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"sha256": print, "user": identity.user, "uid": identity.uid, "groups": identity.groups}).to_string()
}

fn read_token(text: &str) -> Option<(Digest, Identity)> {
    let value: Value = serde_json::from_str(text).ok()?;
    let hex = value["sha256"].as_str()?;
    let mut print = [0; 32];
    for (at, byte) in print.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    let groups = value["groups"].as_array()?.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect();
    let identity = Identity {
        user: value["user"].as_str()?.to_owned(),
        uid: value["uid"].as_str().unwrap_or_default().to_owned(),
        groups,
        ..Identity::default()
    };
    Some((print, identity))
}
