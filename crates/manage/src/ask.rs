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

/// Anything written as YAML or JSON.
pub fn tree(text: &str) -> Result<Value, Status> {
    // Modes of files are written 0644.
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| Status::bad_request(format!("data: {error}")))
}

/// An object written as YAML or JSON.
pub fn object(text: &str) -> Result<Value, Status> {
    let tree = tree(text)?;
    if tree.is_object() { Ok(tree) } else { Err(Status::bad_request("data: not an object")) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn objects_are_read_as_manifests_are() {
        assert_eq!(object("mode: 0644").unwrap(), serde_json::json!({"mode": 420}));
        assert_eq!(object(r#"{"mode": 420}"#).unwrap(), serde_json::json!({"mode": 420}));
        assert!(object("[1]").is_err() && object("a: [").is_err());
    }
}
