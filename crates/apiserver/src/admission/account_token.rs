//! Secrets that hold a service account's token are filled when they are made.

use atoll_meta::{Key, Status};
use atoll_pki::{Bound, Claims};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Operation, Review};

const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

/// Fills in token, authority and namespace, if the account exists.
pub async fn mutate(review: &Review<'_>, object: &mut Value) -> Result<(), Status> {
    let writes = matches!(review.operation, Operation::Create | Operation::Update);
    if !review.is("", "secrets") || !writes || object["type"] != TYPE {
        return Ok(());
    }
    let call = review.call;
    let namespace = call.target.namespace.clone();
    let account = object["metadata"]["annotations"][NAME].as_str().unwrap_or_default().to_owned();
    let key = Key::new("", "serviceaccounts", &namespace, &account);
    let Some(entry) = call.hub.read(&call.instance, key.as_str()).await? else { return Ok(()) };
    let uid = entry.object.head.uid.to_string();
    let named = object["metadata"]["annotations"][UID].as_str().unwrap_or_default();
    if !named.is_empty() && named != uid {
        // Meant for an account that is gone; the one of that name now is another.
        return Ok(());
    }
    object["metadata"]["annotations"][UID] = uid.clone().into();
    if !object["data"].is_object() {
        object["data"] = json!({});
    }
    let missing = |object: &Value, field: &str| object["data"][field].as_str().unwrap_or_default().is_empty();
    if missing(object, "ca.crt") {
        object["data"]["ca.crt"] = STANDARD.encode(call.hub.keys.own().serving.cert_pem()).into();
    }
    if missing(object, "namespace") {
        object["data"]["namespace"] = STANDARD.encode(&namespace).into();
    }
    if missing(object, "token") && !review.dry_run {
        let claims = Claims {
            namespace,
            name: account,
            uid,
            bound: Some(Bound { kind: "Secret".into(), name: review.name.clone(), uid: String::new() }),
            ..Claims::default()
        };
        let authority = call.hub.authority(&call.instance).await?;
        let token = authority.signer().sign(&claims, call.now).map_err(Status::internal)?;
        object["data"]["token"] = STANDARD.encode(token).into();
    }
    Ok(())
}
