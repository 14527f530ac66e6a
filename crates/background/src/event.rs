//! Events live for an hour after their last change.

use std::time::Duration;

use atoll_apiserver::store_status;
use atoll_meta::{Key, Status};
use atoll_store::{Expect, Op, StoreError, Write};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::due;
use crate::hands::Hands;

/// How long an event lives.
pub const LIFE: Duration = Duration::from_secs(3600);
/// Looks at all events of an instance are at least so far apart.
const PAUSE: Duration = Duration::from_secs(60);
/// Events that go in one transaction.
const BATCH: usize = 500;

/// Removes the events of an instance that are over; `Some` asks for another look.
pub async fn expire(hands: &Hands) -> Result<Option<Duration>, Status> {
    let snapshot = hands.snapshot().await?;
    let now = hands.hub.now();
    let mut next: Option<Duration> = None;
    let mut over = Vec::new();
    for (key, entry) in snapshot.range(&Key::prefix("", "events", ""), None) {
        let written = last_write(&entry.object.tree(entry.modified)).unwrap_or(now);
        match due::left(due::after(written, SignedDuration::from_secs(3600)), now) {
            Some(left) => next = Some(next.map_or(left, |known| known.min(left))),
            None => over.push(Write { key: key.clone(), expect: Expect::At(entry.modified), op: Op::Delete(None) }),
        }
    }
    let mut late = false;
    while !over.is_empty() {
        let rest = over.split_off(over.len().min(BATCH));
        match hands.hub.engine().commit(hands.instance.id, over).await {
            Ok(_) => {}
            // One of them was written again just now.
            Err(StoreError::Conflict { .. }) => late = true,
            Err(error) => return Err(store_status(&error)),
        }
        over = rest;
    }
    Ok(if late { Some(PAUSE) } else { next.map(|left| left.max(PAUSE)) })
}

/// When the server last wrote an event; what the event says of itself may be anything.
fn last_write(event: &Value) -> Option<Timestamp> {
    let managed = event["metadata"]["managedFields"].as_array().into_iter().flatten();
    let times = managed.map(|entry| &entry["time"]).chain([&event["metadata"]["creationTimestamp"]]);
    times.filter_map(due::moment).max()
}
