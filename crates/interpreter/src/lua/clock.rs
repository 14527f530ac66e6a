//! How long a script may run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time of the call that is under way.
pub struct Clock {
    start: Instant,
    /// Nanoseconds after `start` at which the call must be over.
    end: AtomicU64,
}

impl Clock {
    pub fn new() -> Self {
        Clock { start: Instant::now(), end: AtomicU64::new(u64::MAX) }
    }

    /// Begins a call that may take so long.
    pub fn begin(&self, limit: Duration) {
        self.end.store(self.now().saturating_add(nanos(limit)), Ordering::Relaxed);
    }

    /// Whether the call has taken too long.
    pub fn is_over(&self) -> bool {
        self.now() >= self.end.load(Ordering::Relaxed)
    }

    fn now(&self) -> u64 {
        nanos(self.start.elapsed())
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
