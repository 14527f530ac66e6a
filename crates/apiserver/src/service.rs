//! The server as a [`tower::Service`]: from an HTTP request to its answer.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use atoll_meta::{Reason, Status};
use bytes::Bytes;
use http::header::HeaderValue;
use http::{Request, Response};
use http_body_util::BodyExt as _;

use crate::auth::{self, Attributes};
use crate::body::{Body, BodyError};
use crate::call::Call;
use crate::extend::{Incoming, Visit};
use crate::hub::Hub;
use crate::identity::Identity;
use crate::instance::Instance;
use crate::query::Query;
use crate::request::{Place, RequestInfo, Target, Verb, split_instance};
use crate::respond::{failure, response};
use crate::{discovery, health, openapi, subresource};

/// How long a request may take that is not a watch or a stream.
const DEADLINE: Duration = Duration::from_secs(60);

/// Serves all instances of a hub. Cheap to clone.
#[derive(Clone)]
pub struct ApiService {
    hub: Arc<Hub>,
}

impl ApiService {
    /// Serves this hub.
    pub fn new(hub: Arc<Hub>) -> Self {
        Self { hub }
    }

    /// The hub behind the service.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }
}

impl<B> tower::Service<Request<B>> for ApiService
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
        let hub = self.hub.clone();
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        Box::pin(async move { Ok(handle(hub, request).await) })
    }
}

/// Answers a request; every failure becomes a Status.
pub async fn handle(hub: Arc<Hub>, request: Request<Incoming>) -> Response<Body> {
    let audit = request.headers().get("audit-id").cloned();
    let mut answer = match route(hub, request).await {
        Ok(answer) => answer,
        Err(status) => failure(&status),
    };
    let id = audit.or_else(|| HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()).ok());
    if let Some(id) = id {
        answer.headers_mut().insert("audit-id", id);
    }
    answer
}

async fn route(hub: Arc<Hub>, mut request: Request<Incoming>) -> Result<Response<Body>, Status> {
    let full = request.uri().path().to_owned();
    let (name, path) = split_instance(&full).unwrap_or(("root", &full));
    let Some(instance) = hub.instance(name) else {
        // Only administrators of the hub may learn which instances exist.
        let identity = auth::identify(&hub, &hub.root(), &mut request).await?;
        let known = identity.is_master().then(|| Status::not_found("atoll.io", "instances", name));
        return Err(known.unwrap_or_else(Status::unauthorized));
    };
    let path = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
    let identity = auth::identify(&hub, &instance, &mut request).await?;
    let query = Query::parse(request.uri().query());
    let pinned = query.fields().ok().and_then(|fields| fields.exact("metadata.name").map(ToOwned::to_owned));
    let info = RequestInfo::parse(request.method(), &path, query.flag("watch"), pinned.as_deref());
    match info.place {
        Place::Url => {
            authorize_url(&hub, &instance, &identity, info.verb, &path).await?;
            if let Some(answer) = auth::public_documents(&hub, &instance, &path).await {
                return answer;
            }
            url(&hub, &instance, &path, request).await
        }
        Place::Resource(target) => {
            let target = if pinned.is_some() && target.subresource.is_empty() && matches!(info.verb, Verb::List | Verb::Watch | Verb::DeleteCollection) {
                authorize(&hub, &instance, &identity, info.verb, &target).await?;
                Target { name: String::new(), ..target }
            } else {
                authorize(&hub, &instance, &identity, info.verb, &target).await?;
                target
            };
            resource(hub, instance, identity, info.verb, target, query, path, request).await
        }
    }
}

async fn authorize_url(hub: &Hub, instance: &Instance, identity: &Identity, verb: Verb, path: &str) -> Result<(), Status> {
    let attributes = Attributes {
        verb,
        verb_word: None,
        group: "",
        version: "",
        resource: "",
        subresource: "",
        namespace: "",
        name: "",
        url: Some(path),
    };
    auth::authorize(hub, instance, identity, &attributes).await
}

async fn authorize(hub: &Hub, instance: &Instance, identity: &Identity, verb: Verb, target: &Target) -> Result<(), Status> {
    let attributes = Attributes {
        verb,
        verb_word: None,
        group: &target.group,
        version: &target.version,
        resource: &target.resource,
        subresource: &target.subresource,
        namespace: &target.namespace,
        name: &target.name,
        url: None,
    };
    auth::authorize(hub, instance, identity, &attributes).await
}

/// Answers a URL outside the resource tree.
async fn url(hub: &Arc<Hub>, instance: &Arc<Instance>, path: &str, request: Request<Incoming>) -> Result<Response<Body>, Status> {
    if let Some(answer) = health::answer(hub, path, request.uri().query()) {
        return Ok(answer);
    }
    // The body is let go of: it cannot be shared between threads, and nothing here reads one.
    let (request, _) = request.into_parts();
    if let Some(answer) = openapi::answer(hub, instance, path, request.uri.query(), &request.headers).await {
        return answer;
    }
    if let Some(answer) = discovery::answer(hub, instance, path, &request.headers) {
        return Ok(answer);
    }
    Ok(page_not_found())
}

