//! Two answers side by side.

use std::fmt;

use http::HeaderMap;
use serde_json::Value;

use crate::case::Case;
use crate::normal;
use crate::side::Answer;

/// A place where two answers differ.
#[derive(Debug)]
pub struct Difference {
    /// `code`, `header:NAME` or `body/json/pointer`.
    pub place: String,
    theirs: String,
    ours: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ≠ {}", self.place, self.theirs, self.ours)
    }
}

/// Headers clients act on.
const HEADERS: [&str; 10] = [
    "content-type",
    "content-encoding",
    "vary",
    "cache-control",
    "retry-after",
    "location",
    "warning",
    "allow",
    "www-authenticate",
    "x-content-type-options",
];
/// Where the original and we differ.
pub fn answers(case: &Case, theirs: &Answer, ours: &Answer) -> Vec<Difference> {
    let mut found = Vec::new();
    if theirs.code != ours.code {
        found.push(Difference { place: "code".into(), theirs: theirs.code.to_string(), ours: ours.code.to_string() });
    }
    if case.only.as_deref() == Some("code") {
        return found;
    }
    for name in HEADERS {
        let (theirs, ours) = (header(&theirs.headers, name), header(&ours.headers, name));
        if theirs != ours {
            found.push(Difference { place: format!("header:{name}"), theirs, ours });
        }
    }
    for name in ["etag", "audit-id"] {
        let (theirs, ours) = (theirs.headers.contains_key(name), ours.headers.contains_key(name));
        if theirs != ours {
            found.push(Difference {
                place: format!("header:{name}"),
                theirs: theirs.to_string(),
                ours: ours.to_string(),
            });
        }
    }
    if case.only.as_deref() == Some("headers") {
        return found;
    }
    let (mut theirs, mut ours) = (body(theirs), body(ours));
    if case.unordered {
        normal::sort_faults(&mut theirs);
        normal::sort_faults(&mut ours);
    }
    values("body", &theirs, &ours, &mut found);
    found
}

fn header(headers: &HeaderMap, name: &str) -> String {
    let mut values: Vec<String> =
        headers.get_all(name).iter().map(|value| normal::text(&String::from_utf8_lossy(value.as_bytes()))).collect();
    values.sort();
    values.join(" | ")
}

/// The body as a normalised tree: JSON, JSON lines (watches), protobuf or text.
fn body(answer: &Answer) -> Value {
    let content_type = answer.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut tree = if content_type.starts_with("application/vnd.kubernetes.protobuf") {
        protobuf(&answer.bytes)
    } else if content_type.starts_with("application/yaml") {
        serde_saphyr::from_slice(&answer.bytes).unwrap_or_else(|_| text(&answer.bytes))
    } else if let Ok(tree) = serde_json::from_slice::<Value>(&answer.bytes) {
        tree
    } else {
        let lines: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(&answer.bytes).into_iter().collect();
        lines.map_or_else(|_| text(&answer.bytes), Value::Array)
    };
    normal::value(&mut tree);
    tree
}

fn protobuf(bytes: &[u8]) -> Value {
    match atoll_builtin::proto::decode(bytes) {
        Ok(decoded) => {
            let mut object = decoded.object;
            object["apiVersion"] = decoded.api_version.into();
            object["kind"] = decoded.kind.into();
            object
        }
        Err(error) => format!("not protobuf: {error}").into(),
    }
}

fn text(bytes: &[u8]) -> Value {
    String::from_utf8_lossy(bytes).into_owned().into()
}

fn values(place: &str, theirs: &Value, ours: &Value, found: &mut Vec<Difference>) {
    match (theirs, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))).collect();
            keys.sort();
            for key in keys {
                let place = format!("{place}/{key}");
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => values(&place, a, b, found),
                    (a, b) => found.push(Difference { place, theirs: show(a), ours: show(b) }),
                }
            }
        }
        // Entries stand in the order of their times, and a second may pass on one side only.
        (Value::Array(a), Value::Array(b)) if place.ends_with("/managedFields") && same_entries(a, b) => {}
        (Value::Array(a), Value::Array(b)) => {
            for at in 0..a.len().max(b.len()) {
                let place = format!("{place}/{at}");
                match (a.get(at), b.get(at)) {
                    (Some(a), Some(b)) => values(&place, a, b, found),
                    (a, b) => found.push(Difference { place, theirs: show(a), ours: show(b) }),
                }
            }
        }
        _ if theirs == ours => {}
        _ => found.push(Difference { place: place.to_owned(), theirs: show(Some(theirs)), ours: show(Some(ours)) }),
    }
}

fn same_entries(a: &[Value], b: &[Value]) -> bool {
    let sorted = |list: &[Value]| {
        let mut texts: Vec<String> = list.iter().map(Value::to_string).collect();
        texts.sort();
        texts
    };
    sorted(a) == sorted(b)
}

fn show(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "(nothing)".to_owned(), Value::to_string);
    if text.chars().count() > 500 { format!("{}…", text.chars().take(500).collect::<String>()) } else { text }
}
