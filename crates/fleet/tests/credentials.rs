//! Members over real TLS whose credentials or certificates stop to fit after they joined.
#![allow(clippy::unwrap_used)]

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atoll_apiserver::{ApiService, Line, Server};
use atoll_fleet::{JoinOptions, RemoteMembers};
use atoll_meta::Status;
use atoll_pki::{Ca, San, ServerCerts, Validity};
use atoll_runtime::{BodyStream, Endpoint, Patch, Transport, WatchEvent};
use base64::Engine as _;
use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use support::{NS, World, clusters, core, deployment, deployments, policies, policy, works};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::Service as _;

const HOME: Option<&str> = Some("karmada-cluster");
/// A name under which only proxies find the member.
const FAR: &str = "member.invalid";

/// Member `m1` of a world behind TLS.
struct Served {
    address: SocketAddr,
    url: String,
    certs: Arc<ServerCerts>,
    lines: Arc<Mutex<Vec<Line>>>,
    /// Whether whoever still gets through came before its certificate was replaced.
    cuts: Arc<AtomicBool>,
    _stop: DropGuard,
}

impl Served {
    async fn start(world: &World, ca: &Ca) -> Self {
        let certs = Arc::new(ServerCerts::default());
        let mut tls = atoll_pki::server_config(certs.clone(), &[b"http/1.1"]).unwrap();
        // Who comes back after a restart cannot go on where it stopped.
        tls.send_tls13_tickets = 0;
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), Arc::new(tls)).await.unwrap();
        let address = server.address().unwrap();
        let url = format!("https://{address}/instances/m1");
        let (lines, stop) = (Arc::<Mutex<Vec<Line>>>::default(), CancellationToken::new());
        let (service, known) = (ApiService::new(world.hub.clone()), lines.clone());
        let cuts = Arc::new(AtomicBool::new(false));
        let cutting = cuts.clone();
        let noted = tower::service_fn(move |request: Request<hyper::body::Incoming>| {
            let line = request.extensions().get::<Line>().unwrap();
            known.lock().push(line.clone());
            if cutting.load(Ordering::Relaxed) {
                line.cut();
            }
            service.clone().call(request)
        });
        tokio::spawn(server.run(noted, stop.clone()));
        let served = Self { address, url, certs, lines, cuts, _stop: stop.drop_guard() };
        served.show(ca, true);
        served
    }

    /// Shows a certificate of this authority from now on, as after a restart: all connections end. Unless it is `trusted`
    /// nobody should come over new ones.
    fn show(&self, ca: &Ca, trusted: bool) {
        let validity = Validity::days(jiff::Timestamp::now(), 1);
        let names = ["127.0.0.1", FAR].map(San::new);
        self.certs.set(None, &ca.issue_server(&names, validity).unwrap()).unwrap();
        self.cuts.store(!trusted, Ordering::Relaxed);
        for line in self.lines.lock().drain(..) {
            line.cut();
        }
    }
}

/// A world whose member `m1` has joined over TLS and holds Deployment `web`.
async fn world(ca: &Ca) -> (World, Served) {
    let mut world = World::new(1).await;
    let served = Served::start(&world, ca).await;
    world
        .run(|options| {
            options.members = Arc::new(RemoteMembers::default());
            options.probe_interval = Duration::from_millis(200);
            options.probe_threshold = Duration::from_millis(400);
        })
        .await;
    let options = JoinOptions {
        api_endpoint: served.url.clone(),
        ca_bundle: Some(ca.cert_pem().into_bytes()),
        ..JoinOptions::default()
    };
    atoll_fleet::join(&world.instance, world.member("m1"), "m1", options).await.unwrap();
    world.readiness("m1", "True").await;
    world.instance.create(&policies(), NS, &policy("p", json!({}))).await.unwrap();
    world.instance.create(&deployments(), NS, &deployment("web", 1)).await.unwrap();
    world.in_member("m1", &deployments(), "web", |_| true).await;
    (world, served)
}

