//! Another implementation agrees with the certificates written here.
#![allow(clippy::unwrap_used, missing_docs)]

use std::process::Command;

use atoll_pki::{Ca, San, Validity};
use jiff::Timestamp;

#[test]
fn openssl_verifies_chain_names_and_purpose() {
    if Command::new("openssl").arg("version").output().is_err() {
        println!("SKIPPED: openssl is not installed");
        return;
    }
    let now = Timestamp::now();
    let ca = Ca::generate("hub", now).unwrap();
    let names = [San::new("hub.test"), San::new("10.0.0.1"), San::new("::1")];
    let server = ca.issue_server(&names, Validity::days(now, 30)).unwrap();
    let user = ca.issue_client("u", &["a".to_owned(), "b".to_owned()], Validity::days(now, 30)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (ca, server, user) =
        (write("ca.pem", &ca.cert_pem()), write("server.pem", &server.cert), write("user.pem", &user.cert));
    let verify = |cert: &std::path::Path, more: &[&str]| {
        let mut command = Command::new("openssl");
        let output =
            command.args(["verify", "-x509_strict", "-CAfile"]).arg(&ca).args(more).arg(cert).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (cert, more, fine) in [
        (&server, &["-purpose", "sslserver", "-verify_hostname", "hub.test"][..], true),
        (&server, &["-purpose", "sslserver", "-verify_ip", "10.0.0.1"], true),
        (&server, &["-purpose", "sslserver", "-verify_ip", "::1"], true),
        (&server, &["-purpose", "sslserver", "-verify_hostname", "else.test"], false),
        (&server, &["-purpose", "sslclient"], false),
        (&user, &["-purpose", "sslclient"], true),
        (&user, &["-purpose", "sslserver"], false),
    ] {
        let (verified, message) = verify(cert, more);
        assert_eq!(verified, fine, "{more:?}: {message}");
    }
    let output = Command::new("openssl").args(["x509", "-noout", "-subject", "-in"]).arg(&user).output().unwrap();
    let subject = String::from_utf8(output.stdout).unwrap().replace(' ', "");
    assert!(subject.contains("O=a,O=b,CN=u"), "{subject}");
}
