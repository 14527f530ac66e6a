//! Conditions of objects: a list with one entry for each type.

use serde_json::{Value, json};

/// The condition of a type.
pub fn get<'a>(conditions: &'a Value, kind: &str) -> Option<&'a Value> {
    conditions.as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Whether the condition of a type is `True`.
pub fn is_true(conditions: &Value, kind: &str) -> bool {
    get(conditions, kind).is_some_and(|condition| condition["status"] == "True")
}

/// What a condition says.
#[derive(Copy, Clone, Debug)]
pub struct Says<'a> {
    /// `type`.
    pub kind: &'a str,
    /// `True`, `False` or `Unknown`.
    pub status: &'a str,
    /// One word why.
    pub reason: &'a str,
    /// A sentence why.
    pub message: &'a str,
}

/// Which moments a condition records besides the one of its last change.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Stamps {
    /// Only `lastTransitionTime`.
    Transition,
    /// Also `lastUpdateTime`, which moves with every change of the text.
    Update,
    /// Also `lastProbeTime`.
    Probe,
}

/// Sets a condition; returns whether anything changed.
pub fn set(conditions: &mut Value, says: Says<'_>, stamps: Stamps, now: &str) -> bool {
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(list) = conditions.as_array_mut() else { return false };
    let place = list.iter().position(|condition| condition["type"] == says.kind);
    let old = place.map(|at| &list[at]);
    let same_status = old.is_some_and(|old| old["status"] == says.status);
    let text = |field: &str| old.and_then(|old| old[field].as_str()).unwrap_or_default().to_owned();
    if same_status && text("reason") == says.reason && text("message") == says.message {
        return false;
    }
    let since = if same_status { text("lastTransitionTime") } else { now.to_owned() };
    let mut new = json!({"type": says.kind, "status": says.status, "lastTransitionTime": since});
    if !says.reason.is_empty() {
        new["reason"] = says.reason.into();
    }
    if !says.message.is_empty() {
        new["message"] = says.message.into();
    }
    match stamps {
        Stamps::Transition => {}
        Stamps::Update => new["lastUpdateTime"] = now.into(),
        Stamps::Probe => {
            new["lastProbeTime"] =
                if says.kind == "Complete" || says.kind == "Failed" { now.into() } else { Value::Null }
        }
    }
    match place {
        Some(at) => list[at] = new,
        None => list.push(new),
    }
    true
}

/// Removes a condition.
pub fn remove(conditions: &mut Value, kind: &str) {
    if let Some(list) = conditions.as_array_mut() {
        list.retain(|condition| condition["type"] != kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moment_of_transition_moves_only_with_the_status() {
        let mut list = Value::Null;
        let says = |status, message| Says { kind: "Ready", status, reason: "R", message };
        assert!(set(&mut list, says("True", "a"), Stamps::Update, "t1"));
        assert!(!set(&mut list, says("True", "a"), Stamps::Update, "t2"));
        assert!(set(&mut list, says("True", "b"), Stamps::Update, "t3"));
        assert_eq!(list[0]["lastTransitionTime"], "t1");
        assert_eq!(list[0]["lastUpdateTime"], "t3");
        assert!(set(&mut list, says("False", "b"), Stamps::Update, "t4"));
        assert_eq!(list[0]["lastTransitionTime"], "t4");
    }
}
