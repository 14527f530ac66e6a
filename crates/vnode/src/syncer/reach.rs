//! Whether the worker cluster answers.

use std::sync::Arc;
use std::time::Duration;

use atoll_runtime::Endpoint;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// Failures in a row before a cluster counts as unreachable.
const PATIENCE: u32 = 2;

/// The last word on whether a worker cluster answers: why it does not, if so.
#[derive(Clone)]
pub(crate) struct Reach {
    state: Arc<watch::Sender<Option<String>>>,
    denials: Arc<Notify>,
}

impl Default for Reach {
    fn default() -> Self {
        Self { state: Arc::new(watch::channel(None).0), denials: Arc::default() }
    }
}

impl Reach {
    pub(crate) fn is_up(&self) -> bool {
        self.state.borrow().is_none()
    }

    /// Why it does not answer.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.state.borrow().clone()
    }

    /// Says that something was not allowed.
    pub(crate) fn denied(&self) {
        self.denials.notify_one();
    }

    /// Hears of what is not allowed.
    pub(crate) fn denials(&self) -> Arc<Notify> {
        self.denials.clone()
    }

    /// Hears of every change.
    pub(crate) fn follow(&self) -> watch::Receiver<Option<String>> {
        self.state.subscribe()
    }

    /// Asks again and again until `stop`.
    pub(crate) async fn probe(&self, worker: Endpoint, every: Duration, stop: CancellationToken) {
        let mut failures = 0;
        loop {
            let answer = tokio::time::timeout(every.min(Duration::from_secs(10)), worker.get_path("/version")).await;
            let trouble = match answer {
                Ok(Ok(_)) => None,
                Ok(Err(status)) => Some(status.message),
                Err(_) => Some("no answer in time".to_owned()),
            };
            failures = if trouble.is_some() { failures + 1 } else { 0 };
            if failures == 0 || failures >= PATIENCE {
                self.state.send_if_modified(|known| {
                    let changed = known.is_some() != trouble.is_some();
                    if changed {
                        *known = trouble;
                    }
                    changed
                });
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(every) => {}
            }
        }
    }
}
