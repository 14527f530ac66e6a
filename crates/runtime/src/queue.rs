//! A queue of keys to work on: each at most once at a time, with ranks, delays and growing pauses after failures.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// By rank, then in the order of coming.
type Place = (Reverse<i32>, u64);

struct State<K> {
    /// By rank, then in the order in which they came.
    ready: BTreeMap<Place, K>,
    /// Waiting to be handed out, with their places, or to be handed out again after the present run.
    dirty: HashMap<K, Place>,
    running: HashSet<K>,
    /// Delayed keys by time; the number keeps entries of the same instant apart.
    later: BTreeMap<(Instant, u64), K>,
    due: HashMap<K, (Instant, u64)>,
    failures: HashMap<K, u32>,
    counter: u64,
    /// Whether low ranks get their share.
    fair: bool,
    handed_out: u64,
}

/// Of a fair queue each of so many keys is the oldest of the lowest rank.
const SHARE: u64 = 8;

/// The queue. Cheap to clone.
pub struct Queue<K> {
    state: Arc<Mutex<State<K>>>,
    wake: Arc<Notify>,
    rest: Arc<Notify>,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), wake: self.wake.clone(), rest: self.rest.clone() }
    }
}

impl<K: Clone + Eq + Hash> Default for Queue<K> {
    fn default() -> Self {
        let state = State {
            ready: BTreeMap::new(),
            dirty: HashMap::new(),
            running: HashSet::new(),
            later: BTreeMap::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
            counter: 0,
            fair: false,
            handed_out: 0,
        };
        Self { state: Arc::new(Mutex::new(state)), wake: Arc::default(), rest: Arc::default() }
    }
}

/// The right to work on a key; while it lives nobody else gets the key.
pub struct Ticket<K: Clone + Eq + Hash> {
    /// What to work on.
    pub key: K,
    queue: Queue<K>,
}

