//! Since when pods are known to have no place.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Uid of the physical pod and when it was first seen without a place, by `namespace/name` of the pod.
#[derive(Default)]
pub(crate) struct Unplaced {
    seen: Mutex<HashMap<String, (String, Instant)>>,
}

impl Unplaced {
    /// For how long this very physical pod is known to have no place; from now on, if that is new.
    pub(crate) fn since(&self, key: &str, uid: &str, now: Instant) -> Duration {
        let mut seen = self.seen.lock();
        match seen.get(key) {
            Some((known, first)) if known == uid => now.duration_since(*first),
            _ => {
                seen.insert(key.to_owned(), (uid.to_owned(), now));
                Duration::ZERO
            }
        }
    }

    /// Forgets a pod that has its place, or is gone.
    pub(crate) fn forget(&self, key: &str) {
        self.seen.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_from_when_a_pod_was_first_seen_and_anew_for_another_of_its_name() {
        let unplaced = Unplaced::default();
        let (start, minute) = (Instant::now(), Duration::from_mins(1));
        assert_eq!(unplaced.since("n/p", "1", start), Duration::ZERO);
        assert_eq!(unplaced.since("n/p", "1", start + minute), minute);
        assert_eq!(unplaced.since("n/p", "2", start + minute), Duration::ZERO, "another pod");
        assert_eq!(unplaced.since("n/p", "2", start + minute * 3), minute * 2);
        unplaced.forget("n/p");
        assert_eq!(unplaced.since("n/p", "2", start + minute * 3), Duration::ZERO);
    }
}
