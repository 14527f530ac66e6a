//! Authorities elsewhere are read again on start, and from time to time: a posted change may be lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_runtime::{Change, Informer, Selection};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access::authority::read_again;
use crate::access::objects::AUTHORITY;
use crate::context::Core;

/// How often an authority is read again.
const PERIOD: Duration = Duration::from_secs(300);
/// How soon after a failure.
const SOON: Duration = Duration::from_secs(5);

/// Reads all authorities until `stop`.
pub async fn run(core: Arc<Core>, stop: CancellationToken) {
    let mut read: HashMap<String, Instant> = HashMap::new();
    let told = Arc::new(Notify::new());
    let teller = told.clone();
    let root = core.own_endpoint("root");
    let _informer = Informer::start(root.clone(), AUTHORITY.gvr(), Selection::default(), move |change: Change| {
        if !change.keeps_generation() {
            teller.notify_one();
        }
    });
    loop {
        let mut pause = PERIOD;
        let list = root.list(&AUTHORITY.gvr(), None, "").await.map(|list| list.items).unwrap_or_else(|_| {
            pause = SOON;
            Vec::new()
        });
        for authority in list {
            let meta = &authority["metadata"];
            let key = format!("{} {}", meta["uid"], meta["generation"]);
            let rest = read.get(&key).map(|last| PERIOD.saturating_sub(last.elapsed()));
            if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
                pause = pause.min(rest);
                continue;
            }
            match read_again(&core, &authority).await {
                Ok(()) => drop(read.insert(key, Instant::now())),
                Err(status) => {
                    tracing::warn!(authority = %meta["name"], %status, "grants not read");
                    pause = SOON;
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = told.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}
