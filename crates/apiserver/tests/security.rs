//! Past mistakes of others, as tests. The names are those of the project's list of them.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use atoll_apiserver::{ApiService, Identity, Limits, Server};
use atoll_pki::{CaBundle, San, ServerCerts, Validity};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{TestHub, Who, user};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const DEFAULT: &str = "/api/v1/namespaces/default";

fn header() -> impl Strategy<Value = (String, String)> {
    let name = prop_oneof![
        Just("X-Remote-User"),
        Just("X-Remote-Group"),
        Just("X-Remote-Uid"),
        Just("X-Remote-Extra-Scopes"),
        Just("X_Remote_User"),
        Just("Impersonate_User"),
        Just("Impersonate_Group"),
        Just("X-Forwarded-Client-Cert"),
        Just("X-Forwarded-User"),
        Just("Forwarded"),
        Just("Connection"),
        Just("Trailer"),
        Just("Via"),
        Just("Keep-Alive"),
    ];
    let value = prop_oneof![
        Just("admin"),
        Just("system:masters"),
        Just("Authorization"),
        Just("Impersonate-User, X-Remote-User, authorization"),
        Just("By=spiffe://x;Subject=\"O=system:masters,CN=admin\""),
    ];
    (name, any::<u16>(), value).prop_map(|(name, letters, value)| {
        let cased = name.chars().enumerate().map(|(at, letter)| {
            if letters >> (at % 16) & 1 == 1 { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
        });
        (cased.collect(), value.to_owned())
    })
}

/// S1: no header but the credentials makes anybody somebody else.
#[test]
fn s1_smuggled_headers_change_nobody() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let hub = runtime.block_on(TestHub::new());
    hub.hub.keys().add_token("of-jane", user("jane"));
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(mut headers in proptest::collection::vec(header(), 0..8), twice: bool)| {
        if twice {
            headers.extend(headers.clone());
        }
        headers.push(("content-type".into(), "application/json".into()));
        let list: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let who = Who::Token("of-jane".into());
        let answer = runtime.block_on(hub.call_as(&who, "POST", WHOAMI, json!({}), &list));
        let info = answer.expect(201)["status"]["userInfo"].clone();
        prop_assert_eq!(info, json!({"username": "jane", "groups": ["system:authenticated"]}));
        let nobody = runtime.block_on(hub.call_as(&Who::Nobody, "GET", "/api/v1/secrets", Value::Null, &list));
        prop_assert_eq!(nobody.code, 403);
        prop_assert!(nobody.message().contains("User \"system:anonymous\""), "{}", nobody.message());
    });
}

/// S1: whoever may not impersonate cannot, however the wish is written.
#[tokio::test]
async fn s1_impersonation_headers_are_judged_in_every_spelling() {
    let hub = TestHub::new().await;
    for headers in [
        vec![("Impersonate-User", "admin")],
        vec![("IMPERSONATE-USER", "admin")],
        vec![("impersonate-user", "jane"), ("Impersonate-Group", "system:masters")],
        vec![("impersonate-user", "admin"), ("connection", "impersonate-user")],
        vec![("impersonate-user", "admin"), ("trailer", "Impersonate-User")],
        vec![("impersonate-user", "jane"), ("impersonate-user", "admin")],
        vec![("impersonate-user", ""), ("impersonate-group", "system:masters")],
        vec![("impersonate-user", "admin"), ("impersonate-extra-scopes%2f", "all")],
        vec![("impersonate-nonsense", "admin")],
    ] {
        let mut all = vec![("content-type", "application/json")];
        all.extend(headers.clone());
        let answer = hub.call_as(&Who::User("jane"), "POST", WHOAMI, json!({}), &all).await;
        assert!(matches!(answer.code, 400 | 403), "{headers:?}: {}", answer.text);
    }
}

type Sender = hyper::client::conn::http2::SendRequest<Full<Bytes>>;

