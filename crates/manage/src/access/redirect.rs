//! Signing in by redirect to an identity provider: authorization code with a proof key (RFC 7636).
//!
//! The page keeps the proof key, the hub speaks with the provider. So a secret of the hub, if the provider wants
//! one, never reaches a browser, and providers need not allow requests from pages.

use atoll_meta::{Gvr, Status};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::objects::PROVIDER;
use super::providers::{split, way};
use crate::context::Core;

/// What is asked for unless the provider says otherwise.
const SCOPES: &str = "openid profile email groups";

/// The providers that take part, by what a browser needs to be sent there. Those that do not answer are left out.
pub async fn ways(core: &Core) -> Result<Value, Status> {
    let mut found = Vec::new();
    for provider in core.own_endpoint("root").list(&PROVIDER.gvr(), None, "").await?.items {
        let spec = &provider["spec"];
        let Some(own) = spec["clientId"].as_str().filter(|id| !id.is_empty()) else { continue };
        let Ok(document) = core.providers.document(spec, core.hub.now()).await else { continue };
        let Some(to) = document["authorization_endpoint"].as_str().filter(|to| to.starts_with("https://")) else {
            continue;
        };
        let scopes = spec["scopes"]
            .as_array()
            .filter(|list| !list.is_empty())
            .map(|list| list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "));
        found.push(json!({
            "name": provider["metadata"]["name"], "title": spec["title"], "clientId": own, "authorizationEndpoint": to,
            "scope": scopes.unwrap_or_else(|| SCOPES.to_owned()),
        }));
    }
    Ok(json!({"providers": found}))
}

/// Turns the code that a provider gave to a page into the ID token, if it is good here.
pub async fn exchange(core: &Core, given: &Value) -> Result<String, Status> {
    let text = |key: &str| given[key].as_str().unwrap_or_default();
    let root = core.own_endpoint("root");
    crate::ask::segment("provider", text("provider")).map_err(|_| Status::unauthorized())?;
    let provider = root.get_opt(&PROVIDER.gvr(), None, text("provider")).await?.ok_or_else(Status::unauthorized)?;
    let spec = &provider["spec"];
    let own = spec["clientId"].as_str().filter(|id| !id.is_empty()).ok_or_else(Status::unauthorized)?;
    if text("verifier").len() < 43 || text("nonce").is_empty() || !text("redirectUri").starts_with("https://") {
        return Err(Status::bad_request("verifier, nonce and redirectUri are needed"));
    }
    let secret = secret(core, spec).await?;
    let mut fields = vec![
        ("grant_type", "authorization_code"),
        ("code", text("code")),
        ("redirect_uri", text("redirectUri")),
        ("client_id", own),
        ("code_verifier", text("verifier")),
    ];
    fields.extend(secret.as_deref().map(|secret| ("client_secret", secret)));
    let document = core.providers.document(spec, core.hub.now()).await?;
    let (server, path) = split(document["token_endpoint"].as_str().unwrap_or_default())
        .ok_or_else(|| Status::unavailable("the identity provider does not say where tokens are"))?;
    let asked = way(spec, &server).await?;
    let answer = asked
        .send(Method::POST, &path, "application/x-www-form-urlencoded", Bytes::from(form(&fields)))
        .await
        .map_err(|status| if status.code < 500 { Status::unauthorized() } else { status })?;
    let answer: Value = serde_json::from_slice(&answer).map_err(|_| Status::unauthorized())?;
    let token = answer["id_token"].as_str().ok_or_else(Status::unauthorized)?;
    // Its signature, issuer, audience and times are checked as on every later request.
    core.providers.identify(core, token).await?.ok_or_else(Status::unauthorized)?;
    let claims = claims(token).ok_or_else(Status::unauthorized)?;
    if claims["iss"] != spec["issuer"] || claims["nonce"].as_str() != Some(text("nonce")) {
        return Err(Status::unauthorized());
    }
    Ok(token.to_owned())
}

/// What a provider wants to know of the hub itself; public ones want nothing.
async fn secret(core: &Core, spec: &Value) -> Result<Option<String>, Status> {
    let reference = &spec["clientSecretRef"];
    let (Some(namespace), Some(name)) = (reference["namespace"].as_str(), reference["name"].as_str()) else {
        return Ok(None);
    };
    let stored = core.own_endpoint("root").get(&Gvr::new("", "v1", "secrets"), Some(namespace), name).await?;
    let text = stored["data"]["clientSecret"].as_str().and_then(|text| STANDARD.decode(text).ok());
    match text.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(secret) => Ok(Some(secret)),
        None => Err(Status::unavailable(format!("the Secret {namespace}/{name} has no clientSecret"))),
    }
}

fn claims(token: &str) -> Option<Value> {
    let bytes = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Fields as a form posts them.
fn form(fields: &[(&str, &str)]) -> String {
    let escape = |text: &str| -> String {
        text.bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
                other => format!("%{other:02X}"),
            })
            .collect()
    };
    fields.iter().map(|(key, value)| format!("{key}={}", escape(value))).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_cannot_break_out_of_the_form() {
        assert_eq!(form(&[("code", "a&b=c d/ü"), ("x", "")]), "code=a%26b%3Dc%20d%2F%C3%BC&x=");
    }
}
