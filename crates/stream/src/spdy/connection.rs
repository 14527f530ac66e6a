//! A SPDY connection: many streams over one pair of bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::block::Headers;
use super::frame::{Decoder, Encoder, Frame, REFUSED};
use crate::pipe::{Command, Incoming, OUTGOING_QUEUE, Outgoing};
use crate::{StreamError, pipe};

/// Open streams per connection; more are refused.
const MAX_STREAMS: usize = 512;
/// How much is read from the connection at once.
const READ: usize = 16 * 1024;
/// Bytes gathered before they are written.
const WRITE: usize = 64 * 1024;
/// How long the peer may take to hang up after goodbye; hanging up first could cut off
/// what it has not read yet.
const LINGER: Duration = Duration::from_secs(5);

/// Which side of the connection this is.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// The side that accepted the connection.
    Server,
    /// The side that made it.
    #[cfg_attr(not(test), allow(dead_code, reason = "the calling side exists for tests"))]
    Caller,
}

/// What is known about an open stream.
struct Entry {
    /// Where its data goes; gone when the peer is done.
    inbound: Option<mpsc::Sender<Bytes>>,
    /// Whether this side is done.
    done: bool,
}

#[derive(Clone, Default)]
struct Table(Arc<Mutex<HashMap<u32, Entry>>>);

impl Table {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inbound(&self, id: u32) -> Option<mpsc::Sender<Bytes>> {
        self.lock().get(&id).and_then(|entry| entry.inbound.clone())
    }

    /// The peer is done with a stream.
    fn end_inbound(&self, id: u32) {
        let mut table = self.lock();
        if let Some(entry) = table.get_mut(&id) {
            entry.inbound = None;
            if entry.done {
                table.remove(&id);
            }
        }
    }

    /// This side is done with a stream; false if it was already or never was.
    fn end_outbound(&self, id: u32) -> bool {
        let mut table = self.lock();
        let Some(entry) = table.get_mut(&id) else { return false };
        let first = !std::mem::replace(&mut entry.done, true);
        // What nobody here reads any more need not be waited for.
        if entry.inbound.as_ref().is_none_or(mpsc::Sender::is_closed) {
            table.remove(&id);
        }
        first
    }
}

/// A stream the peer wants to open.
#[derive(Debug)]
pub(crate) struct NewStream {
    pub(crate) id: u32,
    pub(crate) headers: Headers,
    incoming: Incoming,
    commands: mpsc::Sender<Command>,
}

impl NewStream {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Agrees to the stream.
    pub(crate) async fn accept(self) -> (Incoming, Outgoing) {
        // If the connection is gone, both ends say so when used.
        let _ = self.commands.send(Command::Reply(self.id)).await;
        (self.incoming, Outgoing::new(self.id, self.commands))
    }

    /// Refuses the stream.
    pub(crate) async fn refuse(self) {
        let _ = self.commands.send(Command::Refuse(self.id)).await;
    }
}

/// A running connection.
pub(crate) struct Connection {
    streams: mpsc::Receiver<NewStream>,
    commands: mpsc::Sender<Command>,
    closed: CancellationToken,
    kill: CancellationToken,
    #[cfg(test)]
    table: Table,
    #[cfg(test)]
    next_id: u32,
}

impl Connection {
    /// Starts the two tasks that read and write.
    pub(crate) fn start<T>(io: T, role: Role) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, writer) = tokio::io::split(io);
        let (commands, queue) = mpsc::channel(OUTGOING_QUEUE);
        let (announce, streams) = mpsc::channel(OUTGOING_QUEUE);
        let (closed, stop, kill) = (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
        let table = Table::default();
        let mut side = ReadSide { role, table: table.clone(), commands: commands.downgrade(), announce, last: 0 };
        let (ended, stopped) = (closed.clone(), stop.clone());
        tokio::spawn(async move {
            let result = tokio::select! {
                result = side.run(reader) => result,
                () = stopped.cancelled() => Ok(()),
            };
            if let Err(error) = result {
                tracing::debug!(%error, "spdy connection ended");
            }
            side.table.lock().clear();
            ended.cancel();
        });
        let (ended, written, killed) = (closed.clone(), table.clone(), kill.clone());
        tokio::spawn(async move {
            let result = tokio::select! {
                result = write(writer, queue, written, &ended) => result,
                () = killed.cancelled() => Ok(()),
            };
            if let Err(error) = result {
                tracing::debug!(%error, "spdy connection cannot be written");
            }
            stop.cancel();
        });
        Self {
            streams,
            commands,
            closed,
            kill,
            #[cfg(test)]
            table,
            #[cfg(test)]
            next_id: 1,
        }
    }

    /// The next stream the peer wants to open; `None` when the connection is over.
    pub(crate) async fn next(&mut self) -> Option<NewStream> {
        self.streams.recv().await
    }

    /// Where commands go.
    pub(crate) fn commands(&self) -> &mpsc::Sender<Command> {
        &self.commands
    }

    /// Ends when the peer is gone.
    pub(crate) fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// Ends the connection at once when cancelled.
    pub(crate) fn kill(&self) -> CancellationToken {
        self.kill.clone()
    }

    /// Opens a stream.
    #[cfg(test)]
    pub(crate) async fn open(&mut self, headers: Headers) -> (Incoming, Outgoing) {
        let id = self.next_id;
        self.next_id += 2;
        let (inbound, incoming) = Incoming::new();
        self.table.lock().insert(id, Entry { inbound: Some(inbound), done: false });
        let _ = self.commands.send(Command::Open(id, headers)).await;
        (incoming, Outgoing::new(id, self.commands.clone()))
    }
}

