//! Servers to measure, started as plain processes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use base64::Engine as _;

use crate::link::Address;

/// A running server; it ends when dropped.
pub struct Server {
    /// How to reach it.
    pub address: Address,
    /// Its processes.
    pub processes: Vec<u32>,
    /// From starting it to being ready, seconds.
    pub start: f64,
    _guard: Guard,
}

enum Guard {
    Own(Child, #[allow(dead_code, reason = "removed when dropped")] tempfile::TempDir),
    Peers(PathBuf, PathBuf),
}

impl Drop for Guard {
    fn drop(&mut self) {
        match self {
            Self::Own(child, _) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            Self::Peers(down, directory) => {
                let _ = Command::new(down).arg("--rm").arg(directory).status();
            }
        }
    }
}

/// Starts `atoll serve` on the durable store.
pub async fn atoll(program: &Path) -> anyhow::Result<Server> {
    let directory = tempfile::tempdir()?;
    let port = free_port()?;
    let data = directory.path().join("data");
    let started = Instant::now();
    let child = Command::new(program)
        .arg("serve")
        .envs([("ATOLL_METRICS_LISTEN", "off"), ("ATOLL_HEALTH_LISTEN", "off")])
        .arg("--listen")
        .arg(format!("127.0.0.1:{port}"))
        .arg("--store")
        .arg(format!("redb:{}", data.display()))
        .arg("--data-dir")
        .arg(&data)
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let process = child.id();
    let guard = Guard::Own(child, directory);
    let address = loop {
        ensure!(started.elapsed() < Duration::from_secs(30), "the server did not become ready");
        tokio::time::sleep(Duration::from_millis(2)).await;
        let Ok(kubeconfig) = std::fs::read_to_string(data.join("kubeconfig")) else { continue };
        let Ok(token) = std::fs::read_to_string(data.join("admin.token")) else { continue };
        break Address::new(&format!("https://127.0.0.1:{port}"), &authority(&kubeconfig)?, token.trim())?;
    };
    ready(&address, started).await?;
    let start = started.elapsed().as_secs_f64();
    Ok(Server { address, processes: vec![process], start, _guard: guard })
}

/// Starts etcd and kube-apiserver by the script of the checkout.
pub async fn real(checkout: &Path) -> anyhow::Result<Server> {
    let started = Instant::now();
    let output = Command::new(checkout.join("tests/peers/up")).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "tests/peers/up failed");
    let start = started.elapsed().as_secs_f64();
    let kubeconfig = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    let directory = kubeconfig.parent().context("a kubeconfig is in a directory")?.to_owned();
    let guard = Guard::Peers(checkout.join("tests/peers/down"), directory.clone());
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).with_context(|| name.to_owned());
    let processes = ["etcd", "kube-apiserver"]
        .iter()
        .map(|name| Ok(read(&format!("pids/{name}"))?.split_whitespace().next().context("no process")?.parse()?))
        .collect::<anyhow::Result<Vec<u32>>>()?;
    let port = read("ports/kube-apiserver")?;
    let url = format!("https://127.0.0.1:{}", port.trim());
    let address = Address::new(&url, &read("pki/ca.crt")?, read("token")?.trim())?;
    Ok(Server { address, processes, start, _guard: guard })
}

async fn ready(address: &Address, started: Instant) -> anyhow::Result<()> {
    loop {
        if let Ok(mut link) = address.connect().await
            && link.send(http::Method::GET, "/readyz", bytes::Bytes::new()).await.is_ok()
        {
            return Ok(());
        }
        ensure!(started.elapsed() < Duration::from_secs(30), "the server did not become ready");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The authority of the first cluster of a kubeconfig.
fn authority(kubeconfig: &str) -> anyhow::Result<String> {
    let tree: serde_json::Value = serde_saphyr::from_str(kubeconfig)?;
    let data = tree["clusters"][0]["cluster"]["certificate-authority-data"].as_str().context("no authority")?;
    Ok(String::from_utf8(base64::engine::general_purpose::STANDARD.decode(data)?)?)
}

fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
