//! `atoll agent` and `atoll invite`: members that pull instead of being reached.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use atoll_fleet::enroll::Identity;
use atoll_fleet::enroll::ask::{self, Invitation};
use atoll_fleet::{Agent as Running, AgentOptions, Clock};
use atoll_meta::Gvr;
use atoll_pki::{Access as Way, BootstrapToken, Kubeconfig};
use atoll_runtime::Endpoint;
use clap::Args;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::access::{Access, block_on, told};
use super::output;

/// How often the age of the certificate is looked at.
const LOOK: Duration = Duration::from_secs(60);
/// How long to wait for a certificate.
const PATIENCE: Duration = Duration::from_secs(300);

/// Run the agent of a cluster that the hub cannot reach: apply its Works and report its status.
#[derive(Args)]
#[command(
    after_help = "Example:\n  atoll invite prod-eu\n  atoll agent prod-eu --hub https://hub:7443/instances/fleet --token abcdef.0123456789abcdef --kubeconfig ~/.kube/prod-eu"
)]
pub struct Agent {
    /// Name of the cluster in the instance
    name: String,
    /// URL of the instance; needed for the first start only
    #[arg(long)]
    hub: Option<String>,
    /// Bootstrap token of the instance; needed for the first start only
    #[arg(long, env = "ATOLL_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Hash of the public key of the hub's authority, as `atoll invite` prints it
    #[arg(long)]
    ca_hash: Option<String>,
    /// Kubeconfig for the instance, instead of a token
    #[arg(long, conflicts_with_all = ["hub", "token", "ca_hash"])]
    hub_kubeconfig: Option<PathBuf>,
    /// Kubeconfig of the cluster; otherwise the account of the pod this runs in
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Context in that kubeconfig
    #[arg(long)]
    context: Option<String>,
    /// Provider of the cluster
    #[arg(long, default_value = "")]
    provider: String,
    /// Region of the cluster
    #[arg(long, default_value = "")]
    region: String,
    /// Zones of the cluster, separated by commas
    #[arg(long, value_delimiter = ',')]
    zones: Vec<String>,
    /// Directory for the certificate
    #[arg(long, default_value = "atoll-agent", env = "ATOLL_DATA_DIR")]
    data_dir: PathBuf,
    /// Seconds between two probes of the cluster
    #[arg(long, default_value_t = 10)]
    probe_seconds: u64,
}

/// Create a bootstrap token for a cluster that joins by itself, and print the command to run there.
#[derive(Args)]
#[command(after_help = "Example:\n  atoll invite prod-eu")]
pub struct Invite {
    /// Name of the cluster that is to join
    name: String,
    /// Hours until the token expires
    #[arg(long, default_value_t = 24)]
    hours: u32,
    #[command(flatten)]
    access: Access,
}

impl Agent {
    /// Runs until interrupted.
    pub fn run(self) -> anyhow::Result<()> {
        atoll_telemetry::logs();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
        runtime.block_on(async {
            let stop = CancellationToken::new();
            tokio::spawn(super::serve::stop_on_signal(stop.clone()));
            tokio::select! {
                () = stop.cancelled() => Ok(()),
                result = self.serve(&stop) => result,
            }
        })
    }

    async fn serve(&self, stop: &CancellationToken) -> anyhow::Result<()> {
        let member = self.member().await?;
        let path = self.data_dir.join(format!("{}.kubeconfig", self.name));
        let clock: Clock = Arc::new(jiff::Timestamp::now);
        let way = self.way(&path, clock()).await?;
        let mut identity = Identity::new(&self.name, way, clock.clone()).await.map_err(told)?;
        let options = AgentOptions {
            instance: identity.endpoint(),
            member,
            name: self.name.clone(),
            spec: json!({"provider": self.provider, "region": self.region, "zones": self.zones}),
            clock,
            workers: 16,
            probe_interval: Duration::from_secs(self.probe_seconds.max(1)),
            probe_threshold: Duration::from_secs(30),
        };
        let _running = Running::start(options, stop.clone()).await.map_err(told)?;
        eprintln!("agent of {} runs", self.name);
        loop {
            tokio::time::sleep(LOOK).await;
            match identity.renew(PATIENCE).await {
                Ok(Some(fresh)) if self.hub_kubeconfig.is_none() => {
                    // The new one is in use all the same; the next start would ask with the old one.
                    if let Err(error) = keep(&path, fresh) {
                        tracing::error!(%error, "the new certificate could not be kept");
                    }
                }
                Ok(_) => {}
                Err(status) => tracing::warn!(%status, "certificate not renewed"),
            }
        }
    }

    async fn member(&self) -> anyhow::Result<Endpoint> {
        let config = match &self.kubeconfig {
            Some(path) => {
                let read = kube::config::Kubeconfig::read_from(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                let options = kube::config::KubeConfigOptions { context: self.context.clone(), ..Default::default() };
                kube::Config::from_custom_kubeconfig(read, &options).await?
            }
            None => kube::Config::incluster().context("give the cluster's kubeconfig, or run inside the cluster")?,
        };
        Ok(Endpoint::remote(&self.name, config, "atoll-agent")?)
    }

    /// Who the agent is: as it was last time, as a kubeconfig says, or with a new certificate for a token.
    async fn way(&self, path: &Path, now: jiff::Timestamp) -> anyhow::Result<Way> {
        if let Some(given) = &self.hub_kubeconfig {
            return Ok(Kubeconfig::read(given)?.access(None)?);
        }
        if path.exists() {
            let kept = Kubeconfig::read(path)?.access(None)?;
            if !kept.auth.is_over(now) || self.token.is_none() {
                return Ok(kept);
            }
        }
        let (Some(hub), Some(token)) = (&self.hub, &self.token) else {
            anyhow::bail!("no certificate in {}: give --hub and --token for the first start", path.display());
        };
        let token = BootstrapToken::parse(token).context("a token looks like abcdef.0123456789abcdef")?;
        let invitation = Invitation { server: hub.clone(), token, ca_hash: self.ca_hash.clone() };
        let invited = ask::discover(&invitation).await.map_err(told)?;
        let way = ask::certificate(&invited, &self.name, PATIENCE).await.map_err(told)?;
        keep(path, &way)?;
        Ok(way)
    }
}

/// Writes a way and its credentials so that only its owner reads it.
fn keep(path: &Path, way: &Way) -> anyhow::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    }
    let mut config = Kubeconfig::new();
    config.add("hub", way);
    config.set_current("hub");
    config.write(path)?;
    Ok(())
}

impl Invite {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        block_on(async move {
            let instance = self.access.endpoint("fleet").await?;
            let token = BootstrapToken::generate()?;
            let end = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(i64::from(self.hours));
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
                "metadata": {"name": format!("bootstrap-token-{}", token.id), "namespace": "kube-system"},
                "stringData": {
                    "token-id": token.id, "token-secret": token.secret, "expiration": atoll_meta::time::format(end),
                    "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
                    "auth-extra-groups": atoll_fleet::enroll::rights::TOKENS,
                    "description": format!("for cluster {}", self.name),
                },
            });
            let secrets = Gvr::new("", "v1", "secrets");
            instance.create(&secrets, Some("kube-system"), &secret).await.map_err(told)?;
            let (server, ca) = self.access.server("fleet")?;
            let hash = ca.map(|ca| ask::hash(&ca).map_err(told)).transpose()?;
            let pin = hash.map(|hash| format!(" --ca-hash {hash}")).unwrap_or_default();
            output::line(&format!("atoll agent {} --hub {server} --token {}{pin}", self.name, token.expose()));
            Ok(())
        })
    }
}
