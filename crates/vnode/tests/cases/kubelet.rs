//! F: logs, exec and metrics through the kubelet API of virtual nodes, and who may have them.
//! (No tests exist for this in the original, which asks nobody who they are.)

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use atoll_apiserver::{Body, Connect, Instance, Visit, response};
use atoll_meta::Status;
use atoll_pki::{Ca, CaBundle, PemPair, Validity};
use atoll_stream::{ExecOptions, Outcome, Purpose, Session};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::stage::*;

/// Plays the kubelets of the workers.
struct Kubelets;

#[async_trait::async_trait]
impl Connect for Kubelets {
    async fn connect(&self, mut visit: Visit) -> Result<http::Response<Body>, Status> {
        let query = visit.request.uri().query().unwrap_or_default().to_owned();
        if visit.target.subresource == "log" {
            assert!(visit.request.headers().get("authorization").is_none(), "credentials stay where they are");
            return Ok(response(200, "text/plain", format!("{} {} {query}\n", visit.instance.name, visit.target.name)));
        }
        let options = ExecOptions::from_query(Some(&query));
        let (answer, session) = atoll_stream::accept(&mut visit.request, Purpose::Exec(options))
            .map_err(|error| Status::bad_request(error.message))?;
        tokio::spawn(async move {
            let Ok(Session::Exec(mut session)) = session.await else { return };
            if let Some(stdout) = session.stdout.as_mut() {
                stdout.write_all(format!("ran {query}").as_bytes()).await.unwrap();
            }
            let code = if query.contains("command=fail") { 3 } else { 0 };
            session.finish(Outcome::of_exit_code(code)).await;
        });
        Ok(answer.map(|()| Body::empty()))
    }

    fn serves(&self, instance: &Instance) -> bool {
        instance.name.starts_with('w')
    }
}

/// A leased node with a running pod, whose kubelet API is served at an address.
pub struct Play {
    pub stage: Stage,
    pub address: SocketAddr,
    serving: Arc<Ca>,
    clients: Ca,
}

impl Play {
    /// Opens the clusters; nobody serves yet.
    pub async fn open(ip: &str) -> Self {
        let stage = Stage::open().await;
        let now = stage.now();
        let serving = Arc::new(Ca::generate("serving", now).unwrap());
        let clients = Ca::generate("clients", now).unwrap();
        Self { stage, address: SocketAddr::new(ip.parse().unwrap(), 0), serving, clients }
    }

    /// How the kubelet API is served.
    pub fn proxier(&self) -> atoll_vnode::ProxierOptions {
        atoll_vnode::ProxierOptions {
            listen: self.address.ip(),
            advertise: self.address.ip(),
            names: Vec::new(),
            ca: self.serving.clone(),
            clients: Some(CaBundle::from_pem(&self.clients.cert_pem()).unwrap()),
            audiences: Vec::new(),
        }
    }

    /// The authority of callers.
    pub fn vouches(&self) -> String {
        self.clients.cert_pem()
    }

    /// Leases a node and has a pod run there, with the workers' kubelets played.
    pub async fn begin(&mut self, manager: &atoll_vnode::Manager) {
        let stage = &self.stage;
        for sub in atoll_vnode::STREAMS {
            let connector = atoll_vnode::connector(manager.clone(), "compute", Some(Arc::new(Kubelets)));
            stage.hub.add_connector("", "pods", sub, connector);
        }
        make_node(&stage.w1, "n1", "4", "8Gi").await;
        make_policy(&stage.w1, "p1", "w1", json!({})).await;
        stage.bind("w1", json!({})).await;
        until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
        make_pod(&stage.compute, &pod("web", "vnode-w1-n1", "1")).await;
        let name = below("default", "web");
        until_there(&stage.w1, &pods(), Some(MOUNT), &name).await;
        run(&stage.w1, MOUNT, &name, "n1").await;
        until(&stage.compute, &pods(), Some("default"), "web", |pod| {
            pod.is_some_and(|pod| pod["status"]["phase"] == "Running")
        })
        .await;
    }

