//! The searchable copy of what is in all instances and members.
//!
//! ```text
//! source (instance or member) → follower (resume, list, watch) → writer (few large transactions)
//!                                                                  ↘ store (SQLite or PostgreSQL)
//! query → shelves the caller may see → one statement, all values bound → page, counts, live changes
//! ```
//!
//! Start at [`Index`]. A *shelf* holds the objects of one resource of one source. What is written
//! to a shelf went through `redact` first: data of Secrets never enters. What is read is filtered
//! by [`Rights`] inside the statement, so pages, counts and facets never tell of anything else.
//! [`Pedia`] speaks Clusterpedia's API over it.

mod clusterpedia;
mod discover;
mod field;
mod follow;
mod follower;
mod index;
mod live;
mod plan;
mod query;
mod redact;
mod rights;
mod row;
mod search;
mod shelf;
mod sound;
mod statement;
mod store;
mod token;
mod writer;

pub use clusterpedia::{Pedia, RightsOf};
pub use follow::{Resources, Source};
pub use index::Index;
pub use live::{Live, LiveEvent};
pub use query::{Column, Facet, OwnerOf, Query, ResourceName, Sort};
pub use redact::redact;
pub use rights::{ByRoles, Everything, Place, Rights};
pub use row::Row;
pub use search::{Item, Page};
pub use shelf::{Freshness, Shelf, ShelfKey};
pub use store::Choice;
