//! Accepting an upgrade: which protocol, which answer, which session.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role as SocketRole;

use crate::channels::{self, Coding};
use crate::exec::{ChannelVersion, SpdyVersion};
use crate::hygiene::{is_bearer_protocol, list};
use crate::spdy::Connection;
use crate::tunnel::Tunnel;
use crate::{ExecOptions, ExecSession, PortForwardSession, StreamError, hygiene, query};

const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
const ACCEPTED_PROTOCOLS: HeaderName = HeaderName::from_static("x-accepted-stream-protocol-versions");
const SPDY: &str = "SPDY/3.1";
const PORT_FORWARD: &str = "portforward.k8s.io";
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
const CHANNELS: &str = "v4.channel.k8s.io";
const MAX_CHANNEL_PORTS: usize = 100;

/// What a streaming request is for.
#[derive(Clone, Debug)]
pub enum Purpose {
    /// Exec or attach.
    Exec(ExecOptions),
    /// Port forwarding.
    PortForward,
}

/// A session with a caller, whatever it speaks.
#[derive(Debug)]
pub enum Session {
    /// Exec or attach.
    Exec(Box<ExecSession>),
    /// Port forwarding.
    PortForward(PortForwardSession),
}

/// Why an upgrade is refused; the connection stays plain HTTP.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Status to answer with.
    pub status: StatusCode,
    /// What to tell the caller.
    pub message: String,
    /// Protocols that would have been accepted.
    pub accepted: Vec<&'static str>,
}

impl Refusal {
    fn bad(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message: message.into(), accepted: Vec::new() }
    }

    pub(crate) fn protocol(offered: &[String], accepted: Vec<&'static str>) -> Self {
        let message =
            format!("unable to upgrade: no common protocol: caller offers {offered:?}, server has {accepted:?}");
        Self { status: StatusCode::FORBIDDEN, message, accepted }
    }

    /// The answer as plain text, with the header that names the accepted protocols.
    pub fn response(&self) -> Response<String> {
        let mut response = Response::new(self.message.clone());
        *response.status_mut() = self.status;
        for name in &self.accepted {
            response.headers_mut().append(ACCEPTED_PROTOCOLS, HeaderValue::from_static(name));
        }
        response
    }
}

/// What was agreed on.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Agreed {
    ExecChannels(ExecOptions, ChannelVersion),
    ExecSpdy(ExecOptions, SpdyVersion),
    PortChannels(Vec<u16>),
    PortSpdy,
    PortTunnel,
}

/// Agrees to an upgrade. The response must be sent as it is (with an empty body); the
/// future then yields the session.
pub fn accept<B>(
    request: &mut Request<B>,
    purpose: Purpose,
) -> Result<(Response<()>, BoxFuture<'static, Result<Session, StreamError>>), Refusal> {
    let (agreed, response) = negotiate(request.headers(), request.uri().query(), &purpose)?;
    let upgrade = hyper::upgrade::on(request);
    let session = async move {
        let io = TokioIo::new(upgrade.await?);
        serve(io, agreed).await
    };
    Ok((response, session.boxed()))
}

async fn serve<T>(io: T, agreed: Agreed) -> Result<Session, StreamError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let socket = |io: T| WebSocketStream::from_raw_socket(io, SocketRole::Server, Some(channels::config()));
    Ok(match agreed {
        Agreed::ExecChannels(options, version) => {
            Session::Exec(Box::new(ExecSession::over_channels(socket(io).await, options, version).await))
        }
        Agreed::ExecSpdy(options, version) => {
            let connection = Connection::start(io, crate::spdy::Role::Server);
            Session::Exec(Box::new(ExecSession::over_spdy(connection, options, version).await?))
        }
        Agreed::PortChannels(ports) => {
            Session::PortForward(PortForwardSession::over_channels(socket(io).await, Coding::Binary, &ports).await)
        }
        Agreed::PortSpdy => {
            Session::PortForward(PortForwardSession::over_spdy(Connection::start(io, crate::spdy::Role::Server)))
        }
        Agreed::PortTunnel => {
            let tunnel = Tunnel::new(socket(io).await);
            Session::PortForward(PortForwardSession::over_spdy(Connection::start(tunnel, crate::spdy::Role::Server)))
        }
    })
}

