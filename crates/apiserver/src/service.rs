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
use crate::extend::{Asked, Incoming, Visit, Witness};
use crate::hub::Hub;
use crate::identity::Identity;
use crate::instance::Instance;
use crate::metrics::Seen;
use crate::query::Query;
use crate::request::{Place, RequestInfo, Target, Verb, host_instance, split_instance};
use crate::respond::{failure_as, response, text};
use crate::{discovery, health, openapi, subresource};

/// How long a request may take that is not a watch or a stream.
const DEADLINE: Duration = Duration::from_secs(60);

/// So much of a body that is too large is read and let go of: who still sends does not listen for the answer.
const DRAINED: usize = 64 << 20;

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
    let version = request.version();
    let media = crate::negotiate::media(request.headers());
    let (requests, started) = (hub.requests.clone(), std::time::Instant::now());
    let mut seen = Seen::default();
    let mut answer = match route(hub, request, &mut seen).await {
        Ok(answer) => answer,
        Err(Refusal::Failed(status)) => failure_as(&status, media),
        Err(Refusal::Denied(status)) => {
            let mut answer = failure_as(&status, media);
            answer.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
            answer
        }
    };
    if answer.status() == 413 && version < http::Version::HTTP_2 {
        // The rest of the body is not read, so nothing else can come over this connection.
        answer.headers_mut().insert(http::header::CONNECTION, HeaderValue::from_static("close"));
    }
    let id = audit.or_else(|| HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()).ok());
    if let Some(id) = id {
        answer.headers_mut().insert("audit-id", id);
    }
    requests.count(&seen, answer, started.elapsed())
}

/// Why a request is not carried out.
enum Refusal {
    /// The caller may not.
    Denied(Status),
    /// It cannot be done.
    Failed(Status),
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Failed(status)
    }
}

async fn route(hub: Arc<Hub>, mut request: Request<Incoming>, seen: &mut Seen) -> Result<Response<Body>, Refusal> {
    let full = request.uri().path().to_owned();
    let host = host_instance(&request, &hub.options.domain);
    let (name, path) = split_instance(&full).unwrap_or((host.as_deref().unwrap_or("root"), &full));
    let Some(instance) = hub.instance(name) else {
        // Only administrators of the hub may learn which instances exist.
        let identity = auth::identify(&hub, &hub.root(), &mut request).await?;
        let known = identity.is_master().then(|| Status::not_found("atoll.io", "instances", name));
        return Err(known.unwrap_or_else(Status::unauthorized).into());
    };
    let path = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
    let identity = auth::identify(&hub, &instance, &mut request).await.map_err(|status| match status.code {
        403 => Refusal::Denied(status),
        _ => Refusal::Failed(status),
    })?;
    let query = Query::parse(request.uri().query());
    let pinned = query.fields().ok().and_then(|fields| fields.exact("metadata.name").map(ToOwned::to_owned));
    let info = RequestInfo::parse(request.method(), &path, query.flag("watch"), pinned.as_deref());
    seen.verb = Some(info.verb);
    if let Some(Witness(told)) = request.extensions().get::<Witness>() {
        let (instance, identity) = (instance.clone(), identity.clone());
        // Asked again on the way to a member, it was told already.
        let _ = told.set(Asked { instance, identity, info: info.clone(), path: path.clone() });
    }
    match info.place {
        Place::Url => {
            authorize_url(&hub, &instance, &identity, info.verb, &path).await.map_err(Refusal::Denied)?;
            let headers = request.headers().clone();
            if let Some(answer) = auth::public_documents(&hub, &instance, &path, &headers).await {
                return Ok(answer?);
            }
            Ok(url(&hub, &instance, &path, request).await?)
        }
        Place::Resource(target) => {
            authorize(&hub, &instance, &identity, info.verb, &target).await.map_err(Refusal::Denied)?;
            let collection = matches!(info.verb, Verb::List | Verb::Watch | Verb::DeleteCollection);
            let target = match pinned {
                Some(_) if target.subresource.is_empty() && collection => Target { name: String::new(), ..target },
                _ => target,
            };
            seen.target(&target);
            Ok(resource(hub, instance, identity, info.verb, target, query.of(info.verb), path, request).await?)
        }
    }
}

