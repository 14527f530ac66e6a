//! The door: signing in by redirect to an identity provider, and the journal of who did what.
#![allow(clippy::unwrap_used)]

mod support;

use atoll_meta::Gvr;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use support::issuer::{Answers, Signer, serve};
use support::{World, hub_object, master, user};

#[tokio::test]
async fn a_code_of_a_provider_becomes_a_session_only_for_who_asked_for_it() {
    let world = World::with(&[("fleet", &[])]).await;
    let signer = Signer::new("one");
    let answers = Answers::default();
    let fake = serve(answers.clone()).await;
    let later = jiff::Timestamp::now().as_second() + 3600;
    let claims = json!({"iss": fake.url, "aud": "atoll", "sub": "ann", "exp": later, "nonce": "n1"});
    let at = |path: &str| format!("{}{path}", fake.url);
    let document = json!({"issuer": fake.url, "jwks_uri": at("/keys"), "authorization_endpoint": at("/go"), "token_endpoint": at("/token")});
    *answers.lock() = vec![
        ("/.well-known/openid-configuration".into(), document),
        ("/keys".into(), json!({"keys": [signer.public]})),
        ("/token".into(), json!({"id_token": signer.token(&claims)})),
    ];
    let spec =
        json!({"issuer": fake.url, "audiences": ["atoll"], "caData": fake.ca, "clientId": "atoll", "title": "Example"});
    let provider = hub_object("IdentityProvider", json!({"metadata": {"name": "idp"}, "spec": spec}));
    let providers = Gvr::new("atoll.io", "v1alpha1", "identityproviders");
    world.endpoint("root").create(&providers, None, &provider).await.unwrap();
    let nobody = user("nobody");
    let (_, ways) = world.rest(&nobody, "GET", "/manage/login", None).await;
    assert_eq!(ways["providers"][0]["authorizationEndpoint"], at("/go"), "{ways}");
    assert_eq!((&ways["providers"][0]["name"], &ways["providers"][0]["title"]), (&json!("idp"), &json!("Example")));
    let verifier = "v".repeat(43);
    let good = json!({"provider": "idp", "code": "c", "verifier": verifier, "nonce": "n1", "redirectUri": "https://hub/console/"});
    let (code, answer) = world.rest(&nobody, "POST", "/manage/login", Some(good.clone())).await;
    assert_eq!(code, 200, "{answer}");
    let who = world.manage.identify(answer["token"].as_str().unwrap()).await.unwrap().unwrap();
    assert_eq!(who.user, "oidc:ann");
    for (what, key, value, expected) in [
        ("a token for somebody else", "nonce", "n2", 401),
        ("a proof that proves nothing", "verifier", "short", 400),
        ("an unknown provider", "provider", "other", 401),
        ("a way out of the objects", "provider", "../secrets", 401),
    ] {
        let mut wrong = good.clone();
        wrong[key] = value.into();
        let (code, answer) = world.rest(&nobody, "POST", "/manage/login", Some(wrong)).await;
        assert_eq!(code, expected, "{what}: {answer}");
    }
    answers.lock().retain(|(path, _)| path != "/token");
    assert_eq!(world.rest(&nobody, "POST", "/manage/login", Some(good)).await.0, 401, "the provider refuses");
}

#[tokio::test]
async fn what_was_done_is_shown_to_who_may_see_it_as_it_happens() {
    let world = World::new().await;
    world.rest(&user("ann"), "POST", "/manage/login", Some(json!({"user": "ann", "password": "wrong"}))).await;
    assert_eq!(world.rest(&user("ann"), "GET", "/manage/v1alpha1/audit", None).await.0, 403);
    let ask = |query: &str| {
        let uri = format!("/manage/v1alpha1/audit{query}");
        Request::builder().uri(uri).body(Full::new(Bytes::new())).unwrap()
    };
    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    let past = world.raw(&master(), ask("")).await.into_body().collect().await.unwrap().to_bytes();
    let line: Value = serde_json::from_str(text(past).lines().next().unwrap()).unwrap();
    assert_eq!((&line["method"], &line["outcome"]), (&json!("Session.Open"), &json!("refused")));
    let mut watched = world.raw(&master(), ask("?watch=true")).await.into_body();
    let mut next = async || {
        let frame = tokio::time::timeout(support::PATIENCE, watched.frame()).await.unwrap();
        text(frame.unwrap().unwrap().into_data().unwrap())
    };
    assert!(next().await.contains("Session.Open"));
    assert!(next().await.contains("Audit.List"), "the refusal above");
    world.rest(&user("bob"), "POST", "/manage/login", Some(json!({"user": "bob", "password": "wrong"}))).await;
    assert!(next().await.contains("bob"));
}
