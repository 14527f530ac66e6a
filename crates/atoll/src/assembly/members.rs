//! How members and workers are reached: those of this hub without a socket, all others over HTTPS.

use std::sync::Arc;

use atoll_api::kubeocean::ClusterBinding;
use atoll_apiserver::{ApiService, Hub};
use atoll_fleet::{MemberResolver, RemoteMembers};
use atoll_meta::Status;
use atoll_runtime::Endpoint;
use atoll_vnode::{KubeconfigResolver, Worker, WorkerResolver};
use serde_json::Value;

use super::parts::members;

/// Finds ways to members and workers.
pub struct Members {
    /// The hub.
    pub hub: Arc<Hub>,
    /// Its API.
    pub service: ApiService,
}

impl Members {
    /// The instance of this hub that a URL leads to. Only the transport differs: the same API answers.
    fn local(&self, url: &str, agent: &str) -> Option<Endpoint> {
        let name = members(&self.hub)(url)?;
        Some(super::faults::way(&self.service, &name, agent))
    }
}

#[async_trait::async_trait]
impl MemberResolver for Members {
    async fn resolve(&self, cluster: &Value, secret: Option<&Value>) -> Result<Endpoint, Status> {
        let url = cluster["spec"]["apiEndpoint"].as_str().unwrap_or_default();
        match self.local(url, "atoll-fleet") {
            Some(way) => Ok(way),
            None => RemoteMembers.resolve(cluster, secret).await,
        }
    }
}

#[async_trait::async_trait]
impl WorkerResolver for Members {
    async fn resolve(&self, binding: &ClusterBinding, kubeconfig: &str) -> Result<Worker, Status> {
        let url =
            atoll_pki::Kubeconfig::parse(kubeconfig).and_then(|config| config.access(None)).map(|access| access.server);
        match url.ok().and_then(|url| members(&self.hub)(&url)) {
            // The way is shorter, the rights are those of the kubeconfig.
            Some(name) => Worker::in_process_by(&self.hub, &name, kubeconfig),
            None => WorkerResolver::resolve(&KubeconfigResolver, binding, kubeconfig).await,
        }
    }
}
