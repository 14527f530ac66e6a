//! As whom an instance of this process is used.
//!
//! A kubeconfig that leads to an instance of this very hub needs no socket, but it is no better a
//! credential for that: whoever can write one must not get more than it allows.

use std::sync::Arc;

use atoll_apiserver::{ApiService, Hub, Identity, PeerCertificates};
use atoll_meta::Status;
use atoll_pki::{Access, Auth, PemPair};
use atoll_runtime::{BodyStream, ServiceTransport, Transport};
use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderValue};
use http::{Request, Response};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// Who calls, and how that is shown.
#[derive(Clone)]
pub enum Caller {
    /// A part of this process.
    Known(Identity),
    /// The holder of a certificate and its key.
    Certificate(PeerCertificates),
    /// The holder of a token, as a header.
    Token(HeaderValue),
    /// Nobody.
    Anonymous,
}

impl From<Identity> for Caller {
    fn from(identity: Identity) -> Self {
        Self::Known(identity)
    }
}

impl Caller {
    /// The caller that a kubeconfig makes one.
    pub fn of(access: &Access) -> Result<Self, Status> {
        match &access.auth {
            Auth::None => Ok(Self::Anonymous),
            Auth::Token(token) => {
                let mut value = HeaderValue::try_from(format!("Bearer {token}"))
                    .map_err(|_| Status::bad_request("kubeconfig: malformed token"))?;
                value.set_sensitive(true);
                Ok(Self::Token(value))
            }
            Auth::Certificate(pair) => Ok(Self::Certificate(PeerCertificates(Arc::new(held(pair)?)))),
        }
    }

    /// Shows on a request who makes it.
    pub(crate) fn show<B>(&self, request: &mut Request<B>) {
        match self {
            Self::Known(identity) => drop(request.extensions_mut().insert(identity.clone())),
            Self::Certificate(chain) => drop(request.extensions_mut().insert(chain.clone())),
            Self::Token(value) => drop(request.headers_mut().insert(AUTHORIZATION, value.clone())),
            Self::Anonymous => {}
        }
    }
}

/// The certificates of a pair. A certificate is public: only who has its key holds it.
fn held(pair: &PemPair) -> Result<Vec<CertificateDer<'static>>, Status> {
    let wrong = |why: String| Status::bad_request(format!("kubeconfig: {why}"));
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pair.cert.as_bytes()).collect();
    let chain = chain.map_err(|error| wrong(format!("certificate: {error}")))?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(|error| wrong(format!("key: {error}")))?;
    CertifiedKey::from_der(chain.clone(), key, &atoll_pki::provider())
        .map_err(|error| wrong(format!("certificate and key: {error}")))?;
    Ok(chain)
}

/// To an instance of a hub in this process, as a caller.
pub(crate) struct InstanceTransport {
    inside: ServiceTransport<ApiService>,
    caller: Caller,
}

impl InstanceTransport {
    pub(crate) fn new(hub: &Arc<Hub>, instance: &str, caller: Caller) -> Self {
        let prefix = if instance == "root" { String::new() } else { format!("/instances/{instance}") };
        Self { inside: ServiceTransport::new(ApiService::new(hub.clone()), &prefix, |_| {}), caller }
    }
}

#[async_trait::async_trait]
impl Transport for InstanceTransport {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        self.caller.show(&mut request);
        self.inside.send(request).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use atoll_pki::{Ca, Validity};

    fn pair(ca: &Ca, user: &str) -> PemPair {
        ca.issue_client(user, &[], Validity::days("2026-01-01T00:00:00Z".parse().unwrap(), 1)).unwrap()
    }

    #[test]
    fn a_certificate_without_its_own_key_makes_nobody() {
        let ca = Ca::generate("test", "2026-01-01T00:00:00Z".parse().unwrap()).unwrap();
        let (mine, theirs) = (pair(&ca, "mine"), pair(&ca, "theirs"));
        assert_eq!(held(&mine).unwrap().len(), 1);
        let stolen = PemPair { cert: theirs.cert, key: mine.key };
        assert!(held(&stolen).unwrap_err().message.starts_with("kubeconfig: certificate and key"));
    }
}
