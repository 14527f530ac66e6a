//! CustomResourceDefinitions: kinds that live in an instance.
//!
//! `accept` checks a definition while it is written, `reload` turns the definitions of an
//! instance into [`Kind`]s, [`Custom`] is what such a kind knows beyond its names.

mod accept;
mod check;
mod custom;
mod load;

pub use accept::{accept, default_names, set_condition, terminate};
pub use custom::Custom;
pub use load::{committed, fingerprint, native_kinds_of, reload};

/// Group of definitions.
pub const GROUP: &str = "apiextensions.k8s.io";
/// Plural of definitions.
pub const PLURAL: &str = "customresourcedefinitions";
/// Keeps a definition until its objects are gone.
pub const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
