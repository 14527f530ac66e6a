//! `atoll up` and `atoll serve`: running a hub.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use atoll_runtime::Denied;
use clap::Args;
use tokio_util::sync::CancellationToken;

use crate::assembly::{self, Advertised, EtcdFiles, Settings, SidePort, StoreChoice};

/// Run everything in one process on the embedded store.
#[derive(Args)]
#[command(
    after_help = "Example:\n  atoll up --demo\n  export KUBECONFIG=./atoll-data/kubeconfig\n  kubectl --context fleet get clusters"
)]
pub struct Up {
    /// Add simulated members joined to instance `fleet`, and print what to try
    #[arg(long)]
    demo: bool,
    /// Directory for data, kubeconfig and token
    #[arg(long, default_value = "atoll-data", env = "ATOLL_DATA_DIR")]
    data_dir: PathBuf,
    /// Address of the TLS port
    #[arg(long, default_value = "127.0.0.1:7443", env = "ATOLL_LISTEN")]
    listen: SocketAddr,
    #[command(flatten)]
    common: Common,
    /// Number of simulated members
    #[arg(long, default_value_t = 3)]
    members: usize,
    /// Nodes of each simulated member
    #[arg(long, default_value_t = 3)]
    nodes: usize,
}

/// Run the server for production.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  atoll serve --store redb:/var/lib/atoll\n  atoll serve --store etcd:http://127.0.0.1:2379 --data-dir /var/lib/atoll"
)]
pub struct Serve {
    /// Where objects are kept: `redb:DIR`, `etcd:ENDPOINT[,ENDPOINT…]` or `memory`
    #[arg(long, default_value = "redb:atoll-data", env = "ATOLL_STORE")]
    store: StoreChoice,
    #[command(flatten)]
    etcd: EtcdFiles,
    /// Directory for keys, kubeconfig and token
    #[arg(long, default_value = "atoll-data", env = "ATOLL_DATA_DIR")]
    data_dir: PathBuf,
    /// Address of the TLS port
    #[arg(long, default_value = "127.0.0.1:7443", env = "ATOLL_LISTEN")]
    listen: SocketAddr,
    #[command(flatten)]
    common: Common,
}

/// What all hubs can be told. Ports for scrapers and probes are without TLS: keep them on loopback or a private network.
#[derive(Args)]
struct Common {
    /// Address of `/metrics`, or `off` [default: 127.0.0.1:8080 if free]
    #[arg(long, value_name = "ADDRESS", env = "ATOLL_METRICS_LISTEN")]
    metrics_listen: Option<SidePort>,
    /// Address of `/healthz`, `/livez` and `/readyz`, or `off` [default: 127.0.0.1:8081 if free]
    #[arg(long, value_name = "ADDRESS", env = "ATOLL_HEALTH_LISTEN")]
    health_listen: Option<SidePort>,
    /// Address that clients and agents connect to, in kubeconfigs, invitations and the certificate; needed with
    /// `--listen 0.0.0.0:…` or behind a load balancer [default: the address of --listen]
    #[arg(long, value_name = "HOST[:PORT]", env = "ATOLL_ADVERTISE")]
    advertise: Option<Advertised>,
    /// Instances are also reached as `NAME.DOMAIN`
    #[arg(long, default_value = "atoll.localhost", env = "ATOLL_DOMAIN")]
    domain: String,
    /// Networks the hub never connects to for a Cluster, a kubeconfig or a lease (comma-separated; replaces the default),
    /// or `none`
    #[arg(long, value_name = "NETWORKS", default_value = Denied::USUAL, env = "ATOLL_DENY_MEMBER_NETWORKS")]
    deny_member_networks: Denied,
}

/// Stop a hub that was started in this data directory.
#[derive(Args)]
#[command(after_help = "Example:\n  atoll down")]
pub struct Down {
    /// Directory given to `atoll up`
    #[arg(long, default_value = "atoll-data", env = "ATOLL_DATA_DIR")]
    data_dir: PathBuf,
}

impl Down {
    /// Asks the process to stop and waits until it has.
    pub fn run(self) -> anyhow::Result<()> {
        let path = self.data_dir.join("atoll.pid");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("no hub runs in {}", self.data_dir.display()))?;
        let process: u32 = text.trim().parse().with_context(|| format!("{} is damaged", path.display()))?;
        let status = std::process::Command::new("kill").args(["-TERM", &process.to_string()]).status()?;
        anyhow::ensure!(status.success(), "the process {process} is not running; remove {}", path.display());
        for _ in 0..200 {
            // The file goes first, the hold on the data with the process.
            if !path.exists() && !runs(process) {
                eprintln!("stopped");
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        anyhow::bail!("the process {process} did not stop within 20 s")
    }
}

/// Whether a process is there and not just waiting for its parent to notice its end.
fn runs(process: u32) -> bool {
    if let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) {
        return stat.rsplit_once(')').is_some_and(|(_, state)| !state.starts_with(" Z"));
    }
    let mut ask = std::process::Command::new("kill");
    ask.args(["-0", &process.to_string()]).stderr(std::process::Stdio::null());
    ask.status().is_ok_and(|status| status.success())
}

impl Up {
    /// Runs until interrupted.
    pub fn run(self) -> anyhow::Result<()> {
        let settings = Settings {
            store: StoreChoice::Redb(self.data_dir.clone()),
            etcd: EtcdFiles::default(),
            data_dir: self.data_dir,
            listen: self.listen,
            demo: self.demo.then_some((self.members, self.nodes)),
            metrics: self.common.metrics_listen,
            health: self.common.health_listen,
            advertise: self.common.advertise,
            domain: self.common.domain,
            denied: self.common.deny_member_networks,
        };
        block_on(settings)
    }
}

impl Serve {
    /// Runs until interrupted.
    pub fn run(self) -> anyhow::Result<()> {
        block_on(Settings {
            store: self.store,
            etcd: self.etcd,
            data_dir: self.data_dir,
            listen: self.listen,
            demo: None,
            metrics: self.common.metrics_listen,
            health: self.common.health_listen,
            advertise: self.common.advertise,
            domain: self.common.domain,
            denied: self.common.deny_member_networks,
        })
    }
}

fn block_on(settings: Settings) -> anyhow::Result<()> {
    atoll_telemetry::logs();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        tokio::spawn(stop_on_signal(stop.clone()));
        assembly::run(settings, stop).await
    })
}

/// Ctrl-C and SIGTERM end the process in order; a second signal ends it at once.
pub async fn stop_on_signal(stop: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
    stop.cancel();
    tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
    std::process::exit(130);
}
