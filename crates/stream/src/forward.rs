//! Sending an upgrade on to another server.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{CONNECTION, HOST, SET_COOKIE, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{StreamError, hygiene, splice};

/// Why an upgrade could not be sent on.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The other server cannot be spoken to.
    #[error("cannot reach the other server: {0}")]
    Unreachable(#[from] hyper::Error),
    /// The request cannot be written.
    #[error("malformed request: {0}")]
    Malformed(#[from] http::Error),
}

/// What the other server said to an upgrade.
pub enum Forwarded {
    /// It agreed: send the response (with an empty body), then run the future, which ends with the stream.
    Upgraded(Response<()>, BoxFuture<'static, Result<(u64, u64), StreamError>>),
    /// It refused; the response is its own.
    Refused(Response<Incoming>),
}

impl std::fmt::Debug for Forwarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Upgraded(response, _) => f.debug_tuple("Upgraded").field(response).finish(),
            Self::Refused(response) => f.debug_tuple("Refused").field(&response.status()).finish(),
        }
    }
}

/// Sends an upgrade on over `io`, an open connection to the other server.
///
/// `target` gives the path, query and host to ask for; `headers` are all headers to send,
/// usually made with [`crate::clean_request_headers`] plus own credentials.
pub async fn forward<B, T>(
    request: &mut Request<B>,
    io: T,
    target: &Uri,
    headers: HeaderMap,
    idle: Option<Duration>,
) -> Result<Forwarded, ForwardError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let path = target.path_and_query().map_or("/", |path| path.as_str());
    let mut onward = Request::builder().method(request.method().clone()).uri(path).body(Empty::<Bytes>::new())?;
    *onward.headers_mut() = headers;
    if let Some(authority) = target.authority() {
        onward.headers_mut().insert(HOST, HeaderValue::try_from(authority.as_str()).map_err(http::Error::from)?);
    }
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(io)).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "forwarded connection ended");
        }
    });
    let mut response = sender.send_request(onward).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(Forwarded::Refused(response));
    }
    let answer = answer(&response);
    let (ours, theirs) = (hyper::upgrade::on(request), hyper::upgrade::on(&mut response));
    let joined = async move {
        let (ours, theirs) = tokio::try_join!(ours, theirs)?;
        Ok(splice(TokioIo::new(ours), TokioIo::new(theirs), idle).await?)
    };
    Ok(Forwarded::Upgraded(answer, joined.boxed()))
}

/// The response to pass back: the upgrade itself, nothing else of the other connection.
fn answer(response: &Response<Incoming>) -> Response<()> {
    let mut answer = Response::new(());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    for (name, value) in response.headers() {
        let upgrade = *name == CONNECTION || *name == UPGRADE;
        if upgrade || !(hygiene::is_hop(name) || *name == SET_COOKIE) {
            answer.headers_mut().append(name, value.clone());
        }
    }
    answer
}