/// A connection that many users share, as behind a proxy.
async fn connection(address: std::net::SocketAddr, authority: &str) -> Sender {
    let mut tls = atoll_pki::client_config(&CaBundle::from_pem(authority).unwrap(), None).unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let name = rustls_pki_types::ServerName::try_from("localhost").unwrap();
    let stream = tokio_rustls::TlsConnector::from(Arc::new(tls)).connect(name, socket).await.unwrap();
    let executor = hyper_util::rt::TokioExecutor::new();
    let io = hyper_util::rt::TokioIo::new(stream);
    let (sender, running) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(running);
    sender
}

/// S2: a thousand requests of a hundred users over four shared connections.
#[tokio::test]
async fn s2_identities_do_not_mix_on_shared_connections() {
    let hub = TestHub::new().await;
    let authority = hub.hub.keys().own();
    let certs = Arc::new(ServerCerts::default());
    let names = [San::new("localhost")];
    certs.set(None, &authority.serving.issue_server(&names, Validity::days(hub.hub.now(), 2)).unwrap()).unwrap();
    let tls = atoll_pki::server_config(certs, &[b"h2"]).unwrap();
    let server = Server::bind(([127, 0, 0, 1], 0).into(), Arc::new(tls)).await.unwrap();
    let address = server.address().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(server.run(ApiService::new(hub.hub.clone()), stop.clone()));
    let mut senders = Vec::new();
    for _ in 0..4 {
        senders.push(connection(address, &authority.serving.cert_pem()).await);
    }
    for user in 0..100 {
        hub.hub.keys().add_token(&format!("token-{user}"), support::user(&format!("user-{user}")));
    }
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..1000 {
        let mut sender = senders[number % 4].clone();
        tasks.spawn(async move {
            let request = || {
                Request::post(format!("https://localhost{WHOAMI}"))
                    .header("content-type", "application/json")
                    .header("authorization", format!("Bearer token-{}", number % 100))
                    .body(Full::new(Bytes::from_static(b"{}")))
                    .unwrap()
            };
            let mut answer = sender.send_request(request()).await.unwrap();
            while answer.status() == 429 {
                answer = sender.send_request(request()).await.unwrap(); // too many at once: try again
            }
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["status"]["userInfo"]["username"], format!("user-{}", number % 100), "{body}");
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    stop.cancel();
}

/// S16: a viewer reads everything and finds no credential.
#[tokio::test]
async fn s16_no_object_a_viewer_reads_holds_credentials() {
    let hub = TestHub::new().await;
    let a = hub.instance("a").await;
    let kubeconfig = hub
        .hub
        .credentials(&a)
        .await
        .unwrap()
        .kubeconfig("ann", &["system:masters".into()], jiff::SignedDuration::from_hours(1))
        .unwrap()
        .to_yaml()
        .unwrap();
    assert!(kubeconfig.contains("client-key-data"), "the test looks for the right thing");
    hub.hub.add_token("admin", "canary-token", user("x")).await.unwrap();
    for base in ["", "/instances/a"] {
        let secrets = format!("{base}{DEFAULT}/secrets");
        let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": "canary-secret"}});
        hub.post(&Who::Master, &secrets, secret).await.expect(201);
        let accounts = format!("{base}{DEFAULT}/serviceaccounts");
        hub.post(&Who::Master, &accounts, json!({"metadata": {"name": "robot"}})).await.expect(201);
        let token = json!({"metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "robot"}},
                           "type": "kubernetes.io/service-account-token"});
        hub.post(&Who::Master, &secrets, token).await.expect(201);
        hub.bind(base, "view", "jane").await;
        hub.grant(
            base,
            "see-all-but-secrets",
            "joe",
            json!([
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]}]),
        )
        .await;
    }
    let encoded = STANDARD.encode("canary-secret");
    let canaries = [
        "PRIVATE KEY",
        "LS0tLS1CRUdJTiBQUklWQVRF",
        "canary-token",
        "canary-secret",
        &encoded,
        "client-key-data",
        "eyJhbGciOi",
    ];
    for base in ["", "/instances/a"] {
        let instance = if base.is_empty() { hub.hub.root() } else { a.clone() };
        for kind in instance.kinds().iter().filter(|kind| kind.has_verb("list")) {
            let group = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
            let path = format!("{base}{group}/{}/{}", kind.version, kind.plural);
            let secret = &*kind.plural == "secrets";
            let viewers = if secret { vec![Who::User("jane")] } else { vec![Who::User("jane"), Who::User("joe")] };
            for who in viewers {
                let answer = hub.get(&who, &path).await;
                assert!(matches!(answer.code, 200 | 403 | 405), "{path}: {}", answer.code);
                assert!(!secret || answer.code == 403, "viewers do not read Secrets");
                for canary in canaries {
                    assert!(!answer.text.contains(canary), "{path} shows {canary}");
                }
            }
        }
    }
}

