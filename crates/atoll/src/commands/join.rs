//! `atoll join` and `atoll unjoin`: clusters come and go.

use std::path::PathBuf;

use anyhow::Context as _;
use atoll_fleet::JoinOptions;
use atoll_meta::Gvr;
use atoll_runtime::Endpoint;
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::access::{Access, Fault, block_on, told};
use super::output;
use crate::assembly::progress::Progress;

/// Join a cluster to an instance.
#[derive(Args)]
#[command(after_help = "Example:\n  atoll join prod-eu --kubeconfig ~/.kube/prod-eu --context admin --region eu-west")]
pub struct Join {
    /// Name of the cluster in the instance
    name: String,
    #[command(flatten)]
    member: Member,
    /// Provider of the cluster
    #[arg(long, default_value = "")]
    provider: String,
    /// Region of the cluster
    #[arg(long, default_value = "")]
    region: String,
    /// Zones of the cluster, separated by commas
    #[arg(long, value_delimiter = ',')]
    zones: Vec<String>,
    #[command(flatten)]
    hub: HubAccess,
}

/// Remove a cluster from an instance; copies are deleted from the cluster first.
#[derive(Args)]
#[command(after_help = "Example:\n  atoll unjoin prod-eu --kubeconfig ~/.kube/prod-eu --context admin")]
pub struct Unjoin {
    /// Name of the cluster in the instance
    name: String,
    #[command(flatten)]
    member: Member,
    #[command(flatten)]
    hub: HubAccess,
}

/// The cluster itself.
#[derive(Args)]
struct Member {
    /// Kubeconfig of the cluster
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Context in that kubeconfig
    #[arg(long)]
    context: Option<String>,
}

/// The hub and the instance.
#[derive(Args)]
struct HubAccess {
    /// Kubeconfig of the hub; otherwise $KUBECONFIG, then ./atoll-data/kubeconfig
    #[arg(long)]
    hub_kubeconfig: Option<PathBuf>,
    /// The instance, as a context of that kubeconfig
    #[arg(long, default_value = "fleet")]
    instance: String,
}

impl HubAccess {
    async fn endpoint(&self) -> anyhow::Result<Endpoint> {
        Access::of(self.hub_kubeconfig.clone(), Some(self.instance.clone())).endpoint("fleet").await
    }
}

impl Member {
    /// The way to the cluster, its URL and the authority of its certificate.
    async fn reach(&self, name: &str) -> anyhow::Result<(Endpoint, kube::Config)> {
        let usage = || Fault::Usage("give the cluster's kubeconfig with --kubeconfig".into());
        let path = self.kubeconfig.as_ref().ok_or_else(usage)?;
        let kubeconfig = Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))?;
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        Ok((Endpoint::remote(name, config.clone(), "atoll")?, config))
    }
}

impl Join {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        block_on(async move {
            let fleet = self.hub.endpoint().await?;
            let (member, config) = self.member.reach(&self.name).await?;
            let options = JoinOptions {
                api_endpoint: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
                ca_bundle: config.root_cert.as_ref().map(|list| pem(list)),
                insecure: config.accept_invalid_certs,
                provider: self.provider.clone(),
                region: self.region.clone(),
                zones: self.zones.clone(),
                labels: Default::default(),
            };
            let progress = Progress::start();
            progress.stage(format!("waiting for cluster {} …", self.name));
            atoll_fleet::join(&fleet, &member, &self.name, options).await.map_err(told)?;
            output::line(&format!("cluster/{} joined", self.name));
            Ok(())
        })
    }
}

impl Unjoin {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        block_on(async move {
            let fleet = self.hub.endpoint().await?;
            let member = match &self.member.kubeconfig {
                Some(_) => Some(self.member.reach(&self.name).await?.0),
                None => None,
            };
            // What an earlier attempt left in the cluster is removed even if the instance has forgotten it.
            let clusters = Gvr::new("cluster.karmada.io", "v1alpha1", "clusters");
            if member.is_none() && fleet.get_opt(&clusters, None, &self.name).await.map_err(told)?.is_none() {
                let (name, instance) = (&self.name, &self.hub.instance);
                return Err(Fault::Missing(format!("there is no cluster {name:?} in instance {instance}")).into());
            }
            let progress = Progress::start();
            progress.stage(format!("removing what was spread to {} …", self.name));
            atoll_fleet::unjoin(&fleet, member.as_ref(), &self.name, std::time::Duration::from_secs(60))
                .await
                .map_err(told)?;
            output::line(&format!("cluster/{} unjoined", self.name));
            Ok(())
        })
    }
}

/// DER certificates as PEM.
fn pem(certificates: &[Vec<u8>]) -> Vec<u8> {
    use base64::Engine as _;
    let mut text = String::new();
    for der in certificates {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = base64::engine::general_purpose::STANDARD.encode(der);
        for line in encoded.as_bytes().chunks(64) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text.into_bytes()
}
