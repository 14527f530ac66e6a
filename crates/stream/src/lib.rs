//! Streaming beside plain requests: exec, attach and port-forward, over websocket
//! channels, SPDY/3.1, or SPDY inside a websocket; and passing such streams on.
//!
//! A server calls [`accept`] and gets a [`Session`] whatever the caller speaks; [`narrate`] sends
//! what is only read, such as logs.
//! A proxy calls [`forward`], which sends the upgrade on and splices both sides.

mod accept;
mod channels;
mod exec;
mod forward;
mod hygiene;
mod narrate;
mod pipe;
mod portforward;
mod query;
mod spdy;
mod splice;
mod tunnel;

pub use accept::{Purpose, Refusal, Session, accept};
pub use exec::{ExecSession, Outcome, Resizes, TerminalSize};
pub use forward::{ForwardError, Forwarded, forward};
pub use hygiene::{Keep, clean_request_headers, is_upgrade};
pub use narrate::narrate;
pub use pipe::{Incoming, Outgoing};
pub use portforward::{PortForwardSession, PortStream};
pub use query::ExecOptions;
pub use splice::splice;

/// Why a stream failed after the upgrade.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The connection broke.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The upgrade did not come about.
    #[error("upgrade failed: {0}")]
    Upgrade(#[from] hyper::Error),
    /// The peer broke the protocol.
    #[error("protocol error: {0}")]
    Protocol(String),
    /// The peer did not open its streams in time.
    #[error("timed out waiting for streams")]
    Timeout,
}

impl StreamError {
    pub(crate) fn protocol(text: impl Into<String>) -> Self {
        Self::Protocol(text.into())
    }
}
