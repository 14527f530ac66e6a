//! `atoll lease bind`: an account in the worker, its kubeconfig and a ClusterBinding in the computing cluster.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use atoll_meta::{Gvr, Status};
use atoll_pki::{Auth, Kubeconfig};
use atoll_runtime::{Endpoint, Patch, WatchEvent};
use atoll_vnode::Feature;
use base64::Engine as _;
use clap::Args;
use serde_json::{Value, json};

use super::bindings;
use crate::commands::access::told;
use crate::commands::output;

/// Where kubeconfig Secrets are kept.
const SYSTEM: &str = "kubeocean-system";

/// What to bind, and how.
#[derive(Args)]
pub struct Bind {
    /// Name of the binding; policies in the worker cluster refer to it
    name: String,
    /// Kubeconfig of an administrator of the worker cluster; otherwise $KUBECONFIG
    #[arg(long)]
    worker_kubeconfig: Option<PathBuf>,
    /// Context in that kubeconfig
    #[arg(long)]
    worker_context: Option<String>,
    /// Short name of the worker cluster, part of the names of virtual nodes; the binding's name if not given
    #[arg(long)]
    cluster_id: Option<String>,
    /// Namespace of the worker cluster that leased pods run in
    #[arg(long, default_value = "kubeocean-worker")]
    mount_namespace: String,
    /// Namespaces whose Services leased pods can reach, separated by commas
    #[arg(long, value_delimiter = ',')]
    service_namespaces: Vec<String>,
    /// Do not taint virtual nodes: any pod may be scheduled there
    #[arg(long)]
    no_taint: bool,
    /// Do not grant what these features need: volumes, services, events, logs, exec, port-forward, debug, metrics
    #[arg(long, value_delimiter = ',', conflicts_with = "as_is")]
    without: Vec<Feature>,
    /// Hand over the credentials of the kubeconfig as they are instead of making an account with the least rights
    #[arg(long)]
    as_is: bool,
    /// Days the token of that account lasts; binding again renews it
    #[arg(long, default_value_t = 365)]
    days: u32,
    /// Do not wait until the binding is ready
    #[arg(long)]
    no_wait: bool,
}

impl Bind {
    /// Binds; running it again renews the credentials and brings rights and settings up to date.
    pub async fn run(&self, computing: &Endpoint) -> anyhow::Result<()> {
        let kubeconfig = self.credentials().await?;
        atoll_vnode::define(computing, "clusterbindings").await.map_err(told)?;
        let secret = format!("{}-kubeconfig", self.name);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}});
        computing.ensure(&Gvr::new("", "v1", "namespaces"), None, &namespace).await.map_err(told)?;
        let data = base64::engine::general_purpose::STANDARD.encode(kubeconfig.to_yaml()?);
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret, "namespace": SYSTEM},
            "data": {"kubeconfig": data},
        });
        apply(computing, &Gvr::new("", "v1", "secrets"), Some(SYSTEM), &object).await.map_err(told)?;
        apply(computing, &bindings(), None, &self.binding(&secret)).await.map_err(told)?;
        output::line(&format!("clusterbinding/{} bound", self.name));
        if self.no_wait {
            return Ok(());
        }
        self.wait(computing).await
    }

    fn binding(&self, secret: &str) -> Value {
        let mut spec = json!({
            "clusterID": self.cluster_id.as_ref().unwrap_or(&self.name), "mountNamespace": self.mount_namespace,
            "secretRef": {"name": secret, "namespace": SYSTEM},
        });
        if !self.service_namespaces.is_empty() {
            spec["serviceNamespaces"] = json!(self.service_namespaces);
        }
        if self.no_taint {
            spec["disableNodeDefaultTaint"] = true.into();
        }
        json!({"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ClusterBinding", "metadata": {"name": self.name}, "spec": spec})
    }

    /// The kubeconfig that the syncer will use.
    async fn credentials(&self) -> anyhow::Result<Kubeconfig> {
        let path = self.worker_kubeconfig.clone().or_else(|| std::env::var_os("KUBECONFIG").map(PathBuf::from));
        let path = path.context("give the worker's kubeconfig with --worker-kubeconfig")?;
        let given = Kubeconfig::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut access = given.access(self.worker_context.as_deref())?;
        let worker = worker(&self.name, &path, self.worker_context.as_deref()).await?;
        atoll_vnode::define(&worker, "resourceleasingpolicies").await.map_err(told)?;
        if !self.as_is {
            let account = format!("atoll-lessee-{}", self.name);
            let lasting = Duration::from_secs(u64::from(self.days) * 86_400);
            let without = self.without.iter().copied().collect();
            let token = atoll_vnode::grant(&worker, &account, &self.mount_namespace, &without, lasting);
            let token = token.await.map_err(told)?;
            output::line(&format!("serviceaccount/{account} in {} has the least rights", self.mount_namespace));
            access.auth = Auth::Token(token);
        }
        let mut kubeconfig = Kubeconfig::new();
        kubeconfig.add("worker", &access);
        Ok(kubeconfig)
    }

    /// Waits until the binding works, or says why it does not.
    async fn wait(&self, computing: &Endpoint) -> anyhow::Result<()> {
        let query = format!("fieldSelector=metadata.name%3D{}", self.name);
        let mut last = "nobody looked at it: is a vnode-manager running?".to_owned();
        let waiting = async {
            let mut stream = computing.watch(&bindings(), None, &query, "").await?;
            while let Some(event) = stream.next().await {
                let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event? else { continue };
                let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
                if let Some(ready) = conditions.iter().find(|condition| condition["type"] == "Ready") {
                    last = format!(
                        "{}: {}",
                        ready["reason"].as_str().unwrap_or_default(),
                        ready["message"].as_str().unwrap_or_default()
                    );
                }
                if object["status"]["phase"] == "Ready" {
                    return Ok(());
                }
            }
            Err(Status::unavailable("the watch ended"))
        };
        match tokio::time::timeout(Duration::from_secs(60), waiting).await {
            Ok(result) => {
                result.map_err(told)?;
                output::line(&format!("clusterbinding/{} is ready", self.name));
                Ok(())
            }
            Err(_) => anyhow::bail!("not ready after 60 s; {last}"),
        }
    }
}

async fn worker(name: &str, path: &Path, context: Option<&str>) -> anyhow::Result<Endpoint> {
    let kubeconfig = kube::config::Kubeconfig::read_from(path)?;
    let options = kube::config::KubeConfigOptions { context: context.map(ToOwned::to_owned), ..Default::default() };
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    Endpoint::remote(name, config, "atoll").map_err(told)
}

async fn apply(cluster: &Endpoint, gvr: &Gvr, namespace: Option<&str>, object: &Value) -> Result<(), Status> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    cluster.patch(gvr, namespace, name, "", Patch::Apply { manager: "atoll", force: true }, object).await.map(drop)
}
