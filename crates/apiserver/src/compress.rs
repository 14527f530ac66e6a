//! Long answers are sent compressed to those who can read that.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{Stream, StreamExt as _, stream};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue, VARY};
use http::{HeaderMap, Response};

use crate::body::{Body, BodyError};

/// Shorter answers cost less as they are.
const LONG: usize = 128 * 1024;

/// What is compressed without a pause.
const PART: usize = 64 * 1024;

/// Whether the caller reads gzip.
fn reads_gzip(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let refused = parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse::<f32>() == Ok(0.0)));
            (name.eq_ignore_ascii_case("gzip") || name == "*") && !refused
        })
    })
}

/// Compresses an answer if it is long and the caller can read that. Not for watches: events must not wait.
pub async fn shrink(headers: &HeaderMap, answer: Response<Body>) -> Response<Body> {
    if !reads_gzip(headers) || answer.headers().contains_key(CONTENT_ENCODING) {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    let packed = match body {
        Body::Full(Some(bytes)) if bytes.len() > LONG => {
            Packed::new(slices(bytes), stream::empty::<Result<Bytes, BodyError>>()).into_body()
        }
        Body::Stream(mut rest) => {
            let mut first = Vec::new();
            let mut size = 0;
            while size <= LONG {
                match rest.next().await {
                    Some(Ok(piece)) => {
                        size += piece.len();
                        first.push(piece);
                    }
                    // The failure comes after what came before it.
                    Some(Err(error)) => {
                        let pieces = first.into_iter().map(Ok).chain([Err(error)]).collect::<Vec<_>>();
                        return Response::from_parts(parts, Body::stream(stream::iter(pieces)));
                    }
                    None => return Response::from_parts(parts, first.concat().into()),
                }
            }
            Packed::new(first, rest).into_body()
        }
        other => return Response::from_parts(parts, other),
    };
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    if !parts.headers.get_all(VARY).iter().any(|value| value == "Accept-Encoding") {
        parts.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, packed)
}

/// A long body in parts, so that others get their turn while it is compressed.
fn slices(mut bytes: Bytes) -> Vec<Bytes> {
    let mut parts = Vec::with_capacity(bytes.len() / PART + 1);
    while bytes.len() > PART {
        parts.push(bytes.split_to(PART));
    }
    parts.push(bytes);
    parts
}

/// A body on its way through the encoder.
struct Packed<S> {
    first: std::vec::IntoIter<Bytes>,
    rest: S,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl<S: Stream<Item = Result<Bytes, BodyError>> + Send + Unpin + 'static> Packed<S> {
    fn new(first: Vec<Bytes>, rest: S) -> Self {
        let encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
        Self { first: first.into_iter(), rest, encoder }
    }

    fn into_body(self) -> Body {
        Body::stream(stream::unfold(self, |mut packed| async move {
            let piece = packed.next().await?;
            Some((piece, packed))
        }))
    }

    /// The next compressed piece, or the end.
    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        loop {
            let piece = match self.first.next() {
                Some(piece) => Some(piece),
                None => match self.rest.next().await.transpose() {
                    Ok(piece) => piece,
                    Err(error) => {
                        self.encoder = None; // a body without its end shows that it broke
                        return Some(Err(error));
                    }
                },
            };
            tokio::task::yield_now().await;
            let encoder = self.encoder.as_mut()?;
            let Some(piece) = piece else {
                let bytes = self.encoder.take()?.finish();
                return Some(bytes.map(Bytes::from).map_err(Into::into));
            };
            if let Err(error) = encoder.write_all(&piece) {
                return Some(Err(error.into()));
            }
            let ready = std::mem::take(encoder.get_mut());
            if !ready.is_empty() {
                return Some(Ok(ready.into()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use http_body_util::BodyExt as _;

    use super::*;

    fn asking(encoding: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(encoding))])
    }

    async fn sent(encoding: &'static str, body: Body) -> (bool, Vec<u8>) {
        let answer = shrink(&asking(encoding), Response::new(body)).await;
        let packed = answer.headers().get(CONTENT_ENCODING).is_some_and(|value| value == "gzip");
        (packed, answer.into_body().collect().await.unwrap().to_bytes().to_vec())
    }

    fn unpacked(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
        out
    }

    #[tokio::test]
    async fn long_answers_are_compressed_for_those_who_ask() {
        let long = "abc".repeat(LONG);
        let (packed, bytes) = sent("deflate, gzip;q=0.5", long.clone().into()).await;
        assert!(packed && bytes.len() < long.len() / 10);
        assert_eq!(unpacked(&bytes), long.as_bytes());
        for encoding in ["", "br", "gzip;q=0"] {
            assert_eq!(sent(encoding, long.clone().into()).await, (false, long.clone().into_bytes()), "{encoding}");
        }
    }

    #[tokio::test]
    async fn short_answers_stay_as_they_are() {
        assert_eq!(sent("gzip", "short".into()).await, (false, b"short".to_vec()));
        let pieces = ["a", "b"].map(|piece| Ok(Bytes::from_static(piece.as_bytes())));
        assert_eq!(sent("gzip", Body::stream(stream::iter(pieces))).await, (false, b"ab".to_vec()));
    }

    #[tokio::test]
    async fn a_stream_is_compressed_piece_by_piece() {
        let pieces: Vec<Bytes> = (0..40u8).map(|n| Bytes::from(vec![n; 10_000])).collect();
        let body = Body::stream(stream::iter(pieces.clone().into_iter().map(Ok)));
        let (packed, bytes) = sent("gzip", body).await;
        assert!(packed);
        assert_eq!(unpacked(&bytes), pieces.concat());
    }
}
