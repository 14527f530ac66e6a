//! Certificates for approved signing requests.

use atoll_meta::Status;
use atoll_pki::{Request, Signer, Validity};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use serde_json::Value;

use crate::hub::Hub;
use crate::instance::Instance;

/// The longest life of a signed certificate, and the one nobody asked otherwise for.
const LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);
/// Shorter ones would end before they are used.
const SHORTEST: SignedDuration = SignedDuration::from_secs(600);

/// The signer of a request, if it is one this server signs for.
fn signer(request: &Value) -> Option<Signer> {
    match Signer::named(request["spec"]["signerName"].as_str()?)? {
        // Its certificates promise nothing, yet our own authority would vouch for them.
        Signer::LegacyUnknown => None,
        signer => Some(signer),
    }
}

/// The PEM text of a request.
pub fn pem_of(request: &Value) -> Option<String> {
    String::from_utf8(STANDARD.decode(request["spec"]["request"].as_str()?).ok()?).ok()
}

/// The parsed request, if it is one.
pub fn parse(request: &Value) -> Option<Request> {
    Request::parse(&pem_of(request)?).ok()
}

/// Signs an approved request. `Ok(None)` if it is not for us, not approved or already signed;
/// the inner error says why the signer refuses, for the condition `Failed`.
pub async fn sign_request(
    hub: &Hub,
    instance: &Instance,
    request: &Value,
) -> Result<Option<Result<String, String>>, Status> {
    let has = |kind: &str| {
        let conditions = request["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|condition| condition["type"] == kind && condition["status"] != "False")
    };
    let signed = request["status"]["certificate"].as_str().is_some_and(|text| !text.is_empty());
    let Some(signer) = signer(request) else { return Ok(None) };
    if signed || !has("Approved") || has("Denied") || has("Failed") {
        return Ok(None);
    }
    let Some(pem) = pem_of(request) else { return Ok(Some(Err("the request is not PEM".into()))) };
    let usages: Vec<String> = request["spec"]["usages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(ToOwned::to_owned)
        .collect();
    let asked = request["spec"]["expirationSeconds"].as_i64().map_or(LIFE, SignedDuration::from_secs);
    let authority = hub.authority(instance).await?;
    let validity = Validity::lasting(hub.now(), asked.clamp(SHORTEST, LIFE));
    Ok(Some(match authority.ca.sign_csr(&pem, &signer, &usages, validity) {
        Ok(certificate) => Ok(STANDARD.encode(certificate)),
        Err(error) => Err(error.to_string()),
    }))
}
