//! What other verifiers of service-account tokens need to know.

use atoll_meta::Status;
use http::Response;

use crate::body::Body;
use crate::hub::Hub;
use crate::instance::Instance;
use crate::respond::response;

/// Keys and issuer of service-account tokens; `None` for other paths.
pub async fn public_documents(
    hub: &Hub,
    instance: &Instance,
    path: &str,
    headers: &http::HeaderMap,
) -> Option<Result<Response<Body>, Status>> {
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
    let accept = headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
    let fits = |clause: &str| matches!(clause.split(';').next().unwrap_or("").trim(), "" | "*/*" | "application/*");
    if !accept.split(',').any(|clause| fits(clause) || clause.split(';').next().unwrap_or("").trim() == media) {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {media}");
        let status = Status::new(406, atoll_meta::Reason::NotAcceptable, message).about("", "", "");
        return Some(Err(status));
    }
    let mut answer = response(200, media, document.to_string());
    answer.headers_mut().insert("cache-control", http::HeaderValue::from_static("public, max-age=3600"));
    Some(Ok(answer))
}
