//! Where pods find the computing cluster.

use std::time::Duration;

use atoll_meta::Status;

use super::Syncer;
use crate::pod::{Intranet, offered};
use crate::resource;

/// How long an answer is believed.
const FRESH: Duration = Duration::from_secs(30);
/// The Services through which pods elsewhere reach API server and DNS.
const API: (&str, &str) = ("default", "kubernetes-intranet");
const DNS: (&str, &str) = ("kube-system", "kube-dns-intranet");

impl Syncer {
    /// The addresses of the computing cluster's API server and DNS.
    pub(crate) async fn intranet(&self) -> Result<Intranet, Status> {
        if let Some((at, known)) = &*self.intranet.lock()
            && at.elapsed() < FRESH
        {
            return Ok(known.clone());
        }
        let intranet = Intranet {
            api: self.offered(API).await?,
            dns: self.offered(DNS).await?.map(|(address, _)| address),
            domain: self.settings.cluster_domain.clone(),
        };
        *self.intranet.lock() = Some((tokio::time::Instant::now(), intranet.clone()));
        Ok(intranet)
    }

    async fn offered(&self, (namespace, name): (&str, &str)) -> Result<Option<(String, i64)>, Status> {
        match self.above().get_opt(&resource::services(), Some(namespace), name).await? {
            Some(service) => offered(&service).map(Some).map_err(Status::unavailable),
            None if self.settings.intranet_required => {
                Err(Status::unavailable(format!("service {namespace}/{name} does not exist in the computing cluster")))
            }
            None => Ok(None),
        }
    }
}