async fn token(hub: &TestHub, base: &str, spec: Value) -> String {
    let path = format!("{base}{DEFAULT}/serviceaccounts/robot/token");
    hub.post(&Who::Master, &path, json!({"spec": spec})).await.expect(201)["status"]["token"].as_str().unwrap().into()
}

/// S19: a token counts for its audience, in the instance that issued it.
#[tokio::test]
async fn s19_tokens_count_only_for_their_audience_and_issuer() {
    let hub = TestHub::new().await;
    for name in ["a", "b"] {
        hub.instance(name).await;
        let accounts = format!("/instances/{name}{DEFAULT}/serviceaccounts");
        hub.post(&Who::Master, &accounts, json!({"metadata": {"name": "robot"}})).await.expect(201);
    }
    let own = token(&hub, "/instances/a", json!({})).await;
    let vault = token(&hub, "/instances/a", json!({"audiences": ["vault"]})).await;
    let both = token(&hub, "/instances/a", json!({"audiences": ["vault", "other"]})).await;
    // The same account, but another issuer says so.
    let forged = own.rsplit_once('.').map(|(text, _)| format!("{text}.{}", "A".repeat(86))).unwrap();
    let unsigned = format!("{}.{}.", "eyJhbGciOiJub25lIn0", own.split('.').nth(1).unwrap());
    for (text, base, code) in [
        (&own, "/instances/a", 201),
        (&own, "/instances/b", 401),
        (&own, "", 401),
        (&vault, "/instances/a", 401),
        (&both, "/instances/a", 401),
        (&forged, "/instances/a", 401),
        (&unsigned, "/instances/a", 401),
    ] {
        let answer = hub.post(&Who::Token(text.clone()), &format!("{base}{WHOAMI}"), json!({})).await;
        assert_eq!(answer.code, code, "{base}");
    }
    for (base, text, asked, meant) in [
        ("a", &vault, json!(["vault"]), json!(["vault"])),
        ("a", &vault, json!(["vault", "x"]), json!(["vault"])),
        ("a", &both, json!(["other", "vault"]), json!(["other", "vault"])),
        ("a", &vault, json!(["x"]), Value::Null),
        ("a", &vault, json!([]), Value::Null),
        ("b", &vault, json!(["vault"]), Value::Null),
    ] {
        let path = format!("/instances/{base}/apis/authentication.k8s.io/v1/tokenreviews");
        let review =
            hub.post(&Who::Master, &path, json!({"spec": {"token": text, "audiences": asked}})).await.expect(201);
        assert_eq!(review["status"]["audiences"], meant, "{review}");
        assert_eq!(review["status"]["authenticated"] == true, !meant.is_null(), "{review}");
    }
}

