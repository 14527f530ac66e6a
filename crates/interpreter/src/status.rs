//! The status of a member's object, as callers hold it.

use serde_json::Value;

/// The status that one member reported, if it did.
pub trait MemberStatus {
    /// The status; null is none.
    fn status(&self) -> Option<&Value>;
}

impl MemberStatus for Value {
    fn status(&self) -> Option<&Value> {
        Some(self).filter(|status| !status.is_null())
    }
}

impl MemberStatus for Option<Value> {
    fn status(&self) -> Option<&Value> {
        self.as_ref().and_then(MemberStatus::status)
    }
}

impl<S: MemberStatus> MemberStatus for &S {
    fn status(&self) -> Option<&Value> {
        (*self).status()
    }
}

/// A member's name and the status it reported.
pub(crate) type Item<'a> = (&'a str, Option<&'a Value>);
