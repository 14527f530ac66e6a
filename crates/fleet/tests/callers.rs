//! Whose name goes to a member through `clusters/{name}/proxy`, whatever callers send and whatever they share.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use atoll_apiserver::{ApiService, Identity, Server};
use atoll_pki::{CaBundle, San, ServerCerts, Validity};
use futures::StreamExt as _;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use proptest::prelude::Strategy;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use support::{World, clusters, core};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

const PROXY: &str = "/instances/fleet/apis/cluster.karmada.io/v1alpha1/clusters/out/proxy";

/// What a member was sent, by path.
type Seen = Arc<Mutex<HashMap<String, HeaderMap>>>;

/// A member that answers everything and remembers what it was sent; its address.
async fn member() -> (Seen, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (seen, address) = (Seen::default(), format!("http://{}", listener.local_addr().unwrap()));
    let own = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let own = own.clone();
            let answer = service_fn(move |request: Request<Incoming>| {
                own.lock().insert(request.uri().to_string(), request.headers().clone());
                async { Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())) }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
    });
    (seen, address)
}

/// An instance with the member, and the port of its hub, where each of these has a token of their own name.
struct Callers {
    world: World,
    seen: Seen,
    address: std::net::SocketAddr,
    stop: CancellationToken,
}

impl Callers {
    async fn new(users: impl Iterator<Item = String>) -> Self {
        let (seen, address) = member().await;
        let world = World::new(0).await;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "out", "namespace": "karmada-cluster"},
            "stringData": {"token": "of-the-impersonator"}});
        world.instance.create(&core("secrets"), Some("karmada-cluster"), &secret).await.unwrap();
        let cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "out"},
            "spec": {"syncMode": "Push", "apiEndpoint": address, "impersonatorSecretRef": {"namespace": "karmada-cluster", "name": "out"}}});
        world.instance.create(&clusters(), None, &cluster).await.unwrap();
        for user in users {
            world.hub.keys().add_token(&user, Identity::master(&user));
        }
        let certs = Arc::new(ServerCerts::default());
        let validity = Validity::days(world.hub.now(), 1);
        let pair = world.hub.keys().own().serving.issue_server(&[San::new("localhost")], validity).unwrap();
        certs.set(None, &pair).unwrap();
        let tls = Arc::new(atoll_pki::server_config(certs, &[b"h2", b"http/1.1"]).unwrap());
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), tls).await.unwrap();
        let (address, stop) = (server.address().unwrap(), CancellationToken::new());
        tokio::spawn(server.run(ApiService::new(world.hub.clone()), stop.clone()));
        Self { world, seen, address, stop }
    }

    /// A connection to the hub that speaks one protocol.
    async fn connect(&self, protocol: &[u8]) -> TokioIo<tokio_rustls::client::TlsStream<TcpStream>> {
        let trust = CaBundle::from_pem(&self.world.hub.keys().own().serving.cert_pem()).unwrap();
        let mut tls = atoll_pki::client_config(&trust, None).unwrap();
        tls.alpn_protocols = vec![protocol.to_vec()];
        let socket = TcpStream::connect(self.address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(tls));
        let stream = connector.connect("localhost".try_into().unwrap(), socket).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
        TokioIo::new(stream)
    }

    fn values(&self, path: &str, name: &str) -> Vec<String> {
        let seen = self.seen.lock();
        let headers = seen.get(path).unwrap_or_else(|| panic!("{path} was not asked"));
        headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Callers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s2_callers_that_share_an_http2_connection_are_never_taken_for_one_another() {
    let callers = Callers::new((0..100).map(|number| format!("user-{number}"))).await;
    let stream = callers.connect(b"h2").await;
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let asking = (0..1000).map(|number| {
        let mut sender = sender.clone();
        async move {
            let (user, path) = (format!("user-{}", number % 100), format!("/echo/{number}"));
            let request = Request::get(format!("https://localhost{PROXY}{path}"));
            let request = request.header("authorization", format!("Bearer {user}"));
            let answer = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
            assert_eq!(answer.status(), 200, "{path}");
            answer.into_body().collect().await.unwrap();
            (user, path)
        }
    });
    let asked: Vec<(String, String)> = futures::stream::iter(asking).buffer_unordered(100).collect().await;
    assert_eq!(asked.len(), 1000);
    for (user, path) in &asked {
        assert_eq!(callers.values(path, "impersonate-user"), [user.as_str()], "{path}");
        assert_eq!(callers.values(path, "authorization"), ["Bearer of-the-impersonator"], "{path}");
    }
}

/// A header with what says who somebody is, in a spelling that is none of Kubernetes' own, or one of no meaning here.
fn header() -> impl Strategy<Value = String> {
    use proptest::prelude::any;
    const NAMES: [&str; 9] = [
        "impersonate_user",
        "impersonate_group",
        "impersonate_extra-scopes",
        "x-remote-user",
        "x_remote-group",
        "x-remote_extra-scopes",
        "x-forwarded-client-cert",
        "proxy-authorization",
        "x-of-the-caller",
    ];
    let letters = proptest::collection::vec(any::<bool>(), 32);
    (proptest::sample::select(&NAMES[..]), letters).prop_map(|(name, upper)| {
        let letters = name.chars().zip(upper);
        letters.map(|(letter, upper)| if upper { letter.to_ascii_uppercase() } else { letter }).collect()
    })
}

#[test]
fn s1_a_member_sees_only_who_the_instance_says_the_caller_is_whatever_is_sent() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let callers = runtime.block_on(Callers::new(std::iter::once("jane".to_owned())));
    let sets = (proptest::collection::vec(header(), 0..12), proptest::collection::vec(header(), 0..4));
    let mut runner = TestRunner::new(Config { cases: 128, failure_persistence: None, ..Config::default() });
    let number = std::cell::Cell::new(0);
    let tried = runner.run(&sets, |(sent, named)| {
        number.set(number.get() + 1);
        let path = format!("/plain/{}", number.get());
        let mut request = Request::get(format!("{PROXY}{path}")).header("host", "localhost");
        request = request.header("authorization", "Bearer jane");
        for (at, name) in sent.iter().enumerate() {
            request = request.header(name, format!("sent-{at}"));
        }
        for list in [named.join(", "), "impersonate-user, authorization".to_owned()] {
            request = request.header("connection", &list).header("trailer", list);
        }
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        runtime.block_on(async {
            let stream = callers.connect(b"http/1.1").await;
            let shake =
                hyper::client::conn::http1::Builder::new().title_case_headers(number.get() % 2 == 0).handshake(stream);
            let (mut sender, connection) = shake.await.unwrap();
            tokio::spawn(connection);
            assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
        });
        assert_eq!(callers.values(&path, "impersonate-user"), ["jane"]);
        assert_eq!(callers.values(&path, "impersonate-group"), ["system:masters"]);
        assert_eq!(callers.values(&path, "authorization"), ["Bearer of-the-impersonator"]);
        let passes = |name: &String| {
            name.eq_ignore_ascii_case("x-of-the-caller") && !named.iter().any(|other| other.eq_ignore_ascii_case(name))
        };
        let wanted: Vec<String> =
            sent.iter().enumerate().filter(|(_, name)| passes(name)).map(|(at, _)| format!("sent-{at}")).collect();
        assert_eq!(callers.values(&path, "x-of-the-caller"), wanted);
        let seen = callers.seen.lock();
        let others = seen[&path].iter().filter(|(name, _)| name.as_str() != "x-of-the-caller");
        for (name, value) in others {
            assert!(!value.to_str().unwrap().starts_with("sent-"), "{name}: {value:?}");
            assert!(!matches!(name.as_str(), "connection" | "trailer"), "{name}: {value:?}");
        }
        Ok(())
    });
    tried.unwrap();
    drop(callers);
}
