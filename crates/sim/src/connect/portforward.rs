//! `pods/portforward`: connections to a simulated container.

use std::sync::Arc;

use atoll_apiserver::{Body, Visit};
use atoll_meta::Status;
use atoll_stream::{PortStream, Purpose, Session, accept};
use http::Response;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{container, web};
use crate::world::World;

/// Longest head of a request that is read.
const MOST: usize = 64 * 1024;

/// Answers a request to forward ports.
pub fn serve(world: Arc<World>, mut visit: Visit) -> Result<Response<Body>, Status> {
    let pod = container::pod(&world, &visit.target)?;
    if pod.is_finished() || pod.ip.is_empty() {
        return Err(Status::bad_request(format!(
            "unable to forward port because pod is not running. Current status={:?}",
            pod.phase
        )));
    }
    let (answer, upgraded) = match accept(&mut visit.request, Purpose::PortForward) {
        Ok(accepted) => accepted,
        Err(refusal) => return Ok(refusal.response().map(Body::from)),
    };
    let tree = Arc::new(pod.item.tree());
    let stop = world.stop.clone();
    tokio::spawn(async move {
        let mut session = match upgraded.await {
            Ok(Session::PortForward(session)) => session,
            Ok(Session::Exec(_)) => return,
            Err(error) => return tracing::debug!(%error, "port-forward did not come about"),
        };
        let closed = session.closed();
        loop {
            let stream = tokio::select! {
                stream = session.next_stream() => stream,
                () = stop.cancelled() => None,
            };
            let Some(stream) = stream else { break };
            let open = web::listens(&tree, stream.port, "TCP");
            let tree = tree.clone();
            tokio::spawn(async move {
                if open {
                    // A caller that hangs up has what it wanted.
                    let _ = converse(stream, &tree).await;
                } else {
                    let why = format!(
                        "failed to connect to localhost:{} inside namespace {}: connect: connection refused",
                        stream.port, tree["metadata"]["namespace"]
                    );
                    stream.fail(&why).await;
                }
            });
        }
        // Streams in flight end with the connection.
        tokio::select! {
            () = closed.cancelled() => {}
            () = stop.cancelled() => {}
        }
    });
    Ok(answer.map(|()| Body::empty()))
}

/// Answers one HTTP request and hangs up.
async fn converse(mut stream: PortStream, tree: &Value) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") && head.len() < MOST {
        match stream.read(&mut buffer).await? {
            0 => break,
            count => head.extend_from_slice(&buffer[..count]),
        }
    }
    let text = String::from_utf8_lossy(&head);
    let mut first = text.lines().next().unwrap_or_default().split_whitespace();
    let (method, path) = (first.next().unwrap_or("GET"), first.next().unwrap_or("/"));
    let body = web::page(tree, &stream.port.to_string(), method, path);
    let content = if method == "HEAD" { "" } else { &body };
    let answer = format!(
        "HTTP/1.1 200 OK\r\nServer: simulated\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{content}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
