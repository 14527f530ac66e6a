//! Whether a commit should wait a moment for more requests to share it.
//!
//! A commit costs much more than what it holds, so under load fewer and larger ones leave more of
//! the machine to the rest of the hub. But who writes alone must not wait for company that does
//! not come. So waiting begins only when requests have kept coming together for a while, is for as
//! many as were seen together last, and ends when after the last commit as much time has passed as
//! that commit took.

use std::time::Duration;

/// So many commits must have had company before one waits for it. The writes that follow from one
/// change come close together too, but not for so long.
const STREAK: u32 = 32;

/// In larger commits the cost of their content outweighs what another request would save.
const ENOUGH: usize = 32;

/// The longest wait.
const LINGER: Duration = Duration::from_millis(2);

/// What recent commits were like.
#[derive(Debug, Default)]
pub(super) struct Pace {
    streak: u32,
    together: usize,
    took: Duration,
}

impl Pace {
    /// Notes a commit: how many requests it held, how many wait at its end, how long it took.
    pub fn note(&mut self, held: usize, waiting: usize, took: Duration) {
        self.together = held + waiting;
        self.took = took;
        self.streak = if self.together > 1 { (self.streak + 1).min(2 * STREAK) } else { self.streak / 2 };
    }

    /// How many requests the next commit should hold, and how long after the last to wait for them.
    pub fn company(&self) -> (usize, Duration) {
        if self.streak < STREAK {
            return (1, Duration::ZERO);
        }
        (self.together.min(ENOUGH), self.took.min(LINGER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOK: Duration = Duration::from_micros(400);

    fn after(commits: &[(usize, usize)]) -> (usize, Duration) {
        let mut pace = Pace::default();
        for (held, waiting) in commits {
            pace.note(*held, *waiting, TOOK);
        }
        pace.company()
    }

    #[test]
    fn only_lasting_company_is_waited_for() {
        let at_once = (1, Duration::ZERO);
        let busy = |count: u32| vec![(2, 2); count as usize];
        assert_eq!(after(&[]), at_once, "at first");
        assert_eq!(after(&[(1, 0); 100]), at_once, "a lone writer");
        assert_eq!(after(&busy(STREAK - 1)), at_once, "a burst");
        assert_eq!(after(&busy(STREAK)), (4, TOOK), "load");
        assert_eq!(after(&[(4, 0); 100]), (4, TOOK), "load that fits into one commit each time");
        assert_eq!(after(&[(1, 1); 100]), (2, TOOK), "load of two who take turns");
        assert_eq!(after(&[busy(100), vec![(1, 0); 2]].concat()), at_once, "the end of load");
        assert_eq!(after(&[busy(100), vec![(1, 0)], busy(1)].concat()), (4, TOOK), "load with a gap");
        assert_eq!(after(&[(3, 0), (3, 0), (1, 0)].repeat(100)), at_once, "bursts with pauses");
    }

    #[test]
    fn waiting_has_bounds() {
        assert_eq!(after(&[(500, 500); 100]), (ENOUGH, TOOK));
        let mut slow = Pace::default();
        (0..STREAK).for_each(|_| slow.note(3, 0, Duration::from_secs(5)));
        assert_eq!(slow.company(), (3, LINGER));
    }
}
