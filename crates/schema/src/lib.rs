//! Structural schemas: the type model, validation, defaulting, pruning, rules.

mod model;

pub use model::{Limits, ListType, PatchStrategy, Rule, Schema, Type, Typed, Types};
