//! Service account tokens are ours, whole and in time, or refused.
#![allow(clippy::unwrap_used, missing_docs)]

use atoll_pki::{Bound, Claims, TokenSigner};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::Value;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn claims() -> Claims {
    Claims {
        namespace: "ns".into(),
        name: "sa".into(),
        uid: "u1".into(),
        audiences: vec!["hub".into()],
        expires: Some(at(2000)),
        bound: Some(Bound { kind: "Pod".into(), name: "p".into(), uid: "u2".into() }),
        node: Some(("n".into(), "u3".into())),
        jti: "j".into(),
    }
}

#[test]
fn a_token_says_what_was_signed() {
    let signer = TokenSigner::generate("https://hub").unwrap();
    let token = signer.sign(&claims(), at(1000)).unwrap();
    let read = signer.verify(&token, at(1500)).unwrap();
    assert_eq!(read, claims());
    assert_eq!(read.user(), "system:serviceaccount:ns:sa");
    assert!(read.is_for(&["hub".into()]) && !read.is_for(&["other".into()]));
    let again = TokenSigner::from_pem("https://hub", &signer.to_pem()).unwrap();
    assert!(again.verify(&token, at(1500)).is_ok());
    assert!(TokenSigner::from_pem("https://other", &signer.to_pem()).unwrap().verify(&token, at(1500)).is_err());
}

#[test]
fn time_counts() {
    let signer = TokenSigner::generate("i").unwrap();
    let token = signer.sign(&claims(), at(1000)).unwrap();
    assert!(signer.verify(&token, at(1999)).is_ok());
    assert_eq!(signer.verify(&token, at(2000)).unwrap_err().to_string(), "service account token has expired");
    assert!(signer.verify(&token, at(950)).is_ok(), "clocks may differ a little");
    assert!(signer.verify(&token, at(900)).is_err());
}

#[test]
fn changed_and_foreign_tokens_are_refused() {
    let signer = TokenSigner::generate("i").unwrap();
    let token = signer.sign(&claims(), at(1000)).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let mut body: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    body["kubernetes.io"]["serviceaccount"]["name"] = "admin".into();
    let changed = URL_SAFE_NO_PAD.encode(body.to_string());
    let unsigned = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    let symmetric = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256"}"#);
    for bad in [
        format!("{}.{changed}.{}", parts[0], parts[2]),
        format!("{unsigned}.{}.", parts[1]),
        format!("{symmetric}.{}.{}", parts[1], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        String::new(),
        "a.b.c".into(),
        "x".repeat(100_000),
    ] {
        assert!(signer.verify(&bad, at(1500)).is_err(), "{bad:.80}");
    }
    let other = TokenSigner::generate("i").unwrap();
    assert!(signer.verify(&other.sign(&claims(), at(1000)).unwrap(), at(1500)).is_err());
    let both = TokenSigner::from_pem("i", &signer.to_pem()).unwrap().with_previous(&other.to_pem()).unwrap();
    assert!(both.verify(&other.sign(&claims(), at(1000)).unwrap(), at(1500)).is_ok());
    assert_eq!(both.jwks()["keys"].as_array().unwrap().len(), 2);
}

#[test]
fn a_legacy_token_has_no_end_but_a_secret() {
    let signer = TokenSigner::generate("i").unwrap();
    let legacy = Claims {
        expires: None,
        audiences: Vec::new(),
        node: None,
        jti: String::new(),
        bound: Some(Bound { kind: "Secret".into(), name: "s".into(), uid: String::new() }),
        ..claims()
    };
    let token = signer.sign(&legacy, at(1000)).unwrap();
    let read = signer.verify(&token, at(1_000_000_000)).unwrap();
    assert_eq!(read, legacy);
    assert!(read.is_for(&["anything".into()]));
    let homeless = signer.sign(&Claims { bound: None, ..legacy }, at(1000)).unwrap();
    assert!(signer.verify(&homeless, at(1000)).is_err());
}

#[test]
fn keys_and_discovery_are_published() {
    let signer = TokenSigner::generate("https://hub").unwrap();
    let keys = signer.jwks();
    let key = &keys["keys"][0];
    assert_eq!((key["kty"].as_str(), key["crv"].as_str()), (Some("EC"), Some("P-256")));
    assert_eq!(URL_SAFE_NO_PAD.decode(key["x"].as_str().unwrap()).unwrap().len(), 32);
    assert_eq!(signer.discovery("https://hub/openid/v1/jwks")["issuer"], "https://hub");
}