fn page_not_found() -> Response<Body> {
    response(404, "text/plain; charset=utf-8", "404 page not found\n")
}

#[allow(clippy::too_many_arguments, reason = "one request, taken apart")]
async fn resource(
    hub: Arc<Hub>,
    instance: Arc<Instance>,
    identity: Identity,
    verb: Verb,
    target: Target,
    query: Query,
    path: String,
    request: Request<Incoming>,
) -> Result<Response<Body>, Status> {
    let mount = hub
        .mounts
        .read()
        .iter()
        .find(|mount| mount.group() == target.group && mount.version() == target.version && mount.serves(&instance))
        .cloned();
    if let Some(mount) = mount {
        return mount.handle(Visit { hub, instance, identity, target, path, request }).await;
    }
    let Some(kind) = instance.kind(&target.group, &target.version, &target.resource) else {
        return Ok(page_not_found());
    };
    let own_namespace = &*kind.plural == "namespaces" && kind.group.is_empty();
    if !kind.namespaced && !target.namespace.is_empty() && !own_namespace {
        return Ok(page_not_found());
    }
    if kind.namespaced && target.namespace.is_empty() && (!target.name.is_empty() || verb == Verb::Create) {
        return Ok(page_not_found());
    }
    if !target.subresource.is_empty() {
        let key = (target.group.clone(), target.resource.clone(), target.subresource.clone());
        let connector = hub.connectors.read().get(&key).cloned().filter(|connector| connector.serves(&instance));
        if let Some(connector) = connector {
            return connector.connect(Visit { hub, instance, identity, target, path, request }).await;
        }
    }
    let _slot = if verb == Verb::Watch {
        None
    } else {
        let slot = hub.in_flight.clone().try_acquire_owned();
        Some(slot.map_err(|_| {
            Status::too_many_requests("the server has received too many requests and has asked us to try again later", 1)
        })?)
    };
    let (parts, body) = request.into_parts();
    let body = read_body(&hub, verb, body).await?;
    let call = Call {
        now: hub.now(),
        hub,
        instance,
        identity,
        kind,
        target,
        query,
        headers: parts.headers,
        warnings: parking_lot::Mutex::default(),
        held: parking_lot::Mutex::default(),
    };
    if verb == Verb::Watch {
        return call.watch().await;
    }
    match tokio::time::timeout(DEADLINE, dispatch(&call, verb, &body)).await {
        Ok(answer) => answer,
        Err(_) => Err(Status::timeout("the request did not finish within the allotted time", 1)),
    }
}

async fn read_body(hub: &Hub, verb: Verb, mut body: Incoming) -> Result<Bytes, Status> {
    if !verb.mutates() {
        return Ok(Bytes::new());
    }
    let limit = hub.options.max_body;
    let mut pieces = Vec::new();
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|error| Status::new(400, Reason::BadRequest, format!("the body could not be read: {error}")))?;
        let Ok(piece) = frame.into_data() else { continue };
        size += piece.len();
        if size > limit {
            return Err(Status::too_large(format!("Request entity too large: limit is {limit}")));
        }
        pieces.push(piece);
    }
    // Most bodies are one piece and need no copy.
    Ok(if pieces.len() == 1 { pieces.swap_remove(0) } else { pieces.concat().into() })
}

async fn dispatch(call: &Call, verb: Verb, body: &[u8]) -> Result<Response<Body>, Status> {
    if let Some(custom) = call.kind.custom()
        && let Some(text) = &custom.deprecation
    {
        call.warn(text.clone());
    }
    if !call.target.subresource.is_empty() {
        return subresource::dispatch(call, verb, body).await;
    }
    if auth::is_review(&call.kind) {
        return auth::review(call, verb, body).await;
    }
    if !call.kind.has_verb(verb.as_str()) {
        return Err(Status::method_not_allowed(&call.kind.group, &call.kind.plural, verb.as_str()));
    }
    match verb {
        Verb::Create if !call.target.name.is_empty() => {
            Err(Status::method_not_allowed(&call.kind.group, &call.kind.plural, "create"))
        }
        Verb::Create => call.create(body).await,
        Verb::Get => call.get().await,
        Verb::List => call.list().await,
        Verb::Update if call.target.name.is_empty() => {
            Err(Status::method_not_allowed(&call.kind.group, &call.kind.plural, "update"))
        }
        Verb::Update => call.update("", body).await,
        Verb::Patch => call.patch("", body).await,
        Verb::Delete => call.delete(body).await,
        Verb::DeleteCollection => call.delete_collection(body).await,
        Verb::Watch | Verb::Url(_) => Ok(page_not_found()),
    }
}
