//! The one port: Kubernetes APIs, management and console, told apart by path and content type.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use atoll_apiserver::{Body, BodyError};
use atoll_manage::Manage;
use atoll_sim::Gate;
use http::header::{ACCEPT, HeaderValue, LOCATION};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use tower::Service;

use super::Parts;

/// Answers everything that comes in over TLS. Cheap to clone.
#[derive(Clone)]
pub struct Entry {
    api: Gate,
    manage: Manage,
}

impl Entry {
    /// The entry to these parts.
    pub fn new(parts: &Parts) -> Self {
        Self { api: Gate::new(parts.service.clone()), manage: parts.manage.clone() }
    }
}

impl Service<Request<hyper::body::Incoming>> for Entry {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<hyper::body::Incoming>) -> Self::Future {
        if request.uri().path() == "/" && wants_page(&request) {
            return Box::pin(async { Ok(redirect("/console/")) });
        }
        if request.method() == Method::GET
            && let Some(answer) = atoll_console::answer(request.uri().path(), request.headers())
        {
            return Box::pin(async { Ok(answer.map(Body::from)) });
        }
        let (parts, body) = request.into_parts();
        if self.manage.handles(&parts) {
            let body = body.map_err(|error| -> BodyError { Box::new(error) }).boxed_unsync();
            let answer = self.manage.answer(Request::from_parts(parts, body));
            return Box::pin(async move { Ok(answer.await) });
        }
        let (manage, api) = (self.manage.clone(), self.api.clone());
        Box::pin(async move { Ok(manage.native(api, Request::from_parts(parts, body)).await) })
    }
}

/// A browser asks for HTML first; kubectl and curl do not.
fn wants_page<B>(request: &Request<B>) -> bool {
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    request.method() == Method::GET
        && accept.split(',').next().is_some_and(|first| first.trim().starts_with("text/html"))
}

fn redirect(to: &'static str) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::FOUND;
    answer.headers_mut().insert(LOCATION, HeaderValue::from_static(to));
    answer
}
