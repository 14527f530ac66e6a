//! The kubelet API of virtual nodes: one TLS port per node, every path behind authentication and
//! authorisation by the computing cluster.

mod apart;
mod auth;
mod authority;
mod door;
mod meter;
mod route;
mod serve;
mod translate;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Status;
use atoll_pki::{Ca, CaBundle, San, ServerCerts, Validity};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

pub(crate) use apart::{Attendance, MAIN_PORT, attend};
pub(crate) use authority::NAME as AUTHORITY;
pub use authority::kubelet_ca;
pub(crate) use door::Doors;
pub(crate) use meter::{Meter, Use};

use crate::Clock;

const DAYS: u32 = 90;
const RENEWAL_CHECK: Duration = Duration::from_secs(3600);

/// How the kubelet API of virtual nodes is served.
#[derive(Clone)]
pub struct ProxierOptions {
    /// The address to listen on.
    pub listen: IpAddr,
    /// The address virtual nodes announce.
    pub advertise: IpAddr,
    /// Further names of the serving certificate.
    pub names: Vec<String>,
    /// Issues the serving certificate, which is renewed while serving.
    pub ca: Arc<Ca>,
    /// Who vouches for callers with certificates; without, those the computing cluster publishes.
    pub clients: Option<CaBundle>,
    /// For whom callers' tokens must be meant; empty means the computing cluster itself.
    pub audiences: Vec<String>,
}

/// Where the kubelet API of virtual nodes is served.
#[derive(Clone)]
pub(crate) enum Kubelets {
    /// It is not.
    Nowhere,
    /// In this process.
    Here(Arc<Proxier>),
    /// By the proxiers of the binding, which are pods of the computing cluster.
    Elsewhere,
}

/// What all ports share.
pub(crate) struct Proxier {
    pub(crate) options: ProxierOptions,
    pub(crate) tls: Arc<rustls::ServerConfig>,
    certs: Arc<ServerCerts>,
    clock: Clock,
    renew_at: Mutex<jiff::Timestamp>,
    /// Authorities the computing cluster publishes, and when they were read.
    published: Mutex<Option<(tokio::time::Instant, CaBundle)>>,
}

impl Proxier {
    pub(crate) fn new(options: ProxierOptions, clock: Clock) -> Result<Arc<Self>, Status> {
        let certs = Arc::new(ServerCerts::default());
        // Upgrades need HTTP/1.1.
        let tls = atoll_pki::server_config(certs.clone(), &[b"http/1.1"]).map_err(Status::internal)?;
        let proxier = Self {
            options,
            tls: Arc::new(tls),
            certs,
            renew_at: Mutex::new(jiff::Timestamp::MIN),
            clock,
            published: Mutex::default(),
        };
        proxier.renew()?;
        Ok(Arc::new(proxier))
    }

    /// Issues a new certificate if the present one is old.
    fn renew(&self) -> Result<(), Status> {
        let now = (self.clock)();
        let mut renew_at = self.renew_at.lock();
        if now < *renew_at {
            return Ok(());
        }
        let mut names =
            vec![San::Ip(self.options.advertise), San::new("localhost"), San::new("127.0.0.1"), San::new("kubelet")];
        names.extend(self.options.names.iter().map(|name| San::new(name)));
        if !self.options.listen.is_unspecified() {
            names.push(San::Ip(self.options.listen));
        }
        let validity = Validity::days(now, DAYS);
        let pair = self.options.ca.issue_server(&names, validity).map_err(Status::internal)?;
        self.certs.set(None, &pair).map_err(Status::internal)?;
        let third = jiff::SignedDuration::from_hours(24 * i64::from(DAYS) * 2 / 3);
        *renew_at = now.checked_add(third).unwrap_or(validity.not_after);
        Ok(())
    }

    /// Renews the certificate in time until `stop`.
    pub(crate) async fn keep_fresh(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(RENEWAL_CHECK) => {}
            }
            if let Err(status) = self.renew() {
                tracing::warn!(%status, "the serving certificate was not renewed");
            }
        }
    }
}
