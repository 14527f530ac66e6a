//! Bootstrap tokens: the map that tells joiners where the server is, signed with each; and their end.

use std::collections::BTreeMap;
use std::time::Duration;

use atoll_meta::{Gvr, Head, Key, Status};
use atoll_store::Snapshot;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::due;
use crate::hands::Hands;

const TYPE: &str = "bootstrap.kubernetes.io/token";
const PREFIX: &str = "bootstrap-token-";
const SIGNATURE: &str = "jws-kubeconfig-";
const INFO: &str = "cluster-info";
const PUBLIC: &str = "kube-public";
/// What lets everybody read the map, and only that; the name kubeadm gives it.
const READER: &str = "kubeadm:bootstrap-signer-clusterinfo";

/// Whether this can be a bootstrap token.
pub fn is_token(head: &Head) -> bool {
    &*head.namespace == "kube-system" && head.name.starts_with(PREFIX)
}

/// Whether this is the map for joiners.
pub fn is_info(head: &Head) -> bool {
    &*head.namespace == PUBLIC && &*head.name == INFO
}

/// Deletes a token that is over; `Some` asks for another look.
pub async fn expire(hands: &Hands, name: &str) -> Result<Option<Duration>, Status> {
    let snapshot = hands.snapshot().await?;
    let key = Key::new("", "secrets", "kube-system", name);
    let Some(entry) = snapshot.get(key.as_str()).filter(|entry| !entry.object.head.deleting) else { return Ok(None) };
    let secret = entry.object.tree(entry.modified);
    let Some(expiration) = text(&secret, "expiration").filter(|_| secret["type"] == TYPE) else { return Ok(None) };
    // A token whose end cannot be read is over: nobody accepts it any more.
    if let Some(left) = atoll_meta::time::parse(&expiration).and_then(|end| due::left(end, hands.hub.now())) {
        return Ok(Some(left));
    }
    hands.delete(&key, &entry.object.head.uid, "Background").await.map(|()| None)
}

/// Keeps one signature per signing token in the map for joiners. The map is made with the first such token.
pub async fn sign(hands: &Hands) -> Result<(), Status> {
    let snapshot = hands.snapshot().await?;
    let tokens = signing_tokens(&snapshot, hands.hub.now());
    let key = Key::new("", "configmaps", PUBLIC, INFO);
    let maps = Gvr::new("", "v1", "configmaps");
    let Some(entry) = snapshot.get(key.as_str()) else {
        if tokens.is_empty() {
            return Ok(());
        }
        publish(hands).await?;
        let data = signed(&json!({"kubeconfig": joiners_config(hands)?}), &tokens);
        let map = json!({"kind": "ConfigMap", "apiVersion": "v1",
                         "metadata": {"name": INFO, "namespace": PUBLIC}, "data": data});
        return settled(hands.endpoint.create(&maps, Some(PUBLIC), &map).await);
    };
    let mut map = entry.object.tree(entry.modified);
    let data = signed(&map["data"], &tokens);
    if map["data"] == data || entry.object.head.deleting {
        return Ok(());
    }
    map["data"] = data;
    match hands.endpoint.update(&maps, Some(PUBLIC), INFO, &map).await {
        Err(status) if status.code == 404 => Ok(()),
        result => result.map(drop),
    }
}

/// The secret halves of tokens that sign, by their public half.
fn signing_tokens(snapshot: &Snapshot, now: Timestamp) -> BTreeMap<String, String> {
    let prefix = format!("{}{PREFIX}", Key::prefix("", "secrets", "kube-system"));
    let secrets = snapshot.range(&prefix, None).filter(|(_, entry)| !entry.object.head.deleting);
    let mut tokens = BTreeMap::new();
    for (_, entry) in secrets {
        let secret = entry.object.tree(entry.modified);
        let id = text(&secret, "token-id").unwrap_or_default();
        let over = text(&secret, "expiration")
            .is_some_and(|end| atoll_meta::time::parse(&end).is_none_or(|end| due::left(end, now).is_none()));
        let fits = secret["type"] == TYPE && entry.object.head.name.strip_prefix(PREFIX) == Some(&id);
        if fits && !over && text(&secret, "usage-bootstrap-signing").as_deref() == Some("true") {
            tokens.extend(text(&secret, "token-secret").map(|secret| (id, secret)));
        }
    }
    tokens
}

fn text(secret: &Value, field: &str) -> Option<String> {
    let bytes = STANDARD.decode(secret["data"][field].as_str()?).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

/// The data with a signature for each token, and none besides.
fn signed(data: &Value, tokens: &BTreeMap<String, String>) -> Value {
    let mut new: Map<String, Value> = data
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !name.starts_with(SIGNATURE))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let Some(config) = data["kubeconfig"].as_str() else { return new.into() };
    for (id, secret) in tokens {
        new.insert(format!("{SIGNATURE}{id}"), atoll_pki::detached_signature(id, secret, config).into());
    }
    new.into()
}

/// Where the server is and whom to trust, without any credential.
fn joiners_config(hands: &Hands) -> Result<String, Status> {
    let authority = hands.hub.keys().own().serving.cert_pem();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "preferences": {}, "current-context": "", "contexts": [], "users": [],
        "clusters": [{"name": "", "cluster": {
            "server": hands.hub.url(&hands.instance), "certificate-authority-data": STANDARD.encode(authority)}}],
    });
    serde_json::to_string_pretty(&config).map_err(Status::internal)
}

/// Joiners have no identity yet: everybody may read this one map. As with kubeadm this happens when the map is
/// made and never again, so that whoever takes the right away keeps it away.
async fn publish(hands: &Hands) -> Result<(), Status> {
    let group = "rbac.authorization.k8s.io";
    let meta = json!({"name": READER, "namespace": PUBLIC});
    let role = json!({"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": meta,
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [INFO], "verbs": ["get"]}]});
    put(hands, "roles", &role).await?;
    let binding = json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": meta,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": READER},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "system:anonymous"}]});
    put(hands, "rolebindings", &binding).await
}

/// Creates it, or makes it what it must be: nobody prepares a wider role of that name for everybody.
async fn put(hands: &Hands, resource: &str, object: &Value) -> Result<(), Status> {
    let gvr = Gvr::new("rbac.authorization.k8s.io", "v1", resource);
    match hands.endpoint.create(&gvr, Some(PUBLIC), object).await {
        Err(status) if status.code == 409 => hands.endpoint.update(&gvr, Some(PUBLIC), READER, object).await.map(drop),
        result => result.map(drop),
    }
}

/// Somebody else made it: fine.
fn settled(result: Result<Value, Status>) -> Result<(), Status> {
    match result {
        Err(status) if status.code == 409 => Ok(()),
        result => result.map(drop),
    }
}
