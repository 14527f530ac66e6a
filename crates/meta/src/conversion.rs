//! How objects get from one version of a kind to another.

use serde_json::Value;

/// How objects of one version of a kind come from and get to the version they are stored in.
///
/// Both ways take a whole object and leave its `apiVersion` alone. They only move what has another place in the other
/// version: what that does not know at all is dropped by its schema.
#[derive(Copy, Clone, Debug)]
pub struct Conversion {
    /// The group of the kind.
    pub group: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The version that is served.
    pub version: &'static str,
    /// The version that is stored.
    pub storage: &'static str,
    /// From the stored version to the served one.
    pub show: fn(&mut Value),
    /// From the served version to the stored one.
    pub store: fn(&mut Value),
}
