//! `managedFields`: who owns which field, kept up to date on every write, and server-side
//! apply on top of it.

mod apply;
mod conflict;
mod entry;
mod last_applied;
mod owners;
mod update;

use atoll_schema::Typed;
use serde_json::Value;

pub use apply::apply;
pub use conflict::{ApplyError, Conflict, conflict_status};
pub use update::update;

use crate::fields::{FieldSet, Path};
use crate::typed::Kind;

/// A write and who makes it.
#[derive(Copy, Clone)]
pub struct Request<'a> {
    /// Name of the field manager; `unknown` is recorded for an empty one.
    pub manager: &'a str,
    /// The version the object is written in.
    pub api_version: &'a str,
    /// The endpoint, like `status`; empty for the object itself.
    pub subresource: &'a str,
    /// The time to record, RFC 3339 with seconds.
    pub now: &'a str,
    /// Schema of the object in this version; types are deduced without one.
    pub schema: Option<Typed<'a>>,
    /// Fields that are not owned through this endpoint, like `status` or `metadata.labels`.
    pub reset: &'a [&'a str],
    /// Whether an apiVersion is still served; entries of versions that are not are dropped.
    pub versions: &'a dyn Fn(&str) -> bool,
}

impl<'a> Request<'a> {
    fn kind(&self) -> Kind<'a> {
        Kind::root(self.schema)
    }

    /// Whether ownership of an object's fields can be told at all: they must be of the types the schema names.
    pub fn fits(&self, object: &Value) -> bool {
        crate::typed::fits(object, self.kind())
    }

    fn manager_name(&self) -> &'a str {
        if self.manager.is_empty() { "unknown" } else { self.manager }
    }

    fn reset_fields(&self) -> FieldSet {
        let paths: Vec<Path> = self.reset.iter().map(|path| Path::of_fields(path)).collect();
        FieldSet::of_paths(&paths)
    }

    /// Whether fields recorded in another version can be compared with those of this request.
    ///
    /// Versions of a custom resource share their field paths; those of a built-in kind may not,
    /// so there foreign entries are carried along as they are.
    fn comparable(&self, api_version: &str) -> bool {
        api_version == self.api_version || !self.kind().is_built_in()
    }
}
