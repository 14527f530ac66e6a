//! The management plane on the port of a running hub: REST, gRPC by reflection, and who may ask.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Value, json};
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

const API: &str = "/apis/kairship.io/v1alpha1";

/// A running `atoll up --demo`; it ends when dropped.
struct Hub {
    process: Child,
    directory: tempfile::TempDir,
    address: String,
    ca: String,
    token: String,
}

impl Hub {
    fn start() -> Self {
        Self::run(&["up", "--demo", "--members", "1", "--nodes", "1"])
    }

    /// Runs a hub by a command line, on a free port and with a directory of its own.
    fn run(command: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_atoll"))
            .args(command)
            .args(["--listen", "127.0.0.1:0", "--data-dir"])
            .arg(directory.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let ready = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("atoll is ready"));
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        assert!(ready, "the hub ended before it was ready");
        let config = atoll_pki::Kubeconfig::read(&directory.path().join("kubeconfig")).unwrap();
        let access = config.access(Some("root")).unwrap();
        let atoll_pki::Auth::Token(token) = access.auth else { panic!("the administrator has a token") };
        let address = access.server.trim_start_matches("https://").to_owned();
        Self { process, directory, address, ca: access.ca_pem.unwrap(), token }
    }

    /// Runs a command of the command line with text on its standard input.
    fn atoll(&self, arguments: &[&str], input: &str) -> (bool, String) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_atoll"))
            .args(arguments)
            .env("KUBECONFIG", self.directory.path().join("kubeconfig"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }

    /// Sends one request over HTTP/2, agreed on by ALPN.
    async fn send(&self, request: Request<Full<Bytes>>) -> (http::response::Parts, http_body_util::Collected<Bytes>) {
        let trust = atoll_pki::CaBundle::from_pem(&self.ca).unwrap();
        let mut config = atoll_pki::client_config(&trust, None).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let socket = tokio::net::TcpStream::connect(&self.address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = connector.connect("127.0.0.1".try_into().unwrap(), socket).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
        (parts, body.collect().await.unwrap())
    }

    /// Opens a connection of its own and sends a request by hand; the answer comes as bytes.
    async fn open(
        &self,
        token: &str,
        path: &str,
        headers: &str,
    ) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
        use tokio::io::AsyncWriteExt as _;
        let trust = atoll_pki::CaBundle::from_pem(&self.ca).unwrap();
        let mut config = atoll_pki::client_config(&trust, None).unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let socket = tokio::net::TcpStream::connect(&self.address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let mut stream = connector.connect("127.0.0.1".try_into().unwrap(), socket).await.unwrap();
        let text = format!("GET {path} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {token}\r\n{headers}\r\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// Makes a local account and logs it in.
    fn account(&self, name: &str) -> String {
        assert!(self.atoll(&["account", "create", name], "correct horse\n").0);
        let (done, text) = self.atoll(&["login", name], "correct horse\n");
        assert!(done);
        let access = atoll_pki::Kubeconfig::parse(&text).unwrap().access(Some("root")).unwrap();
        let atoll_pki::Auth::Token(token) = access.auth else { panic!("a token") };
        token
    }

    /// Gives somebody a role in a namespace of an instance.
    async fn grant(&self, name: &str, role: &str, user: &str, instance: &str, namespace: &str) {
        let grant = json!({"kind": "Grant", "apiVersion": "atoll.io/v1alpha1", "metadata": {"name": name}, "spec": {
            "role": role, "subjects": [{"kind": "User", "name": user}], "scope": {"instance": instance, "namespace": namespace}}});
        assert_eq!(self.rest(Some(&self.token), "POST", "/apis/atoll.io/v1alpha1/grants", Some(grant)).await.0, 201);
    }

    fn request(&self, token: Option<&str>, verb: &str, path: &str) -> http::request::Builder {
        let builder = Request::builder().method(verb).uri(format!("https://{}{path}", self.address));
        match token {
            Some(token) => builder.header("authorization", format!("Bearer {token}")),
            None => builder,
        }
    }

    async fn rest(&self, token: Option<&str>, verb: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let bytes = body.map(|body| body.to_string()).unwrap_or_default();
        let (parts, body) = self.send(self.request(token, verb, path).body(Full::new(bytes.into())).unwrap()).await;
        (parts.status.as_u16(), serde_json::from_slice(&body.to_bytes()).unwrap_or_default())
    }

    /// Sends one message; the number of the answer's status and its message.
    async fn frame(&self, token: Option<&str>, path: &str, message: &[u8]) -> (i32, Bytes) {
        let mut body = BytesMut::new();
        body.put_u8(0);
        body.put_u32(u32::try_from(message.len()).unwrap());
        body.put_slice(message);
        let request =
            self.request(token, "POST", path).header("content-type", "application/grpc").header("te", "trailers");
        let (parts, body) = self.send(request.body(Full::new(body.freeze())).unwrap()).await;
        let status = body.trailers().unwrap_or(&parts.headers)["grpc-status"].to_str().unwrap().parse().unwrap();
        let mut bytes = body.to_bytes();
        if bytes.len() >= 5 {
            bytes.advance(5);
        }
        (status, bytes)
    }

    /// What the hub says about the file of a symbol, and the files that one needs.
    async fn reflect(&self, symbol: &str) -> DescriptorPool {
        let asked = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::FileContainingSymbol(symbol.into())),
        };
        let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
        let (status, bytes) = self.frame(Some(&self.token), path, &asked.encode_to_vec()).await;
        assert_eq!(status, 0);
        let answer = ServerReflectionResponse::decode(bytes).unwrap();
        let Some(MessageResponse::FileDescriptorResponse(files)) = answer.message_response else {
            panic!("{answer:?}")
        };
        let mut pool = DescriptorPool::global();
        let mut wanted: Vec<Vec<u8>> = files.file_descriptor_proto;
        // Files come before those that need them only once all are known: ask until none is missing.
        let mut known: Vec<prost_types::FileDescriptorProto> = Vec::new();
        while let Some(bytes) = wanted.pop() {
            let file = prost_types::FileDescriptorProto::decode(&bytes[..]).unwrap();
            for name in &file.dependency {
                if pool.get_file_by_name(name).is_some() || known.iter().any(|own| own.name() == name) {
                    continue;
                }
                let asked = ServerReflectionRequest {
                    host: String::new(),
                    message_request: Some(MessageRequest::FileByFilename(name.clone())),
                };
                let (_, bytes) = self.frame(Some(&self.token), path, &asked.encode_to_vec()).await;
                let answer = ServerReflectionResponse::decode(bytes).unwrap();
                if let Some(MessageResponse::FileDescriptorResponse(files)) = answer.message_response {
                    wanted.extend(files.file_descriptor_proto);
                }
            }
            if !known.iter().any(|own| own.name() == file.name()) {
                known.push(file);
            }
        }
        pool.add_file_descriptor_protos(known).unwrap();
        pool
    }

    /// Calls a method that is known by reflection only.
    async fn grpc(&self, token: Option<&str>, service: &str, method: &str, input: Value) -> (i32, Value) {
        let pool = self.reflect(service).await;
        let own = pool.get_service_by_name(service).unwrap();
        let found = own.methods().find(|known| known.name() == method).unwrap();
        let message = DynamicMessage::deserialize(found.input(), input).unwrap();
        let (status, bytes) = self.frame(token, &format!("/{service}/{method}"), &message.encode_to_vec()).await;
        let options = prost_reflect::SerializeOptions::new().skip_default_fields(false);
        let answer = DynamicMessage::decode(found.output(), bytes).unwrap();
        (status, answer.serialize_with_options(serde_json::value::Serializer, &options).unwrap())
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Asks again until it is so. The longest wait is for the lease of a leader that was killed.
async fn until(what: &str, done: impl AsyncFn() -> bool) {
    for _ in 0..800 {
        if done().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("it did not become so: {what}");
}

fn deployment() -> Value {
    let object = json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "managed"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "managed"}}, "template": {"metadata": {"labels": {"app": "managed"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}});
    json!({"data": object.to_string()})
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_and_grpc_answer_alike_on_the_port_of_the_hub_and_only_to_who_may_ask() {
    let hub = Hub::start();
    let admin = Some(hub.token.as_str());
    let list = format!("{API}/instances/fleet/namespaces/default/deployments");

    // Nobody gets nothing, in the language of the request.
    assert_eq!(hub.rest(None, "GET", &format!("{API}/instances"), None).await.0, 401);
    assert_eq!(hub.rest(Some("wrong"), "GET", &format!("{API}/instances"), None).await.0, 401);
    assert_eq!(hub.rest(None, "POST", &list, Some(deployment())).await.0, 401);
    assert_eq!(hub.grpc(None, "atoll.v1alpha1.InstanceService", "ListInstances", json!({})).await.0, 16);
    assert_eq!(hub.rest(None, "GET", "/manage/openapi.json", None).await.0, 401);
    assert_eq!(hub.frame(None, "/grpc.health.v1.Health/Check", &[]).await.0, 0, "health is for everybody");

    assert_eq!(hub.rest(admin, "POST", &list, Some(deployment())).await.0, 200);
    let settled =
        async || hub.rest(admin, "GET", &list, None).await.1["items"][0]["status"]["state"] != "WORKLOAD_STATE_WAITING";
    until("the Deployment runs", settled).await;
    let (code, by_rest) = hub.rest(admin, "GET", &format!("{list}?pageSize=5"), None).await;
    assert_eq!(code, 200);
    let asked = json!({"instance": "fleet", "namespace": "default", "pageSize": 5});
    let (status, by_grpc) = hub.grpc(admin, "atoll.v1alpha1.AppsService", "ListDeployments", asked).await;
    assert_eq!((status, by_grpc), (0, by_rest));
    let missing = json!({"instance": "fleet", "namespace": "default", "name": "none"});
    assert_eq!(hub.grpc(admin, "atoll.v1alpha1.AppsService", "GetDeployment", missing).await.0, 5);
    assert_eq!(hub.rest(admin, "GET", &format!("{list}/none"), None).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_account_has_the_same_rights_at_every_entry_until_it_is_closed() {
    let hub = Hub::start();
    let admin = Some(hub.token.as_str());
    assert!(hub.atoll(&["account", "create", "ann", "--group", "team"], "correct horse\n").0);
    assert!(!hub.atoll(&["login", "ann"], "wrong horse\n").0);
    let (done, text) = hub.atoll(&["login", "ann", "--instance", "fleet"], "correct horse\n");
    assert!(done);
    let access = atoll_pki::Kubeconfig::parse(&text).unwrap().access(Some("fleet")).unwrap();
    assert!(access.server.ends_with("/instances/fleet"));
    let atoll_pki::Auth::Token(token) = access.auth else { panic!("a token") };
    let ann = Some(token.as_str());

    let native = |namespace: &str| format!("/instances/fleet/api/v1/namespaces/{namespace}/configmaps");
    let managed = |namespace: &str| format!("{API}/instances/fleet/namespaces/{namespace}/configmaps");
    let search = "/manage/v1alpha1/search?kinds=ConfigMap&sources=fleet";
    assert_eq!(hub.rest(ann, "GET", &format!("{API}/instances"), None).await.1["items"], json!([]));
    assert_eq!(hub.rest(ann, "GET", &native("default"), None).await.0, 403);
    assert_eq!(hub.rest(ann, "GET", search, None).await.1["items"], json!([]));

    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "seen"}});
    assert_eq!(hub.rest(admin, "POST", &native("default"), Some(map)).await.0, 201);
    let grant = json!({"kind": "Grant", "apiVersion": "atoll.io/v1alpha1", "metadata": {"name": "g"}, "spec": {"role": "viewer", "subjects": [{"kind": "Group", "name": "team"}], "scope": {"instance": "fleet", "namespace": "default"}}});
    assert_eq!(hub.rest(admin, "POST", "/apis/atoll.io/v1alpha1/grants", Some(grant)).await.0, 201);
    until("the grant holds", async || hub.rest(ann, "GET", &native("default"), None).await.0 == 200).await;
    let items = hub.rest(ann, "GET", &managed("default"), None).await.1["items"].clone();
    assert!(items.as_array().unwrap().iter().any(|item| item["metadata"]["name"] == "seen"), "{items}");
    let found = hub.rest(ann, "GET", search, None).await.1["items"].clone();
    assert!(found.as_array().unwrap().iter().all(|item| item["namespace"] == "default"), "{found}");
    assert!(found.as_array().unwrap().iter().any(|item| item["name"] == "seen"), "{found}");
    for path in [native("kube-system"), "/instances/fleet/api/v1/configmaps".into(), "/api/v1/secrets".into()] {
        assert_eq!(hub.rest(ann, "GET", &path, None).await.0, 403, "{path}");
    }
    let map =
        json!({"data": json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "mine"}}).to_string()});
    assert_eq!(hub.rest(ann, "POST", &managed("default"), Some(map)).await.0, 403, "a viewer writes nothing");

