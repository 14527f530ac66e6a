//! gRPC by descriptors: frames in, frames and trailers out.

use std::time::Duration;

use atoll_apiserver::{Body, Incoming};
use atoll_meta::Status;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use futures::StreamExt as _;
use http::{HeaderMap, HeaderValue, Response};
use http_body::Frame;
use http_body_util::BodyExt as _;
use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor};
use serde_json::Value;

use crate::api::Reply;
use crate::transcode::request::from_tree;
use crate::transcode::status::{trailers, unimplemented};

/// Largest message of a stream.
const LARGEST: usize = 1024 * 1024;

/// Whether a request is gRPC.
pub fn is_grpc(headers: &HeaderMap) -> bool {
    let content = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    content == "application/grpc"
        || content.starts_with("application/grpc+proto")
        || content.starts_with("application/grpc;")
}

/// The one message of a request.
pub fn decode(method: &MethodDescriptor, mut body: Bytes) -> Result<DynamicMessage, Status> {
    if body.len() < 5 {
        return Err(Status::bad_request("the request holds no message"));
    }
    let (compressed, length) = (body.get_u8(), body.get_u32() as usize);
    if compressed != 0 {
        return Err(unimplemented("compressed messages are not understood"));
    }
    if body.len() < length {
        return Err(Status::bad_request("the message is cut off"));
    }
    DynamicMessage::decode(method.input(), body.split_to(length))
        .map_err(|error| Status::bad_request(error.to_string()))
}

/// Messages of a request as they come.
pub struct Frames {
    body: Incoming,
    buffer: BytesMut,
}

impl Frames {
    /// Of a body.
    pub fn new(body: Incoming) -> Self {
        Self { body, buffer: BytesMut::new() }
    }

    /// The next message as JSON; `None` at the end.
    pub async fn next(&mut self, method: &MethodDescriptor) -> Result<Option<Value>, Status> {
        loop {
            if let Some(head) = self.buffer.first_chunk::<5>() {
                let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                if length > LARGEST {
                    return Err(Status::too_large(format!("a message may have {LARGEST} bytes")));
                }
                if self.buffer.len() >= length + 5 {
                    let whole = self.buffer.split_to(length + 5).freeze();
                    return crate::api::tree(&decode(method, whole)?).map(Some);
                }
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        self.buffer.extend_from_slice(&piece);
                    }
                }
                Some(Err(error)) => return Err(Status::bad_request(format!("the body could not be read: {error}"))),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(Status::bad_request("the message is cut off")),
            }
        }
    }
}

fn frame(tree: &Value, descriptor: &MessageDescriptor) -> Result<Bytes, Status> {
    let message = from_tree(descriptor.clone(), tree).map_err(|status| Status::internal(status.message))?;
    let mut out = BytesMut::with_capacity(message.encoded_len() + 5);
    out.put_u8(0);
    out.put_u32(u32::try_from(message.encoded_len()).map_err(|_| Status::too_large("the answer is too large"))?);
    message.encode(&mut out).map_err(Status::internal)?;
    Ok(out.freeze())
}

/// The answer to a call.
pub fn answer(method: &MethodDescriptor, result: Result<Reply, Status>) -> Response<Body> {
    let output = method.output();
    let body = match result {
        Err(status) => return failed(&status),
        Ok(Reply::One(tree)) => match frame(&tree, &output) {
            Err(status) => return failed(&status),
            Ok(bytes) => {
                Body::frames(futures::stream::iter([Ok(Frame::data(bytes)), Ok(Frame::trailers(trailers(Ok(()))))]))
            }
        },
        Ok(Reply::Many(stream)) => {
            let frames = stream.map(move |item| item.and_then(|tree| frame(&tree, &output)));
            // The trailers tell how it ended: after an error nothing follows.
            let ended = frames.map(Some).chain(futures::stream::once(async { None })).scan(false, |over, item| {
                let next = match (*over, item) {
                    (true, _) => None,
                    (false, Some(Ok(bytes))) => Some(Frame::data(bytes)),
                    (false, Some(Err(status))) => {
                        *over = true;
                        Some(Frame::trailers(trailers(Err(&status))))
                    }
                    (false, None) => Some(Frame::trailers(trailers(Ok(())))),
                };
                futures::future::ready(next.map(Ok))
            });
            Body::frames(ended)
        }
    };
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc+proto"));
    response
}

/// An answer without a message.
pub fn failed(status: &Status) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.headers_mut() = trailers(Err(status));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc+proto"));
    response
}

/// How long the caller waits, from `grpc-timeout`.
pub fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number.checked_mul(3600)?),
        "M" => Duration::from_secs(number.checked_mul(60)?),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}
