//! Patches and field ownership: JSON patch, merge patch, strategic merge patch, and
//! server-side apply with its `managedFields`.
//!
//! Start at [`strategic()`] (what `kubectl patch` sends), [`fields`] (sets of field paths)
//! and [`managed`] (who owns which field). Pure: time and manager names come from the caller.

mod error;
mod json;
mod merge;
mod show;
mod strategic;
mod typed;

pub mod fields;
pub mod managed;

pub use error::PatchError;
pub use json::{MAX_OPERATIONS, json_patch};
pub use merge::merge_patch;
pub use strategic::{create_strategic, strategic, three_way};
