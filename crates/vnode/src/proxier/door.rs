//! The open ports of a binding's virtual nodes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use atoll_apiserver::Server;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::Proxier;
use super::serve::Kubelet;
use crate::syncer::Syncer;

/// How many ports are tried for a node.
const TRIES: usize = 16;

/// Which ports are open. Dropping closes all of them.
#[derive(Default)]
pub(crate) struct Doors {
    open: Mutex<HashMap<String, (u16, CancellationToken)>>,
}

impl Drop for Doors {
    fn drop(&mut self) {
        self.open.lock().values().for_each(|(_, stop)| stop.cancel());
    }
}

impl Syncer {
    /// The port of a virtual node, open if the kubelet API is served at all.
    pub(crate) async fn kubelet_port(self: &Arc<Self>, node: &str, labelled: &str) -> u16 {
        let mut port = self.computing.ports.assign(node, labelled);
        let Some(proxier) = &self.settings.proxier else { return port };
        if let Some((open, _)) = self.doors.open.lock().get(node) {
            return *open;
        }
        for _ in 0..TRIES {
            match self.open_door(proxier, node, port).await {
                Ok(()) => return port,
                Err(error) => {
                    tracing::warn!(node, port, %error, "trying another port");
                    port = self.computing.ports.reassign(node);
                }
            }
        }
        port
    }

    async fn open_door(
        self: &Arc<Self>,
        proxier: &Arc<Proxier>,
        node: &str,
        port: u16,
    ) -> Result<(), atoll_apiserver::ServerError> {
        let server = Server::bind(SocketAddr::new(proxier.options.listen, port), proxier.tls.clone()).await?;
        let stop = CancellationToken::new();
        // Weak: the ports close with the syncer, not the other way round.
        let kubelet = Kubelet::new(Arc::downgrade(self), proxier.clone(), node);
        tokio::spawn(server.run(kubelet, stop.clone()));
        let earlier = self.doors.open.lock().insert(node.to_owned(), (port, stop));
        earlier.into_iter().for_each(|(_, stop)| stop.cancel());
        Ok(())
    }

    /// Closes the port of a virtual node that is gone.
    pub(crate) fn close_door(&self, node: &str) {
        if let Some((_, stop)) = self.doors.open.lock().remove(node) {
            stop.cancel();
        }
    }
}