async fn authorize_url(
    hub: &Hub,
    instance: &Instance,
    identity: &Identity,
    verb: Verb,
    path: &str,
) -> Result<(), Status> {
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

async fn authorize(
    hub: &Hub,
    instance: &Instance,
    identity: &Identity,
    verb: Verb,
    target: &Target,
) -> Result<(), Status> {
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
async fn url(
    hub: &Arc<Hub>,
    instance: &Arc<Instance>,
    path: &str,
    request: Request<Incoming>,
) -> Result<Response<Body>, Status> {
    if let Some(answer) = health::answer(hub, path, request.uri().query()) {
        return Ok(answer);
    }
    // The series are those of the whole hub: not for users of one instance.
    if path == "/metrics" && instance.id == atoll_meta::InstanceId::ROOT {
        return Ok(response(200, atoll_telemetry::CONTENT_TYPE, hub.metrics.text()));
    }
    // The body is let go of: it cannot be shared between threads, and nothing here reads one.
    let (request, _) = request.into_parts();
    if let Some(answer) = openapi::answer(hub, instance, path, request.uri.query(), &request.headers).await {
        return answer;
    }
    if let Some(answer) = discovery::answer(hub, instance, path, &request.method, &request.headers) {
        return Ok(crate::compress::shrink(&request.headers, answer?).await);
    }
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    match (parts.next(), parts.next()) {
        (Some("api"), Some(_)) => Err(unknown_resource()),
        (Some("apis"), Some(group)) if parts.next().is_some() && is_builtin_group(group) => Err(unknown_resource()),
        _ => Ok(page_not_found()),
    }
}

fn page_not_found() -> Response<Body> {
    text(404, "404 page not found\n")
}

/// 404 of a path that no resource has.
pub fn unknown_resource() -> Status {
    Status::new(404, Reason::NotFound, "the server could not find the requested resource").about("", "", "")
}

/// 405 of a path that knows other methods.
pub fn unknown_method() -> Status {
    let message = "the server does not allow this method on the requested resource";
    Status::new(405, Reason::MethodNotAllowed, message).about("", "", "")
}

fn is_builtin_group(group: &str) -> bool {
    atoll_builtin::groups().iter().any(|known| known.name == group)
}

/// Whether objects can be addressed like this: in a namespace if they have one, else not.
fn check_place(kind: &crate::kind::Kind, verb: Verb, method: &http::Method, target: &Target) -> Result<(), Status> {
    let own_namespace = &*kind.plural == "namespaces" && kind.group.is_empty();
    if !kind.namespaced && !target.namespace.is_empty() && !own_namespace {
        return Err(unknown_resource());
    }
    if kind.namespaced && target.namespace.is_empty() && !target.name.is_empty() {
        return Err(unknown_resource());
    }
    let without_namespace = kind.namespaced && target.namespace.is_empty() && verb == Verb::Create;
    let odd = ![http::Method::GET, http::Method::POST, http::Method::PUT, http::Method::PATCH, http::Method::DELETE]
        .contains(method);
    if without_namespace || (odd && kind.custom().is_none()) {
        return Err(unknown_method());
    }
    Ok(())
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
        return if is_builtin_group(&target.group) { Err(unknown_resource()) } else { Ok(page_not_found()) };
    };
    check_place(&kind, verb, request.method(), &target)?;
    if !target.subresource.is_empty() {
        let key = (target.group.clone(), target.resource.clone(), target.subresource.clone());
        let connector = hub.connectors.read().get(&key).cloned().filter(|connector| connector.serves(&instance));
        if let Some(connector) = connector {
            return connector.connect(Visit { hub, instance, identity, target, path, request }).await;
        }
    }
    let everyone = hub.clone();
    let patient = crate::precedence::is_patient(&request);
    let counts = verb != Verb::Watch;
    let waited = if counts && patient { Some(everyone.precedence.wait().await) } else { None };
    let _slot = if counts { Some(hub.enter(&instance)?) } else { None };
    let (parts, body) = request.into_parts();
    let body = tokio::time::timeout(DEADLINE, read_body(&hub, verb, body))
        .await
        .map_err(|_| Status::timeout("the body did not arrive within the allotted time", 1))??;
    // Only now: a body that comes slowly keeps nobody waiting.
    let _turn = waited.or_else(|| counts.then(|| everyone.precedence.press()));
    crate::precedence::announce(&parts, &*hub.engine);
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
    if let Some(text) = deprecation(&call.kind) {
        call.warn(text);
    }
    let answer = match verb {
        Verb::Watch if !call.kind.has_verb("watch") => {
            Err(Status::method_not_allowed(&call.kind.group, &call.kind.plural, "watch"))
        }
        Verb::Watch => call.watch().await,
        _ => match tokio::time::timeout(DEADLINE, dispatch(&call, verb, &body)).await {
            Ok(answer) => answer,
            Err(_) => Err(Status::timeout("the request did not finish within the allotted time", 1)),
        },
    };
    let answer = match answer {
        Ok(answer) if verb != Verb::Watch => Ok(crate::compress::shrink(&call.headers, answer).await),
        other => other,
    };
    if call.warnings.lock().is_empty() {
        return answer;
    }
    // What there is to warn of is said whether or not the request succeeds.
    let media = crate::negotiate::media(&call.headers);
    let mut answer = answer.unwrap_or_else(|status| failure_as(&status, media));
    if !answer.headers().contains_key("warning") {
        call.add_warnings(&mut answer);
    }
    Ok(answer)
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
        if size > limit.max(DRAINED) {
            break;
        }
        if size <= limit {
            pieces.push(piece);
        }
    }
    if size > limit {
        return Err(Status::too_large(format!("Request entity too large: limit is {limit}")));
    }
    // Most bodies are one piece and need no copy.
    Ok(if pieces.len() == 1 { pieces.swap_remove(0) } else { pieces.concat().into() })
}

