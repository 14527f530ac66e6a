//! The protobuf form of built-in kinds, driven by the field numbers of the table.
//!
//! An object travels as [`MAGIC`] and an envelope (`Unknown`) that names apiVersion and kind
//! and holds the message. Custom resources have no protobuf form.

mod decode;
mod encode;
mod message;
mod special;
mod wire;

use serde_json::Value;

pub use decode::decode;
pub use encode::{encode, encode_list, encode_watch_event};
pub(crate) use message::{Special, special as special_type};

/// The first four bytes of every enveloped object.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// How deep messages may nest.
pub(crate) const MAX_DEPTH: usize = 100;

/// How many values one object may hold; keeps two-byte empty elements from becoming gigabytes.
pub(crate) const MAX_VALUES: usize = 1_000_000;

/// An object that came as protobuf.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// `apiVersion` of the envelope.
    pub api_version: String,
    /// `kind` of the envelope.
    pub kind: String,
    /// The object, with `apiVersion` and `kind`.
    pub object: Value,
}

/// Why bytes are not an object, or an object cannot become bytes.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ProtoError {
    /// The magic bytes are missing.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Magic,
    /// A length or number goes beyond the end.
    #[error("unexpected end of data")]
    Truncated,
    /// A varint of more than 64 bits.
    #[error("integer overflow in a varint")]
    Varint,
    /// A field number that cannot be.
    #[error("illegal field number")]
    Tag,
    /// A value laid out in another way than its field says.
    #[error("wrong wire type for a field")]
    WireType,
    /// Text that is not UTF-8.
    #[error("a string is not valid UTF-8")]
    Utf8,
    /// Messages nested too deeply.
    #[error("messages are nested too deeply")]
    Depth,
    /// Too many values.
    #[error("the message holds too many values")]
    Size,
    /// JSON text inside the message is broken.
    #[error("invalid JSON inside the message: {0}")]
    Json(String),
    /// The envelope is compressed or encoded in an unknown way.
    #[error("unsupported content encoding {0:?}")]
    Encoding(String),
    /// apiVersion or kind is missing.
    #[error("the object names no apiVersion and kind")]
    NoKind,
    /// The kind has no protobuf form here.
    #[error("no kind {kind:?} is registered for version {api_version:?} as protobuf")]
    UnknownKind {
        /// apiVersion asked for.
        api_version: String,
        /// Kind asked for.
        kind: String,
    },
    /// A JSON value of another type than the field has.
    #[error("field {field:?} does not fit its type {expected}")]
    Shape {
        /// JSON name of the field.
        field: String,
        /// What the field is.
        expected: &'static str,
    },
}

/// The type of a kind, also of kinds that are no resource, such as lists and options.
pub(crate) fn type_name(group: &str, version: &str, kind: &str) -> Option<String> {
    message::Messages::get().type_of(group, version, kind).map(ToString::to_string)
}

impl ProtoError {
    fn shape(field: &str, expected: &'static str) -> Self {
        Self::Shape { field: field.to_owned(), expected }
    }
}