/// Waits until the Cluster says what is wrong, and the work why it waits; meanwhile the copy stays as it was.
async fn troubled(world: &World, replicas: i64, parts: &[&str], work_says: &str) {
    world
        .eventually(&format!("the Cluster tells {parts:?}"), async || {
            let cluster = world.instance.get(&clusters(), None, "m1").await.unwrap();
            let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let ready = conditions.iter().find(|one| one["type"] == "Ready").unwrap();
            ready["status"] == "False"
                && ready["reason"] == "ClusterNotReachable"
                && parts.iter().all(|part| ready["message"].as_str().unwrap().contains(part))
        })
        .await;
    let before = world.member("m1").get(&deployments(), NS, "web").await.unwrap();
    let edit = json!({"spec": {"replicas": replicas}});
    world.instance.patch(&deployments(), NS, "web", "", Patch::Merge, &edit).await.unwrap();
    world
        .eventually(&format!("the work tells {work_says}"), async || {
            let works = world.instance.list(&works(), Some("karmada-es-m1"), "").await.unwrap().items;
            let mut conditions = works.iter().filter_map(|work| work["status"]["conditions"].as_array()).flatten();
            conditions.any(|one| one["status"] == "False" && one["message"].as_str().unwrap().contains(work_says))
        })
        .await;
    assert_eq!(world.member("m1").get(&deployments(), NS, "web").await.unwrap(), before);
}

/// Puts something right in the credentials; the copy follows without having been deleted.
async fn corrected(world: &World, key: &str, value: &str, replicas: i64) {
    let before = world.member("m1").get(&deployments(), NS, "web").await.unwrap();
    put(world, key, value).await;
    world.readiness("m1", "True").await;
    let after = world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == replicas).await;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
}

async fn put(world: &World, key: &str, value: &str) {
    let data = json!({"data": {key: base64::engine::general_purpose::STANDARD.encode(value)}});
    world.instance.patch(&core("secrets"), HOME, "m1", "", Patch::Merge, &data).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_does_not_accept_its_token_any_more_says_so_until_the_secret_is_corrected() {
    let ca = Ca::generate("one", jiff::Timestamp::now()).unwrap();
    let (world, _served) = world(&ca).await;
    let (member, account) = (world.member("m1"), atoll_api::names::service_account("m1"));
    member.delete(&core("serviceaccounts"), HOME, &account, &Value::Null).await.unwrap();
    let parts = ["does not accept the token in Secret karmada-cluster/m1", "401 Unauthorized"];
    troubled(&world, 2, &parts, "Unauthorized").await;
    let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}});
    member.create(&core("serviceaccounts"), HOME, &object).await.unwrap();
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = member.create_sub(&core("serviceaccounts"), HOME, &account, "token", &request).await.unwrap();
    corrected(&world, "token", answer["status"]["token"].as_str().unwrap(), 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_certificate_and_authority_do_not_fit_any_more_says_so_until_they_do() {
    let [one, other] = ["one", "other"].map(|name| Ca::generate(name, jiff::Timestamp::now()).unwrap());
    let (world, served) = world(&one).await;
    let parts = ["certificate of https://127.0.0.1:", "UnknownIssuer", "caBundle in Secret karmada-cluster/m1"];
    // The member gets a certificate from somewhere else.
    served.show(&other, false);
    troubled(&world, 2, &parts, "UnknownIssuer").await;
    served.show(&other, true);
    corrected(&world, "caBundle", &other.cert_pem(), 2).await;
    // Somebody puts a wrong authority into the Secret.
    put(&world, "caBundle", &one.cert_pem()).await;
    troubled(&world, 3, &parts, "UnknownIssuer").await;
    corrected(&world, "caBundle", &other.cert_pem(), 3).await;
    // The member itself is put right.
    served.show(&one, false);
    troubled(&world, 4, &parts, "UnknownIssuer").await;
    served.show(&other, true);
    world.readiness("m1", "True").await;
    world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == 4).await;
}

/// A member that fills in no tokens itself.
struct Bare(Arc<dyn Transport>);

#[async_trait::async_trait]
impl Transport for Bare {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        let plain = |body: Bytes| {
            String::from_utf8(body.to_vec()).unwrap().replace("kubernetes.io/service-account-token", "Opaque").into()
        };
        self.0.send(request.map(plain)).await
    }
}

