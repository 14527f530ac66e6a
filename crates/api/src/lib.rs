//! Types of the custom resources Atoll serves, and their definitions.
//!
//! Types are grouped as their API groups are ([`policy`], [`work`], [`cluster`], ...);
//! [`crds`] gives the definitions an API server needs, [`words`] and [`names`] the labels,
//! annotations and names that other programs recompute and compare.

mod attributes;
mod definition;
mod kind;
mod quantity;
mod structural;

pub mod apps;
pub mod autoscaling;
pub mod cluster;
pub mod clusterpedia;
pub mod config;
pub mod instance;
pub mod kubeocean;
pub mod kubeocean_names;
pub mod multicluster;
pub mod names;
pub mod networking;
pub mod policy;
pub mod remedy;
pub mod words;
pub mod work;

pub use definition::{CrdSet, crds};
pub use kind::{Column, Kind, Scope};
pub use quantity::Quantity;
