//! `atoll vnode-manager`: virtual nodes for a computing cluster that is somewhere else.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use atoll_runtime::{Denied, Endpoint};
use atoll_telemetry::Plain;
use atoll_vnode::{Deployed, KubeconfigResolver, Manager, Options, ProxierOptions, Share, kubelet_ca};
use clap::{ArgAction, Args};
use tokio_util::sync::CancellationToken;

use super::access::{Access, told};
use super::serve::stop_on_signal;

/// Run virtual nodes for any computing cluster, inside it or beside it.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll vnode-manager --kubeconfig ~/.kube/compute
  atoll vnode-manager --deploy registry.example/atoll:1.0 --deploy-replicas 2
  atoll vnode-manager --kubelet-address 10.0.0.7 --metrics-bind-address 127.0.0.1:8080")]
pub struct VnodeManager {
    #[command(flatten)]
    access: Access,
    /// Address of `/metrics`; 0 for none
    #[arg(long, default_value = ":8080", value_parser = address)]
    metrics_bind_address: Address,
    /// Address of `/healthz` and `/readyz`; 0 for none
    #[arg(long, default_value = ":8081", value_parser = address)]
    health_probe_bind_address: Address,
    /// Run the syncer and the proxier of each binding as Deployments of this image, not as tasks here
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["syncer", "proxier"])]
    deploy: Option<String>,
    /// Pods of each such Deployment; of syncers one works and the others wait, proxiers all serve
    #[arg(long, default_value_t = 1, requires = "deploy")]
    deploy_replicas: u32,
    /// Be the syncer of this binding only; its manager and its proxier run somewhere else
    #[arg(long, value_name = "BINDING", conflicts_with = "proxier")]
    syncer: Option<String>,
    /// Be a proxier of this binding only, and serve the kubelet API of its virtual nodes
    #[arg(long, value_name = "BINDING", requires = "kubelet_address")]
    proxier: Option<String>,
    /// Let only one of several managers work
    #[arg(long, default_value_t = true, action = ArgAction::Set)]
    leader_elect: bool,
    /// Our name among several managers; the host's name and process id if not given
    #[arg(long, env = "POD_NAME")]
    identity: Option<String>,
    /// Serve the kubelet API of virtual nodes; this is where the computing cluster reaches it
    #[arg(long, env = "POD_IP")]
    kubelet_address: Option<IpAddr>,
    /// Further name of the kubelet API's certificate
    #[arg(long, value_name = "DNS")]
    kubelet_name: Vec<String>,
    /// Address the kubelet API listens on; the one above if not given
    #[arg(long)]
    kubelet_listen: Option<IpAddr>,
    /// Run pods also when `default/kubernetes-intranet` and `kube-system/kube-dns-intranet` do not exist
    #[arg(long)]
    without_intranet: bool,
    /// DNS domain of the computing cluster
    #[arg(long, default_value = "cluster.local")]
    cluster_domain: String,
    /// Time zone of windows that name none; that of this host if not given
    #[arg(long)]
    time_zone: Option<String>,
}

/// An address to listen on, or none.
type Address = Option<SocketAddr>;

/// Reads `:8080`, `127.0.0.1:8080` or `0`.
fn address(text: &str) -> Result<Address, String> {
    match text {
        "0" => Ok(None),
        _ => {
            let full = if text.starts_with(':') { format!("{}{text}", Ipv4Addr::UNSPECIFIED) } else { text.to_owned() };
            full.parse().map(Some).map_err(|_| format!("{text:?} is not an address such as :8080 or 127.0.0.1:8080"))
        }
    }
}

impl VnodeManager {
    /// Runs until interrupted.
    pub fn run(self) -> anyhow::Result<()> {
        atoll_telemetry::logs();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
        runtime.block_on(async {
            let stop = CancellationToken::new();
            tokio::spawn(stop_on_signal(stop.clone()));
            self.serve(stop).await
        })
    }

