//! The certificate a hub serves with, replaced long before it ends while connections go on.

use std::sync::Arc;
use std::time::Duration;

use atoll_pki::{PemPair, PkiError, Renewing, San, ServerCerts, Validity};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::hub::Hub;

/// Days a serving certificate lasts; the last third of them is for trying again.
const DAYS: u32 = 90;
/// How often its age is looked at. A long sleep would trust that no clock is ever set and no machine suspended.
const LOOK: Duration = Duration::from_secs(600);

type Issue = Box<dyn FnMut(Timestamp) -> Result<PemPair, PkiError> + Send>;

/// The serving certificate of a hub, issued by the hub itself.
pub struct Serving {
    hub: Arc<Hub>,
    certs: Arc<ServerCerts>,
    renewing: Renewing<Issue>,
}

impl Serving {
    /// Serves with a new certificate for these names.
    pub fn start(hub: &Arc<Hub>, certs: Arc<ServerCerts>, names: Vec<San>) -> Result<Self, PkiError> {
        let own = hub.clone();
        let issue: Issue =
            Box::new(move |now| own.keys().own().serving.issue_server(&names, Validity::days(now, DAYS)));
        let renewing = Renewing::new(hub.now(), issue)?;
        certs.set(None, renewing.pair())?;
        Ok(Self { hub: hub.clone(), certs, renewing })
    }

    /// Serves with a new certificate if the present one is old; says whether it was.
    pub fn renew(&mut self) -> Result<bool, PkiError> {
        match self.renewing.renew(self.hub.now())? {
            Some(pair) => self.certs.set(None, pair).map(|()| true),
            None => Ok(false),
        }
    }

    /// The certificate in use.
    pub fn certificate(&self) -> &str {
        &self.renewing.pair().cert
    }

    /// Renews it in time, until `stop`.
    pub async fn keep(mut self, stop: CancellationToken) -> Self {
        loop {
            tokio::select! {
                () = stop.cancelled() => return self,
                () = tokio::time::sleep(LOOK) => {}
            }
            match self.renew() {
                Ok(true) => tracing::info!("the serving certificate was renewed"),
                Ok(false) => {}
                Err(error) => tracing::error!(%error, "the serving certificate was not renewed"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use atoll_pki::CaBundle;
    use atoll_store::MemoryEngine;
    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Empty};
    use jiff::SignedDuration;
    use parking_lot::Mutex;
    use rustls_pki_types::{CertificateDer, ServerName};

    use super::*;
    use crate::auth::Keys;
    use crate::hub::{Clock, Options};
    use crate::{ApiService, Server};

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    async fn hub(clock: Clock) -> Arc<Hub> {
        Hub::open(Arc::new(MemoryEngine::new()), Keys::default(), clock, Options::default()).await.unwrap()
    }

    fn left(serving: &Serving) -> SignedDuration {
        atoll_pki::validity_of(serving.certificate()).unwrap().not_after.duration_since(serving.hub.now())
    }

    #[tokio::test(start_paused = true)]
    async fn a_certificate_is_never_old_in_more_than_a_year() {
        let (start, began) = (Timestamp::now(), tokio::time::Instant::now());
        let clock = move || start + SignedDuration::try_from(began.elapsed()).unwrap();
        let hub = hub(Arc::new(clock)).await;
        let mut serving = Serving::start(&hub, Arc::default(), vec![San::new("localhost")]).unwrap();
        let mut seen = vec![serving.certificate().to_owned()];
        for _ in 0..14 {
            let stop = CancellationToken::new();
            let kept = tokio::spawn(serving.keep(stop.clone()));
            tokio::time::sleep((DAY * 30).unsigned_abs()).await;
            stop.cancel();
            serving = kept.await.unwrap();
            assert!(left(&serving) >= DAY * 29, "{} left", left(&serving));
            seen.push(serving.certificate().to_owned());
        }
        seen.dedup();
        assert!((7..=8).contains(&seen.len()), "once in 60 days, not {} times in 420", seen.len());
    }

    type Sender = hyper::client::conn::http2::SendRequest<Empty<Bytes>>;

    /// A connection, and the certificate the server showed.
    async fn connect(address: std::net::SocketAddr, authority: &str) -> (Sender, CertificateDer<'static>) {
        let mut tls = atoll_pki::client_config(&CaBundle::from_pem(authority).unwrap(), None).unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = tokio_rustls::TlsConnector::from(Arc::new(tls)).connect(name, socket).await.unwrap();
        let shown = stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned();
        let (executor, io) = (hyper_util::rt::TokioExecutor::new(), hyper_util::rt::TokioIo::new(stream));
        let (sender, running) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
        tokio::spawn(running);
        (sender, shown)
    }

    async fn works(sender: &mut Sender) -> bool {
        let request = http::Request::get("https://localhost/version").body(Empty::new()).unwrap();
        let answer = sender.send_request(request).await.unwrap();
        let code = answer.status();
        answer.into_body().collect().await.unwrap();
        code == 200
    }

    #[tokio::test]
    async fn new_handshakes_get_the_new_certificate_and_old_connections_go_on() {
        // Callers judge by the real time: the hub begins in the past so that both certificates are good now.
        let now = Timestamp::now();
        let clock = Arc::new(Mutex::new(now - DAY * 65));
        let hands = clock.clone();
        let hub = hub(Arc::new(move || *hands.lock())).await;
        let authority = hub.keys().own().serving.cert_pem();
        let certs = Arc::new(ServerCerts::default());
        let tls = atoll_pki::server_config(certs.clone(), &[b"h2"]).unwrap();
        let server = Server::bind(([127, 0, 0, 1], 0).into(), Arc::new(tls)).await.unwrap();
        let address = server.address().unwrap();
        let mut serving = Serving::start(&hub, certs, vec![San::new("localhost")]).unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(server.run(ApiService::new(hub.clone()), stop.clone()));
        let (mut old, first) = connect(address, &authority).await;
        assert!(!serving.renew().unwrap() && works(&mut old).await);
        *clock.lock() = now;
        assert!(serving.renew().unwrap() && !serving.renew().unwrap());
        assert!(works(&mut old).await, "the old connection goes on");
        let (mut new, second) = connect(address, &authority).await;
        assert_ne!(first, second);
        assert!(works(&mut new).await && works(&mut old).await);
        stop.cancel();
    }
}
