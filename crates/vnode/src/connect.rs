//! Logs, exec, attach and port-forward of pods on virtual nodes, for a computing cluster that is
//! an instance of this hub.

use std::sync::Arc;

use atoll_api::kubeocean_names::annotation;
use atoll_apiserver::{Body, Connect, Instance, Visit};
use atoll_meta::{Reason, Status};
use http::{Response, Uri};

use crate::manager::Manager;
use crate::syncer::Syncer;
use crate::tree;

/// The subresources a [`connector`] is for, all of `pods`.
pub const STREAMS: [&str; 4] = ["log", "exec", "attach", "portforward"];

/// A physical pod and the syncer that keeps it.
pub(crate) struct Found {
    pub(crate) syncer: Arc<Syncer>,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The physical pod as last known.
    pub(crate) pod: serde_json::Value,
}

impl Found {
    /// The path of a subresource in the worker cluster.
    pub(crate) fn path(&self, subresource: &str, query: &str) -> Result<Uri, Status> {
        let question = if query.is_empty() { "" } else { "?" };
        let path = format!("/api/v1/namespaces/{}/pods/{}/{subresource}{question}{query}", self.namespace, self.name);
        path.parse().map_err(|_| Status::bad_request("the query cannot be passed on"))
    }
}

impl Syncer {
    /// The physical pod of a pod on one of our nodes; never one that runs for somebody else.
    pub(crate) fn find(self: &Arc<Self>, namespace: &str, name: &str) -> Result<Found, Status> {
        let missing = || Status::not_found("", "pods", name);
        let pod = self.computing.pods.get(namespace, name).ok_or_else(missing)?.tree();
        let (mount, physical) = (
            tree::annotation(&pod, annotation::PHYSICAL_POD_NAMESPACE),
            tree::annotation(&pod, annotation::PHYSICAL_POD_NAME),
        );
        if mount != self.binding().mount_namespace {
            return Err(Status::bad_request(format!("pod {name} does not run in the worker cluster yet")));
        }
        let below = self.pods.get(mount, physical).ok_or_else(missing)?.tree();
        if tree::annotation(&below, annotation::VIRTUAL_POD_UID) != tree::uid(&pod)
            || !crate::syncer::is_ours(&below, &self.computing.owner)
        {
            return Err(missing());
        }
        Ok(Found { syncer: self.clone(), namespace: mount.to_owned(), name: physical.to_owned(), pod: below })
    }
}

impl Manager {
    /// The syncer whose virtual node a pod is on.
    fn keeper(&self, namespace: &str, name: &str) -> Option<Arc<Syncer>> {
        let any = self.bindings().iter().find_map(|binding| self.syncer(binding))?;
        let pod = any.computing.pods.get(namespace, name)?.tree();
        self.syncer(&any.computing.host(pod["spec"]["nodeName"].as_str()?)?.binding)
    }
}

struct Connector {
    manager: Manager,
    instance: String,
    otherwise: Option<Arc<dyn Connect>>,
}

/// Serves [`STREAMS`] of pods on virtual nodes of a computing cluster that is an instance of
/// this hub; `otherwise` serves all other pods.
pub fn connector(manager: Manager, instance: &str, otherwise: Option<Arc<dyn Connect>>) -> Arc<dyn Connect> {
    Arc::new(Connector { manager, instance: instance.to_owned(), otherwise })
}

#[async_trait::async_trait]
impl Connect for Connector {
    async fn connect(&self, visit: Visit) -> Result<Response<Body>, Status> {
        let ours = *visit.instance.name == *self.instance;
        let keeper = ours.then(|| self.manager.keeper(&visit.target.namespace, &visit.target.name)).flatten();
        let Some(syncer) = keeper else {
            return match &self.otherwise {
                Some(connector) if connector.serves(&visit.instance) => connector.connect(visit).await,
                _ => Err(Status::new(404, Reason::NotFound, "the server could not find the requested resource")),
            };
        };
        let found = syncer.find(&visit.target.namespace, &visit.target.name)?;
        let mut request = visit.request;
        *request.uri_mut() = found.path(&visit.target.subresource, request.uri().query().unwrap_or_default())?;
        let passage = found.syncer.worker.passage.clone();
        let passage = passage.ok_or_else(|| Status::unavailable("the worker cluster takes no streams"))?;
        passage.pass(request).await
    }

    fn serves(&self, instance: &Instance) -> bool {
        *instance.name == *self.instance || self.otherwise.as_ref().is_some_and(|connector| connector.serves(instance))
    }
}
