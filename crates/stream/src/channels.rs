//! Websocket channels: every message begins with the number of its channel.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::CancellationToken;

use crate::pipe::{Command, OUTGOING_QUEUE};

/// Channel of the message that closes another channel.
const CLOSE: u8 = 255;
/// How long the peer may take to answer the goodbye.
const LINGER: Duration = Duration::from_secs(5);
/// Some callers send a whole file as one message.
const MAX_MESSAGE: usize = 8 * 1024 * 1024;

/// How channels are written into messages.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Coding {
    /// A byte, then the data.
    Binary,
    /// A digit, then the data in base64.
    Base64,
}

/// Limits of a websocket.
pub(crate) fn config() -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE))
}

/// A running websocket.
pub(crate) struct Channels {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) closed: CancellationToken,
    /// Ends the connection at once when cancelled.
    pub(crate) kill: CancellationToken,
}

impl Channels {
    /// Starts the two tasks that read and write; `inbound` says where each channel's data goes.
    pub(crate) fn start<T>(
        socket: WebSocketStream<T>,
        coding: Coding,
        closes: bool,
        inbound: HashMap<u8, mpsc::Sender<Bytes>>,
    ) -> Self
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sink, stream) = socket.split();
        let (commands, queue) = mpsc::channel(OUTGOING_QUEUE);
        let (closed, stop, kill) = (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
        let (ended, stopped) = (closed.clone(), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = read(stream, coding, closes, inbound) => {}
                () = stopped.cancelled() => {}
            }
            ended.cancel();
        });
        let (ended, killed) = (closed.clone(), kill.clone());
        tokio::spawn(async move {
            let result = tokio::select! {
                result = write(sink, queue, coding, &ended) => result,
                () = killed.cancelled() => Ok(()),
            };
            if let Err(error) = result {
                tracing::debug!(%error, "websocket cannot be written");
            }
            stop.cancel();
        });
        Self { commands, closed, kill }
    }
}

async fn read<T: AsyncRead + AsyncWrite + Unpin>(
    mut stream: SplitStream<WebSocketStream<T>>,
    coding: Coding,
    closes: bool,
    mut inbound: HashMap<u8, mpsc::Sender<Bytes>>,
) {
    while let Some(message) = stream.next().await {
        let message = match message {
            Ok(Message::Binary(bytes)) => bytes,
            Ok(Message::Text(text)) => text.into(),
            Ok(_) => continue,
            Err(error) => {
                tracing::debug!(%error, "websocket ended");
                return;
            }
        };
        let Some((channel, data)) = decode(coding, &message) else { continue };
        if closes && channel == CLOSE {
            if let Some(channel) = data.first() {
                inbound.remove(channel);
            }
            continue;
        }
        if !data.is_empty()
            && let Some(sender) = inbound.get(&channel)
        {
            // Nobody listening any more is no fault of the peer.
            let _ = sender.send(data).await;
        }
    }
}

/// Channel and data of a message; `None` for what makes no sense.
fn decode(coding: Coding, message: &Bytes) -> Option<(u8, Bytes)> {
    let first = *message.first()?;
    let data = message.slice(1..);
    match coding {
        Coding::Binary => Some((first, data)),
        Coding::Base64 => {
            let channel = first.checked_sub(b'0').filter(|channel| *channel < 10)?;
            Some((channel, STANDARD.decode(data).ok()?.into()))
        }
    }
}

fn encode(coding: Coding, channel: u8, data: &[u8]) -> Message {
    match coding {
        Coding::Binary => Message::Binary([&[channel], data].concat().into()),
        Coding::Base64 => Message::Text(format!("{}{}", char::from(b'0' + channel), STANDARD.encode(data)).into()),
    }
}

async fn write<T: AsyncRead + AsyncWrite + Unpin>(
    mut sink: SplitSink<WebSocketStream<T>, Message>,
    mut queue: mpsc::Receiver<Command>,
    coding: Coding,
    closed: &CancellationToken,
) -> Result<(), Error> {
    loop {
        let command = tokio::select! {
            command = queue.recv() => command,
            () = closed.cancelled() => return Ok(()),
        };
        match command {
            Some(Command::Data(id, data)) => sink.send(encode(coding, id as u8, &data)).await?,
            Some(Command::Finish) | None => break,
            // A server cannot close one channel alone.
            Some(_) => {}
        }
    }
    queue.close();
    let goodbye = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    sink.send(Message::Close(Some(goodbye))).await?;
    let _ = tokio::time::timeout(LINGER, closed.cancelled()).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_read_back(channel in 0u8..10, data in prop::collection::vec(any::<u8>(), 0..100)) {
            for coding in [Coding::Binary, Coding::Base64] {
                let bytes = match encode(coding, channel, &data) {
                    Message::Binary(bytes) => bytes,
                    Message::Text(text) => text.into(),
                    other => panic!("{other:?}"),
                };
                prop_assert_eq!(decode(coding, &bytes).unwrap(), (channel, Bytes::from(data.clone())));
            }
        }

        #[test]
        fn no_message_makes_decoding_fail_hard(data in prop::collection::vec(any::<u8>(), 0..50)) {
            let _ = decode(Coding::Base64, &data.clone().into());
            let _ = decode(Coding::Binary, &data.into());
        }
    }
}