    let record = std::fs::read_to_string(hub.directory.path().join("audit.jsonl")).unwrap();
    let line = |words: &[&str]| record.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(line(&["\"ann\"", "Core.CreateConfigMap", "refused"]), "a refusal: {record}");
    assert!(line(&["\"ann\"", "GET /instances/fleet/api/v1/namespaces/kube-system/configmaps", "refused"]), "{record}");
    assert!(line(&["atoll:admin", "\"seen\"", "done"]) || line(&["atoll:admin", "/configmaps", "done"]), "{record}");
    assert!(!record.contains("correct horse") && !record.contains("wrong horse"), "no passwords");

    assert!(hub.atoll(&["account", "close", "ann"], "").0);
    for path in [native("default"), managed("default"), search.to_owned()] {
        assert_eq!(hub.rest(ann, "GET", &path, None).await.0, 401, "{path}");
    }
    assert_eq!(hub.grpc(ann, "atoll.v1alpha1.InstanceService", "ListInstances", json!({})).await.0, 16);
}

/// Reads until a text has come; what follows is still to be read.
async fn read_until(stream: &mut (impl tokio::io::AsyncRead + Unpin), text: &str) -> String {
    use tokio::io::AsyncReadExt as _;
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(text) {
        let mut piece = [0; 4096];
        let reading = tokio::time::timeout(std::time::Duration::from_secs(60), stream.read(&mut piece));
        let read =
            reading.await.unwrap_or_else(|_| panic!("no {text} after {}", String::from_utf8_lossy(&seen))).unwrap();
        assert_ne!(read, 0, "ended after {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..read]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

/// Waits until the other side has ended a stream.
async fn ended(mut stream: impl tokio::io::AsyncRead + Unpin) {
    use tokio::io::AsyncReadExt as _;
    let reading = async {
        let mut piece = [0; 4096];
        while stream.read(&mut piece).await.is_ok_and(|read| read > 0) {}
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), reading).await.expect("it ends with its rights");
}

#[tokio::test(flavor = "multi_thread")]
async fn s21_watches_and_terminals_end_with_the_rights_they_were_opened_with() {
    let hub = Hub::start();
    let admin = Some(hub.token.as_str());
    let pods = "/instances/member1/api/v1/namespaces/default/pods";
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    assert_eq!(hub.rest(admin, "POST", pods, Some(pod)).await.0, 201);
    until("the pod runs", async || {
        hub.rest(admin, "GET", &format!("{pods}/p"), None).await.1["status"]["phase"] == "Running"
    })
    .await;
    let (ann, bob) = (hub.account("ann"), hub.account("bob"));
    hub.grant("ann", "editor", "ann", "member1", "default").await;
    hub.grant("bob", "viewer", "bob", "member1", "default").await;
    for who in [&ann, &bob] {
        until("the grants hold", async || hub.rest(Some(who), "GET", pods, None).await.0 == 200).await;
    }
    let exec = format!("{pods}/p/exec?command=sh&stdin=true&stdout=true&tty=true");
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: v5.channel.k8s.io\r\n";

    // S11: who may see pods may not enter them.
    read_until(&mut hub.open(&bob, &exec, upgrade).await, "403 Forbidden").await;

    let mut terminal = hub.open(&ann, &exec, upgrade).await;
    read_until(&mut terminal, "101 Switching Protocols").await;
    let mut watch = hub.open(&ann, &format!("{pods}?watch=true&resourceVersion=0"), "connection: close\r\n").await;
    read_until(&mut watch, "\"ADDED\"").await;
    let mut search = hub.open(&bob, "/manage/v1alpha1/watch?kinds=Pod", "connection: close\r\n").await;
    read_until(&mut search, "\"SYNCED\"").await;
    let mut other = hub.open(&bob, &format!("{pods}?watch=true&resourceVersion=0"), "connection: close\r\n").await;
    read_until(&mut other, "\"ADDED\"").await;

    assert_eq!(hub.rest(admin, "DELETE", "/apis/atoll.io/v1alpha1/grants/ann", None).await.0, 200);
    ended(terminal).await;
    ended(watch).await;
    assert_eq!(hub.rest(Some(&ann), "GET", pods, None).await.0, 403);
    // Rights of others go on.
    let change = json!({"metadata": {"labels": {"still": "here"}}});
    let patch =
        hub.request(admin, "PATCH", &format!("{pods}/p")).header("content-type", "application/merge-patch+json");
    hub.send(patch.body(Full::new(change.to_string().into())).unwrap()).await;
    read_until(&mut other, "\"still\"").await;
    assert!(hub.atoll(&["account", "close", "bob"], "").0);
    ended(other).await;
    ended(search).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s11_logs_and_terminals_of_members_are_for_who_may_use_them_in_the_instance() {
    let hub = Hub::start();
    let admin = Some(hub.token.as_str());
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    let pods = "/instances/member1/api/v1/namespaces/default/pods";
    assert_eq!(hub.rest(admin, "POST", pods, Some(pod)).await.0, 201);
    let runs = async || hub.rest(admin, "GET", &format!("{pods}/p"), None).await.1["status"]["phase"] == "Running";
    until("the pod runs", runs).await;
    let (ann, bob, eve) = (hub.account("ann"), hub.account("bob"), hub.account("eve"));
    hub.grant("ann", "editor", "ann", "fleet", "default").await;
    hub.grant("bob", "viewer", "bob", "fleet", "default").await;
    let maps = "/instances/fleet/api/v1/namespaces/default/configmaps";
    for who in [&ann, &bob] {
        until("the grants hold", async || hub.rest(Some(who), "GET", maps, None).await.0 == 200).await;
    }
    let part =
        |name: &str| format!("/manage/v1alpha1/instances/fleet/clusters/member1/namespaces/default/pods/p/{name}");
    let exec = format!("{}?command=sh&stdin=true&stdout=true&tty=true", part("exec"));
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: v5.channel.k8s.io\r\n";
    for (who, logs, terminal) in
        [(&ann, 200, "101 Switching"), (&bob, 200, "403 Forbidden"), (&eve, 403, "403 Forbidden")]
    {
        assert_eq!(hub.rest(Some(who), "GET", &part("log"), None).await.0, logs);
        let streamed = format!("{}:logs", part("log").trim_end_matches("/log"));
        assert_eq!(hub.rest(Some(who), "GET", &streamed, None).await.0, logs);
        read_until(&mut hub.open(who, &exec, upgrade).await, terminal).await;
    }
    read_until(&mut hub.open("wrong", &exec, upgrade).await, "401 Unauthorized").await;

    let mut terminal = hub.open(&ann, &exec, upgrade).await;
    read_until(&mut terminal, "101 Switching").await;
    let mut follow = hub.open(&ann, &format!("{}?follow=true", part("log")), "connection: close\r\n").await;
    read_until(&mut follow, "200 OK").await;
    assert_eq!(hub.rest(admin, "DELETE", "/apis/atoll.io/v1alpha1/grants/ann", None).await.0, 200);
    ended(terminal).await;
    ended(follow).await;
}

/// An etcd of its own, on free ports; it ends when dropped.
struct Etcd {
    process: Child,
    url: String,
    _directory: tempfile::TempDir,
}

impl Etcd {
    fn start() -> Option<Self> {
        let program = atoll_testkit::peers::find("etcd")?;
        let directory = tempfile::tempdir().unwrap();
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (url, peers) = (format!("http://127.0.0.1:{}", free()), format!("http://127.0.0.1:{}", free()));
        let process = Command::new(program)
            .args(["--unsafe-no-fsync", "--log-level=error", "--data-dir"])
            .arg(directory.path())
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url, "--listen-peer-urls", &peers])
            .args(["--initial-advertise-peer-urls", &peers, "--initial-cluster", &format!("default={peers}")])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        for _ in 0..400 {
            if std::net::TcpStream::connect(url.trim_start_matches("http://")).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        Some(Self { process, url, _directory: directory })
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_takes_over_when_the_leader_is_killed() {
    let Some(etcd) = Etcd::start() else { return };
    let store = format!("etcd:{}", etcd.url);
    let mut hubs: Vec<Hub> = (0..3).map(|_| Hub::run(&["serve", "--store", &store])).collect();
    let instance = json!({"kind": "Instance", "apiVersion": "atoll.io/v1alpha1", "metadata": {"name": "fleet"}, "spec": {"type": "Hosted"}});
    let (first, token) = (&hubs[0], hubs[0].token.clone());
    assert_eq!(first.rest(Some(&token), "POST", "/apis/atoll.io/v1alpha1/instances", Some(instance)).await.0, 201);
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/atoll-manage";
    let mut leaders = std::collections::BTreeSet::new();
    while let Some(hub) = hubs.last() {
        // Whoever leads makes a binding of a new grant, in what was left by those before.
        let name = format!("g{}", hubs.len());
        let admin = Some(hub.token.as_str());
        until("the instance is there", async || {
            hub.rest(admin, "GET", "/instances/fleet/api/v1/namespaces", None).await.0 == 200
        })
        .await;
        hub.grant(&name, "viewer", "ann", "fleet", "default").await;
        let binding = format!(
            "/instances/fleet/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/atoll:grant:{name}"
        );
        let made = async || hub.rest(admin, "GET", &binding, None).await.0 == 200;
        until("the grant holds", made).await;
        leaders
            .insert(hub.rest(admin, "GET", lease, None).await.1["spec"]["holderIdentity"].as_str().unwrap().to_owned());
        // SIGKILL: no goodbye.
        hubs.remove(0);
    }
    assert!(leaders.len() >= 2, "somebody took over: {leaders:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_gets_objects_of_all_clusters_by_the_paths_of_clusterpedia() {
    let Some(kubectl) = atoll_testkit::peers::find("kubectl") else { return };
    let hub = Hub::start();
    let admin = Some(hub.token.as_str());
    for place in ["fleet", "member1"] {
        let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": format!("of-{place}")}});
        let path = format!("/instances/{place}/api/v1/namespaces/default/configmaps");
        assert_eq!(hub.rest(admin, "POST", &path, Some(map)).await.0, 201);
    }
    let get = async |below: &str, words: &[&str]| {
        let server = format!("https://{}/apis/clusterpedia.io/v1beta1/resources{below}", hub.address);
        let mut command = Command::new(&kubectl);
        command.env("KUBECONFIG", hub.directory.path().join("kubeconfig")).env("HOME", hub.directory.path());
        command.args(["--context", "root", "--server", &server, "get"]).args(words);
        tokio::task::spawn_blocking(move || atoll_testkit::peers::run(&mut command)).await.unwrap()
    };
    let all = ["configmaps", "-n", "default"];
    let found = async || {
        let text = get("", &all).await;
        text.code == 0 && text.stdout.contains("of-member1")
    };
    until("the member is known", found).await;
    let table = get("", &all).await.ok();
    assert!(table.lines().next().unwrap().starts_with("CLUSTER"), "{table}");
    let one = get("/clusters/fleet", &all).await.ok();
    assert!(one.contains("of-fleet") && !one.contains("of-member1"), "{one}");
    let object = get("/clusters/fleet", &["configmaps", "of-fleet", "-n", "default", "-o", "json"]).await.ok();
    let object: Value = serde_json::from_str(&object).unwrap();
    assert_eq!(object["metadata"]["annotations"]["shadow.clusterpedia.io/cluster-name"], "fleet");
}
