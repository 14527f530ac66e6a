//! The way through `clusters/{name}/proxy` to a member that may be hostile: only the caller's name goes in, and nothing
//! that leads elsewhere comes back.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use atoll_apiserver::{ApiService, Identity};
use atoll_pki::{Ca, San, ServerCerts, Validity};
use atoll_runtime::{BodyStream, Endpoint, Patch};
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::json;
use support::{World, clusters, core};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// One request as the member saw it: on which connection, where to, and its headers.
type Seen = (usize, String, Vec<(String, String)>);

/// A member that answers as paths say and remembers what it was asked.
#[derive(Clone, Default)]
struct Member {
    connections: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Member {
    /// Starts one; its address.
    async fn start(tls: Option<TlsAcceptor>) -> (Self, String) {
        let (member, listener) = (Self::default(), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let scheme = if tls.is_some() { "https" } else { "http" };
        let address = format!("{scheme}://{}", listener.local_addr().unwrap());
        let own = member.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = own.connections.fetch_add(1, Ordering::Relaxed);
                let (own, tls) = (own.clone(), tls.clone());
                tokio::spawn(async move {
                    let Some(tls) = tls else { return own.serve(number, stream).await };
                    if let Ok(stream) = tls.accept(stream).await {
                        own.serve(number, stream).await;
                    }
                });
            }
        });
        (member, address)
    }

    async fn serve<S: AsyncRead + AsyncWrite + Unpin>(self, number: usize, mut stream: S) {
        let mut waiting = Vec::new();
        loop {
            while let Some(end) = waiting.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8(waiting.drain(..end + 4).collect()).unwrap();
                let mut lines = head.lines();
                let path = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
                let headers = lines.filter_map(|line| line.split_once(": "));
                let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
                let answer = match path.split('?').next().unwrap() {
                    "/redirect" => {
                        "307 Temporary Redirect\r\nlocation: http://169.254.169.254/latest\r\ncontent-length: 0"
                    }
                    "/refused" => "403 Forbidden\r\ncontent-length: 0",
                    "/led-away" => "302 Found\r\nlocation: //169.254.169.254/\r\ncontent-length: 0",
                    _ => "200 OK\r\nset-cookie: a=b\r\ncontent-length: 0",
                };
                self.seen.lock().push((number, path, headers));
                if stream.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).await.is_err() {
                    return;
                }
            }
            if !matches!(stream.read_buf(&mut waiting).await, Ok(1..)) {
                return;
            }
        }
    }

    fn asked(&self, path: &str) -> Seen {
        self.seen.lock().iter().find(|seen| seen.1 == path).cloned().unwrap_or_else(|| panic!("{path} was not asked"))
    }
}

async fn world() -> (World, Member) {
    world_of(Member::start(None).await).await
}

async fn world_of((member, address): (Member, String)) -> (World, Member) {
    let world = World::new(0).await;
    let home = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "karmada-cluster"}});
    world.instance.ensure(&core("namespaces"), None, &home).await.unwrap();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "out", "namespace": "karmada-cluster"}, "stringData": {"token": "of-the-impersonator"}});
    world.instance.create(&core("secrets"), Some("karmada-cluster"), &secret).await.unwrap();
    let cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "out"},
        "spec": {"syncMode": "Push", "apiEndpoint": address, "impersonatorSecretRef": {"namespace": "karmada-cluster", "name": "out"}}});
    world.instance.create(&clusters(), None, &cluster).await.unwrap();
    (world, member)
}

