//! What an engine can be told: how much history to keep, and what time it is.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where an engine reads the time; tests put their own in.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// How much history each instance keeps for watches and reads in the past.
///
/// An event goes when it is older than `age` and more than `events` newer ones exist,
/// or when the bodies held only by history exceed `bytes`.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Retention {
    /// Events younger than this stay.
    pub age: Duration,
    /// So many events stay whatever their age.
    pub events: usize,
    /// Ceiling that bounds memory under a flood of writes, whatever the age.
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { age: Duration::from_secs(300), events: 16, bytes: 256 << 20 }
    }
}

/// Settings shared by all engines.
#[derive(Clone)]
pub struct Options {
    /// How much history to keep.
    pub retention: Retention,
    /// Where to read the time.
    pub clock: Clock,
    /// How many changes a reader of the feed may lag behind before it must rescan.
    pub feed: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { retention: Retention::default(), clock: Arc::new(Instant::now), feed: 4096 }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("retention", &self.retention).field("feed", &self.feed).finish_non_exhaustive()
    }
}
