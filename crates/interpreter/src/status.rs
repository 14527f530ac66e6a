//! The status of a member's object, as callers hold it.

use atoll_api::work::AggregatedStatusItem;
use serde_json::{Value, json};

/// The status that one member reported, if it did.
pub trait MemberStatus {
    /// The status; null is none.
    fn status(&self) -> Option<&Value>;

    /// All that scripts get to see of it.
    fn item(&self, member: &str) -> Value {
        match self.status() {
            Some(status) => json!({"clusterName": member, "status": status}),
            None => json!({"clusterName": member}),
        }
    }
}

impl MemberStatus for AggregatedStatusItem {
    fn status(&self) -> Option<&Value> {
        self.status.status()
    }

    fn item(&self, _: &str) -> Value {
        serde_json::to_value(self).expect("an item is plain data")
    }
}

impl MemberStatus for Value {
    fn status(&self) -> Option<&Value> {
        Some(self).filter(|status| !status.is_null())
    }
}

/// What is missing has not been reported.
impl<S: MemberStatus> MemberStatus for Option<S> {
    fn status(&self) -> Option<&Value> {
        self.as_ref().and_then(MemberStatus::status)
    }

    fn item(&self, member: &str) -> Value {
        self.as_ref().map_or_else(|| json!({"clusterName": member}), |status| status.item(member))
    }
}

impl<S: MemberStatus> MemberStatus for &S {
    fn status(&self) -> Option<&Value> {
        (*self).status()
    }

    fn item(&self, member: &str) -> Value {
        (*self).item(member)
    }
}

/// A member's name and the status it reported.
pub(crate) type Item<'a> = (&'a str, Option<&'a Value>);
