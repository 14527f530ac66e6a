//! Local accounts: names and passwords for hubs without an identity provider.

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash};
use atoll_apiserver::Identity;
use atoll_meta::{Gvr, Status};
use atoll_runtime::Endpoint;
use base64::Engine as _;
use serde_json::{Value, json};

use super::objects::ACCOUNT;

/// Where passwords are kept, hashed.
const NAMESPACE: &str = "kube-system";

fn secrets() -> Gvr {
    Gvr::new("", "v1", "secrets")
}

fn secret_name(account: &str) -> String {
    format!("atoll-account-{account}")
}

/// Hashes a password so that it is slow to guess.
pub fn hash(password: &str) -> Result<String, Status> {
    if password.len() < 8 {
        return Err(Status::bad_request("a password has at least 8 characters"));
    }
    let hash = Argon2::default().hash_password(password.as_bytes()).map_err(Status::internal)?;
    Ok(hash.to_string())
}

/// Whether a password belongs to a hash.
pub fn verify(password: &str, hash: &str) -> bool {
    PasswordHash::new(hash).is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

/// Sets the password of an account; `root` is the way into `root` of whoever may do that.
pub async fn set_password(root: &Endpoint, account: &str, password: &str) -> Result<(), Status> {
    root.get(&ACCOUNT.gvr(), None, account).await?;
    let hash = hash(password)?;
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "type": "atoll.io/password", "metadata": {"name": secret_name(account)}, "stringData": {"hash": hash}});
    match root.create(&secrets(), Some(NAMESPACE), &secret).await {
        Err(status) if status.code == 409 => {
            let change = json!({"stringData": {"hash": hash}});
            root.patch(&secrets(), Some(NAMESPACE), &secret_name(account), "", atoll_runtime::Patch::Merge, &change)
                .await
                .map(drop)
        }
        result => result.map(drop),
    }
}

/// Who a name and a password stand for; `root` is the hub's own way into `root`.
pub async fn login(root: &Endpoint, account: &str, password: &str) -> Result<Identity, Status> {
    let known = crate::ask::segment("user", account).is_ok();
    let object = if known { root.get_opt(&ACCOUNT.gvr(), None, account).await? } else { None };
    let secret = if known { root.get_opt(&secrets(), Some(NAMESPACE), &secret_name(account)).await? } else { None };
    let stored = secret
        .as_ref()
        .and_then(|secret| secret["data"]["hash"].as_str())
        .and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok());
    let stored = stored.and_then(|bytes| String::from_utf8(bytes).ok());
    // The same work for names nobody has, so that time does not tell which exist.
    let fits = verify(password, stored.as_deref().unwrap_or(NOBODY));
    match object {
        Some(object) if fits && stored.is_some() && object["spec"]["disabled"] != true => Ok(identity(&object)),
        _ => Err(Status::unauthorized()),
    }
}

/// An open account by name.
pub async fn find(root: &Endpoint, account: &str) -> Result<Option<Identity>, Status> {
    if crate::ask::segment("user", account).is_err() {
        return Ok(None);
    }
    let object = root.get_opt(&ACCOUNT.gvr(), None, account).await?;
    Ok(object.filter(|object| object["spec"]["disabled"] != true).as_ref().map(identity))
}

/// The hash of a password that nobody has.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$Zr1zq8bF1m3m2zj4m0m0m0m0m0m0m0m0m0m0m0m0m0k";

fn identity(account: &Value) -> Identity {
    let groups = account["spec"]["groups"].as_array().into_iter().flatten().filter_map(Value::as_str);
    // Groups of the system are not given to local accounts.
    let mut groups: Vec<String> = groups.filter(|group| !group.starts_with("system:")).map(ToOwned::to_owned).collect();
    groups.push("system:authenticated".into());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Identity {
        user: text(&account["metadata"]["name"]),
        uid: text(&account["metadata"]["uid"]),
        groups,
        ..Identity::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_the_right_password_fits() {
        let hashed = hash("correct horse").unwrap();
        assert!(hashed.starts_with("$argon2id$"));
        assert!(verify("correct horse", &hashed));
        assert!(!verify("correct hors", &hashed));
        assert!(!verify("correct horse", "nonsense"));
        assert!(hash("short").is_err());
        assert!(PasswordHash::new(NOBODY).is_ok(), "the hash for nobody costs as much as a real one");
    }
}