/// All the ways an object can be changed.
async fn changed_every_way(hub: &TestHub, who: &Who, path: &str, whole: &Value, part: &Value, code: u16) {
    let json_patch: Vec<Value> = part
        .as_object()
        .unwrap()
        .iter()
        .map(|(field, value)| json!({"op": "add", "path": format!("/{field}"), "value": value}))
        .collect();
    let mut applied = part.clone();
    applied["apiVersion"] = whole["apiVersion"].clone();
    applied["kind"] = whole["kind"].clone();
    applied["metadata"] = json!({"name": whole["metadata"]["name"]});
    let apply = format!("{path}?fieldManager=test&force=true");
    for (method, path, kind, body) in [
        ("PUT", path, "application/json", whole),
        ("PATCH", path, "application/merge-patch+json", part),
        ("PATCH", path, "application/json-patch+json", &json!(json_patch)),
        ("PATCH", &apply, "application/apply-patch+yaml", &applied),
    ] {
        let answer = hub.call_as(who, method, path, body.clone(), &[("content-type", kind)]).await;
        // The original cannot even merge what has another type, and says so in its own way.
        let merged = kind.contains("apply") && answer.code == 500;
        assert!(answer.code == code || merged, "{method} {kind} {path}: {}", answer.text);
    }
}

/// S20: what cannot be made cannot be made by changing something either.
#[tokio::test]
async fn s20_rights_cannot_be_widened_by_changing_a_role() {
    let hub = TestHub::new().await;
    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["*"]}]);
    hub.grant(
        "",
        "roles",
        "jane",
        json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles",
        "clusterrolebindings", "roles", "rolebindings"], "verbs": ["get", "list", "create", "update", "patch"]}]),
    )
    .await;
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let jane = Who::User("jane");
    let roles = format!("{RBAC}/clusterroles");
    let (api, kind) = ("rbac.authorization.k8s.io/v1", "ClusterRole");
    for wide in [&all, &rules] {
        let role = json!({"apiVersion": api, "kind": kind, "metadata": {"name": "mine"}, "rules": wide});
        assert_eq!(hub.post(&jane, &roles, role).await.code, 403);
    }
    let small = json!({"apiVersion": api, "kind": kind, "metadata": {"name": "mine"}, "rules": []});
    hub.post(&jane, &roles, small).await.expect(201);
    let whole = json!({"apiVersion": api, "kind": kind, "metadata": {"name": "mine"}, "rules": all});
    changed_every_way(&hub, &jane, &format!("{roles}/mine"), &whole, &json!({"rules": all}), 403).await;
    let aggregated = json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]}});
    let mut whole = whole;
    whole["aggregationRule"] = aggregated["aggregationRule"].clone();
    changed_every_way(&hub, &jane, &format!("{roles}/mine"), &whole, &aggregated, 403).await;
    let binding = json!({"metadata": {"name": "b"}, "subjects": [],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    assert_eq!(hub.post(&jane, &format!("{RBAC}/clusterrolebindings"), binding).await.code, 403);
}

/// S20: schemas and quotas hold for every verb and for the subresources.
#[tokio::test]
async fn s20_what_a_schema_or_quota_refuses_no_other_verb_allows() {
    let hub = TestHub::new().await;
    let number = json!({"type": "integer", "maximum": 5});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"replicas": number}, "x-kubernetes-validations": [
            {"rule": "self.replicas != 3", "message": "three is too many"}]},
        "status": {"type": "object", "properties": {"replicas": number}}}});
    let definition = json!({"metadata": {"name": "things.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas"}}}]}});
    hub.post(&Who::Master, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await.expect(201);
    let things = "/apis/example.com/v1/namespaces/default/things";
    let thing = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": spec});
    hub.post(&Who::Master, things, thing(json!({"replicas": 1}))).await.expect(201);
    let path = format!("{things}/one");
    for wrong in [json!({"replicas": 9}), json!({"replicas": 3}), json!({"replicas": "x"})] {
        assert_eq!(hub.post(&Who::Master, things, thing(wrong.clone())).await.code, 422);
        let part = json!({"spec": wrong});
        changed_every_way(&hub, &Who::Master, &path, &thing(wrong), &part, 422).await;
    }
    let status = json!({"status": {"replicas": 9}});
    let answer = hub.call(&Who::Master, "PATCH", &format!("{path}/status"), status).await;
    assert_eq!(answer.code, 422, "{}", answer.text);
    for replicas in [9, 3] {
        let answer =
            hub.call(&Who::Master, "PATCH", &format!("{path}/scale"), json!({"spec": {"replicas": replicas}})).await;
        assert_eq!(answer.code, 422, "{}", answer.text);
    }
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"services.nodeports": "0"}}});
    hub.post(&Who::Master, &format!("{DEFAULT}/resourcequotas"), quota).await.expect(201);
    let service = |kind: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
                                      "spec": {"type": kind, "ports": [{"port": 80}]}})
    };
    let services = format!("{DEFAULT}/services");
    hub.post(&Who::Master, &services, service("ClusterIP")).await.expect(201);
    let part = json!({"spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    changed_every_way(&hub, &Who::Master, &format!("{services}/s"), &service("NodePort"), &part, 403).await;
}

async fn raw(hub: &TestHub, kind: &str, body: Bytes) -> support::Answer {
    let mut request =
        Request::post(format!("{DEFAULT}/configmaps")).header("content-type", kind).body(Full::new(body)).unwrap();
    request.extensions_mut().insert(Identity::master("x"));
    hub.send(request).await
}

/// S22: requests that would exhaust the server are refused.
#[tokio::test]
async fn s22_huge_deep_and_unfolding_bodies_are_refused() {
    let hub = TestHub::new().await;
    let huge = Bytes::from(vec![b'x'; 100 << 20]);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested = format!("{}1{}", "{\"a\":".repeat(50_000), "}".repeat(50_000));
    let mut bomb = format!("a0: &a0 [{}]\n", ["x"; 10].join(","));
    for level in 1..10 {
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(",")));
    }
    for (kind, body, code) in [
        ("application/json", huge, 413),
        ("application/json", Bytes::from(deep.clone()), 400),
        ("application/json", Bytes::from(nested.clone()), 400),
        ("application/yaml", Bytes::from(deep), 400),
        ("application/yaml", Bytes::from(nested), 400),
        ("application/yaml", Bytes::from(bomb), 400),
    ] {
        let answer = raw(&hub, kind, body).await;
        assert_eq!(answer.code, code, "{kind}: {:.200}", answer.text);
    }
    for path in ["/version", "/healthz", "/api/v1/configmaps"] {
        let answer = hub.get(&Who::Token("x".repeat(1 << 20)), path).await;
        assert_eq!(answer.code, 401, "{path}");
    }
    let selector = format!("/api/v1/configmaps?labelSelector={}", "a=b,".repeat(10_000));
    assert_eq!(hub.get(&Who::Nobody, &selector).await.code, 403);
    assert!(hub.get(&Who::Master, &selector).await.code < 500);
    hub.get(&Who::Master, "/version").await.expect(200);
}

