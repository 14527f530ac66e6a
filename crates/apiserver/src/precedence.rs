//! Who goes first: requests that can wait do, while others run.
//!
//! What simulated clusters do on their own and reports of states share the process with what people and orders ask
//! for, and say so in a header.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use atoll_meta::{COMPANY, PATIENT};
use atoll_store::Engine;
use http::Request;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Patient requests that run although others do: they become slow, never stuck.
const FEW: usize = 2;

/// How long a patient request waits at most: a hub that is never quiet does everything all the same.
const LONGEST: Duration = Duration::from_secs(1);

/// How long nobody else must have asked for anything until those who wait may all go. Requests that shared a commit
/// end together, and who made them asks again in a moment.
const PAUSE: Duration = Duration::from_millis(5);

/// Whether a request can wait. Those that come over a socket cannot: what waits is held without a limit.
pub(crate) fn is_patient<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(PATIENT) && request.extensions().get::<crate::server::Line>().is_none()
}

/// Tells the store of the writes that come with this one, if it is the first of several. Who comes over a socket cannot
/// say so.
pub(crate) fn announce(request: &http::request::Parts, engine: &dyn Engine) {
    let writes = request.headers.get(COMPANY).and_then(|text| text.to_str().ok()?.parse().ok());
    if let Some(writes) = writes.filter(|_| request.extensions.get::<crate::server::Line>().is_none()) {
        engine.expect(writes);
    }
}

/// What runs, by how much it can wait.
pub(crate) struct Precedence {
    start: Instant,
    pressing: AtomicUsize,
    /// When the last pressing request ended, in microseconds since the start.
    ended: AtomicU64,
    few: Arc<Semaphore>,
}

impl Default for Precedence {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            pressing: AtomicUsize::new(0),
            ended: AtomicU64::new(0),
            few: Arc::new(Semaphore::new(FEW)),
        }
    }
}

/// A turn; the next one comes when it is dropped.
pub(crate) enum Turn<'a> {
    /// Others wait for it.
    Pressing(&'a Precedence),
    /// It runs beside others.
    Beside { _permit: OwnedSemaphorePermit },
    /// Nobody else is there.
    Alone,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Self::Pressing(all) = self {
            all.ended.store(all.micros(), Ordering::Relaxed);
            all.pressing.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Precedence {
    fn micros(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn is_quiet(&self) -> bool {
        self.pressing.load(Ordering::Acquire) == 0
            && self.micros().saturating_sub(self.ended.load(Ordering::Relaxed)) >= PAUSE.as_micros() as u64
    }

    /// The turn of a request that does not wait.
    pub fn press(&self) -> Turn<'_> {
        self.pressing.fetch_add(1, Ordering::AcqRel);
        Turn::Pressing(self)
    }

    /// Waits for the turn of a request that can.
    pub async fn wait(&self) -> Turn<'_> {
        if self.is_quiet() {
            return Turn::Alone;
        }
        match tokio::time::timeout(LONGEST, self.few.clone().acquire_owned()).await {
            // Whoever waits behind this one may go at once if nobody else is there any more.
            Ok(Ok(permit)) if !self.is_quiet() => Turn::Beside { _permit: permit },
            _ => Turn::Alone,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn only_the_process_itself_can_wait() {
        let mut request = Request::new(());
        assert!(!is_patient(&request));
        request.headers_mut().insert(PATIENT, http::HeaderValue::from_static("1"));
        assert!(is_patient(&request));
        request.extensions_mut().insert(crate::server::Line::default());
        assert!(!is_patient(&request));
    }

    #[tokio::test]
    async fn the_patient_wait_for_others_and_a_few_go_all_the_same() {
        let all = Precedence::default();
        let pressing = [all.press(), all.press()];
        let mut few = Vec::new();
        for _ in 0..FEW {
            few.push(all.wait().now_or_never().expect("a few go at once"));
        }
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(all.wait())).collect();
        assert!(waiting.iter_mut().all(|one| one.now_or_never().is_none()));
        drop(few.pop());
        let turn = waiting.remove(0).now_or_never().expect("one ended, one goes");
        assert!(matches!(turn, Turn::Beside { .. }) && waiting[0].as_mut().now_or_never().is_none());
        drop(pressing);
        // As if the pause were over.
        all.ended.store(0, Ordering::Relaxed);
        while all.micros() < PAUSE.as_micros() as u64 {
            tokio::task::yield_now().await;
        }
        drop(turn);
        for one in waiting {
            assert!(matches!(one.now_or_never(), Some(Turn::Alone)), "nobody else is there");
        }
        assert!(matches!(all.wait().now_or_never(), Some(Turn::Alone)));
    }
    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let all = Precedence::default();
        let _pressing = all.press();
        let _few: Vec<_> = futures::future::join_all((0..FEW).map(|_| all.wait())).await;
        assert!(matches!(all.wait().await, Turn::Alone));
    }
}
