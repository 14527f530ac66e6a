//! How commands reach a hub: a kubeconfig and a context in it.

use std::path::PathBuf;

use anyhow::Context as _;
use atoll_meta::Status;
use atoll_runtime::Endpoint;
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Which kubeconfig and which context in it.
#[derive(Args, Clone, Debug)]
pub struct Access {
    /// Path of the kubeconfig; otherwise $KUBECONFIG, then ./atoll-data/kubeconfig
    #[arg(long, global = true)]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig
    #[arg(long, global = true)]
    context: Option<String>,
}

impl Access {
    /// From a path and a context given otherwise.
    pub fn of(kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        Self { kubeconfig, context }
    }

    fn read(&self) -> anyhow::Result<Kubeconfig> {
        let fallback = PathBuf::from("atoll-data/kubeconfig");
        match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display())),
            None if std::env::var_os("KUBECONFIG").is_some() => Kubeconfig::read().context("cannot read $KUBECONFIG"),
            None if fallback.exists() => Ok(Kubeconfig::read_from(&fallback)?),
            None => {
                anyhow::bail!("no kubeconfig: give --kubeconfig, set KUBECONFIG, or run `atoll up` in this directory")
            }
        }
    }

    /// A kubeconfig whose one context is an instance, with the credentials of the root context.
    pub fn kubeconfig_for(&self, instance: &str) -> anyhow::Result<String> {
        let mut config = self.read()?;
        let wanted = self.context.clone().unwrap_or_else(|| "root".to_owned());
        let context = config.contexts.iter().find(|context| context.name == wanted).cloned();
        let context =
            context.and_then(|named| named.context).with_context(|| format!("there is no context {wanted:?}"))?;
        config.clusters.retain(|cluster| cluster.name == context.cluster);
        config.auth_infos.retain(|user| Some(&user.name) == context.user.as_ref());
        for cluster in config.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            if let Some(server) = &mut cluster.server {
                let base = server.split("/instances/").next().unwrap_or_default().trim_end_matches('/').to_owned();
                *server = if instance == "root" { base } else { format!("{base}/instances/{instance}") };
            }
        }
        config.contexts = vec![kube::config::NamedContext {
            name: instance.to_owned(),
            context: Some(context),
            ..Default::default()
        }];
        config.current_context = Some(instance.to_owned());
        let tree = serde_json::to_value(&config)?;
        Ok(serde_saphyr::to_string(&tree)?)
    }

    /// A way to the hub in a context: the given one, or `default`.
    pub async fn endpoint(&self, default: &str) -> anyhow::Result<Endpoint> {
        let kubeconfig = self.read()?;
        let known: Vec<&str> = kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect();
        let name = match &self.context {
            Some(name) => name.clone(),
            None if known.contains(&default) => default.to_owned(),
            None => kubeconfig.current_context.clone().unwrap_or_default(),
        };
        if !known.contains(&name.as_str()) {
            anyhow::bail!("there is no context {name:?} in the kubeconfig; it has: {}", known.join(", "));
        }
        let options = KubeConfigOptions { context: Some(name.clone()), ..KubeConfigOptions::default() };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        Ok(Endpoint::remote(&name, config, "atoll")?)
    }
}

/// A failure as people read it.
pub fn told(status: Status) -> anyhow::Error {
    anyhow::anyhow!("{status}")
}

/// Runs a command's async part.
pub fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(work)
}
