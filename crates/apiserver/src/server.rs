//! The listening socket: TLS, HTTP/1.1 and HTTP/2, upgrades, graceful end.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::debug;

use crate::body::Body;

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is taken or not ours.
    #[error("cannot listen on {0}: {1}")]
    Bind(SocketAddr, std::io::Error),
}

/// The certificate a client showed during the handshake; not yet verified against any authority.
#[derive(Clone)]
pub struct PeerCertificates(pub Arc<Vec<rustls_pki_types::CertificateDer<'static>>>);

/// The name of the server a client gave during the handshake.
#[derive(Clone)]
pub struct AskedName(pub Arc<str>);

/// The connection a request came over. Cutting it ends what became of it, such as a terminal.
#[derive(Clone, Default)]
pub struct Line {
    cut: CancellationToken,
    over: CancellationToken,
}

impl Line {
    /// Ends the connection at once.
    pub fn cut(&self) {
        self.cut.cancel();
    }

    /// Waits until the connection has ended.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }
}

/// A stream that can be cut from elsewhere.
struct Cuttable<S> {
    inner: S,
    line: Line,
    cut: Pin<Box<tokio_util::sync::WaitForCancellationFutureOwned>>,
}

impl<S> Cuttable<S> {
    fn new(inner: S, line: Line) -> Self {
        let cut = Box::pin(line.cut.clone().cancelled_owned());
        Self { inner, line, cut }
    }

    fn is_cut(&mut self, cx: &mut std::task::Context<'_>) -> std::io::Result<()> {
        match self.cut.as_mut().poll(cx) {
            Poll::Ready(()) => Err(std::io::ErrorKind::ConnectionAborted.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl<S> Drop for Cuttable<S> {
    fn drop(&mut self) {
        self.line.over.cancel();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Cuttable<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        self.is_cut(cx)?;
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Cuttable<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buffer: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        if self.line.cut.is_cancelled() {
            return Poll::Ready(Err(std::io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.inner).poll_write(cx, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buffers: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        if self.line.cut.is_cancelled() {
            return Poll::Ready(Err(std::io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.inner).poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// A listening server.
pub struct Server {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Server {
    /// Takes the address; fails at once when it is not free.
    pub async fn bind(address: SocketAddr, tls: Arc<rustls::ServerConfig>) -> Result<Self, ServerError> {
        let listener = TcpListener::bind(address).await.map_err(|error| ServerError::Bind(address, error))?;
        Ok(Self { listener, acceptor: TlsAcceptor::from(tls) })
    }

    /// The address it listens on.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop`, then lets running requests finish.
    pub async fn run<S>(self, service: S, stop: CancellationToken)
    where
        S: tower::Service<
                http::Request<hyper::body::Incoming>,
                Response = http::Response<Body>,
                Error = std::convert::Infallible,
            > + Clone
            + Send
            + 'static,
        S::Future: Send,
    {
        let connections = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            let (socket, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors or the like: the next accept may succeed.
                    debug!(%error, "accept failed");
                    tokio::task::yield_now().await;
                    continue;
                }
            };
            let _ = socket.set_nodelay(true);
            let acceptor = self.acceptor.clone();
            let service = service.clone();
            let stop = stop.clone();
            connections.spawn(async move {
                let handshake = tokio::time::timeout(std::time::Duration::from_secs(10), acceptor.accept(socket)).await;
                let stream = match handshake {
                    Ok(Ok(stream)) => stream,
                    Ok(Err(error)) => return debug!(%peer, %error, "TLS handshake failed"),
                    Err(_) => return debug!(%peer, "TLS handshake timed out"),
                };
                let certificates = stream.get_ref().1.peer_certificates().map(|list| {
                    let owned = list.iter().map(|certificate| certificate.clone().into_owned()).collect();
                    PeerCertificates(Arc::new(owned))
                });
                let name = stream.get_ref().1.server_name().map(|name| AskedName(name.into()));
                let line = Line::default();
                let stream = TokioIo::new(Cuttable::new(stream, line.clone()));
                serve(stream, service, Caller { peer, line, certificates, name }, stop).await;
            });
        }
        connections.close();
        // Streams end themselves on shutdown; what does not is cut after a while.
        let _ = tokio::time::timeout(std::time::Duration::from_secs(10), connections.wait()).await;
    }
}

/// Who is at the other end of a connection, as far as the connection tells.
struct Caller {
    peer: SocketAddr,
    line: Line,
    certificates: Option<PeerCertificates>,
    name: Option<AskedName>,
}

async fn serve<I, S>(io: I, service: S, caller: Caller, stop: CancellationToken)
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    S: tower::Service<
            http::Request<hyper::body::Incoming>,
            Response = http::Response<Body>,
            Error = std::convert::Infallible,
        > + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    let Caller { peer, line, certificates, name } = caller;
    let handler = hyper::service::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
        if let Some(certificates) = &certificates {
            request.extensions_mut().insert(certificates.clone());
        }
        if let Some(name) = &name {
            request.extensions_mut().insert(name.clone());
        }
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(line.clone());
        // Only parts of the hub can say so, also when they ask in a caller's name.
        request.headers_mut().remove(atoll_meta::PATIENT);
        request.headers_mut().remove(atoll_meta::COMPANY);
        let mut service = service.clone();
        async move { service.call(request).await }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(std::time::Duration::from_secs(30));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(1000)
        .keep_alive_interval(Some(std::time::Duration::from_secs(30)));
    let connection = builder.serve_connection_with_upgrades(io, handler);
    tokio::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        debug!(%peer, %error, "connection ended with an error");
    }
}
