//! What is only read, over a websocket: one message for each piece, then the goodbye.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{SinkExt as _, Stream, StreamExt as _};
use http::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::accept::{Refusal, offered, welcome};
use crate::{channels, hygiene};

const BINARY: &str = "binary.k8s.io";
const BASE64: &str = "base64.binary.k8s.io";

/// Sends pieces over a websocket, if the caller asks for one: the response must be sent as it is (with an
/// empty body), all else goes on by itself until the pieces end or the caller leaves. `None` for a plain request.
pub fn narrate<B>(
    request: &mut Request<B>,
    pieces: impl Stream<Item = Bytes> + Send + 'static,
) -> Option<Result<Response<()>, Refusal>> {
    hygiene::is_upgrade(request.headers()).filter(|protocol| protocol.eq_ignore_ascii_case("websocket"))?;
    let wanted = offered(request.headers());
    let name = match wanted.iter().find_map(|own| [BINARY, BASE64].into_iter().find(|name| name == own)) {
        Some(name) => name,
        None if wanted.is_empty() => "",
        None => return Some(Err(Refusal::protocol(&wanted, vec![BINARY, BASE64]))),
    };
    let response = match welcome(request.headers(), name) {
        Ok(response) => response,
        Err(refusal) => return Some(Err(refusal)),
    };
    let upgrade = hyper::upgrade::on(request);
    tokio::spawn(async move {
        match upgrade.await {
            Ok(io) => {
                let config = Some(channels::config());
                let socket = WebSocketStream::from_raw_socket(TokioIo::new(io), Role::Server, config).await;
                tell(socket, name == BASE64, pieces).await;
            }
            Err(error) => tracing::debug!(%error, "the websocket did not come about"),
        }
    });
    Some(Ok(response))
}

async fn tell<T>(socket: WebSocketStream<T>, as_text: bool, pieces: impl Stream<Item = Bytes> + Send)
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send,
{
    let (mut sink, mut source) = socket.split();
    let speak = async {
        let mut pieces = std::pin::pin!(pieces);
        while let Some(piece) = pieces.next().await {
            let message = if as_text { Message::text(STANDARD.encode(&piece)) } else { Message::binary(piece) };
            if sink.send(message).await.is_err() {
                return;
            }
        }
        // Whoever listened may be gone already.
        let _ = sink.close().await;
    };
    // A caller has nothing to say here but goodbye.
    let listen = async { while source.next().await.is_some_and(|message| message.is_ok()) {} };
    tokio::select! {
        () = speak => {}
        () = listen => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_piece_is_a_message() {
        for as_text in [false, true] {
            let (near, far) = tokio::io::duplex(1024);
            let server = WebSocketStream::from_raw_socket(near, Role::Server, None).await;
            let client = WebSocketStream::from_raw_socket(far, Role::Client, None).await;
            let pieces = futures::stream::iter([Bytes::from_static(b"one\n"), Bytes::from_static(b"two\n")]);
            let told = tokio::spawn(tell(server, as_text, pieces));
            let heard: Vec<Message> = client
                .filter_map(|one| std::future::ready(one.ok()))
                .take_while(|one| std::future::ready(!one.is_close()))
                .collect()
                .await;
            let bytes: Vec<Bytes> = heard.into_iter().map(Message::into_data).collect();
            let expected = if as_text { ["b25lCg==", "dHdvCg=="] } else { ["one\n", "two\n"] };
            assert_eq!(bytes, expected);
            told.await.expect("it ends");
        }
    }

    #[tokio::test]
    async fn plain_requests_stay_plain_and_strange_protocols_are_refused() {
        let mut plain = Request::new(());
        assert!(narrate(&mut plain, futures::stream::empty()).is_none());
        let mut strange = Request::builder()
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-protocol", "v4.channel.k8s.io")
            .body(())
            .expect("a request");
        assert!(narrate(&mut strange, futures::stream::empty()).is_some_and(|answer| answer.is_err()));
    }
}
