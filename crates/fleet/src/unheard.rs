//! Works that were just written and that nobody has told of yet.
//!
//! Who does not know of them would make them again, or leave them as they are though they are to be as they were before.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::keys::BindingKey;

/// How long to wait for news. What others delete at once is never heard of, and news may be late.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether to go on with a binding.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hearing {
    /// Everything that was written for it is known.
    Heard,
    /// Something is not; at the latest after so long it is to be looked at again.
    Waits(Duration),
    /// News are late: what is there has to be asked for.
    Late,
}

/// What was written for bindings.
#[derive(Default)]
pub struct Unheard(Mutex<HashMap<BindingKey, Note>>);

struct Note {
    /// Revisions by the namespaces of the works.
    works: BTreeMap<String, u64>,
    at: Instant,
    /// Whether somebody waits for it.
    waits: bool,
}

impl Unheard {
    /// Notes works that were written for a binding, unless `known` tells that they have been heard of by now.
    pub fn note(&self, key: &BindingKey, works: Vec<(String, u64)>, known: impl Fn(&str) -> Option<u64>) {
        let mut all = self.0.lock();
        let note =
            all.entry(key.clone()).or_insert_with(|| Note { works: BTreeMap::new(), at: Instant::now(), waits: false });
        note.at = Instant::now();
        note.works.extend(works);
        // Who hears of one looks into this after it became known: between the two nothing is missed.
        note.works.retain(|namespace, written| known(namespace).is_none_or(|known| known < *written));
        if note.works.is_empty() && !note.waits {
            all.remove(key);
        }
    }

    /// A work became known; whether somebody waited for that.
    pub fn hear(&self, key: &BindingKey, namespace: &str, revision: u64) -> bool {
        let mut all = self.0.lock();
        let Some(note) = all.get_mut(key) else { return false };
        if note.works.get(namespace).is_some_and(|written| *written <= revision) {
            note.works.remove(namespace);
        }
        if !note.works.is_empty() {
            return false;
        }
        all.remove(key).is_some_and(|note| note.waits)
    }

    /// Whether to go on with a binding.
    pub fn ask(&self, key: &BindingKey) -> Hearing {
        let mut all = self.0.lock();
        let Some(note) = all.get_mut(key).filter(|note| !note.works.is_empty()) else {
            all.remove(key);
            return Hearing::Heard;
        };
        let left = PATIENCE.saturating_sub(note.at.elapsed());
        if left.is_zero() {
            return Hearing::Late;
        }
        note.waits = true;
        Hearing::Waits(left)
    }

    /// A binding is gone, or what there is was asked for.
    pub fn forget(&self, key: &BindingKey) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> BindingKey {
        BindingKey { namespace: "default".into(), name: "web-deployment".into() }
    }

    fn noted(known: Option<u64>) -> Unheard {
        let unheard = Unheard::default();
        unheard.note(&key(), vec![("a".into(), 7), ("b".into(), 8)], |_| known);
        unheard
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_goes_on_when_all_is_known() {
        let unheard = noted(None);
        assert_eq!(unheard.ask(&key()), Hearing::Waits(PATIENCE));
        assert!(!unheard.hear(&key(), "a", 6), "an older state of it");
        assert!(!unheard.hear(&key(), "a", 7) && !unheard.hear(&key(), "c", 9));
        assert_eq!(unheard.ask(&key()), Hearing::Waits(PATIENCE));
        assert!(unheard.hear(&key(), "b", 9), "a newer state tells of it, too");
        assert_eq!(unheard.ask(&key()), Hearing::Heard);
        assert!(!unheard.hear(&key(), "b", 9));
    }

    #[tokio::test]
    async fn what_was_heard_of_first_is_not_waited_for_and_nobody_is_woken_for_nothing() {
        assert_eq!(noted(Some(8)).ask(&key()), Hearing::Heard);
        assert!(noted(Some(8)).0.lock().is_empty());
        let unheard = noted(Some(7));
        assert!(!unheard.hear(&key(), "b", 8), "nobody waits");
        let unheard = noted(None);
        unheard.forget(&key());
        assert_eq!(unheard.ask(&key()), Hearing::Heard);
    }

    #[tokio::test(start_paused = true)]
    async fn late_news_are_asked_for() {
        let unheard = noted(None);
        tokio::time::advance(PATIENCE - Duration::from_secs(1)).await;
        assert_eq!(unheard.ask(&key()), Hearing::Waits(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(unheard.ask(&key()), Hearing::Late);
        assert_eq!(unheard.ask(&key()), Hearing::Late, "that may fail");
        unheard.forget(&key());
        assert_eq!(unheard.ask(&key()), Hearing::Heard);
    }
}
