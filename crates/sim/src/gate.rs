//! The door of simulated clusters: requests from outside pass it, those of the simulator do not.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use atoll_apiserver::{ApiService, Body, BodyError, Hub, failure};
use atoll_meta::Status;
use atoll_runtime::{BodyStream, Transport};
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use tower::Service;

use crate::fault::{Door, Faults};
use crate::registry;

/// The API of a hub as those outside its simulated clusters see it: with their faults. Cheap to clone.
#[derive(Clone)]
pub struct Gate {
    service: ApiService,
}

impl Gate {
    /// Puts a door before a service.
    pub fn new(service: ApiService) -> Self {
        Self { service }
    }

    /// Whether requests to an instance pass as if there were no door.
    pub fn is_open(hub: &Hub, name: &str) -> bool {
        registry::find(hub, name).is_none_or(|world| world.faults.door() == Door::Open)
    }

    /// Waits at the door of an instance, if it has one; fails when it is closed.
    pub async fn admit(hub: &Hub, name: &str) -> Result<(), Status> {
        let faults = registry::find(hub, name).map(|world| world.faults.clone());
        match faults {
            Some(faults) => admit(&faults).await,
            None => Ok(()),
        }
    }

    fn faults(&self, path: &str) -> Option<Arc<Faults>> {
        let name = path.strip_prefix("/instances/")?.split('/').next()?;
        registry::find(self.service.hub(), name).map(|world| world.faults.clone())
    }
}

impl<B> Service<Request<B>> for Gate
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BodyError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut service = self.service.clone();
        match self.faults(request.uri().path()) {
            None => service.call(request),
            Some(faults) => Box::pin(pass(service, faults, request)),
        }
    }
}

/// A way to an instance of a hub as those outside its simulated cluster have it: with its faults.
pub struct GuardedTransport {
    hub: Arc<Hub>,
    name: String,
    inner: Arc<dyn Transport>,
}

impl GuardedTransport {
    /// Puts the door of an instance before a transport to it.
    pub fn new(hub: &Arc<Hub>, name: &str, inner: Arc<dyn Transport>) -> Self {
        Self { hub: hub.clone(), name: name.to_owned(), inner }
    }
}

#[async_trait::async_trait]
impl Transport for GuardedTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Status> {
        let Some(faults) = registry::find(&self.hub, &self.name).map(|world| world.faults.clone()) else {
            return self.inner.send(request).await;
        };
        admit(&faults).await?;
        let answer = self.inner.send(request).await?;
        Ok(answer
            .map(|body| -> BodyStream { Box::pin(body.take_until(Box::pin(async move { faults.closed().await }))) }))
    }
}

/// Lets a request in, late if the door is slow; tells why if not.
async fn admit(faults: &Faults) -> Result<(), Status> {
    match faults.door() {
        Door::Open => {}
        Door::Slow(delay) => tokio::time::sleep(delay).await,
        Door::Closed => return Err(Status::unavailable("dial tcp: connect: connection refused")),
        Door::Refusing => return Err(Status::internal("the server was asked to refuse all requests")),
        Door::Expired => {
            let why = "tls: failed to verify certificate: x509: certificate has expired or is not yet valid";
            return Err(Status::unavailable(why));
        }
    }
    Ok(())
}

async fn pass<B>(
    mut service: ApiService,
    faults: Arc<Faults>,
    request: Request<B>,
) -> Result<Response<Body>, Infallible>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BodyError>,
{
    if let Err(status) = admit(&faults).await {
        return Ok(failure(&status));
    }
    let answer = service.call(request).await?;
    Ok(answer.map(|body| match body {
        // Watches and logs break when the door closes.
        Body::Stream(stream) => {
            let closed = async move { faults.closed().await };
            Body::stream(stream.take_until(Box::pin(closed)))
        }
        body => body,
    }))
}
