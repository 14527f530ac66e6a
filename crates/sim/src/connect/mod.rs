//! What kubelets serve: logs, exec, attach, port-forward, proxies and metrics.

mod attach;
mod container;
mod exec;
mod guestbook;
mod logs;
mod metrics;
mod mounted;
mod network;
mod node;
mod portforward;
mod session;
mod usage;
mod web;

use std::sync::Arc;

use atoll_apiserver::{Body, Connect, Hub, Instance, Visit};
use atoll_meta::Status;
use http::Response;

use crate::registry;

/// Subresources served for pods of simulated clusters.
pub const POD_STREAMS: [&str; 5] = ["log", "exec", "attach", "portforward", "proxy"];

/// Serves the streams, proxies and metrics of all simulated clusters of a hub. Addresses of
/// services are another matter: see [`crate::ServiceAddresses`].
pub fn install(hub: &Arc<Hub>) {
    for stream in POD_STREAMS {
        hub.add_connector("", "pods", stream, connector(hub, stream));
    }
    hub.add_connector("", "services", "proxy", connector(hub, "service"));
    hub.add_connector("", "nodes", "proxy", connector(hub, "node"));
    hub.add_mount(Arc::new(metrics::Metrics::new(Arc::downgrade(hub))));
}

fn is_simulated(hub: &std::sync::Weak<Hub>, instance: &Instance) -> bool {
    hub.upgrade().is_some_and(|hub| registry::find(&hub, &instance.name).is_some())
}

/// Serves one subresource of pods of simulated clusters: one of [`POD_STREAMS`].
pub fn connector(hub: &Arc<Hub>, stream: &'static str) -> Arc<dyn Connect> {
    Arc::new(Connector { hub: Arc::downgrade(hub), stream })
}

struct Connector {
    hub: std::sync::Weak<Hub>,
    stream: &'static str,
}

#[async_trait::async_trait]
impl Connect for Connector {
    async fn connect(&self, visit: Visit) -> Result<Response<Body>, Status> {
        let Some(world) = registry::find(&visit.hub, &visit.instance.name) else {
            return Err(Status::unavailable("the simulated cluster is not running"));
        };
        world.catch_up(&visit.instance).await;
        match self.stream {
            "log" => logs::serve(world, visit),
            "exec" => exec::serve(world, visit),
            "attach" => attach::serve(world, visit),
            "portforward" => portforward::serve(world, visit),
            "proxy" => web::serve_pod(&world, &visit),
            "service" => web::serve_service(&world, &visit),
            _ => node::serve(&world, &visit),
        }
    }

    fn serves(&self, instance: &Instance) -> bool {
        is_simulated(&self.hub, instance)
    }
}
