//! Where requests wait for the one thread that writes.
//!
//! A channel would wake the thread for each request. Here it says how many it wants, and is woken
//! once when they are there: what gathers while it commits or waits for company costs no wake-ups.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// How long announced requests are waited for. Whoever announces them prepares them already, and that takes less; one
/// that is refused on its way never comes.
pub(super) const MOMENT: Duration = Duration::from_millis(2);

/// A queue and its two ends.
pub(super) fn queue<T>() -> (Entrance<T>, Exit<T>) {
    let state = State { waiting: Vec::new(), wanted: usize::MAX, expected: 0, until: Instant::now(), closed: false };
    let shared = Arc::new(Shared { state: Mutex::new(state), bell: Condvar::new() });
    (Entrance(shared.clone()), Exit(shared))
}

struct Shared<T> {
    state: Mutex<State<T>>,
    bell: Condvar,
}

struct State<T> {
    waiting: Vec<T>,
    /// The bell rings when so many wait; nobody listens when it is the maximum.
    wanted: usize,
    /// So many were announced,
    expected: usize,
    /// and are waited for until then.
    until: Instant,
    /// One of the ends is gone.
    closed: bool,
}

/// Where requests go in; when it is dropped, the other end finishes what waits.
pub(super) struct Entrance<T>(Arc<Shared<T>>);

impl<T> Entrance<T> {
    /// Adds a request; says whether somebody is there to take it.
    pub fn put(&self, item: T) -> bool {
        let mut state = self.0.state.lock();
        if state.closed {
            return false;
        }
        state.waiting.push(item);
        let ring = state.waiting.len() >= state.wanted;
        if ring {
            state.wanted = usize::MAX;
        }
        drop(state);
        if ring {
            self.0.bell.notify_one();
        }
        true
    }

    /// Announces requests that should come out together, if they come soon.
    pub fn expect(&self, more: usize, patience: Duration) {
        let mut state = self.0.state.lock();
        state.expected = state.expected.max(state.waiting.len().saturating_add(more));
        state.until = Instant::now() + patience;
    }
}

impl<T> Drop for Entrance<T> {
    fn drop(&mut self) {
        self.0.state.lock().closed = true;
        self.0.bell.notify_one();
    }
}

/// Why nothing came out.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Nothing {
    /// Nothing came in.
    Yet,
    /// Nothing can come in any more.
    Ever,
}

/// Where requests come out; when it is dropped, so is what waits.
pub(super) struct Exit<T>(Arc<Shared<T>>);

impl<T> Exit<T> {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.0.state.lock().waiting.len()
    }

    /// Takes what waits, at most `limit`, in order. When nothing does, waits as long as `patience`
    /// for the first, and in any case until there are `company` of them or it is `late`, and for
    /// those that were announced.
    pub fn take(&self, limit: usize, patience: Duration, company: usize, late: Instant) -> Result<Vec<T>, Nothing> {
        let mut state = self.0.state.lock();
        self.wait(&mut state, 1, Instant::now() + patience);
        if state.waiting.is_empty() {
            return Err(if state.closed { Nothing::Ever } else { Nothing::Yet });
        }
        self.wait(&mut state, company, late);
        let (expected, until) = (std::mem::take(&mut state.expected), state.until);
        self.wait(&mut state, expected, until);
        if state.waiting.len() <= limit {
            return Ok(std::mem::take(&mut state.waiting));
        }
        Ok(state.waiting.drain(..limit).collect())
    }

    fn wait(&self, state: &mut MutexGuard<'_, State<T>>, wanted: usize, until: Instant) {
        while state.waiting.len() < wanted && !state.closed {
            state.wanted = wanted;
            if self.0.bell.wait_until(state, until).timed_out() {
                break;
            }
        }
        state.wanted = usize::MAX;
    }
}

impl<T> Drop for Exit<T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.closed = true;
        // Dropped outside the lock: whoever waits for an answer is woken by it.
        let unanswered = std::mem::take(&mut state.waiting);
        drop(state);
        drop(unanswered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);
    const NONE: Duration = Duration::ZERO;

    fn never() -> Instant {
        Instant::now() + LONG
    }

    #[test]
    fn what_waits_comes_out_in_order_and_no_more_than_asked() {
        let (entrance, exit) = queue();
        assert_eq!(exit.take(9, NONE, 1, never()), Err(Nothing::Yet));
        for number in 0..5 {
            assert!(entrance.put(number));
        }
        assert_eq!(exit.len(), 5);
        assert_eq!(exit.take(3, LONG, 1, never()), Ok(vec![0, 1, 2]));
        assert_eq!(exit.take(3, LONG, 1, never()), Ok(vec![3, 4]));
        assert_eq!(exit.take(3, Duration::from_millis(1), 1, never()), Err(Nothing::Yet));
    }

    #[test]
    fn the_first_request_wakes_the_taker_and_company_is_waited_for() {
        for company in [1, 3] {
            let (entrance, exit) = queue();
            let taker = std::thread::spawn(move || (exit.take(9, LONG, company, never()), exit));
            for number in 0..company {
                entrance.put(number);
            }
            let (taken, _exit) = taker.join().expect("the taker ends");
            assert_eq!(taken, Ok((0..company).collect()));
        }
    }

    #[test]
    fn company_that_does_not_come_is_not_waited_for_any_longer() {
        let (entrance, exit) = queue();
        entrance.put(1);
        assert_eq!(exit.take(9, LONG, 2, Instant::now() + Duration::from_millis(1)), Ok(vec![1]));
        entrance.put(2);
        assert_eq!(exit.take(9, LONG, 2, Instant::now()), Ok(vec![2]), "it is late already");
    }

    #[test]
    fn announced_requests_come_out_together() {
        let (entrance, exit) = queue();
        entrance.expect(3, LONG);
        entrance.put(1);
        // Who takes does so before a thread begins.
        let others = std::thread::spawn(move || {
            entrance.put(2);
            entrance.put(3);
            entrance
        });
        assert_eq!(exit.take(9, LONG, 1, never()), Ok(vec![1, 2, 3]));
        let entrance = others.join().expect("the others end");
        entrance.put(4);
        assert_eq!(exit.take(9, LONG, 1, never()), Ok(vec![4]), "nothing is expected any more");
    }

    #[test]
    fn announced_requests_that_do_not_come_are_not_waited_for_long() {
        let (entrance, exit) = queue();
        entrance.expect(5, Duration::from_millis(1));
        entrance.put(1);
        assert_eq!(exit.take(9, LONG, 1, never()), Ok(vec![1]));
    }

    #[test]
    fn without_entrance_the_rest_comes_out_at_once_and_then_the_end() {
        let (entrance, exit) = queue();
        entrance.put(1);
        drop(entrance);
        assert_eq!(exit.take(9, LONG, 5, never()), Ok(vec![1]));
        assert_eq!(exit.take(9, LONG, 5, never()), Err(Nothing::Ever));
        let (entrance, exit) = queue::<u8>();
        let taker = std::thread::spawn(move || exit.take(9, LONG, 1, never()));
        drop(entrance);
        assert_eq!(taker.join().expect("the taker ends"), Err(Nothing::Ever));
    }

    #[test]
    fn without_exit_nothing_waits_in_vain() {
        let (entrance, exit) = queue();
        let item = Arc::new(());
        assert!(entrance.put(item.clone()));
        drop(exit);
        assert_eq!(Arc::strong_count(&item), 1, "what waited is dropped");
        assert!(!entrance.put(item));
    }
}
