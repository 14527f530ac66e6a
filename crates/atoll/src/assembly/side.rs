//! Metrics and health on ports of their own, for scrapers and probes.

use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context as _;
use atoll_apiserver::{Hub, probe};
use atoll_telemetry::{CONTENT_TYPE, Plain};

/// An address, or no port at all.
#[derive(Clone, Copy, Debug)]
pub enum SidePort {
    /// Not served.
    Off,
    /// Served here.
    At(SocketAddr),
}

impl FromStr for SidePort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            _ => text.parse().map(Self::At).map_err(|error| format!("{error}; give ADDRESS:PORT or off")),
        }
    }
}

/// The sockets, taken but not yet served.
pub struct Side {
    metrics: Option<Plain>,
    health: Option<Plain>,
}

impl Side {
    /// Takes the ports. One that was asked for must be free; a usual one that is taken is left out.
    pub async fn bind(metrics: Option<SidePort>, health: Option<SidePort>) -> anyhow::Result<Self> {
        Ok(Self { metrics: bind("metrics", metrics, 8080).await?, health: bind("health", health, 8081).await? })
    }

    /// Serves them as long as the process lives.
    pub fn run(self, hub: &Arc<Hub>) {
        if let Some(plain) = self.metrics {
            let metrics = hub.metrics.clone();
            tokio::spawn(plain.run(move |path| (path == "/metrics").then(|| (200, CONTENT_TYPE, metrics.text()))));
        }
        if let Some(plain) = self.health {
            let hub = hub.clone();
            tokio::spawn(plain.run(move |path| {
                let (ok, text) = probe(&hub, path.trim_start_matches('/'))?;
                Some((if ok { 200 } else { 500 }, "text/plain; charset=utf-8", text))
            }));
        }
    }
}

async fn bind(what: &str, wish: Option<SidePort>, usual: u16) -> anyhow::Result<Option<Plain>> {
    match wish {
        Some(SidePort::Off) => Ok(None),
        Some(SidePort::At(address)) => {
            let plain = Plain::bind(address).await;
            plain.map(Some).with_context(|| format!("cannot serve {what} on {address}"))
        }
        None => {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, usual));
            match Plain::bind(address).await {
                Ok(plain) => Ok(Some(plain)),
                Err(error) => {
                    tracing::warn!(%address, %error, "{what} not served: give another address or off");
                    Ok(None)
                }
            }
        }
    }
}
