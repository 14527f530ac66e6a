//! A certificate authority.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rcgen::{KeyPair, PublicKeyData as _};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, ParsedExtension, X509Certificate};

use crate::certificate::{self, CLIENT_AUTH, Issuer, SERVER_AUTH, San, Subject, Validity, usage};
use crate::request::{Request, Usages};
use crate::{PkiError, der};

/// A certificate and its private key, both PEM.
#[derive(Clone, Eq, PartialEq)]
pub struct PemPair {
    /// Certificate, or chain with the end certificate first.
    pub cert: String,
    /// Private key.
    pub key: String,
}

impl fmt::Debug for PemPair {
    /// Keys do not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PemPair").field("cert", &self.cert).finish_non_exhaustive()
    }
}

/// An authority that can issue certificates.
pub struct Ca {
    cert: CertificateDer<'static>,
    key: KeyPair,
    name: Vec<u8>,
    key_id: Vec<u8>,
    not_after: Timestamp,
}

impl fmt::Debug for Ca {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ca").field("not_after", &self.not_after).finish_non_exhaustive()
    }
}

const CA_DAYS: u32 = 3650;

impl Ca {
    /// Makes a new authority, valid for ten years.
    pub fn generate(common_name: &str, now: Timestamp) -> Result<Self, PkiError> {
        let key = new_key()?;
        let name = der::name(&[], common_name);
        let public = key.subject_public_key_info();
        let key_id = certificate::key_id(&public);
        let validity = Validity::days(now, CA_DAYS);
        let subject = Subject {
            name: &name,
            key: &public,
            names: &[],
            usages: usage::DIGITAL_SIGNATURE | usage::KEY_ENCIPHERMENT | usage::CERT_SIGN | usage::CRL_SIGN,
            extended: &[],
            authority: true,
            validity,
        };
        let cert = certificate::sign(&subject, &Issuer { name: &name, key: &key, key_id: &key_id })?;
        Ok(Self { cert: cert.into(), key, name, key_id, not_after: validity.not_after })
    }

    /// Reads an authority; key and certificate must belong together.
    pub fn from_pem(pair: &PemPair) -> Result<Self, PkiError> {
        let cert = CertificateDer::from_pem_slice(pair.cert.as_bytes())
            .map_err(|error| PkiError::malformed(format!("CA certificate: {error}")))?;
        let key = KeyPair::from_pem(&pair.key).map_err(|error| PkiError::Key(error.to_string()))?;
        let (_, parsed) = X509Certificate::from_der(&cert).map_err(|_| PkiError::malformed("CA certificate"))?;
        if !parsed.is_ca() {
            return Err(PkiError::Refused("certificate is not one of an authority".to_owned()));
        }
        if parsed.public_key().subject_public_key.data.as_ref() != key.der_bytes() {
            return Err(PkiError::Key("does not belong to the CA certificate".to_owned()));
        }
        let key_id = parsed.iter_extensions().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
            _ => None,
        });
        Ok(Self {
            name: parsed.subject().as_raw().to_vec(),
            key_id: key_id.unwrap_or_else(|| certificate::key_id(parsed.public_key().raw)),
            not_after: Timestamp::from_second(parsed.validity().not_after.timestamp()).unwrap_or(Timestamp::MAX),
            cert: cert.clone().into_owned(),
            key,
        })
    }

    /// Certificate and private key.
    pub fn to_pem(&self) -> PemPair {
        PemPair { cert: self.cert_pem(), key: self.key.serialize_pem() }
    }

    /// The certificate others must trust.
    pub fn cert_pem(&self) -> String {
        pem("CERTIFICATE", &self.cert)
    }

    /// When the authority itself ends.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Issues a certificate for a server known by these names.
    pub fn issue_server(&self, names: &[San], validity: Validity) -> Result<PemPair, PkiError> {
        let first = names.iter().find_map(|name| match name {
            San::Dns(name) if name.len() <= 64 => Some(name.as_str()),
            _ => None,
        });
        let name = der::name(&[], first.unwrap_or("server"));
        self.issue(&name, names, SERVER_AUTH, validity)
    }

    /// Issues a certificate for a user of these groups.
    pub fn issue_client(&self, user: &str, groups: &[String], validity: Validity) -> Result<PemPair, PkiError> {
        self.issue(&der::name(groups, user), &[], CLIENT_AUTH, validity)
    }

    /// Signs a request after checking it against the rules of its signer.
    pub fn sign_csr(
        &self,
        csr_pem: &str,
        signer: &crate::Signer,
        usages: &[String],
        validity: Validity,
    ) -> Result<String, PkiError> {
        let request = Request::parse(csr_pem)?;
        request.check(signer, usages)?;
        let Usages { bits, extended } = Usages::parse(usages)?;
        self.sign(request.name(), request.public_key(), request.names(), bits, &extended, validity)
    }

    fn issue(&self, name: &[u8], names: &[San], purpose: u32, validity: Validity) -> Result<PemPair, PkiError> {
        let key = new_key()?;
        let public = key.subject_public_key_info();
        let bits = usage::DIGITAL_SIGNATURE | usage::KEY_ENCIPHERMENT;
        let cert = self.sign(name, &public, names, bits, &[purpose], validity)?;
        Ok(PemPair { cert, key: key.serialize_pem() })
    }

    fn sign(
        &self,
        name: &[u8],
        key: &[u8],
        names: &[San],
        usages: u16,
        extended: &[u32],
        validity: Validity,
    ) -> Result<String, PkiError> {
        // Nothing issued here outlives the authority.
        let validity = Validity { not_after: validity.not_after.min(self.not_after), ..validity };
        let subject = Subject { name, key, names, usages, extended, authority: false, validity };
        let issuer = Issuer { name: &self.name, key: &self.key, key_id: &self.key_id };
        Ok(pem("CERTIFICATE", &certificate::sign(&subject, &issuer)?))
    }
}

fn new_key() -> Result<KeyPair, PkiError> {
    KeyPair::generate().map_err(|error| PkiError::Key(error.to_string()))
}

pub(crate) fn pem(kind: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let mut out = format!("-----BEGIN {kind}-----\n");
    for line in text.as_bytes().chunks(64) {
        out.extend(line.iter().map(|byte| char::from(*byte)));
        out.push('\n');
    }
    out.push_str(&format!("-----END {kind}-----\n"));
    out
}
