//! Errors about one field of an object, in the wording Kubernetes users know.

use std::fmt;

use serde_json::Value;

/// A path to a field, built while walking an object: `spec.containers[0].name`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FieldPath(String);

impl FieldPath {
    /// The empty path: the object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path from its text, such as `metadata.name`.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The path of a named child.
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}.{name}", self.0)) }
    }

    /// The path of a list element.
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The path of a map entry.
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// The text of the path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

/// What is wrong with a field.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Hash)]
pub enum FieldErrorKind {
    /// The field must be given.
    Required,
    /// The value is malformed or out of range.
    Invalid,
    /// The value is not one of a fixed set.
    NotSupported,
    /// The field may not be set here.
    Forbidden,
    /// The value occurs twice where it must be unique.
    Duplicate,
    /// Longer than allowed.
    TooLong,
    /// More items than allowed.
    TooMany,
    /// Not of the declared type.
    TypeInvalid,
    /// Refers to something that does not exist.
    NotFound,
    /// The server failed while checking.
    Internal,
}

impl FieldErrorKind {
    /// The `reason` of the cause in a Status.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

/// One complaint about one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Where.
    pub path: FieldPath,
    /// What sort of fault.
    pub kind: FieldErrorKind,
    /// The offending value, where showing it helps.
    pub value: Option<Value>,
    /// What is expected.
    pub detail: String,
}

impl FieldError {
    /// A required field is missing; `detail` may be empty.
    pub fn required(path: FieldPath, detail: impl Into<String>) -> Self {
        Self { path, kind: FieldErrorKind::Required, value: None, detail: detail.into() }
    }

    /// A value is malformed or out of range.
    pub fn invalid(path: FieldPath, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self { path, kind: FieldErrorKind::Invalid, value: Some(value.into()), detail: detail.into() }
    }

    /// A complaint about a value that is shown in words of its own, such as a whole structure.
    pub fn shown(path: FieldPath, kind: FieldErrorKind, shown: &str, detail: &str) -> Self {
        Self { path, kind, value: None, detail: format!("{shown}: {detail}") }
    }

    /// A value has the wrong JSON type.
    pub fn wrong_type(path: FieldPath, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self { path, kind: FieldErrorKind::TypeInvalid, value: Some(value.into()), detail: detail.into() }
    }

    /// A value is outside a fixed set.
    pub fn not_supported(path: FieldPath, value: impl Into<Value>, supported: &[&str]) -> Self {
        let mut quoted: Vec<String> = supported.iter().map(|item| format!("\"{item}\"")).collect();
        quoted.sort();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        Self { path, kind: FieldErrorKind::NotSupported, value: Some(value.into()), detail }
    }

    /// A field may not be set or changed.
    pub fn forbidden(path: FieldPath, detail: impl Into<String>) -> Self {
        Self { path, kind: FieldErrorKind::Forbidden, value: None, detail: detail.into() }
    }

    /// A value occurs twice.
    pub fn duplicate(path: FieldPath, value: impl Into<Value>) -> Self {
        Self { path, kind: FieldErrorKind::Duplicate, value: Some(value.into()), detail: String::new() }
    }

    /// A text is longer than `limit` bytes.
    pub fn too_long(path: FieldPath, limit: usize) -> Self {
        let detail = format!("may not be more than {limit} bytes");
        Self { path, kind: FieldErrorKind::TooLong, value: None, detail }
    }

    /// A list has more than `limit` items.
    pub fn too_many(path: FieldPath, actual: usize, limit: usize) -> Self {
        let detail = format!("must have at most {limit} items");
        Self { path, kind: FieldErrorKind::TooMany, value: Some(Value::from(actual)), detail }
    }

    /// A reference leads nowhere.
    pub fn not_found(path: FieldPath, value: impl Into<Value>) -> Self {
        Self { path, kind: FieldErrorKind::NotFound, value: Some(value.into()), detail: String::new() }
    }

    /// The message without the path, as it stands in a cause.
    pub fn body(&self) -> String {
        let title = self.kind.title();
        let mut text = match (&self.kind, &self.value) {
            (
                FieldErrorKind::Required
                | FieldErrorKind::Forbidden
                | FieldErrorKind::TooLong
                | FieldErrorKind::Internal,
                _,
            )
            | (_, None) => title.to_owned(),
            (_, Some(value)) => format!("{title}: {}", show(value)),
        };
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

/// Strings are quoted, everything else is compact JSON.
fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => quote(text),
        other => other.to_string(),
    }
}

/// A text in quotes, with the escapes users of Kubernetes know.
pub fn quote(text: &str) -> String {
    use fmt::Write as _;
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        // Writing to a string cannot fail.
        let _ = match c {
            '"' => out.write_str("\\\""),
            '\\' => out.write_str("\\\\"),
            '\u{7}' => out.write_str("\\a"),
            '\u{8}' => out.write_str("\\b"),
            '\u{c}' => out.write_str("\\f"),
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            '\u{b}' => out.write_str("\\v"),
            c if u32::from(c) < 0x20 || c == '\u{7f}' => write!(out, "\\x{:02x}", u32::from(c)),
            c if c.is_control()
                || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{feff}') =>
            {
                write!(out, "\\u{:04x}", u32::from(c))
            }
            c => out.write_char(c),
        };
    }
    out.push('"');
    out
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_kubernetes_writes_them() {
        let path = FieldPath::new("spec").child("replicas");
        assert_eq!(
            FieldError::invalid(path, -1, "must be greater than or equal to 0").to_string(),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
        );
        assert_eq!(
            FieldError::required(FieldPath::new("metadata.name"), "").to_string(),
            "metadata.name: Required value"
        );
        assert_eq!(
            FieldError::not_supported(FieldPath::new("type"), "x", &["b", "a"]).to_string(),
            "type: Unsupported value: \"x\": supported values: \"a\", \"b\""
        );
    }

    #[test]
    fn texts_are_quoted_as_kubernetes_quotes_them() {
        let table = [
            ("a\"b", r#""a\"b""#),
            ("a\u{1}b", r#""a\x01b""#),
            ("a\n\t", r#""a\n\t""#),
            ("ü\u{200b}", "\"ü\\u200b\""),
            ("\\", r#""\\""#),
        ];
        for (text, quoted) in table {
            assert_eq!(quote(text), quoted);
        }
    }
}
