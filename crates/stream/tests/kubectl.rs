//! The real `kubectl` runs commands and forwards ports, directly and through a proxy.
#![allow(clippy::unwrap_used, missing_docs)]

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use atoll_stream::{ExecOptions, Forwarded, Keep, Outcome, Purpose, Session, accept, clean_request_headers, forward};
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

/// Upgrades served, by protocol: kubectl must not silently fall back from one to the other.
static SOCKETS: AtomicUsize = AtomicUsize::new(0);
static SPDY: AtomicUsize = AtomicUsize::new(0);

type Body = BoxBody<Bytes, hyper::Error>;

fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed()
}

fn plain(value: &Value) -> Response<Body> {
    let mut response = Response::new(full(value.to_string()));
    response.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    response
}

/// Just enough of an API server for kubectl to find the pod `p`.
fn discovery(path: &str) -> Option<Value> {
    Some(match path {
        "/version" => json!({"major": "1", "minor": "35", "gitVersion": "v1.35.0"}),
        "/api" => json!({"kind": "APIVersions", "versions": ["v1"]}),
        "/apis" => json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []}),
        "/api/v1" => json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
            {"name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": ["get", "list"]}]}),
        "/api/v1/namespaces/default/pods/p" => json!({"kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "p", "namespace": "default", "uid": "u"},
            "spec": {"containers": [{"name": "c", "image": "i", "stdin": true}]},
            "status": {"phase": "Running"}}),
        _ => return None,
    })
}

/// Plays a container: `cat`, `big` and `exit N`.
async fn play(session: Session, command: String) {
    match session {
        Session::Exec(mut session) => {
            let (stdin, stdout, stderr) = (session.stdin.take(), session.stdout.take(), session.stderr.take());
            let outcome = match command.as_str() {
                "cat" => {
                    tokio::io::copy(&mut stdin.unwrap(), &mut stdout.unwrap()).await.unwrap();
                    Outcome::Success
                }
                "big" => {
                    stdout.unwrap().write_all(&vec![b'x'; 3_000_000]).await.unwrap();
                    Outcome::Success
                }
                "exit" => {
                    stderr.unwrap().write_all(b"oh no\n").await.unwrap();
                    Outcome::Exit(7)
                }
                other => Outcome::Failed(format!("no such command: {other}")),
            };
            session.finish(outcome).await;
        }
        Session::PortForward(mut session) => {
            while let Some(mut stream) = session.next_stream().await {
                tokio::spawn(async move {
                    let mut line = [0; 5];
                    stream.read_exact(&mut line).await.unwrap();
                    let answer = format!("{} says {}", stream.port, String::from_utf8_lossy(&line));
                    stream.write_all(answer.as_bytes()).await.unwrap();
                });
            }
        }
    }
}

async fn serve(mut request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
    let (path, query) = (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
    let purpose = match path.rsplit('/').next() {
        Some("exec") => Purpose::Exec(ExecOptions::from_query(Some(&query))),
        Some("portforward") => Purpose::PortForward,
        _ => {
            let missing = || json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404});
            return Ok(plain(&discovery(&path).unwrap_or_else(missing)));
        }
    };
    let command = query.split('&').find_map(|pair| pair.strip_prefix("command=")).unwrap_or_default().to_owned();
    match accept(&mut request, purpose) {
        Ok((response, session)) => {
            let socket = response.headers()[header::UPGRADE] == "websocket";
            if socket { &SOCKETS } else { &SPDY }.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move { play(session.await.unwrap(), command).await });
            Ok(response.map(|()| full("")))
        }
        Err(refusal) => Ok(refusal.response().map(full)),
    }
}

/// Sends everything on to `back`.
async fn proxy(mut request: Request<Incoming>, back: SocketAddr) -> Result<Response<Body>, hyper::Error> {
    if atoll_stream::is_upgrade(request.headers()).is_none() {
        return serve(request).await;
    }
    let headers = clean_request_headers(request.headers(), Keep::default());
    let target = format!("http://{back}{}", request.uri().path_and_query().unwrap()).parse().unwrap();
    let io = TcpStream::connect(back).await.unwrap();
    match forward(&mut request, io, &target, headers, None).await.unwrap() {
        Forwarded::Upgraded(response, joined) => {
            tokio::spawn(joined);
            Ok(response.map(|()| full("")))
        }
        Forwarded::Refused(response) => Ok(response.map(|body| body.boxed())),
    }
}

