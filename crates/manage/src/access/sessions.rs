//! Sessions of local accounts: signed, for a while, and worth nothing once the account is closed.

use atoll_apiserver::Identity;
use atoll_meta::{Gvr, Status};
use atoll_runtime::Endpoint;
use base64::Engine as _;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::accounts;

/// How long a session lasts, in seconds.
const LASTS: i64 = 12 * 3600;
const ISSUER: &str = "atoll-session";
const NAMESPACE: &str = "kube-system";
const SECRET: &str = "atoll-sessions";

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    /// The uid of the account: a later one of the same name is somebody else.
    uid: String,
    exp: i64,
}

/// The key all processes of the hub sign with; made at first use.
async fn key(root: &Endpoint) -> Result<Vec<u8>, Status> {
    let secrets = Gvr::new("", "v1", "secrets");
    let fresh = atoll_pki::random_text(43).map_err(Status::internal)?;
    let wanted = json!({"kind": "Secret", "apiVersion": "v1", "type": "atoll.io/session-key", "metadata": {"name": SECRET}, "stringData": {"key": fresh}});
    let stored = match root.get_opt(&secrets, Some(NAMESPACE), SECRET).await? {
        Some(secret) => secret,
        None => root.ensure(&secrets, Some(NAMESPACE), &wanted).await?,
    };
    let text = stored["data"]["key"].as_str().unwrap_or_default();
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .ok()
        .filter(|key| key.len() >= 32)
        .ok_or_else(|| Status::internal("the session key is damaged"))
}

/// A token for who knows the password; `root` is the hub's own way into `root`.
pub async fn open(root: &Endpoint, account: &str, password: &str, now: jiff::Timestamp) -> Result<String, Status> {
    let identity = accounts::login(root, account, password).await?;
    let claims = Claims { iss: ISSUER.into(), sub: identity.user, uid: identity.uid, exp: now.as_second() + LASTS };
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &EncodingKey::from_secret(&key(root).await?))
        .map_err(Status::internal)
}

/// Who a token stands for now; `None` when it is not one of ours or no longer good.
pub async fn identify(root: &Endpoint, token: &str, now: jiff::Timestamp) -> Result<Option<Identity>, Status> {
    // Looked at before anything is read: most tokens are not of sessions.
    if claimed_issuer(token).as_deref() != Some(ISSUER) {
        return Ok(None);
    }
    let mut rules = Validation::new(Algorithm::HS256);
    rules.set_issuer(&[ISSUER]);
    // Against the hub's own clock, below.
    rules.validate_exp = false;
    let Ok(data) = jsonwebtoken::decode::<Claims>(token, &DecodingKey::from_secret(&key(root).await?), &rules) else {
        return Ok(None);
    };
    if data.claims.exp <= now.as_second() {
        return Ok(None);
    }
    let identity = accounts::find(root, &data.claims.sub).await?;
    Ok(identity.filter(|identity| identity.uid == data.claims.uid))
}

/// Who a token says that it is from; nothing proves it yet.
pub fn claimed_issuer(token: &str) -> Option<String> {
    let payload = token.split('.').nth(1)?;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    claims["iss"].as_str().map(ToOwned::to_owned)
}
