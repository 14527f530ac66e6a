#![allow(clippy::unwrap_used)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_tungstenite::tungstenite::Message;

use super::*;
use crate::spdy::Role;
use crate::{Outcome, TerminalSize};

const ALL: ExecOptions = ExecOptions { stdin: true, stdout: true, stderr: true, tty: false };

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap()))
        .collect()
}

fn socket_headers(protocols: &str) -> HeaderMap {
    let mut pairs = vec![
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    if !protocols.is_empty() {
        pairs.push(("sec-websocket-protocol", protocols));
    }
    headers(&pairs)
}

fn spdy_headers(protocols: &str) -> HeaderMap {
    let mut pairs = vec![("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
    if !protocols.is_empty() {
        pairs.push(("x-stream-protocol-version", protocols));
    }
    headers(&pairs)
}

#[test]
fn the_callers_first_known_protocol_wins() {
    for (protocols, expected) in [
        ("v5.channel.k8s.io, v4.channel.k8s.io", Some("v5.channel.k8s.io")),
        ("v9.channel.k8s.io, v4.base64.channel.k8s.io", Some("v4.base64.channel.k8s.io")),
        ("base64url.bearer.authorization.k8s.io.dG9r, v4.channel.k8s.io", Some("v4.channel.k8s.io")),
        ("", Some("")),
        ("nonsense", None),
    ] {
        let result = negotiate(&socket_headers(protocols), None, &Purpose::Exec(ALL));
        let name = |response: &Response<()>| {
            response.headers().get(SEC_WEBSOCKET_PROTOCOL).map_or("", |value| value.to_str().unwrap()).to_owned()
        };
        assert_eq!(result.as_ref().ok().map(|(_, response)| name(response)).as_deref(), expected, "{protocols}");
        if let Ok((_, response)) = result {
            assert_eq!(response.headers()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        }
    }
    let spdy = |protocols: &str| negotiate(&spdy_headers(protocols), None, &Purpose::Exec(ALL));
    assert_eq!(spdy("v5.channel.k8s.io,v4.channel.k8s.io").unwrap().1.headers()[STREAM_PROTOCOL], "v4.channel.k8s.io");
    assert!(!spdy("").unwrap().1.headers().contains_key(STREAM_PROTOCOL));
    let refusal = spdy("nonsense").unwrap_err();
    assert_eq!(refusal.status, StatusCode::FORBIDDEN);
    assert_eq!(refusal.response().headers().get_all(ACCEPTED_PROTOCOLS).iter().count(), 4);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let exec = Purpose::Exec(ALL);
    assert!(negotiate(&HeaderMap::new(), None, &exec).is_err());
    assert!(negotiate(&headers(&[("connection", "upgrade"), ("upgrade", "websocket")]), None, &exec).is_err());
    assert!(negotiate(&headers(&[("connection", "upgrade"), ("upgrade", "h2c")]), None, &exec).is_err());
    assert!(negotiate(&socket_headers(""), None, &Purpose::Exec(ExecOptions::default())).is_err());
    assert!(negotiate(&socket_headers(CHANNELS), None, &Purpose::PortForward).is_err(), "ports missing");
    let ports = negotiate(&socket_headers(CHANNELS), Some("ports=80"), &Purpose::PortForward).unwrap().0;
    assert_eq!(ports, Agreed::PortChannels(vec![80]));
    assert_eq!(negotiate(&socket_headers(TUNNEL), None, &Purpose::PortForward).unwrap().0, Agreed::PortTunnel);
    assert_eq!(negotiate(&spdy_headers(PORT_FORWARD), None, &Purpose::PortForward).unwrap().0, Agreed::PortSpdy);
    assert!(negotiate(&spdy_headers("v4.channel.k8s.io"), None, &Purpose::PortForward).is_err());
}

/// Echoes input to both outputs and ends with code 3.
async fn echo(session: Session) {
    let Session::Exec(mut session) = session else { panic!("not an exec") };
    let (mut stdin, mut stdout, mut stderr) =
        (session.stdin.take().unwrap(), session.stdout.take().unwrap(), session.stderr.take().unwrap());
    tokio::io::copy(&mut stdin, &mut stdout).await.unwrap();
    stderr.write_all(b"done").await.unwrap();
    session.finish(Outcome::of_exit_code(3)).await;
}

fn serve_in_background(agreed: Agreed) -> DuplexStream {
    let (caller, server) = tokio::io::duplex(4096);
    tokio::spawn(async move {
        echo(serve(server, agreed).await.unwrap()).await;
    });
    caller
}

async fn caller_socket(io: DuplexStream) -> WebSocketStream<DuplexStream> {
    WebSocketStream::from_raw_socket(io, SocketRole::Client, None).await
}

fn exit_code(status: &[u8]) -> Value {
    let status: Value = serde_json::from_slice(status).unwrap();
    assert_eq!((&status["status"], &status["reason"]), (&json!("Failure"), &json!("NonZeroExitCode")));
    status["details"]["causes"][0]["message"].clone()
}

#[tokio::test]
async fn exec_works_over_websocket_channels_with_half_close() {
    let mut socket = caller_socket(serve_in_background(Agreed::ExecChannels(ALL, ChannelVersion::ALL[0]))).await;
    for message in [&b"\0hello"[..], b"\x63unknown channel", b"", b"\xff\0"] {
        socket.send(Message::Binary(Bytes::copy_from_slice(message))).await.unwrap();
    }
    let mut channels = vec![Vec::new(); 5];
    let mut first = None;
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Binary(bytes) = message {
            first.get_or_insert(bytes.clone());
            channels[usize::from(bytes[0])].extend_from_slice(&bytes[1..]);
        }
    }
    assert_eq!(first.unwrap().as_ref(), [1], "an empty message says that the session stands");
    assert_eq!(channels[1], b"hello");
    assert_eq!(channels[2], b"done");
    assert_eq!(exit_code(&channels[3]), "3");
}

#[tokio::test]
async fn exec_works_in_base64_and_ends_when_the_caller_hangs_up() {
    let version = ChannelVersion::ALL[2];
    let (caller, server) = tokio::io::duplex(4096);
    let session = tokio::spawn(serve(server, Agreed::ExecChannels(ExecOptions { tty: true, ..ALL }, version)));
    let mut socket = caller_socket(caller).await;
    socket.send(Message::text("0aGk=")).await.unwrap();
    socket.send(Message::text(format!("4{}", STANDARD.encode(r#"{"Width":80,"Height":24}"#)))).await.unwrap();
    let Session::Exec(mut session) = session.await.unwrap().unwrap() else { panic!("not an exec") };
    assert_eq!(session.stdin.as_mut().unwrap().next().await.unwrap().as_ref(), b"hi");
    assert_eq!(session.resize.as_mut().unwrap().next().await, Some(TerminalSize { width: 80, height: 24 }));
    session.stdout.as_mut().unwrap().write_all(b"ok").await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("1"));
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("1b2s="));
    drop(socket);
    session.closed().cancelled().await;
    assert!(session.stdin.as_mut().unwrap().next().await.is_none());
}

fn named(kind: &str, more: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = [("streamtype", kind)].into_iter().chain(more.iter().copied());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[tokio::test]
async fn exec_works_over_spdy_with_much_data() {
    let io = serve_in_background(Agreed::ExecSpdy(ALL, SpdyVersion::ALL[0]));
    let mut caller = Connection::start(io, Role::Caller);
    let (mut error, _error) = caller.open(named("error", &[])).await;
    let (mut nothing, _nothing) = caller.open(named("bogus", &[])).await;
    let (_stdin, mut stdin) = caller.open(named("stdin", &[])).await;
    let (mut stdout, _stdout) = caller.open(named("stdout", &[])).await;
    let (mut stderr, _stderr) = caller.open(named("stderr", &[])).await;
    let sent: Vec<u8> = (0..1_000_000u32).map(|n| n as u8).collect();
    let copy = sent.clone();
    tokio::spawn(async move {
        stdin.write_all(&copy).await.unwrap();
        stdin.shutdown().await.unwrap();
    });
    let mut received = Vec::new();
    stdout.read_to_end(&mut received).await.unwrap();
    assert!(received == sent);
    let mut text = Vec::new();
    stderr.read_to_end(&mut text).await.unwrap();
    assert_eq!(text, b"done");
    text.clear();
    error.read_to_end(&mut text).await.unwrap();
    assert_eq!(exit_code(&text), "3");
    assert!(nothing.next().await.is_none(), "unknown streams are refused");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_opens_no_streams_is_given_up() {
    let (_caller, server) = tokio::io::duplex(64);
    let result = serve(server, Agreed::ExecSpdy(ALL, SpdyVersion::ALL[0])).await;
    assert!(matches!(result, Err(StreamError::Timeout)));
}

#[tokio::test]
async fn nonsense_ends_a_spdy_connection() {
    let (mut caller, server) = tokio::io::duplex(64);
    let session = tokio::spawn(serve(server, Agreed::ExecSpdy(ALL, SpdyVersion::ALL[0])));
    // The connection may already be gone while this is written.
    let _ = caller.write_all(b"GET / HTTP/1.1\r\nHost: nonsense\r\n\r\n\x80\x02garbage").await;
    drop(caller);
    assert!(matches!(session.await.unwrap(), Err(StreamError::Protocol(_))));
}

/// Answers every connection with its port and input; port 2 fails.
async fn answer_ports(session: Session) {
    let Session::PortForward(mut session) = session else { panic!("not a port-forward") };
    while let Some(mut stream) = session.next_stream().await {
        tokio::spawn(async move {
            if stream.port == 2 {
                return stream.fail("nobody listens").await;
            }
            let mut input = [0; 4];
            stream.read_exact(&mut input).await.unwrap();
            let answer = format!("{}:{}", stream.port, String::from_utf8_lossy(&input));
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        });
    }
}

async fn forward_ports_over_spdy(mut caller: Connection) {
    for (port, request) in [("80", "0"), ("2", "1"), ("81", "2")] {
        let more = [("port", port), ("requestid", request)];
        let (mut error, error_out) = caller.open(named("error", &more)).await;
        drop(error_out);
        let (mut data, mut data_out) = caller.open(named("data", &more)).await;
        let _ = data_out.write_all(b"ping").await;
        let (mut answer, mut fault) = (String::new(), String::new());
        data.read_to_string(&mut answer).await.unwrap();
        error.read_to_string(&mut fault).await.unwrap();
        let expected = if port == "2" { (String::new(), "nobody listens") } else { (format!("{port}:ping"), "") };
        assert_eq!((answer, fault.as_str()), expected);
    }
    let (mut bad, _out) = caller.open(named("data", &[("port", "x")])).await;
    assert!(bad.next().await.is_none(), "a stream without a port is refused");
}

#[tokio::test]
async fn ports_are_forwarded_over_spdy_and_through_a_tunnel() {
    for tunnelled in [false, true] {
        let (caller, server) = tokio::io::duplex(4096);
        let agreed = if tunnelled { Agreed::PortTunnel } else { Agreed::PortSpdy };
        tokio::spawn(async move { answer_ports(serve(server, agreed).await.unwrap()).await });
        let connection = if tunnelled {
            Connection::start(Tunnel::new(caller_socket(caller).await), Role::Caller)
        } else {
            Connection::start(caller, Role::Caller)
        };
        forward_ports_over_spdy(connection).await;
    }
}

#[tokio::test]
async fn ports_are_forwarded_over_websocket_channels() {
    let (caller, server) = tokio::io::duplex(4096);
    tokio::spawn(async move { answer_ports(serve(server, Agreed::PortChannels(vec![80, 2])).await.unwrap()).await });
    let mut socket = caller_socket(caller).await;
    socket.send(Message::binary(&b"\0ping"[..])).await.unwrap();
    let mut channels = vec![Vec::new(); 4];
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Binary(bytes) = message {
            channels[usize::from(bytes[0])].extend_from_slice(&bytes[1..]);
        }
    }
    assert_eq!(channels[0], b"\x50\x0080:ping");
    assert_eq!(channels[1], b"\x50\x00");
    assert_eq!(channels[2], b"\x02\x00");
    assert_eq!(channels[3], b"\x02\x00nobody listens");
}
