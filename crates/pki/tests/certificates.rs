//! Certificates are issued, trusted and refused as they should be.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;

use atoll_pki::*;
use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

fn now() -> Timestamp {
    // TLS handshakes below ask the system's clock.
    Timestamp::now()
}

fn chain(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().unwrap()
}

fn groups(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_user_and_all_groups_are_read_back_from_a_certificate() {
    let ca = Ca::generate("hub", now()).unwrap();
    let pair = ca.issue_client("jürgen", &groups(&["a", "b", "c"]), Validity::days(now(), 1)).unwrap();
    let bundle = CaBundle::from_pem(&ca.cert_pem()).unwrap();
    let identity = bundle.identify(&chain(&pair.cert), now()).unwrap();
    assert_eq!(identity.user, "jürgen");
    assert_eq!(identity.groups, ["a", "b", "c"]);
    assert_eq!(identity.fingerprint.len(), 64);
    assert_eq!(identity.not_after.as_second(), validity_of(&pair.cert).unwrap().not_after.as_second());
}

#[test]
fn strangers_expired_and_wrong_use_certificates_are_refused() {
    let (ca, other) = (Ca::generate("hub", now()).unwrap(), Ca::generate("hub", now()).unwrap());
    let bundle = CaBundle::from_pem(&ca.cert_pem()).unwrap();
    let stranger = other.issue_client("u", &[], Validity::days(now(), 1)).unwrap();
    let old = ca.issue_client("u", &[], Validity::days(now(), 1)).unwrap();
    let server = ca.issue_server(&[San::new("a.b")], Validity::days(now(), 1)).unwrap();
    let later = now().saturating_add(SignedDuration::from_hours(48)).unwrap();
    assert!(bundle.identify(&chain(&stranger.cert), now()).is_err());
    assert!(bundle.identify(&chain(&old.cert), now()).is_ok());
    assert!(bundle.identify(&chain(&old.cert), later).is_err());
    assert!(bundle.identify(&chain(&server.cert), now()).is_err());
    assert!(bundle.identify(&[], now()).is_err());
    assert!(CaBundle::from_pem("").unwrap().identify(&chain(&old.cert), now()).is_err());
    let both = CaBundle::from_pem(&format!("{}{}", ca.cert_pem(), other.cert_pem())).unwrap();
    assert!(both.identify(&chain(&stranger.cert), now()).is_ok());
}

#[test]
fn an_authority_survives_being_written_and_read() {
    let ca = Ca::generate("hub", now()).unwrap();
    let again = Ca::from_pem(&ca.to_pem()).unwrap();
    assert_eq!(again.cert_pem(), ca.cert_pem());
    let pair = again.issue_client("u", &[], Validity::days(now(), 9999)).unwrap();
    let identity = CaBundle::from_pem(&ca.cert_pem()).unwrap().identify(&chain(&pair.cert), now()).unwrap();
    assert!(identity.not_after <= ca.not_after(), "nothing outlives its authority");
    let other = Ca::generate("x", now()).unwrap();
    assert!(Ca::from_pem(&PemPair { cert: ca.cert_pem(), key: other.to_pem().key }).is_err());
    assert!(Ca::from_pem(&pair).is_err(), "a user is no authority");
    assert!(!format!("{:?}", ca.to_pem()).contains("PRIVATE"));
}

fn request(common_name: &str, organization: &str, names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    if !organization.is_empty() {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
}

#[test]
fn requests_are_signed_only_within_the_rules_of_their_signer() {
    let ca = Ca::generate("hub", now()).unwrap();
    let client = groups(&["client auth", "digital signature"]);
    let server = groups(&["server auth", "digital signature", "key encipherment"]);
    let node = "system:node:n1";
    use Signer::{ApiserverClient, ApiserverClientKubelet, KubeletServing};
    for (signer, common_name, organization, names, usages, fine) in [
        (ApiserverClient, "u", "dev", &[][..], &client, true),
        (ApiserverClient, "u", "system:masters", &[], &client, false),
        (ApiserverClient, "u", "dev", &[], &server, false),
        (ApiserverClientKubelet, node, "system:nodes", &[], &client, true),
        (ApiserverClientKubelet, node, "system:nodes", &["a"], &client, false),
        (ApiserverClientKubelet, "u", "system:nodes", &[], &client, false),
        (KubeletServing, node, "system:nodes", &["10.0.0.1", "n1"], &server, true),
        (KubeletServing, node, "system:nodes", &[], &server, false),
        (KubeletServing, node, "dev", &["n1"], &server, false),
        (KubeletServing, node, "system:nodes", &["n1"], &client, false),
    ] {
        let csr = request(common_name, organization, names);
        let signed = ca.sign_csr(&csr, &signer, usages, Validity::days(now(), 1));
        assert_eq!(signed.is_ok(), fine, "{signer:?} {common_name} {organization} {names:?} {usages:?} {signed:?}");
    }
    let csr = request("u", "dev", &[]);
    let cert = ca.sign_csr(&csr, &ApiserverClient, &client, Validity::days(now(), 1)).unwrap();
    let identity = CaBundle::from_pem(&ca.cert_pem()).unwrap().identify(&chain(&cert), now()).unwrap();
    assert_eq!((identity.user.as_str(), identity.groups.as_slice()), ("u", &groups(&["dev"])[..]));
    assert!(ca.sign_csr("nonsense", &ApiserverClient, &client, Validity::days(now(), 1)).is_err());
    assert!(Signer::named("kubernetes.io/kubelet-serving").is_some() && Signer::named("x/y").is_none());
}

#[test]
fn renewal_comes_in_the_last_third() {
    let at = |second| Timestamp::from_second(second).unwrap();
    assert!(!needs_renewal(at(0), at(300), at(100)));
    assert!(!needs_renewal(at(0), at(300), at(200)));
    assert!(needs_renewal(at(0), at(300), at(201)));
    assert!(needs_renewal(at(0), at(300), at(400)));
    assert!(needs_renewal(at(0), at(0), at(0)));
}

/// Shakes hands in memory; returns who the server saw and the certificate the caller saw.
fn handshake(
    server: rustls::ServerConfig,
    caller: rustls::ClientConfig,
    host: &str,
) -> Result<(rustls::ServerConnection, Vec<u8>), rustls::Error> {
    let mut server = rustls::ServerConnection::new(Arc::new(server)).unwrap();
    let name = host.to_owned().try_into().unwrap();
    let mut caller = rustls::ClientConnection::new(Arc::new(caller), name).unwrap();
    for _ in 0..8 {
        let mut wire = Vec::new();
        caller.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets()?;
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        caller.read_tls(&mut wire.as_slice()).unwrap();
        caller.process_new_packets()?;
    }
    let seen = caller.peer_certificates().unwrap()[0].to_vec();
    Ok((server, seen))
}

#[test]
fn certificates_are_chosen_by_name_and_replaced_while_serving() {
    let ca = Ca::generate("hub", now()).unwrap();
    let trust = CaBundle::from_pem(&ca.cert_pem()).unwrap();
    let issue = |name: &str| ca.issue_server(&[San::new(name)], Validity::days(now(), 1)).unwrap();
    let (first, wild) = (issue("hub.test"), issue("*.hub.test"));
    let certs = Arc::new(ServerCerts::default());
    certs.set(None, &first).unwrap();
    certs.set(Some("*.hub.test"), &wild).unwrap();
    let config = || server_config(certs.clone(), &[b"h2", b"http/1.1"]).unwrap();
    let call = |host: &str| handshake(config(), client_config(&trust, None).unwrap(), host);
    assert_eq!(call("hub.test").unwrap().1, chain(&first.cert)[0].to_vec());
    assert_eq!(call("x.hub.test").unwrap().1, chain(&wild.cert)[0].to_vec());
    assert!(call("else.test").is_err(), "the default does not carry that name");
    let second = issue("hub.test");
    certs.set(None, &second).unwrap();
    assert_eq!(call("hub.test").unwrap().1, chain(&second.cert)[0].to_vec());
    let mixed = PemPair { cert: first.cert, key: second.key };
    assert!(certs.set(None, &mixed).is_err(), "key and certificate must match");
}

#[test]
fn callers_are_identified_by_the_authority_of_the_name_they_asked_for() {
    let (ca, team) = (Ca::generate("hub", now()).unwrap(), Ca::generate("team", now()).unwrap());
    let trust = CaBundle::from_pem(&ca.cert_pem()).unwrap();
    let names = [San::new("hub.test"), San::new("team.hub.test")];
    let certs = Arc::new(ServerCerts::default());
    certs.set(None, &ca.issue_server(&names, Validity::days(now(), 1)).unwrap()).unwrap();
    let cas = ClientCas::default();
    cas.set(None, Some(trust.clone()));
    cas.set(Some("team.hub.test"), Some(CaBundle::from_pem(&team.cert_pem()).unwrap()));
    let member = team.issue_client("member", &groups(&["g"]), Validity::days(now(), 1)).unwrap();
    let call = |pair: Option<&PemPair>, host: &str| {
        let config = server_config(certs.clone(), &[]).unwrap();
        let (server, _) = handshake(config, client_config(&trust, pair).unwrap(), host).unwrap();
        cas.identify(&server, now())
    };
    assert_eq!(call(Some(&member), "team.hub.test").unwrap().unwrap().user, "member");
    assert!(call(Some(&member), "hub.test").is_err());
    assert!(call(None, "hub.test").unwrap().is_none());
}

#[test]
fn of_several_common_names_the_one_that_was_judged_counts() {
    let ca = Ca::generate("test", now()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CustomDnType(vec![2, 5, 4, 3]), "system:kube-controller-manager");
    params.distinguished_name.push(DnType::CommonName, "system:node:n1");
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    let judged = Request::parse(&pem).unwrap().common_name;
    let usages = ["digital signature", "client auth"].map(str::to_owned);
    let cert = ca.sign_csr(&pem, &Signer::ApiserverClientKubelet, &usages, Validity::days(now(), 1)).unwrap();
    let der = CertificateDer::from_pem_slice(cert.as_bytes()).unwrap();
    let shown = CaBundle::from_pem(&ca.cert_pem()).unwrap().identify(&[der], now()).unwrap().user;
    assert_eq!((judged.as_str(), shown.as_str()), ("system:node:n1", "system:node:n1"));
}