/// Fills in tokens as controllers of a member do.
async fn fill(member: Endpoint) {
    let mut news = member.watch(&core("secrets"), HOME, "", "").await.unwrap();
    while let Some(Ok(event)) = news.next().await {
        if let WatchEvent::Added(secret) = event {
            let (name, token) =
                (secret["metadata"]["name"].as_str().unwrap(), json!({"stringData": {"token": "filled"}}));
            member.patch(&core("secrets"), HOME, name, "", Patch::Merge, &token).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_come_from_who_fills_them_in_and_are_asked_for_where_nobody_does() {
    let world = World::new(2).await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    world.member("m1").create(&core("serviceaccounts"), Some("kube-system"), &account).await.unwrap();
    let filling = tokio::spawn(fill(world.member("m1").clone()));
    for name in ["m1", "m2"] {
        let bare = Endpoint::new(name, Arc::new(Bare(world.member(name).transport().clone())), "test");
        atoll_fleet::join(&world.instance, &bare, name, JoinOptions::default()).await.unwrap();
        for secret in [name.to_owned(), atoll_api::names::impersonator_secret(name)] {
            let secret = world.instance.get(&core("secrets"), HOME, &secret).await.unwrap();
            let token = secret["data"]["token"].as_str().unwrap();
            let token = base64::engine::general_purpose::STANDARD.decode(token).unwrap();
            assert_eq!(token == b"filled", name == "m1", "{name}: {}", String::from_utf8_lossy(&token));
            assert!(!token.is_empty());
        }
    }
    filling.abort();
}

/// Carries what follows a request for a tunnel, over HTTP or SOCKS, to the member.
async fn carry<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, member: SocketAddr) -> std::io::Result<()> {
    let mut read = vec![stream.read_u8().await?];
    if read == [5] {
        let mut methods = vec![0; stream.read_u8().await?.into()];
        stream.read_exact(&mut methods).await?;
        stream.write_all(&[5, 0]).await?;
        // A name follows, which the proxy is to resolve.
        let mut wanted = vec![0; 5 + FAR.len() + 2];
        stream.read_exact(&mut wanted).await?;
        assert_eq!((&wanted[..4], &wanted[5..5 + FAR.len()]), (&[5, 1, 0, 3][..], FAR.as_bytes()));
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    } else {
        while !read.ends_with(b"\r\n\r\n") {
            read.push(stream.read_u8().await?);
        }
        assert!(read.starts_with(format!("CONNECT {FAR}:443 ").as_bytes()), "{}", String::from_utf8_lossy(&read));
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    }
    tokio::io::copy_bidirectional(&mut stream, &mut TcpStream::connect(member).await?).await.map(drop)
}

/// A proxy for the member, behind TLS if it has a certificate; its address.
async fn proxy(member: SocketAddr, certs: Option<Arc<ServerCerts>>) -> SocketAddr {
    let tls = certs.map(|certs| TlsAcceptor::from(Arc::new(atoll_pki::server_config(certs, &[]).unwrap())));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let tls = tls.clone();
            tokio::spawn(async move {
                match tls {
                    Some(tls) => carry(tls.accept(stream).await?, member).await,
                    None => carry(stream, member).await,
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn members_behind_proxies_of_every_kind_are_served() {
    let ca = Ca::generate("one", jiff::Timestamp::now()).unwrap();
    let (world, served) = world(&ca).await;
    let lead = async |way: Value, ready: &str| {
        world.instance.patch(&clusters(), None, "m1", "", Patch::Merge, &json!({"spec": way})).await.unwrap();
        world.readiness("m1", ready).await;
    };
    lead(json!({"apiEndpoint": format!("https://{FAR}/instances/m1")}), "False").await;
    for (replicas, scheme) in (2_i64..).zip(["http", "https", "socks5"]) {
        let certs = (scheme == "https").then(|| served.certs.clone());
        let proxy = format!("{scheme}://{}", proxy(served.address, certs).await);
        lead(json!({"proxyURL": proxy}), "True").await;
        let edit = json!({"spec": {"replicas": replicas}});
        world.instance.patch(&deployments(), NS, "web", "", Patch::Merge, &edit).await.unwrap();
        world.in_member("m1", &deployments(), "web", |copy| copy["spec"]["replicas"] == replicas).await;
        lead(json!({"proxyURL": format!("{scheme}://127.0.0.1:1")}), "False").await;
    }
}