    async fn serve(self, stop: CancellationToken) -> anyhow::Result<()> {
        // Ports first: a taken one must be told before anything is touched.
        let metrics = bind(self.metrics_bind_address).await?;
        let health = bind(self.health_probe_bind_address).await?;
        let computing = self.computing().await?;
        if self.syncer.is_none() && self.proxier.is_none() {
            atoll_vnode::define(&computing, "clusterbindings").await.map_err(told)?;
        }
        // Bindings are made by administrators of the cluster this serves: their ways are their own.
        let workers = KubeconfigResolver { denied: Denied::nothing() };
        let mut options = Options::new(computing.clone(), Arc::new(workers));
        options.intranet_required = !self.without_intranet;
        options.cluster_domain.clone_from(&self.cluster_domain);
        options.identity = self.leader_elect.then(|| self.identity());
        options.share = self.share();
        if let Some(name) = &self.time_zone {
            options.zone = jiff::tz::TimeZone::get(name).with_context(|| format!("there is no time zone {name:?}"))?;
        }
        if self.deploy.is_some() {
            // Those that are deployed find the authority made, and may not make one.
            kubelet_ca(&computing, jiff::Timestamp::now()).await.map_err(told)?;
        } else if let Some(advertise) = self.kubelet_address.filter(|_| self.syncer.is_none()) {
            let ca = kubelet_ca(&computing, jiff::Timestamp::now()).await.map_err(told)?;
            options.proxier = Some(ProxierOptions {
                listen: self.kubelet_listen.unwrap_or(advertise),
                advertise,
                names: self.kubelet_name.clone(),
                ca: Arc::new(ca),
                clients: None,
                audiences: Vec::new(),
            });
        }
        let manager = Manager::start(options, stop.child_token()).await;
        serve_metrics(metrics, &manager);
        serve_health(health, &manager);
        eprintln!("atoll vnode-manager serves {}", computing.name());
        stop.cancelled().await;
        manager.ended().await;
        Ok(())
    }

    /// Which part of the work is done by this process.
    fn share(&self) -> Share {
        let Some(image) = self.deploy.clone() else {
            let part = self.syncer.clone().map(Share::Syncer).or_else(|| self.proxier.clone().map(Share::Proxier));
            return part.unwrap_or_default();
        };
        let mut arguments = vec![format!("--cluster-domain={}", self.cluster_domain)];
        arguments.extend(self.without_intranet.then(|| "--without-intranet".to_owned()));
        arguments.extend(self.time_zone.as_ref().map(|zone| format!("--time-zone={zone}")));
        Share::Manager(Deployed { image, replicas: self.deploy_replicas, arguments })
    }

    /// The computing cluster: as the kubeconfig says, or the one this process runs in.
    async fn computing(&self) -> anyhow::Result<Endpoint> {
        let inside = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() && std::env::var_os("KUBECONFIG").is_none();
        match self.access.endpoint("compute").await {
            Err(_) if inside => {
                let config = kube::Config::incluster().context("this looks like a pod without a service account")?;
                Endpoint::remote("in-cluster", config, "atoll-vnode").map_err(told)
            }
            result => result,
        }
    }

    fn identity(&self) -> String {
        let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_else(|_| "atoll".to_owned());
        self.identity.clone().unwrap_or_else(|| format!("{}_{}", host().trim(), std::process::id()))
    }
}

async fn bind(address: Address) -> anyhow::Result<Option<Plain>> {
    match address {
        Some(address) => {
            let plain = Plain::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
            Ok(Some(plain))
        }
        None => Ok(None),
    }
}

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

fn serve_metrics(plain: Option<Plain>, manager: &Manager) {
    let manager = manager.clone();
    if let Some(plain) = plain {
        tokio::spawn(plain.run(move |path| (path == "/metrics").then(|| (200, TEXT, manager.metrics()))));
    }
}

fn serve_health(plain: Option<Plain>, manager: &Manager) {
    let manager = manager.clone();
    if let Some(plain) = plain {
        tokio::spawn(plain.run(move |path| match path {
            "/healthz" => Some((200, TEXT, "ok".to_owned())),
            "/readyz" if manager.is_ready() => Some((200, TEXT, "ok".to_owned())),
            "/readyz" => Some((503, TEXT, "the computing cluster is not followed yet".to_owned())),
            _ => None,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_original_writes_them() {
        assert_eq!(address(":8080"), Ok(Some(SocketAddr::from(([0, 0, 0, 0], 8080)))));
        assert_eq!(address("127.0.0.1:1"), Ok(Some(SocketAddr::from(([127, 0, 0, 1], 1)))));
        assert_eq!(address("0"), Ok(None));
        assert!(address("8080").is_err());
    }
}
