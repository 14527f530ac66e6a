//! From a pod above to its physical pod: what logs, exec and metrics of one binding go through.

use std::sync::Arc;

use atoll_api::kubeocean_names::annotation;
use atoll_apiserver::{Body, Incoming};
use atoll_meta::Status;
use atoll_runtime::{Cache, Endpoint};
use http::{Request, Response, Uri};
use serde_json::Value;

use crate::Clock;
use crate::passage::Passage;
use crate::proxier::Meter;
use crate::worker::Worker;
use crate::{resource, tree};

/// Connects callers above with pods below. A syncer has one, and so has a proxier that runs apart from it.
pub(crate) struct Switchboard {
    pub(crate) computing: Endpoint,
    /// Uid of the computing cluster's `kube-system`: whose physical pods are.
    pub(crate) owner: String,
    pub(crate) worker: Worker,
    pub(crate) mount: String,
    /// Pods of the worker cluster, at least those of the mount namespace.
    pub(crate) pods: Cache,
    pub(crate) meter: Meter,
    pub(crate) clock: Clock,
}

/// A physical pod and the way to it.
pub(crate) struct Found {
    passage: Option<Arc<dyn Passage>>,
    namespace: String,
    name: String,
    /// The virtual node it runs for.
    pub(crate) node: String,
    /// The physical pod as last known.
    pub(crate) pod: Value,
}

impl Switchboard {
    /// The physical pod of a pod on one of our nodes; never one that runs for somebody else.
    pub(crate) async fn find(&self, namespace: &str, name: &str) -> Result<Found, Status> {
        let missing = || Status::not_found("", "pods", name);
        let pod = self.computing.get(&resource::pods(), Some(namespace), name).await?;
        let mount = tree::annotation(&pod, annotation::PHYSICAL_POD_NAMESPACE);
        let physical = tree::annotation(&pod, annotation::PHYSICAL_POD_NAME);
        if mount != self.mount {
            return Err(Status::bad_request(format!("pod {name} does not run in the worker cluster yet")));
        }
        let below = self.pods.get(mount, physical).ok_or_else(missing)?.tree();
        if tree::annotation(&below, annotation::VIRTUAL_POD_UID) != tree::uid(&pod)
            || !crate::syncer::is_ours(&below, &self.owner)
        {
            return Err(missing());
        }
        Ok(Found {
            passage: self.worker.passage.clone(),
            namespace: mount.to_owned(),
            name: physical.to_owned(),
            node: pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned(),
            pod: below,
        })
    }

    /// The pods of a virtual node as the computing cluster has them.
    pub(crate) async fn pods_on(&self, node: &str) -> Result<Vec<Value>, Status> {
        let query = format!("fieldSelector=spec.nodeName%3D{node}");
        Ok(self.computing.list(&resource::pods(), None, &query).await?.items)
    }
}

impl Found {
    /// Hands a request on to a subresource of the physical pod.
    pub(crate) async fn pass(
        self,
        mut request: Request<Incoming>,
        subresource: &str,
        query: &str,
    ) -> Result<Response<Body>, Status> {
        *request.uri_mut() = self.path(subresource, query)?;
        let passage = self.passage.ok_or_else(|| Status::unavailable("the worker cluster takes no streams"))?;
        passage.pass(request).await
    }

    fn path(&self, subresource: &str, query: &str) -> Result<Uri, Status> {
        let question = if query.is_empty() { "" } else { "?" };
        let path = format!("/api/v1/namespaces/{}/pods/{}/{subresource}{question}{query}", self.namespace, self.name);
        path.parse().map_err(|_| Status::bad_request("the query cannot be passed on"))
    }
}
