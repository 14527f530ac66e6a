//! Users that somebody else vouches for: tokens of OpenID Connect, checked with the keys of their issuer.

use std::collections::HashMap;

use atoll_apiserver::Identity;
use atoll_meta::Status;
use atoll_runtime::Endpoint;
use jiff::Timestamp;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::objects::PROVIDER;
use super::sessions::claimed_issuer;
use crate::context::{AGENT, Core};
use crate::external;

/// How long keys are used before they are asked for again, in seconds.
const KEEP: i64 = 600;
/// A key nobody knows is asked for at most so often, in seconds.
const PAUSE: i64 = 10;
/// How far clocks may differ, in seconds.
const SKEW: i64 = 60;
/// Signatures that prove who signed; nothing with a shared secret, nothing without a signature.
const SIGNATURES: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Keys of issuers, as last seen.
#[derive(Default)]
pub struct Providers {
    known: Mutex<HashMap<String, (JwkSet, Timestamp)>>,
    documents: Mutex<HashMap<String, (Result<Value, Status>, Timestamp)>>,
}

impl Providers {
    /// Who a token stands for; `None` when no provider of the hub issued it or it is not good.
    pub async fn identify(&self, core: &Core, token: &str) -> Result<Option<Identity>, Status> {
        let Some(issuer) = claimed_issuer(token).filter(|issuer| issuer.starts_with("https://")) else {
            return Ok(None);
        };
        let all = core.own_endpoint("root").list(&PROVIDER.gvr(), None, "").await?.items;
        let Some(provider) = all.into_iter().find(|own| own["spec"]["issuer"] == issuer.as_str()) else {
            return Ok(None);
        };
        let spec = &provider["spec"];
        let Ok(header) = jsonwebtoken::decode_header(token) else { return Ok(None) };
        if !SIGNATURES.contains(&header.alg) {
            return Ok(None);
        }
        let Some(key) = self.key(spec, &issuer, header.kid.as_deref(), core.hub.now()).await? else { return Ok(None) };
        let audiences: Vec<&str> =
            spec["audiences"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut rules = Validation::new(header.alg);
        rules.set_issuer(&[&issuer]);
        rules.set_audience(&audiences);
        rules.set_required_spec_claims(&["iss", "aud", "exp"]);
        // Times against the hub's own clock, below.
        rules.validate_exp = false;
        let Ok(data) = jsonwebtoken::decode::<Value>(token, &key, &rules) else { return Ok(None) };
        Ok(identity(spec, &data.claims, core.hub.now().as_second()))
    }

    /// What an issuer says of itself. Failures are remembered for a while, too: anybody may ask.
    pub async fn document(&self, spec: &Value, now: Timestamp) -> Result<Value, Status> {
        let issuer = spec["issuer"].as_str().unwrap_or_default().to_owned();
        if let Some((document, read)) = self.documents.lock().get(&issuer) {
            let limit = if document.is_ok() { KEEP } else { PAUSE };
            if now.as_second() - read.as_second() < limit {
                return document.clone();
            }
        }
        let document = read_document(spec, &issuer).await;
        self.documents.lock().insert(issuer, (document.clone(), now));
        document
    }

    /// The key a token names. Keys are read again when they are old, or when an unknown one is named.
    async fn key(
        &self,
        spec: &Value,
        issuer: &str,
        kid: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<DecodingKey>, Status> {
        let find = |keys: &JwkSet| {
            let key = match kid {
                Some(kid) => keys.find(kid),
                None if keys.keys.len() == 1 => keys.keys.first(),
                None => None,
            };
            key.and_then(|key| DecodingKey::from_jwk(key).ok())
        };
        if let Some((keys, read)) = self.known.lock().get(issuer) {
            let age = now.as_second() - read.as_second();
            let found = find(keys);
            if age < PAUSE || (found.is_some() && age < KEEP) {
                return Ok(found);
            }
        }
        let keys = read_keys(spec, issuer).await?;
        let found = find(&keys);
        self.known.lock().insert(issuer.to_owned(), (keys, now));
        Ok(found)
    }
}

/// Reads the keys of an issuer over a proven connection.
async fn read_keys(spec: &Value, issuer: &str) -> Result<JwkSet, Status> {
    let document = read_document(spec, issuer).await?;
    let (server, path) = document["jwks_uri"]
        .as_str()
        .and_then(split)
        .ok_or_else(|| Status::unavailable(format!("{issuer} does not say where its keys are")))?;
    let keys = way(spec, &server).await?.get_path(&path).await?;
    serde_json::from_value(keys).map_err(|error| Status::unavailable(format!("the keys of {issuer}: {error}")))
}

async fn read_document(spec: &Value, issuer: &str) -> Result<Value, Status> {
    let document = way(spec, issuer).await?.get_path("/.well-known/openid-configuration").await?;
    if document["issuer"] != issuer {
        return Err(Status::unavailable(format!("the document of {issuer} is of another issuer")));
    }
    Ok(document)
}

/// The server of an address, and the path there.
pub(super) fn split(address: &str) -> Option<(String, String)> {
    let uri: http::Uri = address.parse().ok()?;
    let server = format!("{}://{}", uri.scheme_str()?, uri.authority()?);
    Some((server, uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned()))
}

/// The way to a server of a provider.
pub(super) async fn way(spec: &Value, server: &str) -> Result<Endpoint, Status> {
    let ca = spec["caData"].as_str().filter(|text| !text.is_empty());
    Endpoint::remote("issuer", external::server(server, ca, &json!({})).await?, AGENT)
}

/// What the claims of a proven token say, if it is good now.
fn identity(spec: &Value, claims: &Value, now: i64) -> Option<Identity> {
    let number = |key: &str| claims[key].as_f64().map(|number| number as i64);
    if number("exp")? + SKEW <= now || number("nbf").is_some_and(|from| from - SKEW > now) {
        return None;
    }
    let set = |key: &str, other: &str| spec[key].as_str().unwrap_or(other).to_owned();
    let claim = set("usernameClaim", "sub");
    if claim == "email" && claims["email_verified"] == false {
        return None;
    }
    let name = claims[&claim].as_str().filter(|name| !name.is_empty())?;
    let user = format!("{}{name}", set("usernamePrefix", "oidc:"));
    let prefix = set("groupsPrefix", "oidc:");
    let groups = match &claims[&set("groupsClaim", "groups")] {
        Value::String(one) => vec![one.clone()],
        list => list.as_array().into_iter().flatten().filter_map(|one| one.as_str().map(ToOwned::to_owned)).collect(),
    };
    // Nobody elsewhere says who belongs to the system.
    let mut groups: Vec<String> = groups
        .into_iter()
        .map(|group| format!("{prefix}{group}"))
        .filter(|group| !group.starts_with("system:"))
        .collect();
    groups.push("system:authenticated".into());
    let uid = claims["sub"].as_str().unwrap_or_default().to_owned();
    (!user.starts_with("system:")).then(|| Identity { user, uid, groups, ..Identity::default() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn claims_become_names_that_are_not_of_the_system() {
        let spec = json!({"usernamePrefix": "", "groupsPrefix": ""});
        let claims = json!({"sub": "ann", "exp": 1000, "groups": ["team", "system:masters"]});
        let who = identity(&spec, &claims, 500).unwrap();
        assert_eq!(
            (who.user.as_str(), who.groups.as_slice()),
            ("ann", &["team".to_owned(), "system:authenticated".to_owned()][..])
        );
        assert_eq!(identity(&spec, &claims, 2000), None, "too late");
        assert_eq!(identity(&spec, &json!({"sub": "system:admin", "exp": 1000}), 500), None);
        assert_eq!(identity(&spec, &json!({"sub": "a", "exp": 1000, "nbf": 900}), 500), None, "too early");
        let mail = json!({"usernameClaim": "email"});
        assert_eq!(identity(&mail, &json!({"email": "a@b", "email_verified": false, "exp": 1000}), 500), None);
        assert_eq!(identity(&mail, &json!({"email": "a@b", "exp": 1000}), 500).unwrap().user, "oidc:a@b");
    }
}
