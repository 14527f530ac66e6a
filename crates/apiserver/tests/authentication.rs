//! Who is who: certificates, tokens of every kind, impersonation, reviews.
#![allow(clippy::unwrap_used)]

mod support;

use atoll_apiserver::PeerCertificates;
use atoll_pki::PemPair;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use jiff::SignedDuration;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use support::{Answer, TestHub, Who};

const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const DAY: SignedDuration = SignedDuration::from_hours(24);

async fn with_certificate(hub: &TestHub, base: &str, pair: &PemPair) -> Answer {
    let der = CertificateDer::from_pem_slice(pair.cert.as_bytes()).unwrap();
    let mut request = Request::builder()
        .method("POST")
        .uri(format!("{base}{WHOAMI}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from_static(b"{}")))
        .unwrap();
    request.extensions_mut().insert(PeerCertificates(vec![der].into()));
    hub.send(request).await
}

async fn whoami(hub: &TestHub, who: &Who, base: &str) -> Answer {
    hub.post(who, &format!("{base}{WHOAMI}"), json!({})).await
}

fn name_of(answer: Answer) -> String {
    answer.expect(201)["status"]["userInfo"]["username"].as_str().unwrap().to_owned()
}

async fn account(hub: &TestHub, base: &str, name: &str) -> Value {
    let path = format!("{base}/api/v1/namespaces/default/serviceaccounts");
    hub.post(&Who::Master, &path, json!({"metadata": {"name": name}})).await.expect(201)
}

async fn token_request(hub: &TestHub, base: &str, name: &str, spec: Value) -> Answer {
    let path = format!("{base}/api/v1/namespaces/default/serviceaccounts/{name}/token");
    hub.post(&Who::Master, &path, json!({"spec": spec})).await
}

async fn token(hub: &TestHub, base: &str, name: &str, spec: Value) -> String {
    token_request(hub, base, name, spec).await.expect(201)["status"]["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_certificate_counts_only_in_the_instance_whose_authority_issued_it() {
    let hub = TestHub::new().await;
    let (a, b) = (hub.instance("a").await, hub.instance("b").await);
    let pair = hub.hub.credentials(&a).await.unwrap().certificate("jane", &["dev".into()], DAY).unwrap();
    let answer = with_certificate(&hub, "/instances/a", &pair).await.expect(201);
    assert_eq!(answer["status"]["userInfo"]["username"], "jane");
    assert_eq!(answer["status"]["userInfo"]["groups"], json!(["dev", "system:authenticated"]));
    assert_eq!(with_certificate(&hub, "/instances/b", &pair).await.code, 401);
    assert_eq!(with_certificate(&hub, "", &pair).await.code, 401, "a user of an instance is nobody in root");
    let master = hub.hub.credentials(&b).await.unwrap().certificate("x", &["system:masters".into()], DAY).unwrap();
    assert_eq!(
        with_certificate(&hub, "/instances/a", &master).await.code,
        401,
        "masters of an instance rule only that"
    );
    hub.pass(2 * 24 * 3600);
    assert_eq!(
        with_certificate(&hub, "/instances/a", &pair).await.code,
        401,
        "certificates end, also when they were seen before"
    );
}

#[tokio::test]
async fn administrators_of_root_may_enter_every_instance_and_other_users_of_root_none() {
    let hub = TestHub::new().await;
    hub.instance("a").await;
    let root = hub.hub.credentials(&hub.hub.root()).await.unwrap();
    let admin = root.certificate("admin", &["system:masters".into()], DAY).unwrap();
    let user = root.certificate("jane", &["dev".into()], DAY).unwrap();
    assert_eq!(name_of(with_certificate(&hub, "/instances/a", &admin).await), "admin");
    assert_eq!(name_of(with_certificate(&hub, "", &user).await), "jane");
    assert_eq!(with_certificate(&hub, "/instances/a", &user).await.code, 401);
    assert_eq!(with_certificate(&hub, "/instances/none", &user).await.code, 401);
    assert_eq!(with_certificate(&hub, "/instances/none", &admin).await.code, 404);
}

#[tokio::test]
async fn a_new_instance_of_the_same_name_does_not_trust_what_the_old_one_issued() {
    let hub = TestHub::new().await;
    let old = hub.instance("a").await;
    let pair = hub.hub.credentials(&old).await.unwrap().certificate("jane", &[], DAY).unwrap();
    hub.hub.drop_instance("a").await.unwrap();
    hub.instance("a").await;
    assert_eq!(with_certificate(&hub, "/instances/a", &pair).await.code, 401);
}

#[tokio::test]
async fn replicas_over_one_store_agree_on_keys() {
    let engine = std::sync::Arc::new(atoll_store::MemoryEngine::new());
    let one = TestHub::over(engine.clone()).await;
    let a = one.instance("a").await;
    let two = TestHub::over(engine).await;
    let pair = one.hub.credentials(&a).await.unwrap().certificate("jane", &[], DAY).unwrap();
    assert_eq!(name_of(with_certificate(&two, "/instances/a", &pair).await), "jane");
    assert_eq!(one.hub.keys().own().serving.cert_pem(), two.hub.keys().own().serving.cert_pem());
    one.hub.add_token("admin", "s3cret", support::user("static")).await.unwrap();
    two.hub.keys().add_token("local", support::user("local"));
    assert_eq!(whoami(&two, &Who::Token("local".into()), "").await.code, 201);
    assert_eq!(whoami(&one, &Who::Token("local".into()), "").await.code, 401);
    assert_eq!(name_of(whoami(&one, &Who::Token("s3cret".into()), "").await), "static");
}

#[tokio::test]
async fn wrong_credentials_are_refused_where_none_would_be_let_in() {
    let hub = TestHub::new().await;
    hub.instance("a").await;
    for base in ["", "/instances/a"] {
        assert_eq!(hub.get(&Who::Nobody, &format!("{base}/version")).await.code, 200);
        for header in ["Bearer wrong", "Bearer ", "Basic YTpi", "Bearer a.b.c", "Bearer abcdef.0123456789abcdef"] {
            let who = Who::Headers(vec![("authorization".into(), header.into())]);
            assert_eq!(hub.get(&who, &format!("{base}/version")).await.code, 401, "{header}");
        }
    }
    let answer = hub.get(&Who::Nobody, "/api/v1/namespaces/default/secrets").await;
    assert_eq!(
        answer.message(),
        "secrets is forbidden: User \"system:anonymous\" cannot list resource \"secrets\" in API group \"\" in the namespace \"default\""
    );
}

#[tokio::test]
async fn a_token_of_a_service_account_says_who_it_is_and_ends_with_its_account() {
    let hub = TestHub::new().await;
    let made = account(&hub, "", "sa").await;
    let token = token(&hub, "", "sa", json!({})).await;
    let info = whoami(&hub, &Who::Token(token.clone()), "").await.expect(201)["status"]["userInfo"].clone();
    assert_eq!(info["username"], "system:serviceaccount:default:sa");
    assert_eq!(info["uid"], made["metadata"]["uid"]);
    assert_eq!(
        info["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    assert!(info["extra"]["authentication.kubernetes.io/credential-id"][0].as_str().unwrap().starts_with("JTI="));
    hub.pass(3599);
    assert_eq!(whoami(&hub, &Who::Token(token.clone()), "").await.code, 201);
    hub.pass(1);
    assert_eq!(whoami(&hub, &Who::Token(token), "").await.code, 401, "expired");
    let fresh = self::token(&hub, "", "sa", json!({})).await;
    hub.call(&Who::Master, "DELETE", "/api/v1/namespaces/default/serviceaccounts/sa", Value::Null).await.expect(200);
    assert_eq!(whoami(&hub, &Who::Token(fresh.clone()), "").await.code, 401);
    account(&hub, "", "sa").await;
    assert_eq!(whoami(&hub, &Who::Token(fresh), "").await.code, 401, "an account of the same name is another one");
}

#[tokio::test]
async fn tokens_for_another_audience_or_of_another_instance_are_refused() {
    let hub = TestHub::new().await;
    for name in ["a", "b"] {
        hub.instance(name).await;
        account(&hub, &format!("/instances/{name}"), "sa").await;
    }
    let own = token(&hub, "/instances/a", "sa", json!({})).await;
    let other = token(&hub, "/instances/a", "sa", json!({"audiences": ["vault"]})).await;
    assert_eq!(whoami(&hub, &Who::Token(own.clone()), "/instances/a").await.code, 201);
    assert_eq!(whoami(&hub, &Who::Token(own.clone()), "/instances/b").await.code, 401);
    assert_eq!(whoami(&hub, &Who::Token(own.clone()), "").await.code, 401);
    assert_eq!(whoami(&hub, &Who::Token(other.clone()), "/instances/a").await.code, 401);
    let review = |token: &str, audiences: Value| {
        let (hub, body) = (&hub, json!({"spec": {"token": token, "audiences": audiences}}));
        async move {
            hub.post(&Who::Master, "/instances/a/apis/authentication.k8s.io/v1/tokenreviews", body).await.expect(201)["status"].clone()
        }
    };
    assert_eq!(review(&other, json!(["x", "vault"])).await["audiences"], json!(["vault"]));
    assert_eq!(review(&other, json!(["x"])).await["authenticated"], Value::Null);
    assert_eq!(review(&other, json!([])).await["authenticated"], Value::Null);
    assert_eq!(review(&own, json!([])).await["authenticated"], true);
    assert_eq!(review("nonsense", json!([])).await["error"], "invalid bearer token");
}

#[tokio::test]
async fn bound_tokens_end_with_what_they_are_bound_to() {
    let hub = TestHub::new().await;
    account(&hub, "", "sa").await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = hub.post(&Who::Master, secrets, json!({"metadata": {"name": "s"}})).await.expect(201);
    let reference =
        |uid: Value| json!({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": uid}});
    assert_eq!(token_request(&hub, "", "sa", reference(json!("other"))).await.code, 409);
    let token = token(&hub, "", "sa", reference(secret["metadata"]["uid"].clone())).await;
    assert_eq!(whoami(&hub, &Who::Token(token.clone()), "").await.code, 201);
    hub.call(&Who::Master, "DELETE", &format!("{secrets}/s"), Value::Null).await.expect(200);
    assert_eq!(whoami(&hub, &Who::Token(token), "").await.code, 401);
    let table = [
        (json!({"expirationSeconds": 599}), 422),
        (json!({"expirationSeconds": 4_294_967_297i64}), 422),
        (json!({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s"}}), 404),
        (json!({"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "s"}}), 400),
    ];
    for (spec, code) in table {
        assert_eq!(token_request(&hub, "", "sa", spec.clone()).await.code, code, "{spec}");
    }
    let long = token_request(&hub, "", "sa", json!({"expirationSeconds": 4_000_000_000i64})).await;
    assert!(long.headers["warning"].to_str().unwrap().contains("shortened"));
    assert_eq!(token_request(&hub, "", "nobody", json!({})).await.code, 404);
}

#[tokio::test]
async fn a_legacy_token_counts_while_its_secret_holds_it() {
    let hub = TestHub::new().await;
    let made = account(&hub, "", "sa").await;
    let secret = json!({"metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "sa"}},
        "type": "kubernetes.io/service-account-token"});
    let filled = hub.post(&Who::Master, "/api/v1/namespaces/default/secrets", secret).await.expect(201);
    assert_eq!(filled["metadata"]["annotations"]["kubernetes.io/service-account.uid"], made["metadata"]["uid"]);
    let decoded =
        |field: &str| String::from_utf8(STANDARD.decode(filled["data"][field].as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(decoded("namespace"), "default");
    assert!(decoded("ca.crt").contains("BEGIN CERTIFICATE"));
    let token = decoded("token");
    assert_eq!(name_of(whoami(&hub, &Who::Token(token.clone()), "").await), "system:serviceaccount:default:sa");
    hub.call(&Who::Master, "DELETE", "/api/v1/namespaces/default/secrets/t", Value::Null).await.expect(200);
    assert_eq!(whoami(&hub, &Who::Token(token), "").await.code, 401);
}

#[tokio::test]
async fn a_bootstrap_token_is_a_secret_in_kube_system() {
    let hub = TestHub::new().await;
    let secret = json!({"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "stringData": {
        "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:x"}});
    hub.post(&Who::Master, "/api/v1/namespaces/kube-system/secrets", secret).await.expect(201);
    let info =
        whoami(&hub, &Who::Token("abcdef.0123456789abcdef".into()), "").await.expect(201)["status"]["userInfo"].clone();
    assert_eq!(info["username"], "system:bootstrap:abcdef");
    assert_eq!(whoami(&hub, &Who::Token("abcdef.0123456789abcdee".into()), "").await.code, 401);
}

#[tokio::test]
async fn impersonation_needs_a_right_for_each_thing_claimed() {
    let hub = TestHub::new().await;
    let rules = json!([
        {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["jane"]},
        {"apiGroups": [""], "resources": ["groups"], "verbs": ["impersonate"], "resourceNames": ["dev"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes"], "verbs": ["impersonate"], "resourceNames": ["read"]},
    ]);
    hub.grant("", "proxy", "proxy", rules).await;
    let ask = |who: Who, headers: Vec<(&'static str, &'static str)>| {
        let hub = &hub;
        async move {
            let mut all = vec![("content-type", "application/json")];
            all.extend(headers);
            hub.call_as(&who, "POST", WHOAMI, json!({}), &all).await
        }
    };
    let proxy = || Who::User("proxy");
    let jane = ask(
        proxy(),
        vec![("impersonate-user", "jane"), ("impersonate-group", "dev"), ("Impersonate-Extra-Scopes", "read")],
    )
    .await;
    let info = jane.expect(201)["status"]["userInfo"].clone();
    assert_eq!(
        info,
        json!({"username": "jane", "groups": ["dev", "system:authenticated"], "extra": {"scopes": ["read"]}})
    );
    let refused = ask(proxy(), vec![("impersonate-user", "joe")]).await;
    assert_eq!(
        refused.message(),
        "users \"joe\" is forbidden: User \"proxy\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope"
    );
    let table = [
        (vec![("impersonate-user", "jane"), ("impersonate-group", "system:masters")], 403),
        (vec![("impersonate-user", "jane"), ("impersonate-group", "dev"), ("impersonate-group", "ops")], 403),
        (vec![("impersonate-user", "jane"), ("impersonate-uid", "1")], 403),
        (vec![("impersonate-user", "jane"), ("impersonate-extra-scopes", "write")], 403),
        (vec![("impersonate-user", "system:serviceaccount:default:sa")], 403),
        (
            vec![
                ("impersonate-user", "jane"),
                ("connection", "impersonate-user, impersonate-group"),
                ("impersonate-group", "system:masters"),
            ],
            403,
        ),
        (vec![("impersonate-group", "dev")], 400),
        (vec![("x-remote-user", "admin"), ("x-remote-group", "system:masters")], 201),
    ];
    for (headers, code) in table {
        assert_eq!(ask(proxy(), headers.clone()).await.code, code, "{headers:?}");
    }
    let ignored =
        ask(proxy(), vec![("x-remote-user", "admin"), ("x_remote_user", "admin"), ("impersonate_user", "admin")]).await;
    assert_eq!(name_of(ignored), "proxy");
}

#[tokio::test]
async fn a_thousand_concurrent_requests_keep_their_hundred_identities() {
    let hub = std::sync::Arc::new(TestHub::new().await);
    for user in 0..100 {
        hub.hub.keys().add_token(&format!("token-{user}"), support::user(&format!("user-{user}")));
    }
    let mut tasks = tokio::task::JoinSet::new();
    for request in 0..1000 {
        let hub = hub.clone();
        tasks.spawn(async move {
            let user = request % 100;
            let who = Who::Token(format!("token-{user}"));
            assert_eq!(name_of(whoami(&hub, &who, "").await), format!("user-{user}"));
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn reviews_have_no_table_and_the_keys_of_tokens_are_published() {
    let hub = TestHub::new().await;
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io"), ("content-type", "application/json")];
    assert_eq!(hub.call_as(&Who::Master, "POST", WHOAMI, json!({}), &accept).await.code, 406);
    assert_eq!(hub.get(&Who::Master, WHOAMI).await.code, 405);
    let configuration = hub.get(&Who::Master, "/.well-known/openid-configuration").await.expect(200);
    assert_eq!(configuration["jwks_uri"], format!("{}/openid/v1/jwks", configuration["issuer"].as_str().unwrap()));
    assert_eq!(hub.get(&Who::Master, "/openid/v1/jwks").await.expect(200)["keys"][0]["kty"], "EC");
    assert_eq!(hub.get(&Who::Nobody, "/openid/v1/jwks").await.code, 403);
}

/// Waits until something is true; the hub follows other replicas on its own.
async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    for _ in 0..10_000 {
        if holds().await {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("never came true: {what}");
}

#[tokio::test]
async fn a_replica_follows_what_another_changes() {
    let engine = std::sync::Arc::new(atoll_store::MemoryEngine::new());
    let (one, two) = (TestHub::over(engine.clone()).await, TestHub::over(engine).await);
    one.instance("a").await;
    until("the instance is known", || async { two.hub.instance("a").is_some() }).await;
    let (jane, nodes) = (Who::User("jane"), "/instances/a/api/v1/nodes");
    assert_eq!(two.get(&jane, nodes).await.code, 403);
    one.grant("/instances/a", "nodes", "jane", json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["nodes"]}]))
        .await;
    until("the right is known", || async { two.get(&jane, nodes).await.code == 200 }).await;
    one.call(
        &Who::Master,
        "DELETE",
        "/instances/a/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/nodes-jane",
        Value::Null,
    )
    .await
    .expect(200);
    until("the right is gone", || async { two.get(&jane, nodes).await.code == 403 }).await;
    one.hub.add_token("admin", "s3cret", support::user("static")).await.unwrap();
    until("the token is known", || async { whoami(&two, &Who::Token("s3cret".into()), "").await.code == 201 }).await;
    one.hub.drop_instance("a").await.unwrap();
    until("the instance is gone", || async { two.hub.instance("a").is_none() }).await;
}

#[tokio::test]
async fn instances_share_their_default_roles_and_tell_extension_servers_whom_to_trust() {
    let hub = TestHub::new().await;
    let (a, b) = (hub.instance("a").await, hub.instance("b").await);
    let key = "clusterroles.rbac.authorization.k8s.io/admin";
    let (in_a, in_b) = (hub.hub.read(&a, key).await.unwrap().unwrap(), hub.hub.read(&b, key).await.unwrap().unwrap());
    assert!(std::sync::Arc::ptr_eq(&in_a.object, &in_b.object));
    let pair = hub.hub.credentials(&a).await.unwrap().certificate("x", &["system:masters".into()], DAY).unwrap();
    assert_eq!(with_certificate(&hub, "/instances/a", &pair).await.code, 201);
    let map = hub
        .get(&Who::Master, "/instances/a/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
        .await
        .expect(200);
    assert_eq!(map["data"]["client-ca-file"], hub.hub.authority(&a).await.unwrap().client_ca());
    assert_eq!(map["data"]["requestheader-allowed-names"], "[\"front-proxy-client\"]");
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_make_an_instance_at_the_same_time_both_serve_it() {
    let engine = std::sync::Arc::new(atoll_store::MemoryEngine::new());
    let (one, two) = (TestHub::over(engine.clone()).await, TestHub::over(engine).await);
    for round in 0..100 {
        let name = format!("i{round}");
        let make = async |replica: &TestHub| {
            // Whoever is refused because the other was faster tries again, as controllers do.
            for _ in 0..20 {
                if replica.hub.instance(&name).is_some() || replica.hub.create_instance(&name).await.is_ok() {
                    return;
                }
                tokio::task::yield_now().await;
            }
            panic!("{name} is not served");
        };
        tokio::join!(make(&one), make(&two));
        assert_eq!(one.hub.instance(&name).unwrap().id, two.hub.instance(&name).unwrap().id);
    }
}
