//! The one entry: gRPC and REST over the same methods.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use atoll_apiserver::{ApiService, Body, Hub, Identity, Incoming, json, response};
use atoll_index::Index;
use atoll_meta::Status;
use atoll_runtime::Denied;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Limited};
use prost_reflect::MethodDescriptor;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::access::authority::{self, Signed};
use crate::access::providers::Providers;
use crate::access::{journal, redirect, sessions};
use crate::api::{Api, DESCRIPTORS, Reply, tree};
use crate::audit::Audit;
use crate::context::{Core, Ctx, Wish};
use crate::external::Externals;
use crate::guard::Epoch;
use crate::transcode::request::{from_tree, message};
use crate::transcode::status;
use crate::{gate, grpc, openapi, service};

/// Largest accepted request.
const MAX_BODY: usize = 4 * 1024 * 1024;
/// How long a call may take that does not stream.
const DEADLINE: Duration = Duration::from_secs(60);
/// What REST paths begin with.
const PREFIXES: [&str; 2] = ["/apis/kairship.io/v1alpha1/", "/manage/"];

/// Where sessions of local accounts are opened.
pub const LOGIN: &str = "/manage/login";

type Health = tonic_health::pb::health_server::HealthServer<tonic_health::server::HealthService>;

/// The management plane. Cheap to clone.
#[derive(Clone)]
pub struct Manage {
    core: Arc<Core>,
    health: Health,
}

impl Manage {
    /// Over a hub, its API and an index; no way elsewhere leads to what is `denied`.
    pub fn new(hub: Arc<Hub>, index: Index, service: ApiService, denied: Denied) -> Self {
        let core = Arc::new(Core {
            hub,
            index,
            service,
            externals: Externals::new(denied),
            audit: Audit::default(),
            providers: Providers::default(),
            epoch: Epoch::default(),
            members: OnceLock::new(),
        });
        let reporter = tonic_health::server::HealthReporter::new();
        Self { core, health: Health::new(tonic_health::server::HealthService::from_health_reporter(reporter)) }
    }

    /// What all calls share.
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Whether a request is for the management plane, or for an instance that is not of this hub.
    pub fn handles(&self, parts: &Parts) -> bool {
        let path = parts.uri.path();
        grpc::is_grpc(&parts.headers)
            || PREFIXES.iter().any(|prefix| path.starts_with(prefix))
            || gate::instance_of(path).is_some_and(|(name, _)| self.core.hub.instance(name).is_none())
    }

