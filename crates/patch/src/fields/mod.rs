//! Sets of field paths, and their wire form `fieldsV1`.

mod element;
mod set;
mod wire;

pub(crate) use element::same;
pub use element::{Path, PathElement};
pub use set::FieldSet;
pub(crate) use set::Node;
