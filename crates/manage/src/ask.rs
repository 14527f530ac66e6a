//! Fields of a request, checked.

use atoll_meta::Status;
use serde_json::Value;

/// Reads fields of a request's JSON.
pub struct Ask<'a>(pub &'a Value);

impl<'a> Ask<'a> {
    /// A text; empty when absent.
    pub fn text(&self, key: &str) -> &'a str {
        self.0[key].as_str().unwrap_or_default()
    }

    /// A text that becomes one segment of a path, and so must not be anything else.
    pub fn segment(&self, key: &str) -> Result<&'a str, Status> {
        let text = self.text(key);
        segment(key, text)?;
        Ok(text)
    }

    /// The same, or nothing when the field is empty.
    pub fn segment_opt(&self, key: &str) -> Result<Option<&'a str>, Status> {
        if self.text(key).is_empty() { Ok(None) } else { self.segment(key).map(Some) }
    }

    /// A number that may be written as text.
    pub fn number(&self, key: &str) -> i64 {
        number(&self.0[key])
    }
}

/// A number that may be written as text.
pub fn number(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_default()
}

/// Refuses texts that would mean something else in a path.
pub fn segment(key: &str, text: &str) -> Result<(), Status> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    if text.is_empty() || text == "." || text == ".." || text.len() > 253 || !text.chars().all(plain) {
        return Err(Status::bad_request(format!("{key}: {text:?} is not a name")));
    }
    Ok(())
}

/// An object written as YAML or JSON.
pub fn object(text: &str) -> Result<Value, Status> {
    let tree: Value = serde_saphyr::from_str(text).map_err(|error| Status::bad_request(format!("data: {error}")))?;
    if tree.is_object() { Ok(tree) } else { Err(Status::bad_request("data: not an object")) }
}
