//! A real control plane: etcd, kube-apiserver and, if asked for, its controllers.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use atoll_runtime::Endpoint;

use crate::peers;

/// The controllers that Atoll has too.
pub const SAME_CONTROLLERS: &str = "namespace-controller,garbage-collector-controller,serviceaccount-controller,\
    serviceaccount-token-controller,root-ca-certificate-publisher-controller,resourcequota-controller,\
    clusterrole-aggregation-controller,ttl-after-finished-controller,bootstrap-signer-controller,token-cleaner-controller,\
    certificatesigningrequest-signing-controller,certificatesigningrequest-approving-controller,\
    certificatesigningrequest-cleaner-controller";

/// What runs besides etcd and kube-apiserver.
#[derive(Copy, Clone, Debug, Default)]
pub struct Parts {
    /// kube-controller-manager with these controllers; `*` for all, empty for none.
    pub controllers: &'static str,
    /// kube-scheduler.
    pub scheduler: bool,
    /// Fake nodes that kwok makes Ready.
    pub nodes: usize,
    /// The older kube-apiserver instead.
    pub old: bool,
}

/// A running control plane; it ends when dropped.
pub struct Cluster {
    directory: PathBuf,
    kubeconfig: PathBuf,
}

impl Cluster {
    /// Starts one, or returns `None` with a visible note when its programs are not there.
    pub fn start(parts: Parts) -> anyhow::Result<Option<Self>> {
        let server = if parts.old { "kube-apiserver-old" } else { "kube-apiserver" };
        let mut needed = vec!["etcd", server, "certs"];
        needed.extend((!parts.controllers.is_empty()).then_some("kube-controller-manager"));
        needed.extend(parts.scheduler.then_some("kube-scheduler"));
        needed.extend((parts.nodes > 0).then_some("kwok"));
        if needed.into_iter().any(|name| peers::find(name).is_none()) {
            return Ok(None);
        }
        let mut up = Command::new(peers::checkout().join("tests/peers/up"));
        up.arg("--no-fsync");
        if !parts.controllers.is_empty() {
            up.arg(format!("--controllers={}", parts.controllers));
        }
        up.args(parts.old.then_some("--old"));
        up.args(parts.scheduler.then_some("--scheduler"));
        if parts.nodes > 0 {
            up.arg("--kwok").arg(parts.nodes.to_string());
        }
        let ran = peers::run(&mut up);
        anyhow::ensure!(ran.code == 0, "{}: {}", ran.command, ran.stderr);
        let kubeconfig = PathBuf::from(ran.stdout.trim());
        let directory = kubeconfig.parent().context("a kubeconfig is in a directory")?.to_owned();
        Ok(Some(Self { directory, kubeconfig }))
    }

    /// Its administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A way to it with all rights.
    pub async fn endpoint(&self) -> anyhow::Result<Endpoint> {
        remote("cluster", &self.kubeconfig).await
    }

    /// Stops or starts its parts again; see `tests/peers/up`.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let ran = peers::run(Command::new(peers::checkout().join("tests/peers/down")).arg("--rm").arg(&self.directory));
        if ran.code != 0 {
            eprintln!("{}: {}", ran.command, ran.stderr);
        }
    }
}

/// Makes the etcd of a control plane that `tests/peers/up` started in a directory forget its history up to a revision.
pub fn compact_etcd(directory: &Path, revision: u64) -> anyhow::Result<()> {
    let port: u16 = std::fs::read_to_string(directory.join("ports/etcd"))?.trim().parse()?;
    let body = format!("{{\"revision\":\"{revision}\"}}");
    let mut socket = std::net::TcpStream::connect(("127.0.0.1", port))?;
    let length = body.len();
    write!(
        socket,
        "POST /v3/kv/compaction HTTP/1.1\r\nhost: etcd\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    // Forgotten already is as good.
    let done = answer.starts_with("HTTP/1.1 200") || answer.contains("has been compacted");
    anyhow::ensure!(done, "etcd does not compact: {answer}");
    Ok(())
}

/// A way to the current context of a kubeconfig.
pub async fn remote(name: &str, kubeconfig: &Path) -> anyhow::Result<Endpoint> {
    let config = kube::config::Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(config, &kube::config::KubeConfigOptions::default()).await?;
    Endpoint::remote(name, config, "atoll-test").map_err(|status| anyhow::anyhow!("{status}"))
}
