//! The open ports of a binding's virtual nodes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use atoll_apiserver::{Server, ServerError};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::serve::Kubelet;
use super::{Kubelets, Proxier};
use crate::switchboard::Switchboard;
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

impl Doors {
    /// The open port of a virtual node.
    pub(crate) fn port(&self, node: &str) -> Option<u16> {
        self.open.lock().get(node).map(|(port, _)| *port)
    }

    /// Opens the port of a virtual node, and closes the one it had.
    pub(crate) async fn open(
        &self,
        proxier: &Arc<Proxier>,
        board: &Arc<Switchboard>,
        node: &str,
        port: u16,
    ) -> Result<(), ServerError> {
        let server = Server::bind(SocketAddr::new(proxier.options.listen, port), proxier.tls.clone()).await?;
        let stop = CancellationToken::new();
        tokio::spawn(server.run(Kubelet::new(board.clone(), proxier.clone(), node), stop.clone()));
        let earlier = self.open.lock().insert(node.to_owned(), (port, stop));
        earlier.into_iter().for_each(|(_, stop)| stop.cancel());
        Ok(())
    }

    /// Closes the port of a virtual node that is gone.
    pub(crate) fn close(&self, node: &str) {
        if let Some((_, stop)) = self.open.lock().remove(node) {
            stop.cancel();
        }
    }
}

impl Syncer {
    /// The port of a virtual node, open if the kubelet API is served here.
    pub(crate) async fn kubelet_port(&self, node: &str, labelled: &str) -> u16 {
        let mut port = self.computing.ports.assign(node, labelled);
        let Kubelets::Here(proxier) = &self.settings.kubelets else { return port };
        if let Some(open) = self.doors.port(node) {
            return open;
        }
        for _ in 0..TRIES {
            match self.doors.open(proxier, &self.board, node, port).await {
                Ok(()) => return port,
                Err(error) => {
                    tracing::warn!(node, port, %error, "trying another port");
                    port = self.computing.ports.reassign(node);
                }
            }
        }
        port
    }
}
