//! Logs, exec, attach and port-forward of pods on virtual nodes, for a computing cluster that is
//! an instance of this hub.

use std::sync::Arc;

use atoll_apiserver::{Body, Connect, Instance, Visit};
use atoll_meta::{Reason, Status};
use http::Response;

use crate::manager::Manager;
use crate::syncer::Syncer;

/// The subresources a [`connector`] is for, all of `pods`.
pub const STREAMS: [&str; 4] = ["log", "exec", "attach", "portforward"];

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
        let found = syncer.board.find(&visit.target.namespace, &visit.target.name).await?;
        let query = visit.request.uri().query().unwrap_or_default().to_owned();
        found.pass(visit.request, &visit.target.subresource, &query).await
    }

    fn serves(&self, instance: &Instance) -> bool {
        *instance.name == *self.instance || self.otherwise.as_ref().is_some_and(|connector| connector.serves(instance))
    }
}
