//! Annotations by which a pod says how it wants to be simulated.
//!
//! | annotation | meaning |
//! | --- | --- |
//! | `sim.atoll.io/start-delay` | time between being scheduled and running, such as `2s` |
//! | `sim.atoll.io/ready-delay` | time between running and ready |
//! | `sim.atoll.io/run-for` | time after which the containers end |
//! | `sim.atoll.io/exit-code` | how they end; 0 by default |
//! | `sim.atoll.io/crash-loop` | `true`: they end with an error after a second, again and again |
//! | `sim.atoll.io/never-ready` | `true`: they run but never become ready |
//! | `sim.atoll.io/stop-delay` | time they take to stop, at most the grace period; about a second by default |
//! | `sim.atoll.io/image-pull` | `fail`: their images do not exist |
//! | `sim.atoll.io/log` | a line they log every ten seconds instead of the usual one |
//! | `sim.atoll.io/cpu`, `sim.atoll.io/memory` | what they use, as quantities, for the metrics API |

use std::time::Duration;

use serde_json::Value;

const PREFIX: &str = "sim.atoll.io/";

/// What the annotations of a pod ask for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Wishes {
    /// Time between being scheduled and running.
    pub start_delay: Duration,
    /// Time between running and ready.
    pub ready_delay: Option<Duration>,
    /// Time after which containers end.
    pub run_for: Option<Duration>,
    /// How they end.
    pub exit_code: Option<i32>,
    /// Never ready.
    pub never_ready: bool,
    /// Time they take to stop.
    pub stop_delay: Option<Duration>,
    /// Images do not exist.
    pub pull_fails: bool,
    /// A line they log.
    pub log: Option<String>,
    /// Processors they use.
    pub cpu: Option<String>,
    /// Memory they use.
    pub memory: Option<String>,
}

impl Wishes {
    /// Reads the annotations of a pod.
    pub fn of(pod: &Value) -> Self {
        let text = |name: &str| pod["metadata"]["annotations"][format!("{PREFIX}{name}")].as_str();
        let time = |name: &str| text(name).and_then(duration);
        let yes = |name: &str| text(name).is_some_and(|value| value == "true");
        let mut wishes = Self {
            start_delay: time("start-delay").unwrap_or_default(),
            ready_delay: time("ready-delay"),
            run_for: time("run-for"),
            exit_code: text("exit-code").and_then(|code| code.parse().ok()),
            never_ready: yes("never-ready"),
            stop_delay: time("stop-delay"),
            pull_fails: text("image-pull") == Some("fail"),
            log: text("log").map(ToOwned::to_owned),
            cpu: text("cpu").map(ToOwned::to_owned),
            memory: text("memory").map(ToOwned::to_owned),
        };
        if yes("crash-loop") {
            wishes.run_for.get_or_insert(Duration::from_secs(1));
            wishes.exit_code.get_or_insert(1);
        }
        if wishes.exit_code.is_some() {
            wishes.run_for.get_or_insert(Duration::from_secs(1));
        }
        wishes
    }
}

/// `1m30s`, or a bare number of seconds.
fn duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    Duration::try_from(atoll_meta::time::parse_duration(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn annotations_are_read() {
        let pod = json!({"metadata": {"annotations": {
            "sim.atoll.io/start-delay": "1m", "sim.atoll.io/ready-delay": "2", "sim.atoll.io/crash-loop": "true"}}});
        let wishes = Wishes::of(&pod);
        assert_eq!(wishes.start_delay, Duration::from_secs(60));
        assert_eq!(wishes.ready_delay, Some(Duration::from_secs(2)));
        assert_eq!((wishes.run_for, wishes.exit_code), (Some(Duration::from_secs(1)), Some(1)));
        assert_eq!(Wishes::of(&json!({})), Wishes::default());
    }
}
