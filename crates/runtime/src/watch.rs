//! The events of a watch, one JSON line each.

use std::io::BufRead as _;

use atoll_meta::Status;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::endpoint::{is_object, no_json};
use crate::transport::BodyStream;

/// The longest line that is waited for: one event holds one object. etcd takes none of more than 1.5 MiB unless it is told
/// to, and JSON is seldom twice as long as what etcd keeps.
const LONGEST: usize = 32 * 1024 * 1024;

/// One event of a watch.
#[derive(Debug)]
pub enum WatchEvent {
    /// An object came to be, or came into view.
    Added(Value),
    /// An object changed.
    Modified(Value),
    /// An object is gone, or out of view.
    Deleted(Value),
    /// Nothing happened up to this revision; the flag marks the end of the initial state.
    Bookmark(String, bool),
    /// The server ended the watch.
    Error(Status),
}

/// One event of a watch for those who need no tree of the object.
#[derive(Debug, PartialEq)]
pub enum Seen<T> {
    /// An object is so now.
    Put(T),
    /// An object is gone, or out of view.
    Gone(T),
    /// Nothing happened up to this revision.
    Bookmark(String),
    /// Something that nothing was made of.
    Nothing,
}

/// The events of a watch.
pub struct WatchStream {
    body: BodyStream,
    /// What came last, from the first line that nobody has had.
    rest: Bytes,
    /// A line whose end has not come.
    begun: BytesMut,
}

impl WatchStream {
    pub(crate) fn new(body: BodyStream) -> Self {
        Self { body, rest: Bytes::new(), begun: BytesMut::new() }
    }

    /// The next event; `None` when the server closed the stream.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, Status>> {
        let line = self.line().await?;
        Some(line.and_then(|line| event(&line)))
    }

    /// The next event with what `read` makes of the JSON of its object, nothing if it is not the JSON of one object.
    /// An error is also how the server ends a watch.
    pub async fn seen<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Option<Result<Seen<T>, Status>> {
        let line = self.line().await?;
        Some(line.and_then(|line| seen(&line, read)))
    }

    /// The next event as it was sent.
    async fn line(&mut self) -> Option<Result<Bytes, Status>> {
        loop {
            if let Some(length) = line_length(&self.rest) {
                let mut line = self.rest.split_to(length);
                if !self.begun.is_empty() {
                    self.begun.extend_from_slice(&line);
                    line = self.begun.split().freeze();
                }
                if line.len() > 1 {
                    return Some(Ok(line));
                }
                continue;
            }
            if self.begun.len() + self.rest.len() > LONGEST {
                // Nothing more is read. Whoever follows begins with a list, for this event would come again.
                *self = Self::new(Box::pin(futures::stream::empty()));
                return Some(Err(Status::expired(format!("an event of the watch is longer than {LONGEST} bytes"))));
            }
            self.begun.extend_from_slice(&std::mem::take(&mut self.rest));
            match self.body.next().await? {
                Ok(piece) => self.rest = piece,
                Err(error) => return Some(Err(Status::unavailable(error.to_string()))),
            }
        }
    }
}

/// The length of the first line with its end, if that is here.
fn line_length(mut bytes: &[u8]) -> Option<usize> {
    let all = bytes;
    let length = bytes.skip_until(b'\n').unwrap_or_default();
    all[..length].ends_with(b"\n").then_some(length)
}

fn event(line: &[u8]) -> Result<WatchEvent, Status> {
    let mut tree: Map<String, Value> = serde_json::from_slice(line).map_err(no_json)?;
    let object = tree.remove("object").unwrap_or_default();
    Ok(match tree.get("type").and_then(Value::as_str).unwrap_or_default() {
        "ADDED" => WatchEvent::Added(object),
        "MODIFIED" => WatchEvent::Modified(object),
        "DELETED" => WatchEvent::Deleted(object),
        "BOOKMARK" => WatchEvent::Bookmark(
            object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned(),
            object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true",
        ),
        _ => {
            let code = u16::try_from(object["code"].as_u64().unwrap_or(500)).unwrap_or(500);
            WatchEvent::Error(Status::from_json(code, object.to_string().as_bytes()))
        }
    })
}

/// A line whose object is not looked into.
#[derive(Deserialize)]
struct Line<'a> {
    /// `ADDED` and the like.
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

fn seen<T>(line: &[u8], read: impl Fn(&str) -> Option<T>) -> Result<Seen<T>, Status> {
    // What is read as one object was the only one between the marks.
    if let Some((gone, text)) = usual(line)
        && let Some(object) = read(text)
    {
        return Ok(if gone { Seen::Gone(object) } else { Seen::Put(object) });
    }
    if !is_object(line) {
        return Err(Status::internal("an event of the watch is no JSON object"));
    }
    let parts: Line<'_> = serde_json::from_slice(line).map_err(no_json)?;
    match parts.kind {
        "ADDED" | "MODIFIED" => Ok(read(parts.object.get()).map_or(Seen::Nothing, Seen::Put)),
        "DELETED" => Ok(read(parts.object.get()).map_or(Seen::Nothing, Seen::Gone)),
        _ => match event(line)? {
            WatchEvent::Bookmark(revision, _) if !revision.is_empty() => Ok(Seen::Bookmark(revision)),
            WatchEvent::Error(status) => Err(status),
            _ => Ok(Seen::Nothing),
        },
    }
}

