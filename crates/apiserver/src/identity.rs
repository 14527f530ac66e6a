//! Who makes a request.

use std::collections::BTreeMap;

/// An authenticated caller.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Identity {
    /// User name.
    pub user: String,
    /// Unique id, if the authority gives one.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Further attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// A member of `system:masters`, who may do everything.
    pub fn master(user: &str) -> Self {
        Self {
            user: user.into(),
            groups: vec!["system:masters".into(), "system:authenticated".into()],
            ..Self::default()
        }
    }

    /// A caller without credentials.
    pub fn anonymous() -> Self {
        Self { user: "system:anonymous".into(), groups: vec!["system:unauthenticated".into()], ..Self::default() }
    }

    /// Whether the caller may do everything.
    pub fn is_master(&self) -> bool {
        self.in_group("system:masters")
    }

    /// Whether the caller is in a group.
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}