    /// Learns the port from the virtual node, once it announces our address.
    pub async fn arrive(&mut self) {
        let own = self.address.ip().to_string();
        let node = until(&self.stage.compute, &nodes(), None, "vnode-w1-n1", |node| {
            node.is_some_and(|node| node["status"]["addresses"][0]["address"] == own)
        })
        .await
        .unwrap();
        let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64().unwrap();
        self.address.set_port(port as u16);
    }
}

/// Everything in one process.
async fn play(ip: &str) -> Play {
    let mut play = Play::open(ip).await;
    let mut options = play.stage.options();
    options.proxier = Some(play.proxier());
    let manager = atoll_vnode::Manager::start(options, play.stage.stop.child_token()).await;
    play.begin(&manager).await;
    play.arrive().await;
    play
}

/// As whom a call is made.
#[derive(Clone)]
pub enum As {
    Nobody,
    Certificate(PemPair),
    Token(String),
}

impl Play {
    pub fn certificate(&self, ca: &Ca, user: &str, groups: &[&str]) -> As {
        let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        As::Certificate(ca.issue_client(user, &groups, Validity::days(self.stage.now(), 1)).unwrap())
    }

    pub fn admin(&self) -> As {
        self.certificate(&self.clients, "apiserver", &["system:masters"])
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        caller: &As,
        upgrade: bool,
    ) -> http::Response<hyper::body::Incoming> {
        let trust = CaBundle::from_pem(&self.serving.cert_pem()).unwrap();
        let pair = match caller {
            As::Certificate(pair) => Some(pair),
            _ => None,
        };
        let mut config = atoll_pki::client_config(&trust, pair).unwrap();
        // The hub's clock starts in 2026; certificates must not be judged by the clock of the host.
        config.time_provider = Arc::new(Fixed(self.stage.now()));
        let socket = tokio::net::TcpStream::connect(self.address).await.unwrap();
        let name = rustls::pki_types::ServerName::from(self.address.ip());
        let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection.with_upgrades());
        let mut request = http::Request::builder().method(method).uri(path).header("host", "kubelet");
        if let As::Token(token) = caller {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if upgrade {
            request = request
                .header("connection", "Upgrade")
                .header("upgrade", "websocket")
                .header("sec-websocket-version", "13")
                .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
                .header("sec-websocket-protocol", "v4.channel.k8s.io");
        }
        sender.send_request(request.body(Empty::<bytes::Bytes>::new()).unwrap()).await.unwrap()
    }

