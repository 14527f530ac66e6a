//! Certificate signing requests nobody needs any more.

use std::time::Duration;

use atoll_meta::{Key, Status};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::due;
use crate::hands::Hands;

/// How long a request waits for a decision.
const PENDING: SignedDuration = SignedDuration::from_hours(24);
/// How long an answered request can be read.
const ANSWERED: SignedDuration = SignedDuration::from_hours(1);

/// Deletes a request that is over; `Some` asks for another look.
pub async fn expire(hands: &Hands, name: &str) -> Result<Option<Duration>, Status> {
    let snapshot = hands.snapshot().await?;
    let key = Key::new("certificates.k8s.io", "certificatesigningrequests", "", name);
    let Some(entry) = snapshot.get(key.as_str()).filter(|entry| !entry.object.head.deleting) else { return Ok(None) };
    let Some(end) = end(&entry.object.tree(entry.modified)) else { return Ok(None) };
    if let Some(left) = due::left(end, hands.hub.now()) {
        return Ok(Some(left));
    }
    hands.delete(&key, &entry.object.head.uid, "Background").await.map(|()| None)
}

/// When a request is over: unanswered after a day; denied, failed or issued after an hour, or with the
/// certificate it got. One that is approved waits for its signer without end.
fn end(request: &Value) -> Option<Timestamp> {
    let conditions = request["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let certificate = request["status"]["certificate"].as_str().unwrap_or_default();
    if conditions.is_empty() && certificate.is_empty() {
        return Some(due::after(due::moment(&request["metadata"]["creationTimestamp"])?, PENDING));
    }
    let answered = conditions.iter().filter(|condition| match condition["type"].as_str() {
        Some("Approved") => !certificate.is_empty(),
        Some("Denied" | "Failed") => true,
        _ => false,
    });
    let ends = answered.filter_map(|condition| Some(due::after(due::moment(&condition["lastUpdateTime"])?, ANSWERED)));
    ends.chain(last_day(certificate)).min()
}

fn last_day(certificate: &str) -> Option<Timestamp> {
    let pem = String::from_utf8(STANDARD.decode(certificate).ok()?).ok()?;
    atoll_pki::validity_of(&pem).ok().map(|validity| validity.not_after)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_are_over_a_day_after_they_were_made_or_an_hour_after_their_answer() {
        let (made, answered) = ("2026-01-01T00:00:00Z", "2026-01-01T05:00:00Z");
        let request = |kind: &str, certificate: &str| {
            let conditions =
                if kind.is_empty() { json!([]) } else { json!([{"type": kind, "lastUpdateTime": answered}]) };
            json!({"metadata": {"creationTimestamp": made}, "status": {"conditions": conditions, "certificate": certificate}})
        };
        for (kind, certificate, expected) in [
            ("", "", Some("2026-01-02T00:00:00Z")),
            ("Denied", "", Some("2026-01-01T06:00:00Z")),
            ("Failed", "", Some("2026-01-01T06:00:00Z")),
            ("Approved", "Y2VydA==", Some("2026-01-01T06:00:00Z")),
            ("Approved", "", None),
        ] {
            let expected = expected.map(|text| due::moment(&json!(text)).unwrap());
            assert_eq!(end(&request(kind, certificate)), expected, "{kind}");
        }
    }
}
