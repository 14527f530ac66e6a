//! The body of a response: one buffer, or a stream of buffers.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http_body::{Frame, SizeHint};

/// What goes wrong while a body streams.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A response body.
pub enum Body {
    /// Everything at once.
    Full(Option<Bytes>),
    /// Buffer by buffer.
    Stream(Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>>),
    /// Buffer by buffer, with trailers at the end as gRPC has them.
    Frames(Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, BodyError>> + Send>>),
}

impl Body {
    /// No content.
    pub fn empty() -> Self {
        Self::Full(None)
    }

    /// A body that is produced while it is sent.
    pub fn stream(stream: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static) -> Self {
        Self::Stream(Box::pin(stream))
    }

    /// A body of frames: data, then perhaps trailers.
    pub fn frames(stream: impl Stream<Item = Result<Frame<Bytes>, BodyError>> + Send + 'static) -> Self {
        Self::Frames(Box::pin(stream))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Full(Some(bytes))
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Full(Some(bytes.into()))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::Full(Some(text.into()))
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Self::Full(Some(Bytes::from_static(text.as_bytes())))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Self::Full(bytes) => {
                Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Stream(stream) => stream.as_mut().poll_next(cx).map(|item| item.map(|item| item.map(Frame::data))),
            Self::Frames(stream) => stream.as_mut().poll_next(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Stream(_) | Self::Frames(_) => SizeHint::default(),
        }
    }
}
