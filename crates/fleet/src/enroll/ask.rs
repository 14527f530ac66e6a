//! How an agent comes to its certificate: it shows a token once, and its certificate ever after.

use std::time::Duration;

use atoll_meta::{Gvr, Status};
use atoll_pki::{Access, Auth, BootstrapToken, Kubeconfig, PemPair};
use atoll_runtime::Endpoint;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::KubeConfigOptions;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::info::{self, KUBECONFIG, SIGNATURE_PREFIX};
use super::rights::{AGENT_PREFIX, AGENTS};
use crate::gvr;

/// How often to look whether a request was granted.
const STEP: Duration = Duration::from_millis(250);

/// What a newcomer is given by whoever invites it.
#[derive(Clone, Debug)]
pub struct Invitation {
    /// URL of the instance.
    pub server: String,
    /// The token.
    pub token: BootstrapToken,
    /// Hash of the public key of the instance's authority, `sha256:…`; without it the token alone vouches.
    pub ca_hash: Option<String>,
}

fn requests() -> Gvr {
    Gvr::new("certificates.k8s.io", "v1", "certificatesigningrequests")
}

fn refused(why: impl std::fmt::Display) -> Status {
    Status::bad_request(why.to_string())
}

/// A way from what a context comes down to.
pub async fn endpoint(access: &Access, agent: &str) -> Result<Endpoint, Status> {
    let mut written = Kubeconfig::new();
    written.add("hub", access);
    written.set_current("hub");
    let text = written.to_yaml().map_err(refused)?;
    let read = kube::config::Kubeconfig::from_yaml(&text).map_err(refused)?;
    let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.map_err(refused)?;
    Endpoint::remote("hub", config, agent)
}

/// A new key and a request for it; the request stands where the certificate will be.
pub fn new_request(name: &str, organization: &str) -> Result<PemPair, Status> {
    let key = KeyPair::generate().map_err(Status::internal)?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.distinguished_name.push(DnType::CommonName, name);
    let request = params.serialize_request(&key).map_err(Status::internal)?;
    Ok(PemPair { cert: request.pem().map_err(Status::internal)?, key: key.serialize_pem() })
}

/// Reads `cluster-info`, trusts it if the token signed it, and gives the way to the instance with the token.
pub async fn discover(invitation: &Invitation) -> Result<Access, Status> {
    let open = Access {
        server: invitation.server.clone(),
        ca_pem: None,
        insecure: true,
        tls_server_name: None,
        auth: Auth::None,
        namespace: None,
    };
    let map = endpoint(&open, "atoll-agent")
        .await?
        .get(&gvr::core("configmaps"), Some("kube-public"), "cluster-info")
        .await?;
    let text = map["data"][KUBECONFIG].as_str().unwrap_or_default();
    let BootstrapToken { id, secret } = &invitation.token;
    let signature = map["data"][format!("{SIGNATURE_PREFIX}{id}")].as_str().unwrap_or_default();
    if !info::is_signed(signature, text, id, secret) {
        return Err(refused(format!("{} does not know token {id}, or is not what it says it is", invitation.server)));
    }
    let ca = authority(text)?;
    if let Some(wanted) = &invitation.ca_hash
        && *wanted != hash(&ca)?
    {
        return Err(refused(format!("the authority of {} is not the one with hash {wanted}", invitation.server)));
    }
    Ok(Access { ca_pem: Some(ca), insecure: false, auth: Auth::Token(invitation.token.expose()), ..open })
}

/// The authority a kubeconfig without users names.
fn authority(text: &str) -> Result<String, Status> {
    let tree: Value = serde_saphyr::from_str(text).map_err(refused)?;
    let data = tree["clusters"][0]["cluster"]["certificate-authority-data"].as_str().unwrap_or_default();
    let bytes = STANDARD.decode(data).map_err(refused)?;
    String::from_utf8(bytes).map_err(refused)
}

/// The hash of the public key of an authority.
pub fn hash(ca_pem: &str) -> Result<String, Status> {
    let body: String = ca_pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(body.trim()).map_err(refused)?;
    let (_, parsed) = X509Certificate::from_der(&der).map_err(refused)?;
    let digest = Sha256::digest(parsed.tbs_certificate.subject_pki.raw);
    Ok(format!("sha256:{}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}

/// Asks for the certificate of a member's agent and waits until it is granted.
pub async fn certificate(access: &Access, member: &str, patience: Duration) -> Result<Access, Status> {
    let hub = endpoint(access, "atoll-agent").await?;
    let made = new_request(&format!("{AGENT_PREFIX}{member}"), AGENTS)?;
    let name = format!("{member}-{}", atoll_pki::random_text(5).map_err(Status::internal)?);
    let object = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {"request": STANDARD.encode(&made.cert), "signerName": "kubernetes.io/kube-apiserver-client",
                 "usages": ["digital signature", "client auth"]}});
    hub.create(&requests(), None, &object).await?;
    let deadline = tokio::time::Instant::now() + patience;
    loop {
        let request = hub.get(&requests(), None, &name).await?;
        if let Some(encoded) = request["status"]["certificate"].as_str().filter(|text| !text.is_empty()) {
            let cert = String::from_utf8(STANDARD.decode(encoded).map_err(refused)?).map_err(refused)?;
            return Ok(Access { auth: Auth::Certificate(PemPair { cert, key: made.key }), ..access.clone() });
        }
        let conditions = request["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if let Some(no) =
            conditions.iter().find(|condition| condition["type"] == "Denied" || condition["type"] == "Failed")
        {
            return Err(refused(format!("request {name} was refused: {}", no["message"].as_str().unwrap_or_default())));
        }
        if tokio::time::Instant::now() > deadline {
            return Err(Status::timeout(
                format!("request {name} waits for approval: kubectl certificate approve {name}"),
                5,
            ));
        }
        tokio::time::sleep(STEP).await;
    }
}
