//! Secrets that hold the token of a service account: filled when it exists, deleted when it is gone.

use atoll_meta::{Key, Status};
use atoll_store::Entry;
use serde_json::{Value, json};

use crate::ask::contains;
use crate::hands::Hands;

const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

/// The account whose token a Secret holds, if it is of that kind.
pub fn account_of(entry: &Entry) -> Option<String> {
    if !contains(&entry.object.body, TYPE.as_bytes()) {
        return None;
    }
    let secret = entry.object.tree(entry.modified);
    let account = secret["metadata"]["annotations"][NAME].as_str().filter(|account| !account.is_empty())?;
    (secret["type"] == TYPE).then(|| account.to_owned())
}

/// Brings the Secrets of one account in line with it.
pub async fn settle(hands: &Hands, namespace: &str, account: &str) -> Result<(), Status> {
    let snapshot = hands.snapshot().await?;
    let key = Key::new("", "serviceaccounts", namespace, account);
    let living = snapshot.get(key.as_str()).map(|entry| entry.object.head.uid.clone());
    let prefix = Key::prefix("", "secrets", namespace);
    let secrets = snapshot.range(&prefix, None).filter(|(_, entry)| account_of(entry).as_deref() == Some(account));
    for (key, entry) in secrets.map(|(key, entry)| (key.clone(), entry.clone())) {
        if entry.object.head.deleting {
            continue;
        }
        let secret = entry.object.tree(entry.modified);
        let meant = secret["metadata"]["annotations"][UID].as_str().unwrap_or_default();
        let fits = living.as_ref().is_some_and(|uid| meant.is_empty() || meant == &**uid);
        if !fits {
            gone(hands.delete(&key, &entry.object.head.uid, "Background").await)?;
        } else if !is_filled(&secret) {
            // Every write of such a Secret fills in what is missing.
            hands.merge(&key, &json!({"metadata": {"uid": &*entry.object.head.uid}})).await?;
        }
    }
    Ok(())
}

fn is_filled(secret: &Value) -> bool {
    ["token", "ca.crt", "namespace"]
        .iter()
        .all(|field| secret["data"][*field].as_str().is_some_and(|text| !text.is_empty()))
}

/// What is gone already need not be deleted.
fn gone(result: Result<(), Status>) -> Result<(), Status> {
    match result {
        Err(status) if status.code == 404 => Ok(()),
        result => result,
    }
}
