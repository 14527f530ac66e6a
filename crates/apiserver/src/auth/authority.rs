//! What one instance vouches with: its client CA and the key of its service-account tokens.

use std::collections::HashMap;
use std::sync::Arc;

use atoll_meta::Status;
use atoll_pki::{Ca, CaBundle, Claims, PemPair, PkiError, TokenSigner};
use aws_lc_rs::digest;
use jiff::Timestamp;
use parking_lot::Mutex;
use rustls_pki_types::CertificateDer;

use super::vault::{self, Fields};
use crate::hub::Hub;
use crate::instance::Instance;

/// How many verified certificates and tokens are remembered, so that not each request pays for a signature.
const REMEMBERED: usize = 1024;

/// SHA-256.
pub type Digest = [u8; 32];

/// The digest of pieces, each with its length so that they cannot run into each other.
pub fn digest<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    let mut context = digest::Context::new(&digest::SHA256);
    for piece in pieces {
        context.update(&(piece.len() as u64).to_be_bytes());
        context.update(piece);
    }
    context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// The client CA and token key of an instance.
pub struct Authority {
    pub(super) ca: Ca,
    pub(super) signer: TokenSigner,
    trust: CaBundle,
    certificates: Mutex<HashMap<Digest, Arc<atoll_pki::Identity>>>,
    tokens: Mutex<HashMap<Digest, Arc<Claims>>>,
}

impl Authority {
    /// Makes the Secret of a new authority. `uid` ties it to this very instance: a later one of the
    /// same name must not trust what this one issued.
    pub(super) fn make(instance: &str, uid: &str, issuer: &str, now: Timestamp) -> Result<Fields, Status> {
        let ca = Ca::generate(&format!("{instance} client CA"), now).map_err(Status::internal)?.to_pem();
        let signer = TokenSigner::generate(issuer).map_err(Status::internal)?;
        let texts = [
            ("ca.crt", ca.cert),
            ("ca.key", ca.key),
            ("sa.key", signer.to_pem()),
            ("issuer", issuer.to_owned()),
            ("uid", uid.to_owned()),
        ];
        Ok(texts.into_iter().map(|(name, text)| (name.to_owned(), text)).collect())
    }

    /// Reads the Secret of an authority.
    pub(super) fn read(fields: &Fields) -> Result<Self, PkiError> {
        let text = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
        let ca = Ca::from_pem(&PemPair { cert: text("ca.crt").to_owned(), key: text("ca.key").to_owned() })?;
        let mut signer = TokenSigner::from_pem(text("issuer"), text("sa.key"))?;
        if let Some(previous) = fields.get("sa.previous.key") {
            signer = signer.with_previous(previous)?;
        }
        Ok(Self {
            trust: CaBundle::from_pem(text("ca.crt"))?,
            ca,
            signer,
            certificates: Mutex::default(),
            tokens: Mutex::default(),
        })
    }

    /// The certificate of the client CA.
    pub fn client_ca(&self) -> String {
        self.ca.cert_pem()
    }

    /// Who issues the tokens.
    pub fn issuer(&self) -> &str {
        self.signer.issuer()
    }

    /// Signer and verifier of service-account tokens.
    pub fn signer(&self) -> &TokenSigner {
        &self.signer
    }

    /// Audiences whose tokens this server accepts.
    pub fn audiences(&self) -> Vec<String> {
        vec![self.signer.issuer().to_owned()]
    }

    /// Says who shows this certificate chain, if the client CA vouches for it.
    pub fn identify(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> Option<Arc<atoll_pki::Identity>> {
        let print = digest(chain.iter().map(AsRef::as_ref));
        if let Some(known) = self.certificates.lock().get(&print).filter(|known| known.not_after > now) {
            return Some(known.clone());
        }
        let identity = Arc::new(self.trust.identify(chain, now).ok()?);
        remember(&mut self.certificates.lock(), print, &identity);
        Some(identity)
    }

    /// What a token of ours says; whether its account still lives is for the caller to find out.
    pub fn verify(&self, token: &str, now: Timestamp) -> Option<Arc<Claims>> {
        let print = digest([token.as_bytes()]);
        let alive = |claims: &&Arc<Claims>| claims.expires.is_none_or(|end| now < end);
        if let Some(known) = self.tokens.lock().get(&print).filter(alive) {
            return Some(known.clone());
        }
        let claims = Arc::new(self.signer.verify(token, now).ok()?);
        remember(&mut self.tokens.lock(), print, &claims);
        Some(claims)
    }
}

fn remember<T>(known: &mut HashMap<Digest, Arc<T>>, print: Digest, value: &Arc<T>) {
    if known.len() >= REMEMBERED {
        known.clear();
    }
    known.insert(print, value.clone());
}

/// The name of the Secret that holds the authority of an instance.
pub fn secret_name(instance: &str) -> String {
    format!("instance-{instance}")
}

impl Hub {
    /// What an instance vouches with; made on first use, the same for all replicas.
    pub async fn authority(&self, instance: &Instance) -> Result<Arc<Authority>, Status> {
        if let Some(known) = self.keys.authority(instance.id) {
            return Ok(known);
        }
        let system = self.read(instance, "namespaces./kube-system").await?;
        let uid = system.map(|entry| entry.object.head.uid.to_string()).unwrap_or_default();
        let now = self.now();
        let issuer = self.url(instance);
        let fields = vault::keep(
            &*self.engine,
            &secret_name(&instance.name),
            &atoll_meta::time::format(now),
            |fields| fields.get("uid") == Some(&uid),
            || Authority::make(&instance.name, &uid, &issuer, now),
        )
        .await?;
        let authority = Arc::new(Authority::read(&fields).map_err(Status::internal)?);
        super::extension::publish(self, instance, &authority).await?;
        self.keys.remember(instance.id, &authority);
        Ok(authority)
    }
}
