//! The built-in Kubernetes kinds as data, with their protobuf wire format.
//!
//! [`kinds`] and [`groups`] say what is served, [`types`] what the objects look like,
//! [`proto`] turns protobuf bodies into JSON trees and back, [`openapi`] publishes documents.
//! All of it comes from one generated table (`data/kubernetes.table`), read on first use.

mod form;
mod kinds;
mod table;

pub mod openapi;
pub mod print;
pub mod proto;
pub mod strategy;

pub use form::canonical;
pub use kinds::{GroupInfo, KindInfo, SubInfo, find, find_kind, groups, kinds, schema_of, storage_kind, types};
