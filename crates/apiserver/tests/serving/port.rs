//! A hub behind TLS on a free port of the loopback, and connections to it.

use std::net::SocketAddr;
use std::sync::Arc;

use atoll_apiserver::{ApiService, Server};
use atoll_pki::{CaBundle, San, ServerCerts, Validity};
use bytes::Bytes;
use http::Request;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::TestHub;

pub type Payload = BoxBody<Bytes, std::convert::Infallible>;

/// A hub that listens.
pub struct Port {
    pub hub: TestHub,
    pub address: SocketAddr,
    pub stop: CancellationToken,
    pub serving: JoinHandle<()>,
    authority: String,
}

/// A body that is there at once.
pub fn body(text: &str) -> Payload {
    Full::new(Bytes::from(text.to_owned())).boxed()
}

impl Port {
    pub async fn open() -> Self {
        let hub = TestHub::new().await;
        hub.hub.keys().add_token("of-admin", atoll_apiserver::Identity::master("admin"));
        let authority = hub.hub.keys().own();
        let certs = Arc::new(ServerCerts::default());
        let names = ["localhost", "127.0.0.1", "*.atoll.localhost"].map(San::new);
        certs.set(None, &authority.serving.issue_server(&names, Validity::days(hub.hub.now(), 2)).unwrap()).unwrap();
        let tls = atoll_pki::server_config(certs, &[b"h2", b"http/1.1"]).unwrap();
        let server = Server::bind(([127, 0, 0, 1], 0).into(), Arc::new(tls)).await.unwrap();
        let address = server.address().unwrap();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(server.run(ApiService::new(hub.hub.clone()), stop.clone()));
        Self { authority: authority.serving.cert_pem(), hub, address, stop, serving }
    }

    async fn handshake(&self, name: &str, protocol: &str) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
        let mut tls = atoll_pki::client_config(&CaBundle::from_pem(&self.authority).unwrap(), None).unwrap();
        tls.alpn_protocols = vec![protocol.into()];
        let socket = tokio::net::TcpStream::connect(self.address).await.unwrap();
        let name = rustls_pki_types::ServerName::try_from(name.to_owned()).unwrap();
        tokio_rustls::TlsConnector::from(Arc::new(tls)).connect(name, socket).await.unwrap()
    }

    /// A connection of HTTP/1.1 that asks for this name in its handshake.
    pub async fn connect(&self, name: &str) -> SendRequest<Payload> {
        let stream = hyper_util::rt::TokioIo::new(self.handshake(name, "http/1.1").await);
        let (sender, running) = hyper::client::conn::http1::handshake(stream).await.unwrap();
        tokio::spawn(running);
        sender
    }

    /// The code and body of a GET over a connection of its own: to this name, for this host.
    pub async fn get(&self, protocol: &str, name: &str, host: &str, path: &str) -> (u16, Value) {
        let uri = if protocol == "h2" { format!("https://{host}{path}") } else { path.to_owned() };
        let mut request = Request::get(uri).header("authorization", "Bearer of-admin");
        if protocol != "h2" {
            request = request.header("host", host);
        }
        let request = request.body(body("")).unwrap();
        let answer = if protocol == "h2" {
            let stream = hyper_util::rt::TokioIo::new(self.handshake(name, protocol).await);
            let executor = hyper_util::rt::TokioExecutor::new();
            let (mut sender, running) = hyper::client::conn::http2::handshake(executor, stream).await.unwrap();
            tokio::spawn(running);
            sender.send_request(request).await.unwrap()
        } else {
            self.connect(name).await.send_request(request).await.unwrap()
        };
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }
}
