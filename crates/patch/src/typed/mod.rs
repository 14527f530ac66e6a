//! Walking values by their schema as server-side apply does: lists by key, sets, atomics,
//! and types deduced from the value where the schema is silent.

mod compare;
mod kind;
mod merge;
mod reconcile;
mod remove;
mod set;
mod validate;

pub(crate) use compare::{Comparison, compare};
pub(crate) use kind::Kind;
pub(crate) use merge::merge;
pub(crate) use reconcile::{reconcile, with_named_fields};
pub(crate) use remove::{Emptied, remove};
pub(crate) use set::field_set;
pub(crate) use validate::{fits, validate};
