//! When something is over.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// The moment a field of an object tells.
pub fn moment(value: &Value) -> Option<Timestamp> {
    atoll_meta::time::parse(value.as_str()?)
}

/// A moment and a while later; the end of time if that is too far.
pub fn after(start: Timestamp, life: SignedDuration) -> Timestamp {
    start.checked_add(life).unwrap_or(Timestamp::MAX)
}

/// How long until a moment; `None` if it has come.
pub fn left(until: Timestamp, now: Timestamp) -> Option<Duration> {
    let left = until.duration_since(now);
    // A clock that shows seconds must not be asked many times in the last one.
    (left > SignedDuration::ZERO).then(|| left.unsigned_abs().max(Duration::from_millis(10)))
}
