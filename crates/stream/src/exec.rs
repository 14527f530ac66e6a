//! Exec and attach, whatever the caller speaks.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_util::sync::CancellationToken;

use crate::channels::{Channels, Coding};
use crate::pipe::{CHUNK, Command, Incoming, Outgoing};
use crate::spdy::Connection;
use crate::{ExecOptions, StreamError};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;

/// How long a caller may take to open its streams.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a caller may take to read the rest and hang up.
const FINISH_TIMEOUT: Duration = Duration::from_secs(30);
/// Resizes are short; more text than this without a whole one is nonsense.
const MAX_RESIZE: usize = 4096;

/// How a command ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// Well.
    Success,
    /// With this exit code.
    Exit(i32),
    /// It could not be run, or its end is unknown.
    Failed(String),
}

impl Outcome {
    /// A zero exit code is success.
    pub fn of_exit_code(code: i32) -> Self {
        if code == 0 { Self::Success } else { Self::Exit(code) }
    }

    fn message(&self) -> String {
        match self {
            Self::Success => String::new(),
            Self::Exit(code) => format!("command terminated with non-zero exit code: exit code {code}"),
            Self::Failed(message) => message.clone(),
        }
    }

    /// The Status on the error stream.
    fn status(&self) -> Value {
        match self {
            Self::Success => json!({"metadata": {}, "status": "Success"}),
            Self::Exit(code) => json!({
                "metadata": {},
                "status": "Failure",
                "message": self.message(),
                "reason": "NonZeroExitCode",
                "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
            }),
            Self::Failed(message) => json!({
                "metadata": {},
                "status": "Failure",
                "message": format!("Internal error occurred: {message}"),
                "reason": "InternalError",
                "details": {"causes": [{"message": message}]},
                "code": 500,
            }),
        }
    }
}

/// Size of a terminal in characters.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Lines.
    pub height: u16,
}

/// Changes of the terminal's size.
#[derive(Debug)]
pub struct Resizes {
    incoming: Incoming,
    text: Vec<u8>,
}

impl Resizes {
    fn new(incoming: Incoming) -> Self {
        Self { incoming, text: Vec::new() }
    }

    /// The next size; `None` when no more will come.
    pub async fn next(&mut self) -> Option<TerminalSize> {
        loop {
            if let Some(size) = self.take() {
                return Some(size);
            }
            if self.text.len() > MAX_RESIZE {
                return None;
            }
            let piece = self.incoming.next().await?;
            self.text.extend_from_slice(&piece);
        }
    }

    /// Takes a whole size off the text received so far.
    fn take(&mut self) -> Option<TerminalSize> {
        loop {
            let mut values = serde_json::Deserializer::from_slice(&self.text).into_iter::<Value>();
            let value = values.next()?.ok()?;
            let used = values.byte_offset();
            self.text.drain(..used);
            let number = |key: &str| value.get(key).and_then(Value::as_u64).and_then(|n| u16::try_from(n).ok());
            if let (Some(width), Some(height)) = (number("Width"), number("Height")) {
                return Some(TerminalSize { width, height });
            }
        }
    }
}

/// A running exec or attach. Dropping it without [`ExecSession::finish`] hangs up.
#[derive(Debug)]
pub struct ExecSession {
    /// Input, if the caller sends any.
    pub stdin: Option<Incoming>,
    /// Output, if the caller wants it.
    pub stdout: Option<Outgoing>,
    /// Error output, if the caller wants it.
    pub stderr: Option<Outgoing>,
    /// Changes of the terminal's size, if there is a terminal.
    pub resize: Option<Resizes>,
    /// Stream of the outcome.
    error: u32,
    /// Sides of streams that only wait for the end: closing one early would close the
    /// caller's side as well.
    held: Vec<Outgoing>,
    /// Whether the outcome is a Status, or only a text as in the first versions.
    structured: bool,
    commands: mpsc::Sender<Command>,
    closed: CancellationToken,
    kill: CancellationToken,
}

impl ExecSession {
    /// Ends when the caller is gone.
    pub fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// Tells the caller how it ended and hangs up.
    ///
    /// Everything written before arrives before; what still holds `stdout` or `stderr`
    /// can write no more.
    pub async fn finish(mut self, outcome: Outcome) {
        let kill = self.kill.clone();
        if tokio::time::timeout(FINISH_TIMEOUT, self.say_goodbye(outcome)).await.is_err() {
            // The caller neither reads nor hangs up.
            kill.cancel();
        }
    }

    async fn say_goodbye(&mut self, outcome: Outcome) {
        let text = if self.structured { outcome.status().to_string() } else { outcome.message() };
        for piece in text.as_bytes().chunks(CHUNK) {
            let _ = self.commands.send(Command::Data(self.error, Bytes::copy_from_slice(piece))).await;
        }
        for mut stream in self.held.drain(..).chain(self.stdout.take()).chain(self.stderr.take()) {
            let _ = stream.shutdown().await;
        }
        let _ = self.commands.send(Command::Finish).await;
        self.commands.closed().await;
        self.closed.cancelled().await;
    }

