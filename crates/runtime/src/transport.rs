//! How requests reach a Kubernetes API: over HTTPS, or inside the process.

use std::pin::Pin;
use std::sync::Arc;

use atoll_meta::Status;
use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use parking_lot::RwLock;

/// The body of an answer as it arrives.
pub type BodyStream = Pin<Box<dyn Stream<Item = Result<Bytes, std::io::Error>> + Send>>;

/// Sends requests with paths such as `/api/v1/pods`.
#[async_trait::async_trait]
pub trait Transport: Send + Sync {
    /// Sends a request; an error means there was no answer at all.
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status>;

    /// The client behind a remote transport, for upgraded connections.
    fn remote(&self) -> Option<&kube::Client> {
        None
    }
}

/// Over HTTPS, with the credentials of a kubeconfig.
pub struct RemoteTransport {
    client: kube::Client,
}

impl RemoteTransport {
    /// Uses a client.
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }
}

#[async_trait::async_trait]
impl Transport for RemoteTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        let request = request.map(kube::client::Body::from);
        let answer = self.client.send(request).await.map_err(|error| unreachable(&error))?;
        Ok(answer.map(|body| -> BodyStream {
            Box::pin(body.into_data_stream().map_err(|error| std::io::Error::other(error.to_string())))
        }))
    }

    fn remote(&self) -> Option<&kube::Client> {
        Some(&self.client)
    }
}

/// Over another transport, which can be replaced: what is under way goes on over the old one, and every new
/// request takes the new one.
pub struct ReplaceableTransport {
    present: RwLock<Arc<dyn Transport>>,
}

impl ReplaceableTransport {
    /// Begins with a transport.
    pub fn new(first: Arc<dyn Transport>) -> Self {
        Self { present: RwLock::new(first) }
    }

    /// Takes another one from now on.
    pub fn replace(&self, next: Arc<dyn Transport>) {
        *self.present.write() = next;
    }
}

#[async_trait::async_trait]
impl Transport for ReplaceableTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        let present = self.present.read().clone();
        present.send(request).await
    }
}

/// No answer: told as 503 so that callers treat it like any other temporary failure.
fn unreachable(error: &dyn std::error::Error) -> Status {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    Status::unavailable(text)
}

/// Inside the process: no socket, no TLS. `prefix` addresses an instance.
pub struct ServiceTransport<S> {
    service: S,
    prefix: String,
    prepare: Box<dyn Fn(&mut http::Extensions) + Send + Sync>,
}

impl<S> ServiceTransport<S> {
    /// Calls a service; `prepare` puts the caller's identity into each request.
    pub fn new(service: S, prefix: &str, prepare: impl Fn(&mut http::Extensions) + Send + Sync + 'static) -> Self {
        Self { service, prefix: prefix.to_owned(), prepare: Box::new(prepare) }
    }
}

#[async_trait::async_trait]
impl<S, B> Transport for ServiceTransport<S>
where
    S: tower::Service<Request<Full<Bytes>>, Response = Response<B>, Error = std::convert::Infallible>
        + Clone
        + Send
        + Sync,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        // A request in the same process may be answered without waiting for anything. Who makes one after the other
        // would keep its thread for ever, and what it waits for would never come.
        tokio::task::coop::consume_budget().await;
        let target = format!("{}{}", self.prefix, request.uri());
        *request.uri_mut() = target.parse().map_err(|error| Status::bad_request(format!("{target}: {error}")))?;
        (self.prepare)(request.extensions_mut());
        let mut service = self.service.clone();
        let answer = match service.call(request.map(Full::new)).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        Ok(answer.map(|body| -> BodyStream {
            let data = body.into_data_stream();
            Box::pin(data.map(|piece| piece.map_err(|error| std::io::Error::other(error.to_string()))))
        }))
    }
}
