//! What other verifiers of service-account tokens need to know.

use atoll_meta::Status;
use http::Response;

use crate::body::Body;
use crate::hub::Hub;
use crate::instance::Instance;
use crate::respond::response;

/// Keys and issuer of service-account tokens; `None` for other paths.
pub async fn public_documents(hub: &Hub, instance: &Instance, path: &str) -> Option<Result<Response<Body>, Status>> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if !matches!(path, "/openid/v1/jwks" | "/.well-known/openid-configuration") {
        return None;
    }
    let authority = match hub.authority(instance).await {
        Ok(authority) => authority,
        Err(status) => return Some(Err(status)),
    };
    let signer = authority.signer();
    let (media, document) = match path {
        "/openid/v1/jwks" => ("application/jwk-set+json", signer.jwks()),
        _ => ("application/json", signer.discovery(&format!("{}/openid/v1/jwks", signer.issuer()))),
    };
    let mut answer = response(200, media, document.to_string());
    answer.headers_mut().insert("cache-control", http::HeaderValue::from_static("public, max-age=3600"));
    Some(Ok(answer))
}
