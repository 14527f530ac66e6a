//! One request to the kubelet API of a virtual node.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use atoll_apiserver::{Body, Incoming, failure, json as json_answer, response};
use atoll_meta::{Reason, Status};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::Proxier;
use super::route::{Route, route};
use super::translate;
use crate::switchboard::{Found, Switchboard};
use crate::tree;

/// The kubelet API of one virtual node, as a service. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Kubelet {
    board: Arc<Switchboard>,
    proxier: Arc<Proxier>,
    /// Empty for the pods of all virtual nodes of the binding, which only they may see who may see every node.
    node: Arc<str>,
}

impl Kubelet {
    pub(crate) fn new(board: Arc<Switchboard>, proxier: Arc<Proxier>, node: &str) -> Self {
        Self { board, proxier, node: node.into() }
    }

    async fn handle(self, request: Request<Incoming>) -> Result<Response<Body>, Status> {
        let path = request.uri().path().to_owned();
        let computing = &self.board.computing;
        // Before anything else, whatever the path: who, and may they?
        let caller = self.proxier.caller(computing, request.headers(), request.extensions()).await?;
        self.proxier.authorize(computing, &caller, request.method(), &path, &self.node).await?;
        let query = request.uri().query().unwrap_or_default().to_owned();
        let bad = |why: String| Status::bad_request(why);
        match route(&path) {
            Some(Route::Logs { namespace, pod, container }) => {
                let found = self.find(namespace, pod, container).await?;
                only(&request, &[Method::GET])?;
                found.pass(request, "log", &translate::logs(&query, container).map_err(bad)?).await
            }
            Some(Route::Exec { namespace, pod, container }) => {
                let found = self.find(namespace, pod, container).await?;
                only(&request, &[Method::GET, Method::POST])?;
                found.pass(request, "exec", &translate::exec(&query, container, true).map_err(bad)?).await
            }
            Some(Route::Attach { namespace, pod, container }) => {
                let found = self.find(namespace, pod, container).await?;
                only(&request, &[Method::GET, Method::POST])?;
                found.pass(request, "attach", &translate::exec(&query, container, false).map_err(bad)?).await
            }
            Some(Route::PortForward { namespace, pod }) => {
                let found = self.find(namespace, pod, "").await?;
                only(&request, &[Method::GET, Method::POST])?;
                found.pass(request, "portforward", &translate::port_forward(&query)).await
            }
            Some(Route::Health) => Ok(response(200, "text/plain; charset=utf-8", "ok")),
            Some(other) if !self.node.is_empty() => self.about_node(other).await,
            _ => Err(Status::new(404, Reason::NotFound, "404 page not found")),
        }
    }

    /// What concerns the node, not one of its pods.
    async fn about_node(&self, route: Route<'_>) -> Result<Response<Body>, Status> {
        match route {
            Route::Pods => Ok(json_answer(200, &self.pod_list(false).await?)),
            Route::RunningPods => Ok(json_answer(200, &self.pod_list(true).await?)),
            Route::ResourceMetrics => {
                let text = self.board.resource_metrics(&self.node).await;
                Ok(response(200, "text/plain; version=0.0.4; charset=utf-8", text))
            }
            _ => self.board.summary(&self.node).await.map(|summary| json_answer(200, &summary)),
        }
    }

    /// The physical pod of a pod on this very node, with this container.
    async fn find(&self, namespace: &str, pod: &str, container: &str) -> Result<Found, Status> {
        let found = self.board.find(namespace, pod).await?;
        if !self.node.is_empty() && found.node != *self.node {
            return Err(Status::not_found("", "pods", pod));
        }
        let groups = ["containers", "initContainers", "ephemeralContainers"];
        let known =
            groups.iter().flat_map(|group| tree::list(&found.pod["spec"][*group])).any(|own| own["name"] == container);
        if !container.is_empty() && !known {
            return Err(Status::new(
                404,
                Reason::NotFound,
                format!("container {container} not found in pod {pod}_{namespace}"),
            ));
        }
        Ok(found)
    }

    /// The pods of the node, as a kubelet lists them.
    async fn pod_list(&self, running: bool) -> Result<Value, Status> {
        let mut items = self.board.pods_on(&self.node).await?;
        items.retain(|pod| !running || pod["status"]["phase"] == "Running");
        Ok(json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}))
    }
}

fn only(request: &Request<Incoming>, methods: &[Method]) -> Result<(), Status> {
    if methods.contains(request.method()) {
        return Ok(());
    }
    Err(Status::new(405, Reason::MethodNotAllowed, "the method is not allowed"))
}

impl tower::Service<Request<hyper::body::Incoming>> for Kubelet {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<hyper::body::Incoming>) -> Self::Future {
        let own = self.clone();
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        Box::pin(async move { Ok(own.handle(request).await.unwrap_or_else(|status| failure(&status))) })
    }
}
