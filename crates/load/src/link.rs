//! One connection: HTTP/1.1 over TLS, checked against the server's authority.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use bytes::{Bytes, BytesMut};
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio_rustls::TlsConnector;

/// Where a server is and how to be let in.
#[derive(Clone)]
pub struct Address {
    host: String,
    prefix: String,
    bearer: String,
    tls: TlsConnector,
}

impl Address {
    /// From a URL, the PEM text of an authority and a token.
    pub fn new(url: &str, authority: &str, token: &str) -> anyhow::Result<Self> {
        let rest = url.strip_prefix("https://").context("the URL must begin with https://")?;
        let (host, prefix) =
            rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
        let trust = atoll_pki::CaBundle::from_pem(authority)?;
        let config = atoll_pki::client_config(&trust, None)?;
        Ok(Self {
            host: host.to_owned(),
            prefix: prefix.trim_end_matches('/').to_owned(),
            bearer: format!("Bearer {token}"),
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    /// Opens a connection.
    pub async fn connect(&self) -> anyhow::Result<Link> {
        let socket = tokio::net::TcpStream::connect(&self.host).await.with_context(|| self.host.clone())?;
        socket.set_nodelay(true)?;
        let name = self.host.rsplit_once(':').map_or(&*self.host, |(name, _)| name).to_owned();
        let name = rustls_pki_types::ServerName::try_from(name)?;
        let stream = self.tls.connect(name, socket).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Link { sender, address: self.clone() })
    }
}

/// An open connection.
pub struct Link {
    sender: SendRequest<Full<Bytes>>,
    address: Address,
}

impl Link {
    /// Sends a request and waits for the head of the answer.
    pub async fn open(&mut self, method: Method, path: &str, body: Bytes) -> anyhow::Result<Incoming> {
        self.sender.ready().await?;
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.address.prefix))
            .header(header::HOST, &self.address.host)
            .header(header::AUTHORIZATION, &self.address.bearer)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        let answer = self.sender.send_request(request).await?;
        if !answer.status().is_success() {
            let status = answer.status();
            let text = answer.into_body().collect().await?.to_bytes();
            bail!("{path}: {status} {}", String::from_utf8_lossy(&text));
        }
        Ok(answer.into_body())
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&mut self, method: Method, path: &str, body: Bytes) -> anyhow::Result<Bytes> {
        let mut answer = self.open(method, path, body).await?;
        let mut all = BytesMut::new();
        while let Some(frame) = answer.frame().await {
            if let Ok(data) = frame?.into_data() {
                all.extend_from_slice(&data);
            }
        }
        Ok(all.freeze())
    }
}
