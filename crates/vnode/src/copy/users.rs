//! Which pods need which originals.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use super::thing::Thing;

/// The pods that need an original, and the originals a pod needs.
#[derive(Default)]
pub(crate) struct Users {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    by_thing: HashMap<Thing, HashSet<String>>,
    by_pod: HashMap<String, Vec<Thing>>,
}

impl Users {
    /// Notes that a pod needs an original.
    pub(crate) fn add(&self, pod: &str, thing: &Thing) {
        let mut inner = self.inner.lock();
        if inner.by_thing.entry(thing.clone()).or_default().insert(pod.to_owned()) {
            inner.by_pod.entry(pod.to_owned()).or_default().push(thing.clone());
        }
    }

    /// Forgets a pod; returns what nobody needs any more.
    pub(crate) fn remove(&self, pod: &str) -> Vec<Thing> {
        let mut inner = self.inner.lock();
        let things = inner.by_pod.remove(pod).unwrap_or_default();
        let mut idle = Vec::new();
        for thing in things {
            if let Some(pods) = inner.by_thing.get_mut(&thing) {
                pods.remove(pod);
                if pods.is_empty() {
                    inner.by_thing.remove(&thing);
                    idle.push(thing);
                }
            }
        }
        idle
    }

    /// Whether a pod needs an original.
    pub(crate) fn need(&self, thing: &Thing) -> bool {
        self.inner.lock().by_thing.contains_key(thing)
    }
}

#[cfg(test)]
mod tests {
    use super::super::thing::Kind;
    use super::*;

    #[test]
    fn the_last_user_leaves_nothing_needed() {
        let users = Users::default();
        let (x, y) = (Thing::new(Kind::Secret, "n", "x"), Thing::new(Kind::Secret, "n", "y"));
        for (pod, thing) in [("n/a", &x), ("n/a", &x), ("n/b", &x), ("n/b", &y)] {
            users.add(pod, thing);
        }
        assert!(users.remove("n/a").is_empty());
        assert!(users.need(&x));
        assert_eq!(users.remove("n/b"), [x.clone(), y]);
        assert!(!users.need(&x));
        assert!(users.remove("n/b").is_empty());
    }
}
