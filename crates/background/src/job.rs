//! Finished jobs that ask to be deleted after a while.

use std::time::Duration;

use atoll_meta::{Key, Status};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::due;
use crate::hands::Hands;

/// Deletes a finished job when its time has come; `Some` asks for another look.
pub async fn expire(hands: &Hands, key: &Key) -> Result<Option<Duration>, Status> {
    let snapshot = hands.snapshot().await?;
    let Some(entry) = snapshot.get(key.as_str()).filter(|entry| !entry.object.head.deleting) else { return Ok(None) };
    let Some(end) = end(&entry.object.tree(entry.modified)) else { return Ok(None) };
    if let Some(left) = due::left(end, hands.hub.now()) {
        return Ok(Some(left));
    }
    hands.delete(key, &entry.object.head.uid, "Foreground").await.map(|()| None)
}

/// When a job is to go: some seconds after it completed or failed.
fn end(job: &Value) -> Option<Timestamp> {
    let life = job["spec"]["ttlSecondsAfterFinished"].as_i64()?;
    let finished = job["status"]["conditions"].as_array()?.iter().find(|condition| {
        condition["status"] == "True" && (condition["type"] == "Complete" || condition["type"] == "Failed")
    })?;
    Some(due::after(due::moment(&finished["lastTransitionTime"])?, SignedDuration::from_secs(life)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn only_finished_jobs_with_a_wish_end() {
        let at = "2026-01-01T00:00:00Z";
        let job = |ttl: Value, kind: &str, status: &str| {
            json!({"spec": {"ttlSecondsAfterFinished": ttl},
                   "status": {"conditions": [{"type": kind, "status": status, "lastTransitionTime": at}]}})
        };
        assert_eq!(end(&job(json!(60), "Complete", "True")), due::moment(&json!("2026-01-01T00:01:00Z")));
        assert_eq!(end(&job(json!(0), "Failed", "True")), due::moment(&json!(at)));
        for other in [
            job(json!(60), "Complete", "False"),
            job(json!(60), "Suspended", "True"),
            job(json!(null), "Failed", "True"),
        ] {
            assert_eq!(end(&other), None, "{other}");
        }
    }
}
