//! A running `atoll serve` over a directory; it is killed when dropped.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The process and the way to it.
pub struct Hub {
    pub process: Child,
    pub address: String,
    pub token: String,
    ca: String,
    /// What it says from now on.
    pub said: mpsc::Receiver<String>,
}

/// `atoll` with arguments split at spaces.
pub fn atoll(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command.args(words.split_whitespace()).env_remove("KUBECONFIG").env("ATOLL_LOG", "off");
    command
}

impl Hub {
    /// Starts one with further arguments, on a free port.
    pub fn start(directory: &Path, words: &str) -> Self {
        Self::of(atoll("serve"), directory, words)
    }

    /// Starts one that may write no file longer than this, until [`Hub::lift_limit`].
    pub fn start_limited(directory: &Path, kilobytes: usize) -> Self {
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(format!("trap '' XFSZ; ulimit -S -f {kilobytes}; exec \"$0\" \"$@\""));
        shell
            .arg(env!("CARGO_BIN_EXE_atoll"))
            .arg("serve")
            .env_remove("KUBECONFIG")
            .env("ATOLL_LOG", "atoll_store=warn");
        Self::of(shell, directory, "--metrics-listen off --health-listen off")
    }

    fn of(mut command: Command, directory: &Path, words: &str) -> Self {
        let store = format!("redb:{}", directory.display());
        command.args(["--listen", "127.0.0.1:0", "--store", &store, "--data-dir"]).arg(directory);
        let mut process = command.args(words.split_whitespace()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut said = Vec::new();
        while !said.last().is_some_and(|line: &String| line.starts_with("atoll is ready")) {
            said.push(lines.next().unwrap_or_else(|| panic!("it ended before it was ready: {said:?}")));
        }
        // Somebody has to read on, or the process would wait for it.
        let (tell, said) = mpsc::channel();
        std::thread::spawn(move || lines.for_each(|line| drop(tell.send(line))));
        let config = atoll_pki::Kubeconfig::read(&directory.join("kubeconfig")).unwrap();
        let access = config.access(Some("root")).unwrap();
        let atoll_pki::Auth::Token(token) = access.auth else { panic!("the administrator has a token") };
        let address = access.server.trim_start_matches("https://").to_owned();
        Self { process, address, token, ca: access.ca_pem.unwrap(), said }
    }

    /// Lets it write files of any length from now on.
    pub fn lift_limit(&self) {
        let mut command = Command::new("prlimit");
        command.args(["--pid", &self.process.id().to_string(), "--fsize=unlimited:unlimited"]);
        assert!(command.status().unwrap().success());
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        assert!(kill.args([name, &self.process.id().to_string()]).status().unwrap().success());
    }

    /// Sends a request over a connection of its own; the answer may still go on.
    pub async fn open(
        &self,
        token: Option<&str>,
        verb: &str,
        path: &str,
        body: Option<&Value>,
    ) -> http::Response<Incoming> {
        let trust = atoll_pki::CaBundle::from_pem(&self.ca).unwrap();
        let tls = atoll_pki::client_config(&trust, None).unwrap();
        let socket = tokio::net::TcpStream::connect(&self.address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(tls));
        let stream = TokioIo::new(connector.connect("localhost".try_into().unwrap(), socket).await.unwrap());
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(verb).uri(path).header("host", &self.address);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let bytes = body.map(Value::to_string).unwrap_or_default();
        let request = request.header("content-type", "application/json").body(Full::new(Bytes::from(bytes))).unwrap();
        sender.send_request(request).await.unwrap()
    }

    /// The code and text of an answer, as the administrator.
    pub async fn ask(&self, verb: &str, path: &str, body: Option<&Value>) -> (u16, String) {
        let answer = self.open(Some(&self.token), verb, path, body).await;
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// Names of all ConfigMaps of the default namespace.
    pub async fn maps(&self) -> Vec<String> {
        let (code, text) = self.ask("GET", MAPS, None).await;
        assert_eq!(code, 200, "{text}");
        let list: Value = serde_json::from_str(&text).unwrap();
        list["items"].as_array().unwrap().iter().map(|one| one["metadata"]["name"].as_str().unwrap().into()).collect()
    }
}

/// A ConfigMap of about this many bytes.
pub fn map(name: &str, size: usize) -> Value {
    json!({"metadata": {"name": name}, "data": {"filling": "x".repeat(size)}})
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> std::net::SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The path of a file in a directory.
pub fn file(directory: &tempfile::TempDir, name: &str) -> PathBuf {
    directory.path().join(name)
}
