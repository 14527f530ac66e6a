//! How worker clusters are reached.

use std::sync::Arc;

use atoll_api::kubeocean::ClusterBinding;
use atoll_api::kubeocean_names::KUBECONFIG_KEY;
use atoll_apiserver::Hub;
use atoll_meta::Status;
use atoll_pki::{Access, Auth, Kubeconfig};
use atoll_runtime::{Denied, Endpoint};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::caller::{Caller, InstanceTransport};
use crate::feature::Features;
use crate::passage::{InstancePassage, Passage, RemotePassage};
use crate::resource;

/// A worker cluster.
#[derive(Clone)]
pub struct Worker {
    /// Its API.
    pub endpoint: Endpoint,
    /// The way for logs, exec, attach and port-forward; without one they are not offered.
    pub passage: Option<Arc<dyn Passage>>,
    /// What its owner does not grant.
    pub withheld: Features,
}

impl Worker {
    /// A worker reached through this endpoint.
    pub fn new(endpoint: Endpoint) -> Self {
        let passage = endpoint
            .transport()
            .remote()
            .map(|client| -> Arc<dyn Passage> { Arc::new(RemotePassage { client: client.clone() }) });
        Self { endpoint, passage, withheld: Features::new() }
    }

    /// An instance of a hub in this process, used as `caller`.
    pub fn in_process(hub: &Arc<Hub>, instance: &str, caller: impl Into<Caller>) -> Self {
        let caller = caller.into();
        let transport = InstanceTransport::new(hub, instance, caller.clone());
        let endpoint = Endpoint::new(instance, Arc::new(transport), crate::manager::AGENT);
        let passage = InstancePassage { hub: hub.clone(), instance: instance.to_owned(), caller };
        Self { endpoint, passage: Some(Arc::new(passage)), withheld: Features::new() }
    }

    /// An instance of a hub in this process, with the rights the kubeconfig gives and no others.
    pub fn in_process_by(hub: &Arc<Hub>, instance: &str, kubeconfig: &str) -> Result<Self, Status> {
        Ok(Self::in_process(hub, instance, Caller::of(&access(kubeconfig)?)?))
    }
}

/// Finds the worker cluster of a binding.
#[async_trait::async_trait]
pub trait WorkerResolver: Send + Sync {
    /// The worker that a binding's kubeconfig leads to.
    async fn resolve(&self, binding: &ClusterBinding, kubeconfig: &str) -> Result<Worker, Status>;
}

/// Reaches workers over HTTPS as their kubeconfig says.
#[derive(Clone, Debug, Default)]
pub struct KubeconfigResolver {
    /// Where no way leads, whatever a kubeconfig says.
    pub denied: Denied,
}

#[async_trait::async_trait]
impl WorkerResolver for KubeconfigResolver {
    async fn resolve(&self, binding: &ClusterBinding, kubeconfig: &str) -> Result<Worker, Status> {
        let name = binding.metadata.name.as_deref().unwrap_or_default();
        let config = client_config(&access(kubeconfig)?).await?;
        Ok(Worker::new(Endpoint::guarded(name, config, &self.denied, crate::manager::AGENT)?))
    }
}

/// The kubeconfig that a binding's Secret holds.
pub(crate) async fn kubeconfig(computing: &Endpoint, binding: &ClusterBinding) -> Result<String, Status> {
    let reference = &binding.spec.secret_ref;
    let (namespace, name) =
        (reference.namespace.as_deref().unwrap_or_default(), reference.name.as_deref().unwrap_or_default());
    let secret = computing.get(&resource::secrets(), Some(namespace), name).await?;
    let wrong = |why: &str| Status::bad_request(format!("secret {namespace}/{name}: {why}"));
    let text = secret["data"][KUBECONFIG_KEY].as_str().filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| wrong("no key \"kubeconfig\""))?;
    let bytes = STANDARD.decode(text).map_err(|_| wrong("key \"kubeconfig\" is not base64"))?;
    String::from_utf8(bytes).map_err(|_| wrong("key \"kubeconfig\" is not text"))
}

/// Reads a kubeconfig that may come from somebody else: files and programs in it are refused.
pub(crate) fn access(kubeconfig: &str) -> Result<Access, Status> {
    let refused = |error: atoll_pki::PkiError| Status::bad_request(error.to_string());
    Kubeconfig::parse(kubeconfig).map_err(refused)?.access(None).map_err(refused)
}

async fn client_config(access: &Access) -> Result<kube::Config, Status> {
    let mut config = Kubeconfig::new();
    config.add("worker", access);
    let text = config.to_yaml().map_err(|error| Status::internal(error.to_string()))?;
    let parsed =
        kube::config::Kubeconfig::from_yaml(&text).map_err(|_| Status::bad_request("kubeconfig: malformed"))?;
    let mut config = kube::Config::from_custom_kubeconfig(parsed, &kube::config::KubeConfigOptions::default())
        .await
        .map_err(|error| Status::bad_request(format!("kubeconfig: {error}")))?;
    // A limit on whole requests would also end watches; silence is noticed by the probe.
    config.read_timeout = None;
    if access.auth == Auth::None {
        tracing::warn!(server = %access.server, "the kubeconfig has no credentials");
    }
    Ok(config)
}

/// Takes a short way to workers it knows, and HTTPS to all others.
pub struct ShortCut<F> {
    short: F,
}

impl<F> ShortCut<F> {
    /// `short` gives the worker of a binding, if it is one that needs no network.
    pub fn new(short: F) -> Arc<Self> {
        Arc::new(Self { short })
    }
}

#[async_trait::async_trait]
impl<F> WorkerResolver for ShortCut<F>
where
    F: Fn(&ClusterBinding, &str) -> Option<Worker> + Send + Sync,
{
    async fn resolve(&self, binding: &ClusterBinding, kubeconfig: &str) -> Result<Worker, Status> {
        match (self.short)(binding, kubeconfig) {
            Some(worker) => Ok(worker),
            None => KubeconfigResolver::default().resolve(binding, kubeconfig).await,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_kubeconfig_does_not_lead_into_a_denied_network() {
        let [usual, nothing] = [Denied::default(), Denied::nothing()].map(|denied| KubeconfigResolver { denied });
        for (resolver, server, refused) in [
            (&usual, "https://169.254.169.254", true),
            (&usual, "https://127.0.0.1:6443", false),
            (&nothing, "https://169.254.169.254", false),
        ] {
            let text = format!(
                "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: '{server}'}}}}], \
                 users: [{{name: c, user: {{token: t}}}}], contexts: [{{name: c, context: {{cluster: c, user: c}}}}]}}"
            );
            let found = resolver.resolve(&ClusterBinding::default(), &text).await;
            let why = found.map_or_else(|status| status.message, |_| String::new());
            assert_eq!(why.contains("--deny-member-networks"), refused, "{server}: {why}");
        }
    }
}
