//! The two ends of one stream inside a shared connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_util::sync::PollSender;

/// Largest piece of data sent at once, so that streams take turns.
pub(crate) const CHUNK: usize = 32 * 1024;
/// Pieces that wait for one reader before the connection stops reading.
pub(crate) const INCOMING_QUEUE: usize = 4;
/// Pieces that wait for the connection before writers wait.
pub(crate) const OUTGOING_QUEUE: usize = 16;

/// What streams ask of the task that writes to the connection.
#[derive(Debug)]
pub(crate) enum Command {
    /// Send data of a stream.
    Data(u32, Bytes),
    /// No more data comes from this side of the stream.
    Close(u32),
    /// Open a stream (SPDY, calling side).
    #[cfg(test)]
    Open(u32, Vec<(String, String)>),
    /// Agree to a stream the peer opened (SPDY).
    Reply(u32),
    /// Refuse a stream the peer opened (SPDY).
    Refuse(u32),
    /// Answer a ping (SPDY).
    Pong(u32),
    /// Say goodbye and end the connection.
    Finish,
}

/// Data coming from the peer.
#[derive(Debug)]
pub struct Incoming {
    queue: mpsc::Receiver<Bytes>,
    rest: Bytes,
}

impl Incoming {
    pub(crate) fn new() -> (mpsc::Sender<Bytes>, Self) {
        let (sender, queue) = mpsc::channel(INCOMING_QUEUE);
        (sender, Self { queue, rest: Bytes::new() })
    }

    /// The next piece; `None` when the peer is done.
    pub async fn next(&mut self) -> Option<Bytes> {
        if !self.rest.is_empty() {
            return Some(std::mem::take(&mut self.rest));
        }
        self.queue.recv().await
    }
}

impl AsyncRead for Incoming {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(self.queue.poll_recv(cx)) {
                Some(bytes) => self.rest = bytes,
                None => return Poll::Ready(Ok(())),
            }
        }
        let len = self.rest.len().min(buf.remaining());
        buf.put_slice(&self.rest[..len]);
        self.rest.advance(len);
        Poll::Ready(Ok(()))
    }
}

/// Data going to the peer. Dropping it tells the peer that no more comes.
#[derive(Debug)]
pub struct Outgoing {
    id: u32,
    commands: PollSender<Command>,
    closed: bool,
}

impl Outgoing {
    pub(crate) fn new(id: u32, commands: mpsc::Sender<Command>) -> Self {
        Self { id, commands: PollSender::new(commands), closed: false }
    }

    fn poll_command(&mut self, cx: &mut Context<'_>, command: impl FnOnce(u32) -> Command) -> Poll<io::Result<()>> {
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        ready!(self.commands.poll_reserve(cx)).map_err(gone)?;
        Poll::Ready(self.commands.send_item(command(self.id)).map_err(gone))
    }
}

impl AsyncWrite for Outgoing {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let len = buf.len().min(CHUNK);
        ready!(self.poll_command(cx, |id| Command::Data(id, Bytes::copy_from_slice(&buf[..len]))))?;
        Poll::Ready(Ok(len))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closed {
            ready!(self.poll_command(cx, Command::Close))?;
            self.closed = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let Some(commands) = self.commands.get_ref().cloned() else { return };
        if let Err(mpsc::error::TrySendError::Full(command)) = commands.try_send(Command::Close(self.id)) {
            // The queue drains as long as the connection lives; nobody should wait for that in a drop.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { commands.send(command).await });
            }
        }
    }
}
