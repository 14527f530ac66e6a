//! Structural schemas: the type model, validation, defaulting, pruning, rules.
//!
//! Start at [`Schema`] (one node of a schema, for built-in kinds and custom resources alike).
//! Built-in kinds are decoded strictly with [`unknown_fields`], [`drop_unknown`] and
//! [`type_errors`]; custom resources go through [`prune`], [`apply_defaults`] and [`validate`].

mod compiled;
mod decode;
mod defaults;
mod fieldpath;
mod format;
mod json;
mod list;
mod model;
mod objectmeta;
mod prune;
mod statics;
mod structural;
mod trail;
mod unknown;
mod validate;

pub mod duplicate;
pub mod pattern;
pub mod rules;

pub use compiled::{Compiled, Hash, Interner};
pub use decode::type_errors;
pub use defaults::apply_defaults;
pub use model::{Limits, ListType, PatchStrategy, Rule, Schema, Type, Typed, Types};
pub use prune::prune;
pub use structural::check_structural;
pub use unknown::{drop_unknown, unknown_fields};
pub use validate::validate;
