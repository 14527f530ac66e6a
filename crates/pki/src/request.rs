//! Certificate signing requests and the rules of the well-known signers.

use std::collections::BTreeSet;
use std::net::IpAddr;

use rustls_pki_types::CertificateSigningRequestDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, GeneralName, ParsedExtension, X509CertificationRequest, X509Name};

use crate::PkiError;
use crate::certificate::{CLIENT_AUTH, SERVER_AUTH, San, usage};

const NODES: &str = "system:nodes";
const NODE_PREFIX: &str = "system:node:";
const MASTERS: &str = "system:masters";

/// The well-known signers of the certificates API.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Signer {
    /// `kubernetes.io/kube-apiserver-client`: users.
    ApiserverClient,
    /// `kubernetes.io/kube-apiserver-client-kubelet`: nodes as users.
    ApiserverClientKubelet,
    /// `kubernetes.io/kubelet-serving`: nodes as servers.
    KubeletServing,
    /// `kubernetes.io/legacy-unknown`: no promises.
    LegacyUnknown,
}

impl Signer {
    /// The signer of that name, if it is one of ours.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "kubernetes.io/kube-apiserver-client" => Some(Self::ApiserverClient),
            "kubernetes.io/kube-apiserver-client-kubelet" => Some(Self::ApiserverClientKubelet),
            "kubernetes.io/kubelet-serving" => Some(Self::KubeletServing),
            "kubernetes.io/legacy-unknown" => Some(Self::LegacyUnknown),
            _ => None,
        }
    }
}

/// A parsed request whose signature was verified.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Common name.
    pub common_name: String,
    /// Organizations, which become groups.
    pub organizations: Vec<String>,
    sans: Vec<San>,
    emails: usize,
    uris: usize,
    name: Vec<u8>,
    public_key: Vec<u8>,
}

impl Request {
    /// Parses a PEM request and verifies that the asker holds the key.
    pub fn parse(pem: &str) -> Result<Self, PkiError> {
        let der = CertificateSigningRequestDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| PkiError::malformed("request: PEM block type must be CERTIFICATE REQUEST"))?;
        let (_, parsed) =
            X509CertificationRequest::from_der(&der).map_err(|_| PkiError::malformed("certificate request"))?;
        parsed.verify_signature().map_err(|_| PkiError::Refused("signature of the request is wrong".to_owned()))?;
        let info = &parsed.certification_request_info;
        let mut request = Self {
            common_name: attributes(&info.subject, true).pop().unwrap_or_default(),
            organizations: attributes(&info.subject, false),
            name: info.subject.as_raw().to_vec(),
            public_key: info.subject_pki.raw.to_vec(),
            ..Self::default()
        };
        for extension in parsed.requested_extensions().into_iter().flatten() {
            if let ParsedExtension::SubjectAlternativeName(names) = extension {
                for name in &names.general_names {
                    request.add(name)?;
                }
            }
        }
        Ok(request)
    }

    fn add(&mut self, name: &GeneralName<'_>) -> Result<(), PkiError> {
        match name {
            GeneralName::DNSName(name) => self.sans.push(San::Dns((*name).to_owned())),
            GeneralName::IPAddress(bytes) => self.sans.push(San::Ip(address(bytes)?)),
            GeneralName::RFC822Name(_) => self.emails += 1,
            GeneralName::URI(_) => self.uris += 1,
            _ => return Err(PkiError::Refused("unsupported kind of subjectAltName".to_owned())),
        }
        Ok(())
    }

    /// Hosts and addresses asked for.
    pub fn names(&self) -> &[San] {
        &self.sans
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(crate) fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// Checks the request and the wanted usages against a signer's rules.
    pub fn check(&self, signer: &Signer, usages: &[String]) -> Result<(), PkiError> {
        let refuse = |text: &str| Err(PkiError::Refused(text.to_owned()));
        let wanted: BTreeSet<&str> = usages.iter().map(String::as_str).collect();
        let exactly = |required: &[&str]| {
            let required: BTreeSet<&str> = required.iter().copied().collect();
            let mut rest = wanted.clone();
            // Keys of newer kinds cannot encipher, so asking for it is optional.
            rest.remove("key encipherment");
            rest == required
        };
        match signer {
            Signer::LegacyUnknown => return Ok(()),
            Signer::ApiserverClient => {
                if self.organizations.iter().any(|organization| organization == MASTERS) {
                    return refuse(
                        "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed",
                    );
                }
                let allowed = ["client auth", "digital signature", "key encipherment"];
                if !wanted.contains("client auth") || wanted.iter().any(|usage| !allowed.contains(usage)) {
                    return refuse("usages must include \"client auth\" and nothing but client usages");
                }
                return Ok(());
            }
            Signer::ApiserverClientKubelet | Signer::KubeletServing => {}
        }
        if self.organizations != [NODES] {
            return refuse("subject organization is not system:nodes");
        }
        if !self.common_name.starts_with(NODE_PREFIX) || self.common_name.len() == NODE_PREFIX.len() {
            return refuse("subject common name does not begin with system:node: ");
        }
        if self.emails > 0 {
            return refuse("email subjectAltNames are not allowed");
        }
        if self.uris > 0 {
            return refuse("URI subjectAltNames are not allowed");
        }
        let (purpose, names_fit) = match signer {
            Signer::KubeletServing => ("server auth", !self.sans.is_empty()),
            _ => ("client auth", self.sans.is_empty()),
        };
        if !names_fit && purpose == "server auth" {
            return refuse("DNS or IP subjectAltName is required");
        }
        if !names_fit {
            return refuse("DNS and IP subjectAltNames are not allowed");
        }
        if !exactly(&[purpose, "digital signature"]) {
            return refuse(match purpose {
                "client auth" => "usages did not match [client auth digital signature key encipherment]",
                _ => "usages did not match [digital signature key encipherment server auth]",
            });
        }
        Ok(())
    }
}