    /// Sets up the channels of a websocket.
    pub(crate) async fn over_channels<T>(
        socket: WebSocketStream<T>,
        options: ExecOptions,
        protocol: ChannelVersion,
    ) -> Self
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut inbound = HashMap::new();
        let mut listen = |channel: u8, wanted: bool| {
            wanted.then(|| {
                let (sender, incoming) = Incoming::new();
                inbound.insert(channel, sender);
                incoming
            })
        };
        let (stdin, resize) = (listen(STDIN, options.stdin), listen(RESIZE, options.tty));
        let Channels { commands, closed, kill } = Channels::start(socket, protocol.coding, protocol.closes, inbound);
        let outgoing = |channel: u8, wanted: bool| wanted.then(|| Outgoing::new(channel.into(), commands.clone()));
        // An empty message tells the caller that the session stands.
        let first = if options.stdout {
            STDOUT
        } else if options.stderr {
            STDERR
        } else {
            ERROR
        };
        let _ = commands.send(Command::Data(first.into(), Bytes::new())).await;
        Self {
            stdin,
            stdout: outgoing(STDOUT, options.stdout),
            stderr: outgoing(STDERR, options.stderr),
            resize: resize.map(Resizes::new),
            error: ERROR.into(),
            held: Vec::new(),
            structured: protocol.structured,
            closed,
            kill,
            commands,
        }
    }

    /// Waits for the caller to open its streams.
    pub(crate) async fn over_spdy(
        connection: Connection,
        options: ExecOptions,
        version: SpdyVersion,
    ) -> Result<Self, StreamError> {
        let opened = tokio::time::timeout(OPEN_TIMEOUT, Self::collect(connection, options, version));
        opened.await.map_err(|_| StreamError::Timeout)?
    }

    async fn collect(
        mut connection: Connection,
        options: ExecOptions,
        version: SpdyVersion,
    ) -> Result<Self, StreamError> {
        let resizable = options.tty && version.resizes;
        let wanted = [true, options.stdin, options.stdout, options.stderr, resizable];
        let mut missing = wanted.iter().filter(|wanted| **wanted).count();
        let (mut stdin, mut stdout, mut stderr, mut error, mut resize) = (None, None, None, None, None);
        while missing > 0 {
            let stream = connection.next().await;
            let stream =
                stream.ok_or_else(|| StreamError::protocol("connection ended before all streams were open"))?;
            let id = stream.id;
            let kind = stream.header("streamtype").unwrap_or_default().to_owned();
            match kind.as_str() {
                "error" if error.is_none() => error = Some((id, stream.accept().await.1)),
                "stdin" if options.stdin && stdin.is_none() => stdin = Some(stream.accept().await),
                "stdout" if options.stdout && stdout.is_none() => stdout = Some(stream.accept().await.1),
                "stderr" if options.stderr && stderr.is_none() => stderr = Some(stream.accept().await.1),
                "resize" if resizable && resize.is_none() => resize = Some(stream.accept().await),
                _ => {
                    stream.refuse().await;
                    continue;
                }
            }
            missing -= 1;
        }
        let (error, outcome) = error.ok_or_else(|| StreamError::protocol("no error stream"))?;
        let mut held = vec![outcome];
        let mut incoming = |(incoming, outgoing): (Incoming, Outgoing)| {
            held.push(outgoing);
            incoming
        };
        let (stdin, resize) = (stdin.map(&mut incoming), resize.map(&mut incoming).map(Resizes::new));
        Ok(Self {
            stdin,
            stdout,
            stderr,
            resize,
            error,
            held,
            structured: version.structured,
            closed: connection.closed(),
            kill: connection.kill(),
            commands: connection.commands().clone(),
        })
    }
}

/// A version of the websocket channel protocol.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) struct ChannelVersion {
    pub(crate) name: &'static str,
    pub(crate) coding: Coding,
    pub(crate) structured: bool,
    /// Whether a caller can close one channel.
    pub(crate) closes: bool,
}

impl ChannelVersion {
    pub(crate) const ALL: [Self; 5] = [
        Self { name: "v5.channel.k8s.io", coding: Coding::Binary, structured: true, closes: true },
        Self { name: "v4.channel.k8s.io", coding: Coding::Binary, structured: true, closes: false },
        Self { name: "v4.base64.channel.k8s.io", coding: Coding::Base64, structured: true, closes: false },
        Self { name: "channel.k8s.io", coding: Coding::Binary, structured: false, closes: false },
        Self { name: "base64.channel.k8s.io", coding: Coding::Base64, structured: false, closes: false },
    ];
    /// What a caller speaks that names no protocol.
    pub(crate) const UNNAMED: Self = Self { name: "", coding: Coding::Binary, structured: false, closes: false };
}

/// A version of the SPDY stream protocol.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) struct SpdyVersion {
    pub(crate) name: &'static str,
    pub(crate) structured: bool,
    pub(crate) resizes: bool,
}

impl SpdyVersion {
    pub(crate) const ALL: [Self; 4] = [
        Self { name: "v4.channel.k8s.io", structured: true, resizes: true },
        Self { name: "v3.channel.k8s.io", structured: false, resizes: true },
        Self { name: "v2.channel.k8s.io", structured: false, resizes: false },
        Self { name: "channel.k8s.io", structured: false, resizes: false },
    ];
}