    /// Answers a request from outside: finds out who asks first.
    pub fn answer(&self, request: Request<Incoming>) -> BoxFuture<'static, Response<Body>> {
        let own = self.clone();
        Box::pin(async move { gate::answer(&own, request).await })
    }

    /// Opens a session of a local account; the token is for `authorization: Bearer`.
    pub async fn login(&self, account: &str, password: &str) -> Result<String, Status> {
        sessions::open(&self.core.own_endpoint("root"), account, password, self.core.hub.now()).await
    }

    /// Who a token of a session or of an identity provider stands for; `None` when it is not one, or no longer good.
    pub async fn identify(&self, token: &str) -> Result<Option<Identity>, Status> {
        let own = sessions::identify(&self.core.own_endpoint("root"), token, self.core.hub.now()).await?;
        match own {
            Some(identity) => Ok(Some(identity)),
            None => self.core.providers.identify(&self.core, token).await,
        }
    }

    /// Answers a request of an authenticated caller.
    pub fn call(&self, request: Request<Incoming>, identity: Identity) -> BoxFuture<'static, Response<Body>> {
        let own = self.clone();
        Box::pin(async move {
            let ctx = Ctx { core: own.core.clone(), identity, wish: Wish::read(request.headers()) };
            if grpc::is_grpc(request.headers()) { own.grpc(request, ctx).await } else { own.rest(request, ctx).await }
        })
    }

    async fn grpc(&self, request: Request<Incoming>, ctx: Ctx) -> Response<Body> {
        let path = request.uri().path().to_owned();
        if path.starts_with("/grpc.health.v1.Health/") {
            return framed(self.health.clone().oneshot(request.map(plain)).await);
        }
        if path.starts_with("/grpc.reflection.") {
            return reflect(request, &path).await;
        }
        let Some(method) = Api::get().methods.get(&path) else {
            return grpc::failed(&status::unimplemented(&format!("there is no method {path}")));
        };
        let deadline = grpc::timeout(request.headers());
        let result = async {
            let body = collect(request.into_body()).await?;
            let input = tree(&grpc::decode(method, body)?)?;
            run(&ctx, method, input, deadline).await
        };
        grpc::answer(method, result.await)
    }

    async fn rest(&self, request: Request<Incoming>, ctx: Ctx) -> Response<Body> {
        let path = request.uri().path().to_owned();
        if path == LOGIN {
            return self.open_session(request).await;
        }
        if let Some(name) = authority_of(&path) {
            return self.take_change(request, name).await;
        }
        match path.as_str() {
            openapi::PATH => return response(200, "application/json", openapi::document()),
            openapi::PAGE => return response(200, "text/html; charset=utf-8", openapi::page()),
            journal::PATH if request.method() == Method::GET => {
                let answer = journal::answer(ctx, request.uri().query()).await;
                return answer.unwrap_or_else(|failure| status::rest(&failure));
            }
            _ => {}
        }
        match rest(request, &path, &ctx).await {
            Ok(answer) => answer,
            Err(failure) => status::rest(&failure),
        }
    }
}

impl Manage {
    /// `POST /manage/login` with `user` and `password`, or with what an identity provider answered: for callers who
    /// are nobody yet. `GET` tells which providers there are.
    async fn open_session(&self, request: Request<Incoming>) -> Response<Body> {
        if request.method() == Method::GET {
            return redirect::ways(&self.core)
                .await
                .map_or_else(|failure| status::rest(&failure), |ways| json(200, &ways));
        }
        let result = async {
            let body = collect(request.into_body()).await?;
            let given: Value =
                serde_json::from_slice(&body).map_err(|error| Status::bad_request(format!("body: {error}")))?;
            let text = |key: &str| given[key].as_str().unwrap_or_default();
            let (user, opened) = match given["provider"].as_str() {
                Some(provider) => (format!("provider:{provider}"), redirect::exchange(&self.core, &given).await),
                None => (text("user").to_owned(), self.login(text("user"), text("password")).await),
            };
            let who = Identity { user, ..Identity::default() };
            self.core.audit.record(&who, "Session.Open", &Value::Null, opened.as_ref().err(), self.core.hub.now());
            opened
        };
        match result.await {
            Ok(token) => json(200, &serde_json::json!({"token": token})),
            Err(failure) => status::rest(&failure),
        }
    }
}

/// The authority whose changes are posted to a path.
pub fn authority_of(path: &str) -> Option<&str> {
    path.strip_prefix("/manage/v1alpha1/authorities/")?.strip_suffix("/changes")
}

impl Manage {
    /// `POST /manage/v1alpha1/authorities/NAME/changes`: proven by a signature, not by a caller.
    async fn take_change(&self, request: Request<Incoming>, name: &str) -> Response<Body> {
        let (head, body) = request.into_parts();
        let text = |key: &str| head.headers.get(key).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (time, signature) = (text("atoll-timestamp").to_owned(), text("atoll-signature").to_owned());
        let posted = head.method == Method::POST;
        let result = async {
            if !posted {
                return Err(status::unimplemented("changes are posted"));
            }
            let body = collect(body).await?;
            authority::take(&self.core, name, &Signed { time: &time, signature: &signature, body: &body }).await
        };
        let result = result.await;
        let who = Identity { user: format!("authority:{name}"), ..Identity::default() };
        let about = serde_json::json!({"name": name});
        self.core.audit.record(&who, "Authority.Change", &about, result.as_ref().err(), self.core.hub.now());
        match result {
            Ok(()) => json(200, &serde_json::json!({})),
            Err(failure) => status::rest(&failure),
        }
    }
}