/// What to tell users of a kind that will go.
fn deprecation(kind: &crate::kind::Kind) -> Option<String> {
    match (kind.custom(), &*kind.group, &*kind.kind) {
        (Some(custom), ..) => custom.deprecation.clone(),
        (None, "", "Endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".into())
        }
        (None, "", "ComponentStatus") => Some("v1 ComponentStatus is deprecated in v1.19+".into()),
        _ => None,
    }
}

async fn dispatch(call: &Call, verb: Verb, body: &[u8]) -> Result<Response<Body>, Status> {
    if verb.mutates() {
        crate::negotiate::check_encoding(&call.headers, call.kind.custom().is_none())?;
    }
    if !call.target.subresource.is_empty() {
        return subresource::dispatch(call, verb, body).await;
    }
    if auth::is_review(&call.kind) {
        return auth::review(call, verb, body).await;
    }
    let named = !call.target.name.is_empty();
    if !call.kind.has_verb(verb.as_str())
        || (named && verb == Verb::Create)
        || (!named && matches!(verb, Verb::Update | Verb::Patch))
    {
        return Err(unknown_method());
    }
    match verb {
        Verb::Create => call.create(body).await,
        Verb::Get => call.get().await,
        Verb::List => call.list().await,
        Verb::Update => call.update("", body).await,
        Verb::Patch => call.patch("", body).await,
        Verb::Delete => call.delete(body).await,
        Verb::DeleteCollection => call.delete_collection(body).await,
        Verb::Watch | Verb::Url(_) => Ok(page_not_found()),
    }
}
