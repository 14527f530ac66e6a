//! Trusting certificates, and reading who their holders are.

use std::fmt::Write as _;
use std::sync::Arc;

use aws_lc_rs::digest;
use jiff::Timestamp;
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::request::attributes;
use crate::{PkiError, Validity, serve};

/// Who holds a client certificate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Identity {
    /// User name: the common name, the last if there are several.
    pub user: String,
    /// Groups: the organizations.
    pub groups: Vec<String>,
    /// SHA-256 of the certificate, hexadecimal.
    pub fingerprint: String,
    /// When the certificate ends.
    pub not_after: Timestamp,
}

impl Identity {
    /// Reads a certificate without trusting it.
    pub fn read(der: &[u8]) -> Result<Self, PkiError> {
        let (_, parsed) = X509Certificate::from_der(der).map_err(|_| PkiError::malformed("certificate"))?;
        // The last one counts, as it does when a request is judged: else a second name would pass unseen.
        let user = attributes(parsed.subject(), true).pop().filter(|user| !user.is_empty());
        let mut fingerprint = String::with_capacity(64);
        for byte in digest::digest(&digest::SHA256, der).as_ref() {
            // Writing to a string cannot fail.
            let _ = write!(fingerprint, "{byte:02x}");
        }
        Ok(Self {
            user: user.ok_or_else(|| PkiError::Untrusted("no common name".to_owned()))?,
            groups: attributes(parsed.subject(), false),
            fingerprint,
            not_after: timestamp(parsed.validity().not_after.timestamp()),
        })
    }
}

/// A set of authorities to trust.
#[derive(Clone, Debug)]
pub struct CaBundle {
    roots: Arc<RootCertStore>,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
}

impl CaBundle {
    /// Reads all certificates of a PEM text.
    pub fn from_pem(text: &str) -> Result<Self, PkiError> {
        let mut roots = RootCertStore::empty();
        for cert in CertificateDer::pem_slice_iter(text.as_bytes()) {
            let cert = cert.map_err(|error| PkiError::malformed(format!("CA bundle: {error}")))?;
            roots.add(cert).map_err(|error| PkiError::malformed(format!("CA bundle: {error}")))?;
        }
        Self::of(roots)
    }

    fn of(roots: RootCertStore) -> Result<Self, PkiError> {
        let roots = Arc::new(roots);
        // Without authorities nobody is trusted; the builder would call that an error.
        let verifier = if roots.is_empty() {
            None
        } else {
            let builder = WebPkiClientVerifier::builder_with_provider(roots.clone(), serve::provider());
            let built = builder.allow_unauthenticated().build();
            Some(built.map_err(|error| PkiError::malformed(format!("CA bundle: {error}")))?)
        };
        Ok(Self { roots, verifier })
    }

    /// Whether nobody is trusted.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// The authorities, for verifying servers.
    pub fn roots(&self) -> Arc<RootCertStore> {
        self.roots.clone()
    }

    /// Says who a peer is, if one of the authorities vouches for its chain, end certificate first.
    pub fn identify(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> Result<Identity, PkiError> {
        let untrusted = |text: &str| PkiError::Untrusted(text.to_owned());
        let (end, rest) = chain.split_first().ok_or_else(|| untrusted("none given"))?;
        let verifier = self.verifier.as_ref().ok_or_else(|| untrusted("no authority known"))?;
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        verifier.verify_client_cert(end, rest, at).map_err(|error| PkiError::Untrusted(error.to_string()))?;
        Identity::read(end)
    }
}

fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// From when until when the first certificate of a PEM text is valid.
pub fn validity_of(pem: &str) -> Result<Validity, PkiError> {
    let cert = CertificateDer::from_pem_slice(pem.as_bytes())
        .map_err(|error| PkiError::malformed(format!("certificate: {error}")))?;
    let (_, parsed) = X509Certificate::from_der(&cert).map_err(|_| PkiError::malformed("certificate"))?;
    Ok(Validity {
        not_before: timestamp(parsed.validity().not_before.timestamp()),
        not_after: timestamp(parsed.validity().not_after.timestamp()),
    })
}

/// Whether a certificate should be replaced: when less than a third of its life is left.
pub fn needs_renewal(not_before: Timestamp, not_after: Timestamp, now: Timestamp) -> bool {
    let life = not_after.as_second().saturating_sub(not_before.as_second());
    let left = not_after.as_second().saturating_sub(now.as_second());
    left < life / 3 || left <= 0
}