async fn rest(request: Request<Incoming>, path: &str, ctx: &Ctx) -> Result<Response<Body>, Status> {
    let router = &Api::get().router;
    let Some(found) = router.find(request.method(), path) else {
        let known = router.knows(path) && *request.method() != Method::HEAD;
        return Err(if known {
            status::unimplemented("this path has no such verb")
        } else {
            Status::new(404, atoll_meta::Reason::NotFound, "no such path")
        });
    };
    let query = request.uri().query().map(ToOwned::to_owned);
    let body = collect(request.into_body()).await?;
    let input = tree(&message(&found, query.as_deref(), &body)?)?;
    let method = &found.route.method;
    let output = method.output();
    match run(ctx, method, input, None).await? {
        Reply::One(answer) => {
            let shaped = from_tree(output, &answer).map_err(|status| Status::internal(status.message))?;
            Ok(json(200, &tree(&shaped)?))
        }
        Reply::Many(stream) => {
            // One line for each message, as grpc-gateway streams.
            let lines = stream.map(move |item| {
                let line = match item.and_then(|answer| tree(&from_tree(output.clone(), &answer)?)) {
                    Ok(result) => serde_json::json!({"result": result}),
                    Err(failure) => {
                        serde_json::json!({"error": {"code": status::code(&failure), "message": failure.message}})
                    }
                };
                Ok(Bytes::from(format!("{line}\n")))
            });
            Ok(response(200, "application/json", Body::stream(lines)))
        }
    }
}

/// Runs a method and writes down what was changed or refused.
async fn run(ctx: &Ctx, method: &MethodDescriptor, input: Value, deadline: Option<Duration>) -> Result<Reply, Status> {
    let name = format!("{}.{}", method.parent_service().name().trim_end_matches("Service"), method.name());
    let call = service::call(ctx, &name, method, &input);
    let result = tokio::time::timeout(deadline.unwrap_or(DEADLINE).min(DEADLINE), call)
        .await
        .unwrap_or_else(|_| Err(Status::timeout("the call did not finish in time", 1)));
    ctx.core.audit.record(&ctx.identity, &name, &input, result.as_ref().err(), ctx.core.hub.now());
    result
}

/// The same body with failures of a named type: futures over a boxed one cannot be sent between threads.
fn plain(body: Incoming) -> http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error> {
    body.map_err(std::io::Error::other).boxed_unsync()
}

async fn collect(body: Incoming) -> Result<Bytes, Status> {
    let collected = Limited::new(plain(body), MAX_BODY).collect().await;
    collected
        .map(http_body_util::Collected::to_bytes)
        .map_err(|error| Status::too_large(format!("the body could not be read: {error}")))
}

async fn reflect(request: Request<Incoming>, path: &str) -> Response<Body> {
    let request = request.map(plain);
    let builder = || tonic_reflection::server::Builder::configure().register_encoded_file_descriptor_set(DESCRIPTORS);
    if path.starts_with("/grpc.reflection.v1alpha.") {
        return match builder().build_v1alpha() {
            Ok(server) => framed(server.oneshot(request).await),
            Err(error) => grpc::failed(&Status::internal(error)),
        };
    }
    match builder().build_v1() {
        Ok(server) => framed(server.oneshot(request).await),
        Err(error) => grpc::failed(&Status::internal(error)),
    }
}

fn framed(answer: Result<Response<tonic::body::Body>, std::convert::Infallible>) -> Response<Body> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(never) => match never {},
    };
    answer.map(|body| Body::frames(http_body_util::BodyStream::new(body).map(|frame| frame.map_err(Into::into))))
}
