//! A hub in a process of its own, and how it is asked.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};

pub const API: &str = "/apis/kairship.io/v1alpha1";

/// A running `atoll up --demo`; it ends when dropped.
pub struct Hub {
    process: Child,
    pub directory: tempfile::TempDir,
    pub address: String,
    pub ca: String,
    pub token: String,
    /// The connection that requests share while it lasts.
    line: tokio::sync::Mutex<Option<hyper::client::conn::http2::SendRequest<Full<Bytes>>>>,
}

impl Hub {
    pub fn start() -> Self {
        Self::run(&["up", "--demo", "--members", "1", "--nodes", "1"])
    }

    /// Runs a hub by a command line, on a free port and with a directory of its own.
    pub fn run(command: &[&str]) -> Self {
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
        Self { process, directory, address, ca: access.ca_pem.unwrap(), token, line: Default::default() }
    }

    /// Runs a command of the command line with text on its standard input.
    pub fn atoll(&self, arguments: &[&str], input: &str) -> (bool, String) {
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

    /// A connection that speaks a protocol.
    pub async fn connect(&self, protocol: &[u8]) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
        let trust = atoll_pki::CaBundle::from_pem(&self.ca).unwrap();
        let mut config = atoll_pki::client_config(&trust, None).unwrap();
        config.alpn_protocols = vec![protocol.to_vec()];
        let socket = tokio::net::TcpStream::connect(&self.address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = connector.connect("127.0.0.1".try_into().unwrap(), socket).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
        stream
    }

    /// Sends one request over HTTP/2, agreed on by ALPN.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> (http::response::Parts, http_body_util::Collected<Bytes>) {
        let mut line = self.line.lock().await;
        if line.as_ref().is_none_or(|sender| sender.is_closed()) {
            let stream = self.connect(b"h2").await;
            let (sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            *line = Some(sender);
        }
        let mut sender = line.clone().unwrap();
        drop(line);
        let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
        (parts, body.collect().await.unwrap())
    }

    /// Opens a connection of its own and sends a request by hand; the answer comes as bytes.
    pub async fn open(
        &self,
        token: &str,
        path: &str,
        headers: &str,
    ) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
        use tokio::io::AsyncWriteExt as _;
        let mut stream = self.connect(b"http/1.1").await;
        let text = format!("GET {path} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {token}\r\n{headers}\r\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// Makes a local account and logs it in.
    pub fn account(&self, name: &str) -> String {
        assert!(self.atoll(&["account", "create", name], "correct horse\n").0);
        let (done, text) = self.atoll(&["login", name], "correct horse\n");
        assert!(done);
        let access = atoll_pki::Kubeconfig::parse(&text).unwrap().access(Some("root")).unwrap();
        let atoll_pki::Auth::Token(token) = access.auth else { panic!("a token") };
        token
    }

    /// Gives somebody a role in a namespace of an instance.
    pub async fn grant(&self, name: &str, role: &str, user: &str, instance: &str, namespace: &str) {
        let grant = json!({"kind": "Grant", "apiVersion": "atoll.io/v1alpha1", "metadata": {"name": name}, "spec": {
            "role": role, "subjects": [{"kind": "User", "name": user}], "scope": {"instance": instance, "namespace": namespace}}});
        assert_eq!(self.rest(Some(&self.token), "POST", "/apis/atoll.io/v1alpha1/grants", Some(grant)).await.0, 201);
    }

    pub fn request(&self, token: Option<&str>, verb: &str, path: &str) -> http::request::Builder {
        let builder = Request::builder().method(verb).uri(format!("https://{}{path}", self.address));
        match token {
            Some(token) => builder.header("authorization", format!("Bearer {token}")),
            None => builder,
        }
    }

    pub async fn rest(&self, token: Option<&str>, verb: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let bytes = body.map(|body| body.to_string()).unwrap_or_default();
        let (parts, body) = self.send(self.request(token, verb, path).body(Full::new(bytes.into())).unwrap()).await;
        (parts.status.as_u16(), serde_json::from_slice(&body.to_bytes()).unwrap_or_default())
    }

    /// Sends one message; the number of the answer's status and its message.
    pub async fn frame(&self, token: Option<&str>, path: &str, message: &[u8]) -> (i32, Bytes) {
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
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
/// Waits until it is so; it is looked at whenever something changes in an instance or a member. The longest
/// wait is for the lease of a leader that was killed.
pub async fn until(hub: &Hub, what: &str, done: impl AsyncFn() -> bool) {
    use tokio::io::AsyncReadExt as _;
    let mut changes = hub.open(&hub.token, "/manage/v1alpha1/watch", "connection: close\r\n").await;
    let end = tokio::time::Instant::now() + std::time::Duration::from_secs(90);
    let mut piece = vec![0; 256 * 1024];
    while !done().await {
        assert!(tokio::time::Instant::now() < end, "it did not become so: {what}");
        // The index may be a little behind what it tells of.
        let reading = tokio::time::timeout(std::time::Duration::from_secs(2), changes.read(&mut piece)).await;
        assert!(!matches!(reading, Ok(Ok(0) | Err(_))), "the stream of changes ended");
    }
}

/// Reads until a text has come; what follows is still to be read.
pub async fn read_until(stream: &mut (impl tokio::io::AsyncRead + Unpin), text: &str) -> String {
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
pub async fn ended(mut stream: impl tokio::io::AsyncRead + Unpin) {
    use tokio::io::AsyncReadExt as _;
    let reading = async {
        let mut piece = [0; 4096];
        while stream.read(&mut piece).await.is_ok_and(|read| read > 0) {}
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), reading).await.expect("it ends with its rights");
}
