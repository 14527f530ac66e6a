//! The HTTPS client behind remote endpoints.

use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, Write};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::Connection;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use tower::{Service, ServiceBuilder};

/// How long a connection stays open that nobody uses: a little longer than the time between two renewals of a lease.
const IDLE: Duration = Duration::from_secs(12);

/// How much of an answer is taken in at once; `hyper` would keep four hundred kilobytes for each busy watch.
const BUFFER: usize = 64 * 1024;

/// Says which cryptography is used.
pub(crate) fn prepare() {
    // An error means that somebody was first.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// A client as `kube` makes it, over connections that `tcp` makes, except that they close when nobody uses them. `kube`'s
/// keep all they ever opened, and each costs some fifty kilobytes here and as much at the server.
pub(crate) fn over<C>(config: kube::Config, tcp: C) -> kube::Result<kube::Client>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<tower::BoxError>,
{
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let pool: Client<_, Body> = Builder::new(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .http1_max_buf_size(BUFFER)
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(tower::BoxError::from)
        .service(pool);
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use hyper_util::client::legacy::connect::HttpConnector;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::{Barrier, mpsc};

    use super::*;

    const MANY: usize = 5;

    /// Answers requests on one connection, the first only when all connections have one; tells when it is closed.
    async fn answer(mut stream: TcpStream, all: std::sync::Arc<Barrier>, closed: mpsc::UnboundedSender<()>) {
        let mut asked = [0; 4096];
        while stream.read(&mut asked).await.unwrap() > 0 {
            all.wait().await;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        }
        closed.send(()).unwrap();
    }

    #[tokio::test]
    async fn connections_that_nobody_uses_are_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let (closed, mut ends) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let all = std::sync::Arc::new(Barrier::new(MANY));
            loop {
                tokio::spawn(answer(listener.accept().await.unwrap().0, all.clone(), closed.clone()));
            }
        });
        prepare();
        let client = over(kube::Config::new(server.parse().unwrap()), HttpConnector::new()).unwrap();
        let ask = || client.request_text(http::Request::get("/version").body(Vec::new()).unwrap());
        futures::future::try_join_all((0..MANY).map(|_| ask())).await.unwrap();
        assert!(ends.try_recv().is_err(), "they stay for a while");
        tokio::time::pause();
        for _ in 0..MANY {
            ends.recv().await.unwrap();
        }
    }
}
