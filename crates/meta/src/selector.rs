//! Label and field selectors: how a caller asks for some objects and not others.

mod field;
mod label;
mod lexer;

pub use field::{FieldSelector, FieldTerm};
pub use label::{LabelSelector, Operator, Requirement};

/// Why a text or a value is not a selector; the message is meant for the caller.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);

impl SelectorError {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// A selector longer than this is refused: it costs every object of a list.
const MAX_LEN: usize = 64 * 1024;
/// More requirements than this are refused.
const MAX_TERMS: usize = 1000;
