//! Serving and client certificates over years, with a clock turned by hand.
#![allow(clippy::unwrap_used)]

use atoll_pki::{Ca, CaBundle, PkiError, Renewing, San, ServerCerts, Validity, validity_of};
use jiff::{SignedDuration, Timestamp};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

const DAY: SignedDuration = SignedDuration::from_hours(24);

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

#[test]
fn a_serving_certificate_is_replaced_while_it_serves() {
    let ca = Ca::generate("test", start()).unwrap();
    let certs = ServerCerts::default();
    let names = [San::new("localhost")];
    let mut renewing = Renewing::new(start(), |now| ca.issue_server(&names, Validity::days(now, 90))).unwrap();
    certs.set(None, renewing.pair()).unwrap();
    let (mut now, mut renewed) = (start(), 0);
    for _ in 0..365 {
        now = now.checked_add(DAY).unwrap();
        if let Some(pair) = renewing.renew(now).unwrap() {
            certs.set(None, pair).unwrap();
            renewed += 1;
        }
        let left = validity_of(&renewing.pair().cert).unwrap().not_after.duration_since(now);
        assert!(left >= DAY * 29, "{left} left at {now}");
    }
    assert_eq!(renewed, 6, "every 60 days or so");
}

#[test]
fn a_client_is_known_on_every_day_of_two_years() {
    let ca = Ca::generate("test", start()).unwrap();
    let trust = CaBundle::from_pem(&ca.cert_pem()).unwrap();
    let groups = ["agents".to_owned()];
    let mut renewing = Renewing::new(start(), |now| ca.issue_client("agent", &groups, Validity::days(now, 7))).unwrap();
    let mut now = start();
    for _ in 0..730 {
        now = now.checked_add(DAY).unwrap();
        renewing.renew(now).unwrap();
        let der = CertificateDer::from_pem_slice(renewing.pair().cert.as_bytes()).unwrap();
        let identity = trust.identify(&[der], now).unwrap();
        assert_eq!((identity.user.as_str(), &identity.groups[..]), ("agent", &groups[..]));
    }
}

#[test]
fn when_nothing_can_be_issued_the_present_one_stays_and_the_next_time_succeeds() {
    let ca = Ca::generate("test", start()).unwrap();
    let broken = std::cell::Cell::new(false);
    let issue = |now: Timestamp| {
        if broken.get() {
            Err(PkiError::Untrusted("away".into()))
        } else {
            ca.issue_client("x", &[], Validity::days(now, 3))
        }
    };
    let mut renewing = Renewing::new(start(), issue).unwrap();
    let first = renewing.pair().cert.clone();
    let later = start().checked_add(DAY * 2 + DAY / 2).unwrap();
    broken.set(true);
    assert!(renewing.renew(later).is_err());
    assert_eq!(renewing.pair().cert, first);
    broken.set(false);
    assert!(renewing.renew(later).unwrap().is_some());
    assert!(renewing.renew(later).unwrap().is_none());
}