impl<K: Clone + Eq + Hash> Drop for Ticket<K> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        state.running.remove(&self.key);
        if let Some(place) = state.dirty.get(&self.key).copied() {
            state.ready.insert(place, self.key.clone());
            drop(state);
            self.queue.wake.notify_one();
        } else if state.is_at_rest() {
            drop(state);
            self.queue.rest.notify_waiters();
        }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// A queue in which those of low rank wait longer, but not for ever.
    pub fn fair() -> Self {
        let queue = Self::default();
        queue.state.lock().fair = true;
        queue
    }

    /// Adds a key; one that already waits is not added twice.
    pub fn add(&self, key: K) {
        self.add_ranked(key, 0);
    }

    /// Adds a key that is handed out before all of lower rank. One that already waits can only move up.
    pub fn add_ranked(&self, key: K, rank: i32) {
        let mut state = self.state.lock();
        if let Some(due) = state.due.remove(&key) {
            state.later.remove(&due);
        }
        if let Some(place) = state.dirty.get(&key).copied() {
            if place.0.0 >= rank {
                return;
            }
            state.ready.remove(&place);
        }
        if state.line_up(key, rank) {
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Adds a key after a while; an earlier appointment wins.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let mut state = self.state.lock();
        if state.dirty.contains_key(&key) && !state.running.contains(&key) {
            return;
        }
        let at = Instant::now() + delay;
        if let Some(due) = state.due.get(&key).copied() {
            if due.0 <= at {
                return;
            }
            state.later.remove(&due);
        }
        state.counter += 1;
        let due = (at, state.counter);
        state.later.insert(due, key.clone());
        state.due.insert(key, due);
        drop(state);
        self.wake.notify_one();
    }

    /// Adds a key after a failure: 5 ms, doubled each time, at most 60 s.
    pub fn retry(&self, key: K) {
        let delay = {
            let mut state = self.state.lock();
            let count = state.failures.entry(key.clone()).or_insert(0);
            let delay = Duration::from_millis(5u64 << (*count).min(14)).min(Duration::from_secs(60));
            *count += 1;
            delay
        };
        self.add_after(key, delay);
    }

    /// Forgets the failures of a key.
    pub fn forget(&self, key: &K) {
        self.state.lock().failures.remove(key);
    }

    /// How often a key failed in a row.
    pub fn failures(&self, key: &K) -> u32 {
        self.state.lock().failures.get(key).copied().unwrap_or_default()
    }

    /// Number of keys waiting or delayed.
    pub fn len(&self) -> usize {
        let state = self.state.lock();
        state.dirty.len() + state.later.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until nothing waits, is delayed or is worked on.
    pub async fn rest(&self) {
        loop {
            let notified = self.rest.notified();
            if self.state.lock().is_at_rest() {
                return;
            }
            notified.await;
        }
    }

    /// The next key to work on.
    pub async fn next(&self) -> Ticket<K> {
        loop {
            let notified = self.wake.notified();
            let until = {
                let mut state = self.state.lock();
                state.promote(Instant::now());
                if let Some(key) = state.hand_out() {
                    state.dirty.remove(&key);
                    state.running.insert(key.clone());
                    if !state.ready.is_empty() {
                        self.wake.notify_one();
                    }
                    return Ticket { key, queue: self.clone() };
                }
                state.later.keys().next().map(|(at, _)| *at)
            };
            match until {
                Some(at) => tokio::select! {
                    () = notified => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => notified.await,
            }
        }
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn is_at_rest(&self) -> bool {
        self.dirty.is_empty() && self.later.is_empty() && self.running.is_empty()
    }

    fn promote(&mut self, now: Instant) {
        while let Some(entry) = self.later.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            self.due.remove(&key);
            if !self.dirty.contains_key(&key) {
                self.line_up(key, 0);
            }
        }
    }

    /// The key whose turn it is.
    fn hand_out(&mut self) -> Option<K> {
        self.handed_out += 1;
        let lowest = self.ready.last_key_value().map(|(place, _)| (place.0, 0));
        if let (true, Some(lowest)) = (self.fair && self.handed_out.is_multiple_of(SHARE), lowest) {
            let oldest = self.ready.range(lowest..).next().map(|(place, _)| *place);
            return oldest.and_then(|place| self.ready.remove(&place));
        }
        self.ready.pop_first().map(|(_, key)| key)
    }

    /// Gives a key its place; whether it can be handed out now.
    fn line_up(&mut self, key: K, rank: i32) -> bool {
        self.counter += 1;
        let place = (Reverse(rank), self.counter);
        self.dirty.insert(key.clone(), place);
        let free = !self.running.contains(&key);
        if free {
            self.ready.insert(place, key);
        }
        free
    }
}

/// Works on a queue with several workers until `stop`: an error retries the key with growing
/// pauses, a duration asks for another look later. A run that panics counts as failed: a mistake
/// that one object brings about must not end the worker, and with it the work on all others.
pub async fn work<K, E, F, R>(queue: Queue<K>, workers: usize, stop: CancellationToken, reconcile: F)
where
    K: Clone + Eq + Hash + Send + std::fmt::Debug + 'static,
    E: std::fmt::Display,
    F: Fn(K) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<Option<Duration>, E>> + Send,
{
    let tasks = tokio_util::task::TaskTracker::new();
    for _ in 0..workers {
        let (queue, stop, reconcile) = (queue.clone(), stop.clone(), reconcile.clone());
        tasks.spawn(async move {
            loop {
                let ticket = tokio::select! {
                    () = stop.cancelled() => return,
                    ticket = queue.next() => ticket,
                };
                let key = ticket.key.clone();
                let run = AssertUnwindSafe(async { reconcile(key).await }).catch_unwind();
                match run.await {
                    Ok(Ok(again)) => {
                        queue.forget(&ticket.key);
                        if let Some(delay) = again {
                            queue.add_after(ticket.key.clone(), delay);
                        }
                    }
                    Ok(Err(error)) => {
                        tracing::debug!(key = ?ticket.key, %error, "will be tried again");
                        queue.retry(ticket.key.clone());
                    }
                    Err(_) => {
                        tracing::error!(key = ?ticket.key, "panicked, will be tried again");
                        queue.retry(ticket.key.clone());
                    }
                }
                // Work that never waits must not keep others from running.
                tokio::task::coop::consume_budget().await;
            }
        });
    }
    tasks.close();
    tasks.wait().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_is_worked_on_once_at_a_time_and_again_when_it_changed_meanwhile() {
        let queue = Queue::default();
        queue.add("a");
        queue.add("a");
        let ticket = queue.next().await;
        assert_eq!(ticket.key, "a");
        queue.add("a");
        assert!(futures::FutureExt::now_or_never(queue.next()).is_none());
        drop(ticket);
        assert_eq!(queue.next().await.key, "a");
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn keys_of_higher_rank_come_first_and_equals_in_turn() {
        let queue = Queue::default();
        for (key, rank) in [("a", 0), ("b", 5), ("c", 0), ("f", 0), ("d", 5), ("e", -1), ("f", 7), ("b", 1)] {
            queue.add_ranked(key, rank);
        }
        let mut order = Vec::new();
        while !queue.is_empty() {
            order.push(queue.next().await.key);
        }
        assert_eq!(order, ["f", "b", "d", "a", "c", "e"], "those that wait can only move up");
    }

    #[tokio::test]
    async fn in_a_fair_queue_low_ranks_get_their_share() {
        let queue = Queue::fair();
        for key in 0..40 {
            queue.add_ranked(key, i32::from(key >= 3));
        }
        let mut low = Vec::new();
        for place in 1..=24 {
            if queue.next().await.key < 3 {
                low.push(place);
            }
        }
        assert_eq!(low, [8, 16, 24]);
    }

    #[tokio::test]
    async fn work_that_never_waits_lets_others_run() {
        let (queue, stop) = (Queue::default(), CancellationToken::new());
        queue.add("again at once");
        let other = stop.clone();
        tokio::spawn(async move { other.cancel() });
        let runs = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let counted = runs.clone();
        work(queue, 1, stop, move |_| {
            let run = counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            std::future::ready(Ok::<_, String>((run < 100_000).then_some(Duration::ZERO)))
        })
        .await;
        assert!(runs.load(std::sync::atomic::Ordering::Relaxed) < 100_000, "nobody else ran");
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_a_failure_and_ends_no_worker() {
        let (queue, stop) = (Queue::default(), CancellationToken::new());
        queue.add("bad");
        queue.add("good");
        let (end, runs) = (stop.clone(), Arc::new(Mutex::new(Vec::new())));
        let seen = runs.clone();
        work(queue, 1, stop, move |key| {
            seen.lock().push(key);
            let bad = seen.lock().iter().filter(|key| **key == "bad").count();
            if bad == 3 {
                end.cancel();
            }
            async move {
                assert!(key != "bad" || bad == 3, "a mistake");
                Ok::<_, String>(None)
            }
        })
        .await;
        assert_eq!(*runs.lock(), ["bad", "good", "bad", "bad"]);
    }

    #[tokio::test(start_paused = true)]
    async fn delayed_keys_come_in_time_order() {
        let queue = Queue::default();
        queue.add_after("late", Duration::from_secs(60));
        queue.add_after("soon", Duration::from_secs(1));
        assert_eq!(queue.next().await.key, "soon");
        assert_eq!(queue.next().await.key, "late");
    }
}
