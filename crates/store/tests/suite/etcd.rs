//! A real etcd on loopback.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use atoll_store::{EtcdEngine, Options, StoreError};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Fixture, within};

/// The etcd program, or `None` with a loud word when it is not there.
pub fn program() -> Option<PathBuf> {
    let peers = std::env::var_os("ATOLL_PEERS").map(PathBuf::from);
    let peers = peers.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/atoll/peers")))?;
    let program = peers.join("bin/etcd");
    if program.exists() {
        return Some(program);
    }
    eprintln!("SKIPPED: no etcd at {}", program.display());
    None
}

/// One etcd server, which ends with its last user.
pub struct Server {
    program: PathBuf,
    dir: tempfile::TempDir,
    port: u16,
    peer_port: u16,
    child: Mutex<Option<Child>>,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Server {
    pub fn start() -> Option<Arc<Self>> {
        let dir = tempfile::tempdir().unwrap();
        let server =
            Self { program: program()?, dir, port: free_port(), peer_port: free_port(), child: Mutex::default() };
        server.resume();
        Some(Arc::new(server))
    }

    /// The server that tests running at the same time share.
    fn shared() -> Option<Arc<Self>> {
        static SERVER: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut current = SERVER.lock();
        if let Some(server) = current.upgrade() {
            return Some(server);
        }
        let server = Self::start()?;
        *current = Arc::downgrade(&server);
        Some(server)
    }

    /// Starts the process; its data, if any, is still there.
    pub fn resume(&self) {
        let (url, peer) = (self.endpoint(), format!("http://127.0.0.1:{}", self.peer_port));
        let child = Command::new(&self.program)
            .args(["--name", "default", "--log-level", "error", "--unsafe-no-fsync", "--data-dir"])
            .arg(self.dir.path())
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        *self.child.lock() = Some(child);
    }

    /// Kills the process (SIGKILL).
    pub fn kill(&self) {
        if let Some(mut child) = self.child.lock().take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Connects as soon as the server answers.
    pub async fn connect(&self, prefix: &str, options: Options) -> EtcdEngine {
        connect(&self.endpoint(), prefix, options).await
    }

    /// Asks the JSON gateway, to look behind the engine's back.
    pub async fn gateway(&self, path: &str, body: &str) -> serde_json::Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let request = format!("POST {path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let body = answer.split("\r\n\r\n").nth(1).unwrap();
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

pub async fn connect(endpoint: &str, prefix: &str, options: Options) -> EtcdEngine {
    within(async {
        loop {
            match EtcdEngine::connect(&[endpoint.to_owned()], None, prefix, options.clone()).await {
                Ok(engine) => return engine,
                Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(other) => panic!("{other}"),
            }
        }
    })
    .await
}

/// An engine on the shared server, under a prefix of its own.
pub async fn etcd(options: Options) -> Option<Fixture> {
    static PREFIX: AtomicU32 = AtomicU32::new(0);
    let server = Server::shared()?;
    let prefix = format!("test{}", PREFIX.fetch_add(1, Ordering::Relaxed));
    Some(Fixture::new(server.connect(&prefix, options).await, server))
}