/// Asks the member through the instance in somebody's name.
async fn ask(world: &World, user: &str, path: &str, headers: &[(&str, &str)]) -> Response<BodyStream> {
    let identity = Identity::master(user);
    let way = Endpoint::in_process(ApiService::new(world.hub.clone()), "fleet", "test", move |extensions| {
        extensions.insert(identity.clone());
    });
    let mut request = Request::get(format!("/apis/cluster.karmada.io/v1alpha1/clusters/out/proxy{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    way.transport().send(request.body(Bytes::new()).unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn s1_a_member_sees_only_who_the_instance_says_the_caller_is() {
    let (world, member) = world().await;
    let smuggled = [
        ("impersonate_user", "admin"),
        ("Impersonate_Group", "everything"),
        ("x-remote-user", "admin"),
        ("X-Remote-Extra-Scopes", "all"),
        ("x-forwarded-client-cert", "x"),
        ("authorization", "Bearer of-the-caller"),
        ("connection", "impersonate-user, authorization"),
        ("trailer", "impersonate-group"),
        ("accept", "application/json"),
    ];
    let answer = ask(&world, "jane", "/plain?a=1", &smuggled).await;
    let (status, body) = (answer.status(), answer.into_body().collect::<Vec<_>>().await);
    assert_eq!(status, 200, "{body:?}");
    let (_, _, headers) = member.asked("/plain?a=1");
    let said: BTreeMap<_, _> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!((said["impersonate-user"], said["authorization"]), ("jane", "Bearer of-the-impersonator"));
    assert_eq!(said["accept"], "application/json");
    for (name, value) in &headers {
        assert!(
            !["admin", "everything", "all", "x", "Bearer of-the-caller"].contains(&value.as_str()),
            "{name}: {value}"
        );
        assert!(!name.starts_with("x-") && !name.contains('_'), "{name}: {value}");
    }
    assert_eq!(headers.iter().filter(|(name, _)| name == "impersonate-user").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn s2_callers_share_connections_and_are_never_taken_for_one_another() {
    let (world, member) = world().await;
    let world = &world;
    let asking = (0..1000).map(|number| async move {
        let (user, path) = (format!("user-{}", number % 100), format!("/echo/{number}"));
        assert_eq!(ask(world, &user, &path, &[]).await.status(), 200);
        (user, path)
    });
    let asked: Vec<(String, String)> = futures::stream::iter(asking).buffer_unordered(50).collect().await;
    let seen = member.seen.lock().clone();
    let by_path: BTreeMap<_, _> = seen.iter().map(|(_, path, headers)| (path.as_str(), headers)).collect();
    for (user, path) in &asked {
        assert!(by_path[path.as_str()].contains(&("impersonate-user".to_owned(), user.clone())), "{path} of {user}");
    }
    let connections = member.connections.load(Ordering::Relaxed);
    assert!(connections < 500, "{connections} connections for 1000 requests");
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_connection_whose_upgrade_was_refused_is_used_for_nothing_else() {
    let (world, member) = world().await;
    let upgrade = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    for (path, code) in [("/refused", 403), ("/led-away", 302)] {
        let answer = ask(&world, "jane", path, &upgrade).await;
        assert_eq!((answer.status().as_u16(), &answer.headers()["connection"]), (code, &"close".parse().unwrap()));
        assert!(!answer.headers().contains_key("location"), "{path}");
    }
    ask(&world, "john", "/after", &[]).await;
    let (later, _, _) = member.asked("/after");
    for path in ["/refused", "/led-away"] {
        assert_ne!(member.asked(path).0, later, "the connection of {path} went on");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_a_redirect_is_not_followed_and_does_not_lead_elsewhere() {
    let (world, member) = world().await;
    let answer = ask(&world, "jane", "/redirect", &[]).await;
    assert_eq!(answer.status(), 307);
    assert!(!answer.headers().contains_key("location"));
    assert!(!ask(&world, "jane", "/plain", &[]).await.headers().contains_key("set-cookie"));
    assert_eq!(member.seen.lock().len(), 2, "each was asked once");
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_certificates_are_checked_again_as_soon_as_the_cluster_asks_for_it() {
    let (ca, certs) = (Ca::generate("unknown", jiff::Timestamp::now()).unwrap(), Arc::new(ServerCerts::default()));
    let validity = Validity::days(jiff::Timestamp::now(), 1);
    certs.set(None, &ca.issue_server(&[San::new("127.0.0.1")], validity).unwrap()).unwrap();
    let tls = TlsAcceptor::from(Arc::new(atoll_pki::server_config(certs, &[b"http/1.1"]).unwrap()));
    let (world, member) = world_of(Member::start(Some(tls)).await).await;
    for (number, (skip, code)) in [(true, 200), (false, 503), (true, 200)].into_iter().enumerate() {
        let spec = json!({"spec": {"insecureSkipTLSVerification": skip}});
        world.instance.patch(&clusters(), None, "out", "", Patch::Merge, &spec).await.unwrap();
        let path = format!("/{number}");
        assert_eq!(ask(&world, "jane", &path, &[]).await.status(), code, "{skip}");
        assert_eq!(member.seen.lock().iter().any(|seen| seen.1 == path), code == 200);
    }
}
