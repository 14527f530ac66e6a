//! Requests handed through to a worker cluster as they are: logs, exec, attach, port-forward.

use std::sync::Arc;

use atoll_apiserver::{Body, Hub, Incoming};
use atoll_meta::Status;
use atoll_stream::{Keep, clean_request_headers, is_upgrade, splice};
use futures::TryStreamExt as _;
use http::header::{CONNECTION, HeaderMap, UPGRADE};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;

use crate::caller::Caller;

/// Hands a request through, upgrades included.
#[async_trait::async_trait]
pub trait Passage: Send + Sync {
    /// Sends a request on and answers with what comes back. The path is one of the worker cluster.
    async fn pass(&self, request: Request<Incoming>) -> Result<Response<Body>, Status>;
}

/// Through the API server of a worker cluster somewhere else.
pub(crate) struct RemotePassage {
    pub(crate) client: kube::Client,
}

#[async_trait::async_trait]
impl Passage for RemotePassage {
    async fn pass(&self, mut request: Request<Incoming>) -> Result<Response<Body>, Status> {
        let upgrade = is_upgrade(request.headers()).is_some();
        let mut onward = Request::builder()
            .method(request.method().clone())
            .uri(request.uri().path_and_query().map_or("/", |path| path.as_str()))
            .body(kube::client::Body::empty())
            .map_err(|error| Status::bad_request(error.to_string()))?;
        // Who the caller is was settled here; the worker cluster hears only who we are.
        *onward.headers_mut() = clean_request_headers(request.headers(), Keep::default());
        let sent = self.client.send(onward).await;
        let mut answer =
            sent.map_err(|error| Status::unavailable(format!("the worker cluster does not answer: {error}")))?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS && upgrade {
            let (ours, theirs) = (hyper::upgrade::on(&mut request), hyper::upgrade::on(&mut answer));
            tokio::spawn(async move {
                if let Ok((ours, theirs)) = tokio::try_join!(ours, theirs) {
                    // However it ends, both sides see their connection close.
                    let _ = splice(TokioIo::new(ours), TokioIo::new(theirs), None).await;
                }
            });
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            *response.headers_mut() = answer_headers(answer.headers(), true);
            return Ok(response);
        }
        let (parts, body) = answer.into_parts();
        let mut response =
            Response::new(Body::stream(body.into_data_stream().map_err(|error| error.to_string().into())));
        *response.status_mut() = parts.status;
        *response.headers_mut() = answer_headers(&parts.headers, false);
        Ok(response)
    }
}

/// Headers of an answer that are about the answer, not about the connection it came on.
fn answer_headers(headers: &HeaderMap, upgraded: bool) -> HeaderMap {
    let mut out = HeaderMap::new();
    for (name, value) in headers {
        let hop = matches!(
            name.as_str(),
            "keep-alive" | "transfer-encoding" | "set-cookie" | "content-length" | "trailer" | "te"
        );
        let upgrade = *name == CONNECTION || *name == UPGRADE;
        if !hop && (upgraded || !upgrade) {
            out.append(name, value.clone());
        }
    }
    out
}

/// To an instance of a hub in this process.
pub(crate) struct InstancePassage {
    pub(crate) hub: Arc<Hub>,
    pub(crate) instance: String,
    pub(crate) caller: Caller,
}

#[async_trait::async_trait]
impl Passage for InstancePassage {
    async fn pass(&self, mut request: Request<Incoming>) -> Result<Response<Body>, Status> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let target = format!("/instances/{}{path}", self.instance);
        *request.uri_mut() = target.parse().map_err(|error| Status::bad_request(format!("{target}: {error}")))?;
        *request.headers_mut() = clean_request_headers(request.headers(), Keep::default());
        // Nothing that says who called here may say who calls there.
        request.extensions_mut().remove::<atoll_apiserver::Identity>();
        request.extensions_mut().remove::<atoll_apiserver::PeerCertificates>();
        self.caller.show(&mut request);
        Ok(atoll_apiserver::handle(self.hub.clone(), request).await)
    }
}