    pub async fn get(&self, path: &str, caller: &As) -> (u16, String) {
        let answer = self.send("GET", path, caller, false).await;
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[derive(Debug)]
struct Fixed(jiff::Timestamp);

impl rustls::time_provider::TimeProvider for Fixed {
    fn current_time(&self) -> Option<rustls::pki_types::UnixTime> {
        Some(rustls::pki_types::UnixTime::since_unix_epoch(Duration::from_secs(self.0.as_second() as u64)))
    }
}

const PATHS: [&str; 16] = [
    "/",
    "/pods",
    "/runningpods/",
    "/healthz",
    "/configz",
    "/logs/",
    "/metrics",
    "/metrics/resource",
    "/metrics/cadvisor",
    "/stats/summary",
    "/containerLogs/default/web/c",
    "/exec/default/web/c?output=1&command=id",
    "/attach/default/web/c?output=1",
    "/portForward/default/web",
    "/run/default/web/c",
    "/exec/default/absent/c?output=1",
];

#[tokio::test]
async fn an_allowed_caller_gets_logs_exec_pods_and_health() {
    let play = play("127.0.0.71").await;
    let admin = play.admin();
    let name = below("default", "web");
    let (code, text) = play.get("/containerLogs/default/web/c?tailLines=3&follow=false", &admin).await;
    assert_eq!((code, text.as_str()), (200, format!("w1 {name} container=c&tailLines=3&follow=false\n").as_str()));
    assert_eq!(play.get("/containerLogs/default/web/c?tailLines=x", &admin).await.0, 400);
    assert_eq!(play.get("/containerLogs/default/web/other", &admin).await.0, 404);
    assert_eq!(play.get("/containerLogs/default/absent/c", &admin).await.0, 404);
    assert_eq!(play.get("/healthz", &admin).await, (200, "ok".into()));
    let (_, pods) = play.get("/pods", &admin).await;
    assert!(pods.contains("\"name\":\"web\""), "{pods}");
    assert!(play.get("/metrics/resource", &admin).await.1.contains("scrape_error 1"), "no metrics API in this worker");
    assert_eq!(play.get("/exec/default/web/c?command=id", &admin).await.0, 400, "no stream wanted");

    let answer = play.send("GET", "/exec/default/web/c?output=1&command=id", &admin, true).await;
    assert_eq!(answer.status(), 101);
    let mut stream = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
    let mut seen = Vec::new();
    let mut piece = [0; 1024];
    while !String::from_utf8_lossy(&seen).contains("ran container=c&stdout=true&command=id") {
        let len = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut piece)).await.unwrap().unwrap();
        assert!(len > 0, "ended after {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..len]);
    }
}

/// What is written to the log.
#[derive(Clone, Default)]
struct Heard(Arc<parking_lot::Mutex<Vec<u8>>>);

impl std::io::Write for Heard {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_token_is_ever_written_to_the_log() {
    let heard = Heard::default();
    let writer = heard.clone();
    let everything = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // Everything of this test happens on this thread.
    let _listening = tracing::subscriber::set_default(everything);
    tracing::trace!("the least is heard");
    let play = play("127.0.0.79").await;
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": "default"}});
    let accounts = atoll_meta::Gvr::new("", "v1", "serviceaccounts");
    play.stage.compute.ensure(&accounts, Some("default"), &account).await.unwrap();
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = play.stage.compute.create_sub(&accounts, Some("default"), "sa", "token", &request).await.unwrap();
    let token = answer["status"]["token"].as_str().unwrap().to_owned();
    for (token, expected) in [(token.clone(), 403), ("wrong-secret-word".to_owned(), 401)] {
        for path in PATHS {
            let answer = play.send("GET", path, &As::Token(token.clone()), path.contains("exec")).await;
            assert_eq!(answer.status().as_u16(), expected, "{path}");
        }
    }
    let text = String::from_utf8_lossy(&heard.0.lock()).into_owned();
    assert!(text.contains("the least is heard"), "{text}");
    let signature = token.rsplit('.').next().unwrap();
    for secret in [token.as_str(), signature, "wrong-secret-word", "Bearer "] {
        let line = text.lines().find(|line| line.contains(secret));
        assert_eq!(line, None);
    }
}

#[tokio::test]
async fn everybody_else_is_refused_on_every_path_of_every_socket() {
    let play = play("127.0.0.72").await;
    // Every socket this process listens on at that address, found by looking.
    assert_eq!(listening(play.address.ip()), [play.address], "one port per virtual node and no other");
    refused_everywhere(&play).await;
}

/// Whoever is not known and allowed gets nothing on any path of a door.
pub async fn refused_everywhere(play: &Play) {
    let stranger = Ca::generate("clients", play.stage.now()).unwrap();
    let user = play.certificate(&play.clients, "jane", &["developers"]);
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": "default"}});
    let accounts = atoll_meta::Gvr::new("", "v1", "serviceaccounts");
    play.stage.compute.ensure(&accounts, Some("default"), &account).await.unwrap();
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let token = |spec: serde_json::Value| {
        let mut request = request.clone();
        request["spec"] = spec;
        let (compute, accounts) = (play.stage.compute.clone(), accounts.clone());
        async move {
            compute.create_sub(&accounts, Some("default"), "sa", "token", &request).await.unwrap()["status"]["token"]
                .as_str()
                .unwrap()
                .to_owned()
        }
    };
    let (good, vault) = (token(json!({})).await, token(json!({"audiences": ["vault"]})).await);
    let worker_account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": "default"}});
    play.stage.w1.ensure(&accounts, Some("default"), &worker_account).await.unwrap();
    let foreign =
        play.stage.w1.create_sub(&accounts, Some("default"), "sa", "token", &request).await.unwrap()["status"]["token"]
            .as_str()
            .unwrap()
            .to_owned();
    let callers = [
        ("nobody", As::Nobody, 401),
        ("wrong authority", play.certificate(&stranger, "apiserver", &["system:masters"]), 401),
        ("nonsense token", As::Token("nonsense".into()), 401),
        ("token for another audience", As::Token(vault), 401),
        ("token of the worker cluster", As::Token(foreign), 401),
        ("unauthorised user", user, 403),
        ("unauthorised service account", As::Token(good), 403),
    ];
    for (who, caller, expected) in &callers {
        for path in PATHS {
            for method in ["GET", "POST"] {
                let answer = play.send(method, path, caller, path.contains("exec")).await;
                assert_eq!(answer.status().as_u16(), *expected, "{who}: {method} {path}");
            }
        }
    }
    // Nothing is answered without TLS.
    let mut plain = tokio::net::TcpStream::connect(play.address).await.unwrap();
    plain.write_all(b"GET /pods HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(5), plain.read_to_end(&mut answer)).await.unwrap();
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1"), "{answer:?}");
}

#[tokio::test]
async fn one_right_opens_one_path_only() {
    let play = play("127.0.0.73").await;
    let access = |plural: &str| atoll_meta::Gvr::new("rbac.authorization.k8s.io", "v1", plural);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "stats"}, "rules": [{"apiGroups": [""], "resources": ["nodes/metrics", "pods"], "verbs": ["get"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "stats"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "stats"}, "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]});
    play.stage.compute.create(&access("clusterroles"), None, &role).await.unwrap();
    play.stage.compute.create(&access("clusterrolebindings"), None, &binding).await.unwrap();
    let jane = play.certificate(&play.clients, "jane", &[]);
    assert_eq!(play.get("/metrics/resource", &jane).await.0, 200);
    for path in ["/stats/summary", "/pods", "/containerLogs/default/web/c", "/exec/default/web/c?output=1"] {
        assert_eq!(play.get(path, &jane).await.0, 403, "{path}");
    }
    // Who may read everything of a node still runs nothing there, whichever way it is asked for.
    let reads = json!({"rules": [{"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}]});
    patch(&play.stage.compute, &access("clusterroles"), None, "stats", "", reads).await;
    assert_eq!(play.get("/containerLogs/default/web/c", &jane).await.0, 200);
    for path in
        ["/exec/default/web/c?output=1&command=id", "/attach/default/web/c?output=1", "/portForward/default/web"]
    {
        for method in ["GET", "POST"] {
            assert_eq!(play.send(method, path, &jane, true).await.status().as_u16(), 403, "{method} {path}");
        }
    }
}

/// What an exec over a WebSocket said until it ended.
async fn words(play: &Play, path: &str) -> String {
    let answer = play.send("GET", path, &play.admin(), true).await;
    assert_eq!(answer.status(), 101);
    let mut stream = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
    let mut seen = Vec::new();
    let mut piece = [0; 1024];
    // The last message is the outcome, on a channel of its own.
    while !String::from_utf8_lossy(&seen).contains("\"status\":") {
        let len = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut piece)).await.unwrap().unwrap();
        assert!(len > 0, "ended after {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..len]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

#[tokio::test]
async fn exit_codes_terminals_and_both_kinds_of_streams_come_through() {
    let play = play("127.0.0.74").await;
    let said = words(&play, "/exec/default/web/c?output=1&error=1&command=fail").await;
    assert!(said.contains("NonZeroExitCode") && said.contains("\"3\""), "{said}");
    let said = words(&play, "/exec/default/web/c?output=1&input=1&tty=1&command=sh").await;
    assert!(said.contains("stdin=true&stdout=true&tty=true&command=sh") && said.contains("Success"), "{said}");
    // SPDY as older callers speak it: the same door, another protocol.
    let trust = CaBundle::from_pem(&play.serving.cert_pem()).unwrap();
    let As::Certificate(pair) = play.admin() else { panic!("an administrator has a certificate") };
    let mut config = atoll_pki::client_config(&trust, Some(&pair)).unwrap();
    config.time_provider = Arc::new(Fixed(play.stage.now()));
    let socket = tokio::net::TcpStream::connect(play.address).await.unwrap();
    let name = rustls::pki_types::ServerName::from(play.address.ip());
    let mut stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap();
    let request = "POST /exec/default/web/c?output=1&command=id HTTP/1.1\r\nhost: kubelet\r\nconnection: Upgrade\r\n\
                   upgrade: SPDY/3.1\r\nx-stream-protocol-version: v4.channel.k8s.io\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 1024];
    let len = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut answer)).await.unwrap().unwrap();
    let answer = String::from_utf8_lossy(&answer[..len]).to_lowercase();
    assert!(answer.starts_with("http/1.1 101") && answer.contains("upgrade: spdy/3.1"), "{answer}");
}

#[tokio::test]
async fn the_serving_certificate_is_renewed_while_serving() {
    let play = play("127.0.0.75").await;
    let shown = || async {
        let trust = CaBundle::from_pem(&play.serving.cert_pem()).unwrap();
        let mut config = atoll_pki::client_config(&trust, None).unwrap();
        config.time_provider = Arc::new(Fixed(play.stage.now()));
        let socket = tokio::net::TcpStream::connect(play.address).await.unwrap();
        let name = rustls::pki_types::ServerName::from(play.address.ip());
        let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    };
    let first = shown().await;
    assert_eq!(shown().await, first, "not a new one for every caller");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61 * 86_400)).await;
    tokio::time::resume();
    for _ in 0..200 {
        if shown().await != first {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the certificate of two months ago is still shown");
}

/// Listening TCP sockets of an address.
pub fn listening(ip: IpAddr) -> Vec<SocketAddr> {
    let IpAddr::V4(ip) = ip else { panic!("only for IPv4") };
    let hex = ip.octets().iter().rev().map(|byte| format!("{byte:02X}")).collect::<String>();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let own = rows.filter(|row| row.len() > 3 && row[3] == "0A" && row[1].starts_with(&hex));
    own.map(|row| SocketAddr::new(ip.into(), u16::from_str_radix(row[1].split(':').nth(1).unwrap(), 16).unwrap()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_computing_cluster_of_this_hub_reaches_its_pods_without_a_socket() {
    let stage = Stage::open().await;
    let manager = stage.start().await;
    let connector = atoll_vnode::connector(manager.clone(), "compute", Some(Arc::new(Kubelets)));
    stage.hub.add_connector("", "pods", "log", connector);
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({})).await;
    until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    make_pod(&stage.compute, &pod("web", "vnode-w1-n1", "1")).await;
    let name = below("default", "web");
    until(&stage.compute, &pods(), Some("default"), "web", |pod| {
        pod.is_some_and(|pod| !annotation(pod, "physical-pod-uid").is_empty())
    })
    .await;
    let read = |cluster: atoll_runtime::Endpoint, path: String| async move {
        cluster.send(http::Method::GET, &path, "application/json", bytes::Bytes::new()).await
    };
    let log = read(stage.compute.clone(), "/api/v1/namespaces/default/pods/web/log?container=c&follow=true".into())
        .await
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&log), format!("w1 {name} container=c&follow=true\n"));
    // Pods elsewhere are for whoever served them before.
    let own = read(stage.w1.clone(), format!("/api/v1/namespaces/{MOUNT}/pods/{name}/log")).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&own), format!("w1 {name} \n"));
    assert_eq!(
        read(stage.compute.clone(), "/api/v1/namespaces/default/pods/none/log".into()).await.unwrap_err().code,
        404
    );
}