/// Whether an object is gone, and its JSON, in a line as servers write it: found without a look into the object.
fn usual(line: &[u8]) -> Option<(bool, &str)> {
    let line = std::str::from_utf8(line).ok()?.trim_end();
    let (kind, rest) = line.strip_prefix("{\"type\":\"")?.split_once("\",\"object\":")?;
    let gone = match kind {
        "ADDED" | "MODIFIED" => false,
        "DELETED" => true,
        _ => return None,
    };
    Some((gone, rest.strip_suffix('}')?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn stream(pieces: &[&'static str]) -> WatchStream {
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).collect();
        WatchStream::new(Box::pin(futures::stream::iter(pieces)))
    }

    fn name(text: &str) -> Option<String> {
        let tree: Value = serde_json::from_str(text).ok()?;
        Some(tree["metadata"]["name"].as_str()?.to_owned())
    }

    #[tokio::test]
    async fn lines_are_found_however_they_are_cut() {
        let whole = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n\n\
                     {\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"b\"}}}\n";
        for first in 0..whole.len() {
            for second in [first, whole.len() - 1] {
                let mut stream =
                    stream(&[&whole[..first], &whole[first..second.max(first)], &whole[second.max(first)..]]);
                assert_eq!(stream.seen(name).await.unwrap().unwrap(), Seen::Put("a".to_owned()), "{first} {second}");
                assert_eq!(stream.seen(name).await.unwrap().unwrap(), Seen::Gone("b".to_owned()), "{first} {second}");
                assert!(stream.seen(name).await.is_none());
            }
        }
    }

    #[test]
    fn a_line_is_read_in_every_spelling() {
        let put = Seen::Put("a".to_owned());
        for (line, expected) in [
            (r#"{"type":"MODIFIED","object":{"metadata":{"name":"a"}}}"#, &put),
            (r#"{"type":"MODIFIED","object":{"metadata":{"name":"a"}},"more":{"metadata":{"name":"b"}}}"#, &put),
            (r#"{"object":{"metadata":{"name":"a"}},"type":"ADDED"}"#, &put),
            (r#" { "type" : "ADDED", "object" : {"metadata":{"name":"a"}} } "#, &put),
            (r#"{"type":"ADDED","object":{"metadata":{}}}"#, &Seen::Nothing),
            (r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}"#, &Seen::Bookmark("7".to_owned())),
        ] {
            assert_eq!(&seen(line.as_bytes(), name).unwrap(), expected, "{line}");
        }
        let expired = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#;
        assert_eq!(seen(expired.as_bytes(), name).unwrap_err().code, 410);
        for broken in [r#"{"type":"ADDED","object":{"metadata":{"name":"a"}"#, r#"{"type":"ADDED","object":{}}}"#, "{}"]
        {
            assert!(seen(broken.as_bytes(), name).is_err(), "{broken}");
        }
    }

    #[tokio::test]
    async fn hostile_lines_are_errors_of_the_watch_or_nothing() {
        for line in [
            r#"["X",{}]"#,
            r#"["BOOKMARK",{"metadata":{"resourceVersion":"7"}}]"#,
            r#"["ADDED",{"metadata":{"name":"a"}}]"#,
            "[]",
            "null",
            "7",
            "\"x\"",
            "true",
            "nonsense",
            r#"{"type":7,"object":{}}"#,
            r#"{"type":"ADDED"}"#,
            r#"{"type":"ERROR","object":[]}"#,
            r#"{"type":"ERROR","object":"x"}"#,
            r#"{"type":"ERROR","object":{"code":-1}}"#,
            r#"{"type":"X","object":{"code":99999999999}}"#,
        ] {
            let line: &'static str = format!("{line}\n").leak();
            let seen = stream(&[line]).seen(name).await.unwrap();
            assert!(seen.is_err(), "{line}: {seen:?}");
            // Those who want trees are not told of objects that are none.
            let next = stream(&[line]).next().await.unwrap();
            assert!(
                matches!(next, Err(_) | Ok(WatchEvent::Error(_) | WatchEvent::Added(Value::Null))),
                "{line}: {next:?}"
            );
        }
        for line in ["{\"type\":\"BOOKMARK\",\"object\":7}\n", "{\"type\":\"ADDED\",\"object\":[]}\n"] {
            assert_eq!(stream(&[line]).seen(name).await.unwrap().unwrap(), Seen::Nothing, "{line}");
        }
    }

    #[tokio::test]
    async fn a_line_without_end_ends_the_watch() {
        let piece = Bytes::from(vec![b'x'; 1 << 20]);
        let mut endless = WatchStream::new(Box::pin(futures::stream::repeat_with(move || Ok(piece.clone()))));
        assert_eq!(endless.seen(name).await.unwrap().unwrap_err().code, 410);
        assert!(endless.seen(name).await.is_none());
    }
}
