//! The status of a binding.

use atoll_api::kubeocean::ClusterBindingStatus;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::Failure;

const TYPES: [&str; 4] = ["Ready", "Connected", "SyncerReady", "ProxierReady"];

/// Sets a condition; its time moves only when its status does.
pub(crate) fn set(
    conditions: &mut Vec<Condition>,
    kind: &str,
    status: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let status = if status { "True" } else { "False" };
    let found = conditions.iter_mut().find(|condition| condition.type_ == kind);
    let since = found.as_ref().filter(|known| known.status == status).map(|known| known.last_transition_time.clone());
    let condition = Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: since.unwrap_or(Time(now)),
        observed_generation: None,
    };
    match found {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// The status of a binding nobody looked at yet.
pub(crate) fn pending(mut status: ClusterBindingStatus, now: Timestamp) -> ClusterBindingStatus {
    status.phase = "Pending".to_owned();
    set(&mut status.conditions, "Ready", false, "Initializing", "the binding is being looked at", now);
    status
}

/// The status of a binding that cannot work.
pub(crate) fn failed(mut status: ClusterBindingStatus, failure: &Failure, now: Timestamp) -> ClusterBindingStatus {
    let was = std::mem::replace(&mut status.phase, "Failed".to_owned());
    set(&mut status.conditions, "Ready", false, failure.reason, &failure.message, now);
    if failure.reason == super::apart::NOT_READY {
        // One that was never ready still starts.
        match was.as_str() {
            "Ready" => {}
            "" => "Pending".clone_into(&mut status.phase),
            _ => status.phase = was,
        }
        set(&mut status.conditions, "SyncerReady", false, failure.reason, &failure.message, now);
    }
    if failure.reason == "ConnectivityFailed" {
        set(&mut status.conditions, "Connected", false, failure.reason, &failure.message, now);
    }
    status
}

/// The status of a binding that is being given back.
pub(crate) fn leaving(
    mut status: ClusterBindingStatus,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> ClusterBindingStatus {
    set(&mut status.conditions, "Ready", false, reason, message, now);
    status
}

/// The status of a binding that works, of its proxier only if that is known here; `without` is what its worker cluster
/// does not grant.
pub(crate) fn ready(
    mut status: ClusterBindingStatus,
    with_proxier: bool,
    without: &str,
    now: Timestamp,
) -> ClusterBindingStatus {
    if status.phase != "Ready" {
        status.last_sync_time = Some(Time(now));
    }
    status.phase = "Ready".to_owned();
    let reasons = ["ValidationPassed", "ConnectivityPassed", "SyncerCreated", "ProxierCreated"];
    let works = match without {
        "" => "the binding works".to_owned(),
        without => format!("the binding works; the worker cluster does not grant: {without}"),
    };
    let messages = [works.as_str(), "the worker cluster answers", "the syncer runs", "the proxier runs"];
    let known = if with_proxier { 4 } else { 3 };
    for ((kind, reason), message) in TYPES.iter().zip(reasons).zip(messages).take(known) {
        set(&mut status.conditions, kind, true, reason, message, now);
    }
    status
}

/// The status of a binding whose proxier is a Deployment: with a pod that is ready, or not. Pods run without one.
pub(crate) fn proxier(mut status: ClusterBindingStatus, there: bool, now: Timestamp) -> ClusterBindingStatus {
    let (reason, message) = match there {
        true => ("ProxierCreated", "the proxier runs"),
        false => ("ProxierNotReady", "the Deployment of the proxier has no pod that is ready"),
    };
    set(&mut status.conditions, "ProxierReady", there, reason, message, now);
    status
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_time_of_a_condition_moves_only_with_its_status() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut conditions = Vec::new();
        set(&mut conditions, "Ready", false, "A", "", at(1));
        set(&mut conditions, "Ready", false, "B", "", at(2));
        assert_eq!((conditions[0].reason.as_str(), conditions[0].last_transition_time.0), ("B", at(1)));
        set(&mut conditions, "Ready", true, "C", "", at(3));
        assert_eq!((conditions.len(), conditions[0].last_transition_time.0), (1, at(3)));
    }

    #[test]
    fn a_ready_binding_has_all_four_conditions() {
        let status =
            ready(pending(ClusterBindingStatus::default(), Timestamp::UNIX_EPOCH), true, "", Timestamp::UNIX_EPOCH);
        let kinds: Vec<_> = status.conditions.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(kinds, TYPES);
        assert!(status.conditions.iter().all(|condition| condition.status == "True"));
    }
}
