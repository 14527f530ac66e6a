//! Port forwarding, whatever the caller speaks.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_util::sync::CancellationToken;

use crate::channels::{Channels, Coding};
use crate::pipe::{Command, Incoming, Outgoing};
use crate::spdy::{Connection, NewStream};

/// Half-open connections that wait for their other stream.
const MAX_PENDING: usize = 64;

/// One forwarded connection: reads what the caller sends, writes what the port answers.
#[derive(Debug)]
pub struct PortStream {
    /// The port the caller wants to reach.
    pub port: u16,
    incoming: Incoming,
    outgoing: Outgoing,
    error: Outgoing,
}

impl PortStream {
    /// Tells the caller why the connection failed, and ends it.
    pub async fn fail(mut self, message: &str) {
        // If the caller is gone there is nobody to tell.
        let _ = self.error.write_all(message.as_bytes()).await;
        let _ = self.error.shutdown().await;
    }
}

impl AsyncRead for PortStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.incoming).poll_read(cx, buf)
    }
}

impl AsyncWrite for PortStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.outgoing).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.outgoing).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.outgoing).poll_shutdown(cx)
    }
}

/// A running port-forward: connections come as the caller opens them.
pub struct PortForwardSession {
    source: Source,
    closed: CancellationToken,
}

impl std::fmt::Debug for PortForwardSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PortForwardSession").finish_non_exhaustive()
    }
}

enum Source {
    /// One connection for each port asked for.
    Fixed(VecDeque<PortStream>),
    /// Pairs of streams, matched by request.
    Spdy(Box<Connection>, HashMap<String, Half>),
}

/// The stream of a pair that came first.
struct Half {
    port: u16,
    data: bool,
    incoming: Incoming,
    outgoing: Outgoing,
}

impl PortForwardSession {
    /// The next connection; `None` when no more will come.
    pub async fn next_stream(&mut self) -> Option<PortStream> {
        match &mut self.source {
            Source::Fixed(streams) => streams.pop_front(),
            Source::Spdy(connection, pending) => loop {
                let stream = connection.next().await?;
                if let Some(whole) = pair(stream, pending).await {
                    return Some(whole);
                }
            },
        }
    }

    /// Ends when the caller is gone.
    pub fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    pub(crate) fn over_spdy(connection: Connection) -> Self {
        let closed = connection.closed();
        Self { source: Source::Spdy(Box::new(connection), HashMap::new()), closed }
    }

    /// Sets up two channels for every port: data, then errors.
    pub(crate) async fn over_channels<T>(socket: WebSocketStream<T>, coding: Coding, ports: &[u16]) -> Self
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut inbound = HashMap::new();
        let mut incoming = Vec::new();
        for at in 0..ports.len() {
            let (sender, receiver) = Incoming::new();
            inbound.insert(2 * at as u8, sender);
            incoming.push(receiver);
        }
        let Channels { commands, closed, .. } = Channels::start(socket, coding, false, inbound);
        let mut streams = VecDeque::new();
        for (at, (incoming, port)) in incoming.into_iter().zip(ports).enumerate() {
            let (data, error) = (2 * at as u32, 2 * at as u32 + 1);
            // Each channel begins with its port, so that the caller can tell them apart.
            for id in [data, error] {
                let _ = commands.send(Command::Data(id, Bytes::copy_from_slice(&port.to_le_bytes()))).await;
            }
            let outgoing = |id| Outgoing::new(id, commands.clone());
            streams.push_back(PortStream { port: *port, incoming, outgoing: outgoing(data), error: outgoing(error) });
        }
        Self { source: Source::Fixed(streams), closed }
    }
}

/// Joins a stream with the other one of its request, or keeps it until that comes.
async fn pair(stream: NewStream, pending: &mut HashMap<String, Half>) -> Option<PortStream> {
    let data = match stream.header("streamtype") {
        Some("data") => true,
        Some("error") => false,
        _ => {
            stream.refuse().await;
            return None;
        }
    };
    let port = stream.header("port").and_then(|port| port.parse::<u16>().ok()).filter(|port| *port > 0);
    // Old callers name no request; they open the data stream right after the error stream.
    let request = stream.header("requestid").filter(|request| !request.is_empty()).map_or_else(
        || if data { stream.id.saturating_sub(2).to_string() } else { stream.id.to_string() },
        str::to_owned,
    );
    let other = pending.remove(&request).filter(|other| other.data != data && Some(other.port) == port);
    let Some(port) = port.filter(|_| other.is_some() || pending.len() < MAX_PENDING) else {
        stream.refuse().await;
        return None;
    };
    let (incoming, outgoing) = stream.accept().await;
    let this = Half { port, data, incoming, outgoing };
    let Some(other) = other else {
        pending.insert(request, this);
        return None;
    };
    let (data, error) = if data { (this, other) } else { (other, this) };
    Some(PortStream { port, incoming: data.incoming, outgoing: data.outgoing, error: error.outgoing })
}
