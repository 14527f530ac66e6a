//! How members and workers are reached: those of this hub without a socket, all others over HTTPS.

use std::sync::Arc;
use std::task::{Context, Poll};

use atoll_api::kubeocean::ClusterBinding;
use atoll_apiserver::{ApiService, Body, Hub, Incoming};
use atoll_fleet::{MemberResolver, RemoteMembers};
use atoll_meta::Status;
use atoll_runtime::Endpoint;
use atoll_sim::{Gate, GuardedTransport};
use atoll_vnode::{KubeconfigResolver, Passage, Worker, WorkerResolver};
use base64::Engine as _;
use http::header::{AUTHORIZATION, HeaderValue};
use http::{Request, Response};
use serde_json::Value;
use tower::Service;

use super::parts::members;

/// Finds ways to members and workers.
pub struct Members {
    /// The hub.
    pub hub: Arc<Hub>,
    /// Its API.
    pub service: ApiService,
    /// Those elsewhere.
    pub remote: RemoteMembers,
}

#[async_trait::async_trait]
impl MemberResolver for Members {
    async fn resolve(&self, cluster: &Value, secret: Option<&Value>) -> Result<Endpoint, Status> {
        let url = cluster["spec"]["apiEndpoint"].as_str().unwrap_or_default();
        match members(&self.hub)(url) {
            // The way is shorter, the rights are those of the token: whoever may name a member here
            // gains nothing over an instance that is not theirs.
            Some(name) => Ok(self.local(&name, secret)),
            None => self.remote.resolve(cluster, secret).await,
        }
    }
}

impl Members {
    /// A way to an instance of this hub for the holder of a secret's token; without one, for nobody.
    fn local(&self, name: &str, secret: Option<&Value>) -> Endpoint {
        let encoded = secret.and_then(|secret| secret["data"]["token"].as_str()).unwrap_or_default();
        let token = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap_or_default();
        let bearer = Bearer { gate: Gate::new(self.service.clone()), header: header(&token) };
        Endpoint::in_process(bearer, name, "atoll-fleet", |_| {})
    }
}

impl Members {
    /// A worker in this hub as others outside it have it: with the faults of its simulated cluster.
    fn guarded(&self, name: &str, worker: Worker) -> Worker {
        let transport = GuardedTransport::new(&self.hub, name, worker.endpoint.transport().clone());
        let endpoint = Endpoint::new(name, Arc::new(transport), "atoll-vnode");
        let passage = worker.passage.map(|inner| -> Arc<dyn Passage> {
            Arc::new(GuardedPassage { hub: self.hub.clone(), name: name.to_owned(), inner })
        });
        Worker { endpoint, passage, withheld: worker.withheld }
    }
}

/// Streams of a worker, with the faults of its simulated cluster.
struct GuardedPassage {
    hub: Arc<Hub>,
    name: String,
    inner: Arc<dyn Passage>,
}

#[async_trait::async_trait]
impl Passage for GuardedPassage {
    async fn pass(&self, request: Request<Incoming>) -> Result<Response<Body>, Status> {
        Gate::admit(&self.hub, &self.name).await?;
        self.inner.pass(request).await
    }
}

fn header(token: &[u8]) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_bytes(&[b"Bearer ", token].concat()).ok()?;
    value.set_sensitive(true);
    (!token.is_empty()).then_some(value)
}

/// Shows a token on every request.
#[derive(Clone)]
struct Bearer {
    gate: Gate,
    header: Option<HeaderValue>,
}

impl<B> Service<Request<B>> for Bearer
where
    Gate: Service<Request<B>>,
{
    type Response = <Gate as Service<Request<B>>>::Response;
    type Error = <Gate as Service<Request<B>>>::Error;
    type Future = <Gate as Service<Request<B>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.gate.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match &self.header {
            Some(value) => drop(request.headers_mut().insert(AUTHORIZATION, value.clone())),
            None => drop(request.headers_mut().remove(AUTHORIZATION)),
        }
        self.gate.call(request)
    }
}

#[async_trait::async_trait]
impl WorkerResolver for Members {
    async fn resolve(&self, binding: &ClusterBinding, kubeconfig: &str) -> Result<Worker, Status> {
        let url =
            atoll_pki::Kubeconfig::parse(kubeconfig).and_then(|config| config.access(None)).map(|access| access.server);
        match url.ok().and_then(|url| members(&self.hub)(&url)) {
            // The way is shorter, the rights are those of the kubeconfig.
            Some(name) => Ok(self.guarded(&name, Worker::in_process_by(&self.hub, &name, kubeconfig)?)),
            None => KubeconfigResolver { denied: self.remote.denied.clone() }.resolve(binding, kubeconfig).await,
        }
    }
}
