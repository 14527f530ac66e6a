//! Authorities elsewhere are read again on start, and from time to time: a posted change may be lost.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::access::authority::read_again;
use crate::access::objects::AUTHORITY;
use crate::context::Core;

/// How often an authority is read again.
const PERIOD: Duration = Duration::from_secs(300);
/// How soon after a failure, or after a new authority.
const SOON: Duration = Duration::from_secs(5);

/// Reads all authorities until `stop`.
pub async fn run(core: Arc<Core>, stop: CancellationToken) {
    let mut read: std::collections::HashMap<String, tokio::time::Instant> = std::collections::HashMap::new();
    loop {
        let list = core.own_endpoint("root").list(&AUTHORITY.gvr(), None, "").await;
        for authority in list.map(|list| list.items).unwrap_or_default() {
            let meta = &authority["metadata"];
            let key = format!("{} {}", meta["uid"], meta["generation"]);
            if read.get(&key).is_some_and(|last| last.elapsed() < PERIOD) {
                continue;
            }
            match read_again(&core, &authority).await {
                Ok(()) => drop(read.insert(key, tokio::time::Instant::now())),
                Err(status) => tracing::warn!(authority = %meta["name"], %status, "grants not read"),
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(SOON) => {}
        }
    }
}
