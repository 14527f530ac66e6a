//! What an instance needs before a fleet can run in it.

use atoll_api::{CrdSet, crds};
use serde_json::Value;

/// The definitions of all kinds of a fleet; the one of Cluster is served natively.
pub fn definitions() -> Vec<Value> {
    crds(CrdSet::Karmada)
}
