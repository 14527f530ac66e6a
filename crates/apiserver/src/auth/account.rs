//! Service accounts: a token counts only while what it names still lives.

use atoll_meta::{Key, Status};
use atoll_pki::Claims;
use atoll_store::Entry;
use jiff::{SignedDuration, Timestamp};

use super::authenticate::CREDENTIAL_ID;
use super::vault;
use crate::hub::Hub;
use crate::identity::Identity;
use crate::instance::Instance;

/// An object being deleted vouches a little longer, so that what runs can end in order.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);
const PREFIX: &str = "authentication.kubernetes.io";

/// Who a verified token stands for, if its account and the object it is bound to are alive.
pub async fn identify(
    hub: &Hub,
    instance: &Instance,
    claims: &Claims,
    token: &str,
) -> Result<Option<Identity>, Status> {
    let key = Key::new("", "serviceaccounts", &claims.namespace, &claims.name);
    let account = hub.read(instance, key.as_str()).await?;
    if !lives(account.as_ref(), &claims.uid, hub.now()) {
        return Ok(None);
    }
    let mut identity = Identity {
        user: claims.user(),
        uid: claims.uid.clone(),
        groups: claims.groups().into(),
        ..Identity::default()
    };
    if claims.expires.is_none() {
        return Ok(is_stored(hub, instance, claims, token).await?.then_some(identity));
    }
    if !bound_lives(hub, instance, claims).await? {
        return Ok(None);
    }
    let mut note = |name: &str, value: &str| {
        identity.extra.insert(format!("{PREFIX}/{name}"), vec![value.to_owned()]);
    };
    if let Some(bound) = claims.bound.as_ref().filter(|bound| bound.kind != "Secret") {
        let kind = bound.kind.to_lowercase();
        note(&format!("{kind}-name"), &bound.name);
        note(&format!("{kind}-uid"), &bound.uid);
    }
    if let Some((name, uid)) = &claims.node {
        note("node-name", name);
        note("node-uid", uid);
    }
    if !claims.jti.is_empty() {
        identity.extra.insert(CREDENTIAL_ID.into(), vec![format!("JTI={}", claims.jti)]);
    }
    Ok(Some(identity))
}

fn lives(entry: Option<&Entry>, uid: &str, now: Timestamp) -> bool {
    let Some(entry) = entry.filter(|entry| *entry.object.head.uid == *uid) else { return false };
    if !entry.object.head.deleting {
        return true;
    }
    let tree = entry.object.tree(entry.modified);
    let end = tree["metadata"]["deletionTimestamp"].as_str().and_then(atoll_meta::time::parse);
    end.and_then(|end| end.checked_add(LEEWAY).ok()).is_some_and(|end| now < end)
}

async fn bound_lives(hub: &Hub, instance: &Instance, claims: &Claims) -> Result<bool, Status> {
    let Some(bound) = &claims.bound else { return Ok(true) };
    let key = match bound.kind.as_str() {
        "Pod" => Key::new("", "pods", &claims.namespace, &bound.name),
        "Secret" => Key::new("", "secrets", &claims.namespace, &bound.name),
        "Node" => Key::new("", "nodes", "", &bound.name),
        _ => return Ok(false),
    };
    Ok(lives(hub.read(instance, key.as_str()).await?.as_ref(), &bound.uid, hub.now()))
}

/// Whether a token without an end is the one in its Secret: deleting the Secret takes it back.
async fn is_stored(hub: &Hub, instance: &Instance, claims: &Claims, token: &str) -> Result<bool, Status> {
    let Some(bound) = &claims.bound else { return Ok(false) };
    let key = Key::new("", "secrets", &claims.namespace, &bound.name);
    let Some(entry) = hub.read(instance, key.as_str()).await? else { return Ok(false) };
    if entry.object.head.deleting || entry.object.head.label("kubernetes.io/legacy-token-invalid-since").is_some() {
        return Ok(false);
    }
    let secret = entry.object.tree(entry.modified);
    let stored = vault::text(&secret["data"]["token"]).unwrap_or_default();
    Ok(secret["type"] == "kubernetes.io/service-account-token" && atoll_pki::equal(stored.as_bytes(), token.as_bytes()))
}
