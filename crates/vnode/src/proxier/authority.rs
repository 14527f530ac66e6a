//! The authority of the kubelet API's certificates, kept in the computing cluster so that it stays the same.

use atoll_api::kubeocean_names::SYSTEM_NAMESPACE;
use atoll_meta::Status;
use atoll_pki::{Ca, PemPair};
use atoll_runtime::Endpoint;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::resource;

/// The Secret an API server is given as `--kubelet-certificate-authority`.
pub(crate) const NAME: &str = "atoll-kubelet-ca";

/// The authority that issues serving certificates of virtual nodes; made when it is missing.
pub async fn kubelet_ca(computing: &Endpoint, now: jiff::Timestamp) -> Result<Ca, Status> {
    let secrets = resource::secrets();
    if let Some(secret) = computing.get_opt(&secrets, Some(SYSTEM_NAMESPACE), NAME).await? {
        return read(&secret);
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}});
    computing.ensure(&resource::namespaces(), None, &namespace).await?;
    let pair = Ca::generate("atoll-kubelet", now).map_err(Status::internal)?.to_pem();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": NAME, "namespace": SYSTEM_NAMESPACE},
        "data": {"tls.crt": STANDARD.encode(pair.cert), "tls.key": STANDARD.encode(pair.key)},
    });
    // Of several that start at once, one makes it and all use that one.
    read(&computing.ensure(&secrets, Some(SYSTEM_NAMESPACE), &secret).await?)
}

fn read(secret: &Value) -> Result<Ca, Status> {
    let wrong = || Status::internal(format!("secret {SYSTEM_NAMESPACE}/{NAME} is damaged"));
    let field =
        |key: &str| -> Option<String> { String::from_utf8(STANDARD.decode(secret["data"][key].as_str()?).ok()?).ok() };
    let pair = PemPair { cert: field("tls.crt").ok_or_else(wrong)?, key: field("tls.key").ok_or_else(wrong)? };
    Ca::from_pem(&pair).map_err(|_| wrong())
}
