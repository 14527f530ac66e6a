//! Conditions of our own objects.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Longest message a condition may carry.
const LONGEST: usize = 32768;

/// A condition to be set.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// Its type.
    pub type_: &'a str,
    /// `True`, `False` or `Unknown`.
    pub status: &'a str,
    /// Its reason.
    pub reason: &'a str,
    /// Its message.
    pub message: String,
    /// The generation it speaks of; 0 to leave it out.
    pub generation: i64,
}

/// Sets a condition; the time changes only with the status. Whether anything changed.
pub fn set(conditions: &mut Vec<Condition>, wanted: Wanted<'_>, now: Timestamp) -> bool {
    let mut message = wanted.message;
    if message.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        message.truncate(end);
    }
    let generation = (wanted.generation > 0).then_some(wanted.generation);
    let new = |since: Time| Condition {
        type_: wanted.type_.to_owned(),
        status: wanted.status.to_owned(),
        reason: wanted.reason.to_owned(),
        message,
        observed_generation: generation,
        last_transition_time: since,
    };
    match conditions.iter_mut().find(|condition| condition.type_ == wanted.type_) {
        Some(old) => {
            let since = if old.status == wanted.status { old.last_transition_time.clone() } else { Time(now) };
            let new = new(since);
            let changed = *old != new;
            *old = new;
            changed
        }
        None => {
            conditions.push(new(Time(now)));
            true
        }
    }
}

/// A condition by type.
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether a condition is there and `True`.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|condition| condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_condition_changes_only_with_its_status() {
        let at = |second| Timestamp::from_second(second).unwrap_or_default();
        let ready = |status: &'static str, reason: &'static str| Wanted {
            type_: "Ready",
            status,
            reason,
            message: String::new(),
            generation: 0,
        };
        let mut conditions = Vec::new();
        assert!(set(&mut conditions, ready("True", "A"), at(1)));
        assert!(!set(&mut conditions, ready("True", "A"), at(2)));
        assert!(set(&mut conditions, ready("True", "B"), at(3)));
        assert_eq!(conditions[0].last_transition_time.0, at(1));
        assert!(set(&mut conditions, ready("False", "B"), at(4)));
        assert_eq!(conditions[0].last_transition_time.0, at(4));
        assert!(!is_true(&conditions, "Ready"));
    }
}
