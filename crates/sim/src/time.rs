//! Moments as objects write them.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

/// A moment as objects show it.
pub fn text(at: Timestamp) -> String {
    atoll_meta::time::format(at)
}

/// Reads a moment from a field of an object.
pub fn read(value: &Value) -> Option<Timestamp> {
    value.as_str().and_then(atoll_meta::time::parse)
}

/// How long from one moment to a later one; zero if it has passed.
pub fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default()
}

/// A moment later by so many seconds.
pub fn plus(at: Timestamp, seconds: i64) -> Timestamp {
    at.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}