async fn listen(back: Option<SocketAddr>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((io, _)) = listener.accept().await {
            let service = service_fn(move |request| async move {
                match back {
                    None => serve(request).await,
                    Some(back) => proxy(request, back).await,
                }
            });
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(io), service);
            tokio::spawn(connection.with_upgrades());
        }
    });
    address
}

fn kubectl(server: SocketAddr, cache: &std::path::Path, websockets: bool, arguments: &[&str]) -> Command {
    let mut command = Command::new("kubectl");
    let switch = if websockets { "true" } else { "false" };
    command
        .args(["--kubeconfig", "/dev/null", "--server", &format!("http://{server}"), "--cache-dir"])
        .arg(cache)
        .args(arguments)
        .env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", switch)
        .env("KUBECTL_PORT_FORWARD_WEBSOCKETS", switch)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

async fn run(mut command: Command, input: &[u8]) -> (Option<i32>, Vec<u8>, String) {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    tokio::spawn(async move {
        // A command that does not read is fine.
        let _ = stdin.write_all(&input).await;
    });
    let output = tokio::time::timeout(Duration::from_secs(60), child.wait_with_output()).await.unwrap().unwrap();
    (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
}

async fn forward_port(server: SocketAddr, cache: &std::path::Path, websockets: bool) {
    let mut child = kubectl(server, cache, websockets, &["port-forward", "p", ":8080"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(Duration::from_secs(60), lines.next_line()).await.unwrap().unwrap();
    let line = line.expect("kubectl says where it listens");
    let local: u16 = line.split("127.0.0.1:").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    for word in ["hello", "world"] {
        let mut io = TcpStream::connect(("127.0.0.1", local)).await.unwrap();
        io.write_all(word.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = io.read_to_string(&mut answer);
        tokio::time::timeout(Duration::from_secs(60), read).await.unwrap().unwrap();
        assert_eq!(answer, format!("8080 says {word}"));
    }
    child.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_runs_commands_and_forwards_ports() {
    if std::process::Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        println!("SKIPPED: kubectl is not installed");
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let back = listen(None).await;
    let front = listen(Some(back)).await;
    for server in [back, front] {
        for websockets in [true, false] {
            let note = format!("proxied: {}, websockets: {websockets}", server == front);
            let kubectl = |arguments: &[&str]| kubectl(server, cache.path(), websockets, arguments);
            let input: Vec<u8> = (0..500_000u32).map(|n| n as u8).collect();
            let (code, stdout, stderr) = run(kubectl(&["exec", "-i", "p", "--", "cat"]), &input).await;
            assert_eq!((code, stdout == input), (Some(0), true), "{note}: {stderr}");
            let (code, stdout, stderr) = run(kubectl(&["exec", "p", "--", "big"]), b"").await;
            assert_eq!((code, stdout.len()), (Some(0), 3_000_000), "{note}: {stderr}");
            let (code, _, stderr) = run(kubectl(&["exec", "p", "--", "exit"]), b"").await;
            assert_eq!(code, Some(7), "{note}: {stderr}");
            assert!(stderr.starts_with("oh no\n"), "{note}: {stderr}");
            let (code, _, stderr) = run(kubectl(&["exec", "p", "--", "bogus"]), b"").await;
            assert_eq!(code, Some(1), "{note}: {stderr}");
            assert!(stderr.contains("no such command: bogus"), "{note}: {stderr}");
            forward_port(server, cache.path(), websockets).await;
            let counts = (SOCKETS.swap(0, Ordering::SeqCst), SPDY.swap(0, Ordering::SeqCst));
            assert_eq!(counts, if websockets { (5, 0) } else { (0, 5) }, "{note}");
        }
    }
    let missing = plain_get(back).await;
    assert_eq!(missing, StatusCode::BAD_REQUEST, "a plain request to exec is refused");
}

async fn plain_get(server: SocketAddr) -> StatusCode {
    let io = TcpStream::connect(server).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(io)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/api/v1/namespaces/default/pods/p/exec?stdout=true").header(header::HOST, "x");
    sender.send_request(request.body(full("")).unwrap()).await.unwrap().status()
}