/// The task that reads.
struct ReadSide {
    role: Role,
    table: Table,
    /// Weak: reading alone must not keep the connection open.
    commands: mpsc::WeakSender<Command>,
    announce: mpsc::Sender<NewStream>,
    last: u32,
}

impl ReadSide {
    async fn run(&mut self, mut io: impl AsyncRead + Unpin) -> Result<(), StreamError> {
        let (mut decoder, mut buf) = (Decoder::new(), BytesMut::new());
        loop {
            while let Some(frame) = decoder.decode(&mut buf)? {
                self.handle(frame).await?;
            }
            buf.reserve(READ);
            if io.read_buf(&mut buf).await? == 0 {
                return Ok(());
            }
        }
    }

    async fn handle(&mut self, frame: Frame) -> Result<(), StreamError> {
        match frame {
            Frame::SynStream { id, fin, unidirectional, headers } => {
                self.open(id, fin, unidirectional, headers).await?
            }
            Frame::Data { id, fin, data } => {
                if !data.is_empty()
                    && let Some(inbound) = self.table.inbound(id)
                {
                    // Nobody listening any more is no fault of the peer.
                    if inbound.send(data).await.is_err() {
                        self.table.end_inbound(id);
                    }
                }
                if fin {
                    self.table.end_inbound(id);
                }
            }
            Frame::SynReply { id, fin, .. } | Frame::Headers { id, fin, .. } => {
                if fin {
                    self.table.end_inbound(id);
                }
            }
            Frame::Reset { id, .. } => {
                self.table.lock().remove(&id);
            }
            Frame::Ping(id) => {
                // Odd pings are the caller's; one's own come back and need no answer.
                let theirs = (id % 2 == 1) == (self.role == Role::Server);
                if theirs && let Some(commands) = self.commands.upgrade() {
                    // A full queue means that data flows; that shows life as well.
                    let _ = commands.try_send(Command::Pong(id));
                }
            }
            Frame::GoAway { .. } | Frame::Settings | Frame::WindowUpdate { .. } => {}
        }
        Ok(())
    }

    async fn open(&mut self, id: u32, fin: bool, unidirectional: bool, headers: Headers) -> Result<(), StreamError> {
        let odd_wanted = self.role == Role::Server;
        if (id % 2 == 1) != odd_wanted || id <= self.last {
            return Err(StreamError::protocol(format!("stream {id} cannot be opened")));
        }
        self.last = id;
        let Some(commands) = self.commands.upgrade() else { return Ok(()) };
        if self.table.lock().len() >= MAX_STREAMS {
            let _ = commands.try_send(Command::Refuse(id));
            return Ok(());
        }
        let (inbound, incoming) = Incoming::new();
        let entry = Entry { inbound: (!fin).then_some(inbound), done: unidirectional };
        self.table.lock().insert(id, entry);
        let stream = NewStream { id, headers, incoming, commands };
        if let Err(mpsc::error::SendError(stream)) = self.announce.send(stream).await {
            stream.refuse().await;
        }
        Ok(())
    }
}

/// Writes what streams ask for, until told to finish or nobody is left to ask.
async fn write(
    mut io: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Command>,
    table: Table,
    closed: &CancellationToken,
) -> Result<(), StreamError> {
    let (mut encoder, mut out) = (Encoder::new(), BytesMut::new());
    let mut more = true;
    while more {
        let command = tokio::select! {
            command = queue.recv() => command,
            () = closed.cancelled() => break,
        };
        more = encode(&mut encoder, &mut out, &table, command)?;
        while more && out.len() < WRITE {
            match queue.try_recv() {
                Ok(command) => more = encode(&mut encoder, &mut out, &table, Some(command))?,
                Err(_) => break,
            }
        }
        io.write_all_buf(&mut out).await?;
        io.flush().await?;
    }
    // Whoever still wants to write learns that it is over.
    queue.close();
    let _ = tokio::time::timeout(LINGER, closed.cancelled()).await;
    io.shutdown().await?;
    Ok(())
}

/// Appends the frame for a command; false if it was the last one.
fn encode(
    encoder: &mut Encoder,
    out: &mut BytesMut,
    table: &Table,
    command: Option<Command>,
) -> Result<bool, StreamError> {
    let frame = match command {
        Some(Command::Data(id, data)) => {
            debug_assert!(data.len() <= pipe::CHUNK, "writers cut their data");
            if !table.lock().contains_key(&id) {
                return Ok(true);
            }
            Frame::Data { id, fin: false, data }
        }
        Some(Command::Close(id)) => {
            if !table.end_outbound(id) {
                return Ok(true);
            }
            Frame::Data { id, fin: true, data: Bytes::new() }
        }
        #[cfg(test)]
        Some(Command::Open(id, headers)) => Frame::SynStream { id, fin: false, unidirectional: false, headers },
        Some(Command::Reply(id)) => Frame::SynReply { id, fin: false, headers: Vec::new() },
        Some(Command::Refuse(id)) => {
            table.lock().remove(&id);
            Frame::Reset { id, status: REFUSED }
        }
        Some(Command::Pong(id)) => Frame::Ping(id),
        Some(Command::Finish) | None => {
            let open: Vec<u32> = table.lock().iter().filter(|(_, entry)| !entry.done).map(|(id, _)| *id).collect();
            for id in open {
                encoder.encode(&Frame::Data { id, fin: true, data: Bytes::new() }, out)?;
            }
            encoder.encode(&Frame::GoAway { last: 0, status: 0 }, out)?;
            return Ok(false);
        }
    };
    encoder.encode(&frame, out)?;
    Ok(true)
}
