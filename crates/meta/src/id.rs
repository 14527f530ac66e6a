//! Identifiers: revisions, instances, kinds and resources.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point in the history of one instance; `0` is before the first write.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Revision(pub u64);

impl Revision {
    /// Parses a resourceVersion: decimal, no sign, no leading zeros.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || (text.len() > 1 && text.starts_with('0')) {
            return None;
        }
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        text.parse().ok().map(Self)
    }

    /// The revision after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The small number under which an instance is known inside one hub.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default, Serialize, Deserialize)]
pub struct InstanceId(pub u32);

impl InstanceId {
    /// The instance that holds the hub's own objects.
    pub const ROOT: Self = Self(0);
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Joins group and version the way `apiVersion` spells them.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Splits an `apiVersion` into group and version.
pub fn split_api_version(text: &str) -> (&str, &str) {
    text.split_once('/').unwrap_or(("", text))
}

/// Group, version and kind of an object.
#[derive(Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Gvk {
    /// API group; empty for the core group.
    pub group: String,
    /// API version such as `v1`.
    pub version: String,
    /// Kind in singular camel case.
    pub kind: String,
}

impl Gvk {
    /// Builds one from its three parts.
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Builds one from `apiVersion` and `kind` as they stand in an object.
    pub fn of(api_version: &str, kind: &str) -> Self {
        let (group, version) = split_api_version(api_version);
        Self::new(group, version, kind)
    }

    /// The `apiVersion` spelling.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.kind)
    }
}

/// Group, version and plural resource name.
#[derive(Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Gvr {
    /// API group; empty for the core group.
    pub group: String,
    /// API version such as `v1`.
    pub version: String,
    /// Plural lower-case resource name.
    pub resource: String,
}

impl Gvr {
    /// Builds one from its three parts.
    pub fn new(group: &str, version: &str, resource: &str) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }

    /// The `apiVersion` spelling.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// `resource.group`, or only `resource` in the core group.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.resource.clone() } else { format!("{}.{}", self.resource, self.group) }
    }

    /// The URL path of a collection or, with `name`, of one object.
    pub fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let mut path = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        if let Some(namespace) = namespace {
            path.push_str("/namespaces/");
            path.push_str(namespace);
        }
        path.push('/');
        path.push_str(&self.resource);
        if let Some(name) = name {
            path.push('/');
            path.push_str(name);
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_a_plain_decimal() {
        assert_eq!(Revision::parse("42"), Some(Revision(42)));
        assert_eq!(Revision::parse("0"), Some(Revision(0)));
        for bad in ["", "042", "-1", "+1", "1.0", "x", "99999999999999999999"] {
            assert_eq!(Revision::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_resource_path_names_group_namespace_and_name() {
        assert_eq!(Gvr::new("", "v1", "nodes").path(None, None), "/api/v1/nodes");
        assert_eq!(
            Gvr::new("apps", "v1", "deployments").path(Some("a"), Some("b")),
            "/apis/apps/v1/namespaces/a/deployments/b"
        );
    }
}