/// S22: ten thousand watches and readers that do not read; others are served as before.
#[tokio::test]
async fn s22_ten_thousand_watches_that_nobody_reads_harm_nobody() {
    let hub = TestHub::new().await;
    let limits = Limits { watches: 10_000, ..Limits::default() };
    hub.hub.root().set_limits(limits);
    let watch = || {
        let mut request = Request::get("/api/v1/configmaps?watch=true").body(String::new()).unwrap();
        request.extensions_mut().insert(Identity::master("x"));
        ApiService::new(hub.hub.clone()).oneshot(request)
    };
    let mut open = Vec::new();
    for _ in 0..10_000 {
        let answer = watch().await.unwrap();
        assert_eq!(answer.status(), 200);
        open.push(answer);
    }
    assert_eq!(watch().await.unwrap().status(), 429);
    for number in 0..100 {
        let map = json!({"metadata": {"name": format!("m{number}")}, "data": {"x": "x".repeat(1000)}});
        hub.post(&Who::Master, &format!("{DEFAULT}/configmaps"), map).await.expect(201);
    }
    // One that reads now gets everything: nothing was lost by waiting.
    let mut reader = open.pop().unwrap().into_body();
    let mut text = String::new();
    while text.matches("\"ADDED\"").count() < 100 {
        let frame = reader.frame().await.unwrap().map_err(|_| "frame").unwrap();
        text.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap()));
    }
    drop(open);
    assert_eq!(watch().await.unwrap().status(), 200);
}
