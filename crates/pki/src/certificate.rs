//! Writing certificates.

use std::net::IpAddr;

use aws_lc_rs::digest;
use jiff::{SignedDuration, Timestamp};
use rcgen::{KeyPair, SigningKey};

use crate::{PkiError, der};

/// A name a certificate is valid for.
#[derive(Clone, Debug, Eq, PartialEq, Hash)]
pub enum San {
    /// A host name, possibly beginning with `*.`.
    Dns(String),
    /// An address.
    Ip(IpAddr),
}

impl San {
    /// An address if the text is one, else a host name.
    pub fn new(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Dns(text.to_owned()), Self::Ip)
    }

    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Dns(name) => der::element(0x82, name.as_bytes()),
            Self::Ip(IpAddr::V4(ip)) => der::element(0x87, &ip.octets()),
            Self::Ip(IpAddr::V6(ip)) => der::element(0x87, &ip.octets()),
        }
    }
}

/// From when until when a certificate is valid.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Validity {
    /// First moment.
    pub not_before: Timestamp,
    /// Last moment.
    pub not_after: Timestamp,
}

impl Validity {
    /// Clocks differ: a certificate made here must already be valid elsewhere.
    const BACKDATE: SignedDuration = SignedDuration::from_mins(5);

    /// From just before now, for a duration.
    pub fn lasting(now: Timestamp, duration: SignedDuration) -> Self {
        Self {
            not_before: now.saturating_sub(Self::BACKDATE).unwrap_or(now),
            not_after: now.saturating_add(duration).unwrap_or(Timestamp::MAX),
        }
    }

    /// From just before now, for a number of days.
    pub fn days(now: Timestamp, days: u32) -> Self {
        Self::lasting(now, SignedDuration::from_hours(24 * i64::from(days)))
    }
}

/// Bits of the key usage extension.
pub(crate) mod usage {
    pub(crate) const DIGITAL_SIGNATURE: u16 = 1;
    pub(crate) const CONTENT_COMMITMENT: u16 = 1 << 1;
    pub(crate) const KEY_ENCIPHERMENT: u16 = 1 << 2;
    pub(crate) const DATA_ENCIPHERMENT: u16 = 1 << 3;
    pub(crate) const KEY_AGREEMENT: u16 = 1 << 4;
    pub(crate) const CERT_SIGN: u16 = 1 << 5;
    pub(crate) const CRL_SIGN: u16 = 1 << 6;
}

/// Last arc of an extended key usage below 1.3.6.1.5.5.7.3.
pub(crate) const SERVER_AUTH: u32 = 1;
pub(crate) const CLIENT_AUTH: u32 = 2;

/// Everything a certificate says about its subject.
pub(crate) struct Subject<'a> {
    /// Encoded name.
    pub name: &'a [u8],
    /// Encoded public key.
    pub key: &'a [u8],
    pub names: &'a [San],
    pub usages: u16,
    pub extended: &'a [u32],
    pub authority: bool,
    pub validity: Validity,
}

/// Who signs.
pub(crate) struct Issuer<'a> {
    /// Encoded name.
    pub name: &'a [u8],
    pub key: &'a KeyPair,
    pub key_id: &'a [u8],
}

/// A short identifier of a public key.
pub(crate) fn key_id(public_key: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, public_key).as_ref()[..20].to_vec()
}

/// Writes and signs a certificate.
pub(crate) fn sign(subject: &Subject<'_>, issuer: &Issuer<'_>) -> Result<Vec<u8>, PkiError> {
    let algorithm = algorithm(issuer.key)?;
    let mut serial = [0u8; 16];
    aws_lc_rs::rand::fill(&mut serial).map_err(|_| PkiError::Key("no randomness".to_owned()))?;
    serial[0] = serial[0] & 0x7f | 0x40;
    let body = der::sequence(&[
        der::element(0xa0, &der::unsigned(&[2])),
        der::unsigned(&serial),
        algorithm.clone(),
        issuer.name.to_vec(),
        der::sequence(&[der::time(subject.validity.not_before), der::time(subject.validity.not_after)]),
        subject.name.to_vec(),
        subject.key.to_vec(),
        der::element(0xa3, &der::sequence(&extensions(subject, issuer))),
    ]);
    let signature = issuer.key.sign(&body).map_err(|error| PkiError::Key(error.to_string()))?;
    Ok(der::sequence(&[body, algorithm, der::bit_string(&signature)]))
}

fn extensions(subject: &Subject<'_>, issuer: &Issuer<'_>) -> Vec<Vec<u8>> {
    let extension = |arc: u32, critical: bool, value: Vec<u8>| {
        let mut parts = vec![der::oid(&[2, 5, 29, arc])];
        if critical {
            parts.push(der::truth());
        }
        parts.push(der::octets(&value));
        der::sequence(&parts)
    };
    let constraints = if subject.authority { der::truth() } else { Vec::new() };
    let mut list = vec![
        extension(15, true, der::named_bits(subject.usages)),
        extension(19, true, der::element(der::SEQUENCE, &constraints)),
        extension(14, false, der::octets(&key_id(subject.key))),
        extension(35, false, der::sequence(&[der::element(0x80, issuer.key_id)])),
    ];
    if !subject.extended.is_empty() {
        let purposes: Vec<_> = subject.extended.iter().map(|arc| der::oid(&[1, 3, 6, 1, 5, 5, 7, 3, *arc])).collect();
        list.push(extension(37, false, der::sequence(&purposes)));
    }
    if !subject.names.is_empty() {
        let names: Vec<_> = subject.names.iter().map(San::encode).collect();
        list.push(extension(17, false, der::sequence(&names)));
    }
    list
}

/// The encoded identifier of a key's signature algorithm.
fn algorithm(key: &KeyPair) -> Result<Vec<u8>, PkiError> {
    let known = key.algorithm();
    let parts = if known == &rcgen::PKCS_ECDSA_P256_SHA256 {
        vec![der::oid(&[1, 2, 840, 10045, 4, 3, 2])]
    } else if known == &rcgen::PKCS_ECDSA_P384_SHA384 {
        vec![der::oid(&[1, 2, 840, 10045, 4, 3, 3])]
    } else if known == &rcgen::PKCS_ED25519 {
        vec![der::oid(&[1, 3, 101, 112])]
    } else if known == &rcgen::PKCS_RSA_SHA256 {
        vec![der::oid(&[1, 2, 840, 113_549, 1, 1, 11]), der::null()]
    } else {
        return Err(PkiError::Key("unsupported signature algorithm".to_owned()));
    };
    Ok(der::sequence(&parts))
}
