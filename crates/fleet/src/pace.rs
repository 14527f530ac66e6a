//! How eagerly states are told further up.

use std::time::Duration;

/// States are gathered for at least this long.
const LEAST: Duration = Duration::from_millis(20);
/// And at most for this long.
const MOST: Duration = Duration::from_secs(3);
/// About what one of those that wait costs.
const EACH: Duration = Duration::from_millis(3);

/// How long to gather changes of a state while so many others wait: each is then told once, not at every step.
pub fn gather(waiting: usize) -> Duration {
    let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
    (LEAST + EACH.saturating_mul(waiting)).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_is_told_less_often_but_never_late() {
        let millis = [0, 10, 500, 100_000, usize::MAX].map(|waiting| gather(waiting).as_millis());
        assert_eq!(millis, [20, 50, 1520, 3000, 3000]);
    }
}