/// Common names, or organizations, of a name.
pub(crate) fn attributes(name: &X509Name<'_>, common_name: bool) -> Vec<String> {
    let text = |value: &x509_parser::x509::AttributeTypeAndValue<'_>| value.as_str().ok().map(str::to_owned);
    if common_name {
        name.iter_common_name().filter_map(text).collect()
    } else {
        name.iter_organization().filter_map(text).collect()
    }
}

fn address(bytes: &[u8]) -> Result<IpAddr, PkiError> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Ok(IpAddr::from(bytes));
    }
    <[u8; 16]>::try_from(bytes).map(IpAddr::from).map_err(|_| PkiError::malformed("address in certificate request"))
}

/// Key usages by their names in the certificates API.
pub(crate) struct Usages {
    pub bits: u16,
    pub extended: Vec<u32>,
}

impl Usages {
    pub(crate) fn parse(names: &[String]) -> Result<Self, PkiError> {
        let mut found = Self { bits: 0, extended: Vec::new() };
        for name in names {
            match name.as_str() {
                "signing" | "digital signature" => found.bits |= usage::DIGITAL_SIGNATURE,
                "content commitment" => found.bits |= usage::CONTENT_COMMITMENT,
                "key encipherment" => found.bits |= usage::KEY_ENCIPHERMENT,
                "data encipherment" => found.bits |= usage::DATA_ENCIPHERMENT,
                "key agreement" => found.bits |= usage::KEY_AGREEMENT,
                "server auth" => found.extended.push(SERVER_AUTH),
                "client auth" => found.extended.push(CLIENT_AUTH),
                // Notably never `cert sign`: nobody becomes an authority by asking.
                other => return Err(PkiError::Refused(format!("unsupported usage: {other:?}"))),
            }
        }
        found.extended.dedup();
        Ok(found)
    }
}
