//! One request to the kubelet API of a virtual node.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use atoll_apiserver::{Body, Incoming, failure, json as json_answer, response};
use atoll_meta::{Reason, Status};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::Proxier;
use super::route::{Route, route};
use super::translate;
use crate::connect::Found;
use crate::syncer::Syncer;
use crate::tree;

/// The kubelet API of one virtual node, as a service. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Kubelet {
    syncer: Weak<Syncer>,
    proxier: Arc<Proxier>,
    node: Arc<str>,
}

impl Kubelet {
    pub(crate) fn new(syncer: Weak<Syncer>, proxier: Arc<Proxier>, node: &str) -> Self {
        Self { syncer, proxier, node: node.into() }
    }

    async fn handle(self, request: Request<Incoming>) -> Result<Response<Body>, Status> {
        let syncer = self.syncer.upgrade().ok_or_else(|| Status::unavailable("shutting down"))?;
        let path = request.uri().path().to_owned();
        let computing = syncer.above();
        // Before anything else, whatever the path: who, and may they?
        let caller = self.proxier.caller(computing, request.headers(), request.extensions()).await?;
        self.proxier.authorize(computing, &caller, request.method(), &path, &self.node).await?;
        let query = request.uri().query().unwrap_or_default().to_owned();
        let bad = |why: String| Status::bad_request(why);
        match route(&path) {
            Some(Route::Logs { namespace, pod, container }) => {
                let found = self.find(&syncer, namespace, pod, container)?;
                only(&request, &[Method::GET])?;
                pass(found, request, "log", &translate::logs(&query, container).map_err(bad)?).await
            }
            Some(Route::Exec { namespace, pod, container }) => {
                let found = self.find(&syncer, namespace, pod, container)?;
                only(&request, &[Method::GET, Method::POST])?;
                pass(found, request, "exec", &translate::exec(&query, container, true).map_err(bad)?).await
            }
            Some(Route::Attach { namespace, pod, container }) => {
                let found = self.find(&syncer, namespace, pod, container)?;
                only(&request, &[Method::GET, Method::POST])?;
                pass(found, request, "attach", &translate::exec(&query, container, false).map_err(bad)?).await
            }
            Some(Route::PortForward { namespace, pod }) => {
                let found = self.find(&syncer, namespace, pod, "")?;
                only(&request, &[Method::GET, Method::POST])?;
                pass(found, request, "portforward", &translate::port_forward(&query)).await
            }
            Some(Route::Pods) => Ok(json_answer(200, &pod_list(&syncer, &self.node, false))),
            Some(Route::RunningPods) => Ok(json_answer(200, &pod_list(&syncer, &self.node, true))),
            Some(Route::ResourceMetrics) => {
                let text = syncer.resource_metrics(&self.node).await;
                Ok(response(200, "text/plain; version=0.0.4; charset=utf-8", text))
            }
            Some(Route::Summary) => syncer.summary(&self.node).await.map(|summary| json_answer(200, &summary)),
            Some(Route::Health) => Ok(response(200, "text/plain; charset=utf-8", "ok")),
            None => Err(Status::new(404, Reason::NotFound, "404 page not found")),
        }
    }

    /// The physical pod of a pod on this very node, with this container.
    fn find(&self, syncer: &Arc<Syncer>, namespace: &str, pod: &str, container: &str) -> Result<Found, Status> {
        let found = syncer.find(namespace, pod)?;
        let here =
            syncer.computing.pods.get(namespace, pod).is_some_and(|item| item.tree()["spec"]["nodeName"] == *self.node);
        if !here {
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
}

fn only(request: &Request<Incoming>, methods: &[Method]) -> Result<(), Status> {
    if methods.contains(request.method()) {
        return Ok(());
    }
    Err(Status::new(405, Reason::MethodNotAllowed, "the method is not allowed"))
}

async fn pass(
    found: Found,
    mut request: Request<Incoming>,
    subresource: &str,
    query: &str,
) -> Result<Response<Body>, Status> {
    *request.uri_mut() = found.path(subresource, query)?;
    let passage = found.syncer.worker.passage.clone();
    passage.ok_or_else(|| Status::unavailable("the worker cluster takes no streams"))?.pass(request).await
}

/// The pods of a node, as a kubelet lists them.
fn pod_list(syncer: &Syncer, node: &str, running: bool) -> Value {
    let mut keys = syncer.computing.pods_on(node);
    keys.sort();
    let pods = keys.iter().filter_map(|key| syncer.computing.pods.get_key(key)).map(|item| item.tree());
    let items: Vec<Value> = pods.filter(|pod| !running || pod["status"]["phase"] == "Running").collect();
    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
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
