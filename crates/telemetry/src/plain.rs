//! Plain HTTP for scrapers and probes. It answers `GET` with what a function says and nothing else.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::Full;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

/// Status code, content type and text.
pub type Answer = (u16, &'static str, String);

/// Scrapers and probes at once; more wait.
const CONNECTIONS: usize = 32;

/// A listening socket without TLS.
pub struct Plain {
    listener: TcpListener,
}

impl Plain {
    /// Takes the address.
    pub async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address).await? })
    }

    /// The address it listens on.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers paths until dropped.
    pub async fn run(self, answer: impl Fn(&str) -> Option<Answer> + Send + Sync + 'static) {
        let answer = Arc::new(answer);
        let slots = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
        loop {
            let Ok(slot) = slots.clone().acquire_owned().await else { return };
            let Ok((socket, _)) = self.listener.accept().await else {
                tokio::task::yield_now().await;
                continue;
            };
            let answer = answer.clone();
            tokio::spawn(async move {
                let _slot = slot;
                let service = hyper::service::service_fn(move |request| {
                    let response = respond(&request, &*answer);
                    async move { Ok::<_, Infallible>(response) }
                });
                let mut builder = hyper::server::conn::http1::Builder::new();
                builder.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(10));
                // A scraper that went away is its own affair.
                let _ = builder.serve_connection(TokioIo::new(socket), service).await;
            });
        }
    }
}

fn respond<B>(request: &Request<B>, answer: &(impl Fn(&str) -> Option<Answer> + ?Sized)) -> Response<Full<Bytes>> {
    let known = (request.method() == Method::GET).then(|| answer(request.uri().path())).flatten();
    let (code, kind, text) = known.unwrap_or((404, "text/plain; charset=utf-8", "404 page not found\n".into()));
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(method: Method, path: &str) -> u16 {
        let request = Request::builder().method(method).uri(path).body(()).expect("a request");
        respond(&request, &|path: &str| (path == "/healthz").then(|| (200, "text/plain", "ok".into())))
            .status()
            .as_u16()
    }

    #[test]
    fn only_known_paths_and_only_get_are_answered() {
        assert_eq!(ask(Method::GET, "/healthz"), 200);
        assert_eq!(ask(Method::POST, "/healthz"), 404);
        assert_eq!(ask(Method::GET, "/debug"), 404);
    }
}
