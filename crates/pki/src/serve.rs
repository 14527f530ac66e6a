//! TLS set-ups whose certificates can be replaced while they serve.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};

use crate::{CaBundle, Identity, PemPair, PkiError};

/// The one set of cryptography used everywhere.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Server certificates by host name; all can be replaced at any time.
#[derive(Debug, Default)]
pub struct ServerCerts {
    certs: RwLock<Named<Arc<CertifiedKey>>>,
}

/// Something by host name, with a default.
#[derive(Debug)]
struct Named<T> {
    default: Option<T>,
    by_name: HashMap<String, T>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { default: None, by_name: HashMap::new() }
    }
}

impl<T: Clone> Named<T> {
    /// The exact name, else a wildcard for its last labels, else the default.
    fn find(&self, name: Option<&str>) -> Option<T> {
        let name = name.map(str::to_ascii_lowercase);
        let exact = name.as_ref().and_then(|name| self.by_name.get(name));
        let wild = || {
            let (_, parent) = name.as_ref()?.split_once('.')?;
            self.by_name.get(&format!("*.{parent}"))
        };
        exact.or_else(wild).or(self.default.as_ref()).cloned()
    }

    fn put(&mut self, name: Option<&str>, value: Option<T>) {
        match (name, value) {
            (None, value) => self.default = value,
            (Some(name), Some(value)) => {
                self.by_name.insert(name.to_ascii_lowercase(), value);
            }
            (Some(name), None) => {
                self.by_name.remove(&name.to_ascii_lowercase());
            }
        }
    }
}

impl ServerCerts {
    /// Sets the certificate of a host name (`*.` allowed), or the default one.
    pub fn set(&self, name: Option<&str>, pair: &PemPair) -> Result<(), PkiError> {
        let (chain, key) = read_pair(pair)?;
        let certified = CertifiedKey::from_der(chain, key, &provider())?;
        let mut certs = self.certs.write().unwrap_or_else(PoisonError::into_inner);
        certs.put(name, Some(Arc::new(certified)));
        Ok(())
    }

    /// Forgets the certificate of a host name.
    pub fn remove(&self, name: &str) {
        self.certs.write().unwrap_or_else(PoisonError::into_inner).put(Some(name), None);
    }
}

impl ResolvesServerCert for ServerCerts {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.certs.read().unwrap_or_else(PoisonError::into_inner).find(hello.server_name())
    }
}

fn read_pair(pair: &PemPair) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), PkiError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pair.cert.as_bytes()).collect();
    let chain = chain.map_err(|error| PkiError::malformed(format!("certificate: {error}")))?;
    if chain.is_empty() {
        return Err(PkiError::malformed("certificate: nothing there"));
    }
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())
        .map_err(|error| PkiError::malformed(format!("private key: {error}")))?;
    Ok((chain, key))
}

/// Which authorities vouch for callers, by the host name the caller asked for.
#[derive(Debug, Default)]
pub struct ClientCas {
    bundles: RwLock<Named<CaBundle>>,
}

impl ClientCas {
    /// Sets the authorities for a host name, or the default ones; `None` removes them.
    pub fn set(&self, name: Option<&str>, bundle: Option<CaBundle>) {
        self.bundles.write().unwrap_or_else(PoisonError::into_inner).put(name, bundle);
    }

    /// The authorities for a host name.
    pub fn find(&self, name: Option<&str>) -> Option<CaBundle> {
        self.bundles.read().unwrap_or_else(PoisonError::into_inner).find(name)
    }

    /// Says who is at the other end: `None` if it showed no certificate, an error if
    /// it showed one that no authority for the host name vouches for.
    pub fn identify(&self, peer: &rustls::ServerConnection, now: Timestamp) -> Result<Option<Identity>, PkiError> {
        match peer.peer_certificates() {
            None | Some([]) => Ok(None),
            Some(chain) => {
                let bundle = self.find(peer.server_name());
                let bundle = bundle.ok_or_else(|| PkiError::Untrusted("no authority known".to_owned()))?;
                bundle.identify(chain, now).map(Some)
            }
        }
    }
}

/// A set-up for serving that asks callers for a certificate but requires none.
///
/// The handshake proves only that a caller holds the key of the certificate it shows.
/// Whether the certificate is trusted is asked afterwards ([`ClientCas::identify`]):
/// an unknown one must give a proper `401`, not a broken connection, and which
/// authorities count depends on the host name.
pub fn server_config(certs: Arc<ServerCerts>, alpn: &[&[u8]]) -> Result<ServerConfig, PkiError> {
    let provider = provider();
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(Holder { provider }))
        .with_cert_resolver(certs);
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

/// A set-up for calling servers vouched for by `trust`, showing `pair` if asked.
pub fn client_config(trust: &CaBundle, pair: Option<&PemPair>) -> Result<ClientConfig, PkiError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(trust.roots());
    Ok(match pair {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let (chain, key) = read_pair(pair)?;
            builder.with_client_auth_cert(chain, key)?
        }
    })
}

/// Checks that a caller holds the key of its certificate, nothing more.
#[derive(Debug)]
struct Holder {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for Holder {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
