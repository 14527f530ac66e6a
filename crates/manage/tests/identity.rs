//! Users that others vouch for, and grants that others decide about.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use atoll_manage::access::authority;
use atoll_meta::Gvr;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use parking_lot::Mutex;
use serde_json::{Value, json};
use support::issuer::{Answers, Signer, serve};
use support::{World, hub_object, user};

#[tokio::test]
async fn tokens_of_an_issuer_are_good_while_its_keys_and_their_claims_say_so() {
    let world = World::with(&[("fleet", &[])]).await;
    let (signer, stranger) = (Signer::new("one"), Signer::new("one"));
    let answers = Answers::default();
    let fake = serve(answers.clone()).await;
    *answers.lock() = vec![
        (
            "/.well-known/openid-configuration".into(),
            json!({"issuer": fake.url, "jwks_uri": format!("{}/keys", fake.url)}),
        ),
        ("/keys".into(), json!({"keys": [signer.public]})),
    ];
    let provider = hub_object(
        "IdentityProvider",
        json!({"metadata": {"name": "idp"}, "spec": {"issuer": fake.url, "audiences": ["atoll"], "caData": fake.ca}}),
    );
    let providers = Gvr::new("atoll.io", "v1alpha1", "identityproviders");
    world.endpoint("root").create(&providers, None, &provider).await.unwrap();
    let later = jiff::Timestamp::now().as_second() + 3600;
    let claims = |change: Value| {
        let mut all = json!({"iss": fake.url, "aud": "atoll", "sub": "ann", "exp": later, "groups": ["team"]});
        for (key, value) in change.as_object().unwrap() {
            all[key] = value.clone();
        }
        all
    };
    let who = world.manage.identify(&signer.token(&claims(json!({})))).await.unwrap().unwrap();
    assert_eq!((who.user.as_str(), who.groups[0].as_str()), ("oidc:ann", "oidc:team"));
    for (what, wrong) in [
        ("another audience", json!({"aud": "other"})),
        ("another issuer", json!({"iss": "https://elsewhere"})),
        ("long over", json!({"exp": 1000})),
        ("no end", json!({"exp": null})),
    ] {
        assert_eq!(world.manage.identify(&signer.token(&claims(wrong))).await.unwrap(), None, "{what}");
    }
    assert_eq!(
        world.manage.identify(&stranger.token(&claims(json!({})))).await.unwrap(),
        None,
        "signed by somebody else"
    );
    // A shared secret proves nothing, even if it is the public key.
    let text = signer.public.to_string();
    let forged = jsonwebtoken::encode(
        &Header::new(Algorithm::HS256),
        &claims(json!({})),
        &EncodingKey::from_secret(text.as_bytes()),
    );
    assert_eq!(world.manage.identify(&forged.unwrap()).await.unwrap(), None);
    world.endpoint("root").delete(&providers, None, "idp", &Value::Null).await.unwrap();
    assert_eq!(
        world.manage.identify(&signer.token(&claims(json!({})))).await.unwrap(),
        None,
        "nobody vouches any more"
    );
}

async fn post(world: &World, key: &[u8], time: i64, body: &Value) -> u16 {
    let (time, text) = (time.to_string(), body.to_string());
    let request = Request::builder()
        .method("POST")
        .uri("/manage/v1alpha1/authorities/boss/changes")
        .header("atoll-signature", authority::sign(key, &time, text.as_bytes()))
        .header("atoll-timestamp", &time);
    let request = request.body(Full::<bytes::Bytes>::new(text.into()).map_err(|never| match never {}).boxed_unsync());
    world.manage.answer(request.unwrap()).await.status().as_u16()
}

async fn grants(world: &World) -> Vec<String> {
    let list = world.endpoint("root").list(&Gvr::new("atoll.io", "v1alpha1", "grants"), None, "").await.unwrap();
    list.items.iter().map(|grant| grant["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn another_system_decides_about_grants_by_signed_changes_and_is_read_on_start() {
    let world = World::with(&[("fleet", &[])]).await;
    let root = world.endpoint("root");
    let binding = |id: &str| json!({"id": id, "role": "viewer", "subjects": [{"kind": "User", "name": "ann"}], "scope": {"instance": "fleet"}});
    let answers =
        Arc::new(Mutex::new(vec![("/all".to_owned(), json!({"sequence": 5, "bindings": [binding("first")]}))]));
    let fake = serve(answers).await;
    let key = b"a key that is long enough".as_slice();
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "boss"}, "data": {"signing": STANDARD.encode(key)}});
    root.create(&Gvr::new("", "v1", "secrets"), Some("kube-system"), &secret).await.unwrap();
    let spec = json!({"url": format!("{}/all", fake.url), "caData": fake.ca, "secretRef": {"namespace": "kube-system", "name": "boss"}});
    let boss = hub_object("Authority", json!({"metadata": {"name": "boss"}, "spec": spec}));
    root.create(&Gvr::new("atoll.io", "v1alpha1", "authorities"), None, &boss).await.unwrap();
    world.until("it is read on start", async || grants(&world).await == ["boss-first"]).await;

    let now = jiff::Timestamp::now().as_second();
    let change = json!({"sequence": 6, "bindings": [binding("second")], "removed": ["first"]});
    assert_eq!(post(&world, b"another key of that length", now, &change).await, 401);
    assert_eq!(post(&world, key, now - 3600, &change).await, 401, "too old");
    assert_eq!(grants(&world).await, ["boss-first"]);
    assert_eq!(post(&world, key, now, &change).await, 200);
    assert_eq!(grants(&world).await, ["boss-second"]);
    assert_eq!(post(&world, key, now, &change).await, 409, "sent again");
    assert_eq!(post(&world, key, now, &json!({"sequence": 5, "removed": ["second"]})).await, 409, "overtaken");
    let half = json!({"sequence": 7, "bindings": [binding("third"), binding("not/a/name")]});
    assert_eq!(post(&world, key, now, &half).await, 400);
    let whole = json!({"sequence": 7, "bindings": [binding("third")]});
    assert_eq!(post(&world, key, now, &whole).await, 200, "what failed may be sent again");
    assert_eq!(grants(&world).await, ["boss-second", "boss-third"]);
    let ann = user("ann");
    let holds = async || world.rest(&ann, "GET", "/instances/fleet", None).await.0 == 200;
    world.until("the grant holds", holds).await;
}
