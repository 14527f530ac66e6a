//! The registry: what every resource can do, built in or custom.
//!
//! `create`, `update`, `patch` and `delete` prepare an object; `write` is the one way from there
//! into the store, by way of `metadata`, `ownership` (of fields) and `rules` (of its kind).
//! `get`, `list` and `watch` read.

mod apply;
mod create;
mod cursor;
mod delete;
mod get;
mod list;
mod metadata;
mod ownership;
mod patch;
mod rules;
mod scale;
mod update;
mod watch;
mod write;

pub use delete::DeleteOptions;
pub use write::Stored;