fn negotiate(headers: &HeaderMap, query: Option<&str>, purpose: &Purpose) -> Result<(Agreed, Response<()>), Refusal> {
    if let Purpose::Exec(options) = purpose
        && options.is_empty()
    {
        return Err(Refusal::bad("you must specify at least 1 of stdin, stdout, stderr"));
    }
    match hygiene::is_upgrade(headers) {
        Some(protocol) if protocol.eq_ignore_ascii_case("websocket") => websocket(headers, query, purpose),
        Some(protocol) if protocol.eq_ignore_ascii_case(SPDY) => spdy(headers, purpose),
        _ => Err(Refusal::bad("Upgrade request required")),
    }
}

fn websocket(headers: &HeaderMap, query: Option<&str>, purpose: &Purpose) -> Result<(Agreed, Response<()>), Refusal> {
    let offered = offered(headers);
    let (agreed, name) = match purpose {
        Purpose::Exec(options) => {
            let all = ChannelVersion::ALL;
            let found = offered.iter().find_map(|name| all.iter().find(|version| version.name == name));
            let version = match found {
                Some(version) => *version,
                None if offered.is_empty() => ChannelVersion::UNNAMED,
                None => return Err(Refusal::protocol(&offered, all.iter().map(|version| version.name).collect())),
            };
            (Agreed::ExecChannels(*options, version), version.name)
        }
        Purpose::PortForward => match offered.iter().find(|name| [TUNNEL, CHANNELS].contains(&name.as_str())) {
            Some(name) if name == TUNNEL => (Agreed::PortTunnel, TUNNEL),
            None if !offered.is_empty() => return Err(Refusal::protocol(&offered, vec![TUNNEL, CHANNELS])),
            found => {
                let ports = query::ports(query).map_err(Refusal::bad)?;
                if ports.is_empty() || ports.len() > MAX_CHANNEL_PORTS {
                    return Err(Refusal::bad("query parameter \"ports\" is required"));
                }
                (Agreed::PortChannels(ports), if found.is_some() { CHANNELS } else { "" })
            }
        },
    };
    Ok((agreed, welcome(headers, name)?))
}

/// The protocols a caller offers inside a websocket.
pub(crate) fn offered(headers: &HeaderMap) -> Vec<String> {
    let mut offered = list(headers, &SEC_WEBSOCKET_PROTOCOL);
    // Browsers have no other place for a token; it is none of our protocols.
    offered.retain(|name| !is_bearer_protocol(name));
    offered
}

/// The answer that begins a websocket with a protocol inside; empty for none.
pub(crate) fn welcome(headers: &HeaderMap, name: &'static str) -> Result<Response<()>, Refusal> {
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err(Refusal::bad("websocket version 13 required"));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).ok_or_else(|| Refusal::bad("Sec-WebSocket-Key missing"))?;
    let mut response = switching("websocket");
    let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes())).map_err(|_| Refusal::bad("bad key"))?;
    response.headers_mut().insert(SEC_WEBSOCKET_ACCEPT, accept);
    if !name.is_empty() {
        response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(name));
    }
    Ok(response)
}

fn spdy(headers: &HeaderMap, purpose: &Purpose) -> Result<(Agreed, Response<()>), Refusal> {
    let offered = list(headers, &STREAM_PROTOCOL);
    let (agreed, name) = match purpose {
        Purpose::Exec(options) => {
            let all = SpdyVersion::ALL;
            let found = offered.iter().find_map(|name| all.iter().find(|version| version.name == name));
            let version = match found {
                Some(version) => *version,
                // The first version had no name.
                None if offered.is_empty() => all[all.len() - 1],
                None => return Err(Refusal::protocol(&offered, all.iter().map(|version| version.name).collect())),
            };
            (Agreed::ExecSpdy(*options, version), if found.is_some() { version.name } else { "" })
        }
        Purpose::PortForward if offered.is_empty() || offered.iter().any(|name| name == PORT_FORWARD) => {
            (Agreed::PortSpdy, if offered.is_empty() { "" } else { PORT_FORWARD })
        }
        Purpose::PortForward => return Err(Refusal::protocol(&offered, vec![PORT_FORWARD])),
    };
    let mut response = switching(SPDY);
    if !name.is_empty() {
        response.headers_mut().insert(STREAM_PROTOCOL, HeaderValue::from_static(name));
    }
    Ok((agreed, response))
}

fn switching(protocol: &'static str) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(protocol));
    response
}

#[cfg(test)]
#[path = "accept_tests.rs"]
mod tests;
