//! The status of a work after an attempt.

use atoll_api::words::{condition as types, reason};
use atoll_api::work::{ManifestStatus, ResourceHealth, ResourceIdentifier, WorkStatus};
use atoll_interpreter::{Health, Interpreter};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use crate::condition::{self, Wanted};
use crate::order::{Attempt, Order, Outcome, Piece};

/// Applied is False for a moment: what an object needs is on its way.
const WAITING: &str = "Waiting";

/// What came of the manifests of a work, in their order.
pub struct Progress<'a> {
    /// The work.
    pub order: &'a Order<'a>,
    /// Its manifests.
    pub pieces: &'a [Piece<'a>],
    /// What came of each.
    pub attempts: &'a [Attempt],
    /// Whether what is missing may still come.
    pub patient: bool,
}

impl Progress<'_> {
    /// Whether nothing failed but what waits for something else.
    pub fn waits(&self) -> bool {
        let mut troubles = self.attempts.iter().filter_map(|attempt| attempt.as_ref().err()).peekable();
        self.patient && troubles.peek().is_some() && troubles.all(|trouble| trouble.awaited)
    }

    /// What failed, with what it was for.
    pub fn failures(&self) -> impl Iterator<Item = (&Piece<'_>, &str)> {
        let all = self.pieces.iter().zip(self.attempts);
        all.filter_map(|(piece, attempt)| Some((piece, attempt.as_ref().err()?.status.message.as_str())))
    }

    /// Everything that failed, in one line.
    pub fn complaint(&self) -> String {
        self.failures().map(|(_, message)| message).collect::<Vec<_>>().join("; ")
    }

    /// The status after this.
    pub fn status(&self, old: &WorkStatus, interpreter: &Interpreter, now: Timestamp) -> WorkStatus {
        let mut status = old.clone();
        let generation = self.order.generation();
        let suspended = self.order.is_suspended();
        if suspended || condition::get(&status.conditions, types::DISPATCHING).is_some() {
            let (value, why, message) = if suspended {
                ("False", reason::SUSPEND_DISPATCHING, "Work dispatching is in a suspended state.")
            } else {
                ("True", "Dispatching", "Work is being dispatched to the member cluster.")
            };
            let message = message.to_owned();
            let wanted = Wanted { type_: types::DISPATCHING, status: value, reason: why, message, generation };
            condition::set(&mut status.conditions, wanted, now);
        }
        if !suspended {
            let (value, why, message) = self.applied();
            let wanted = Wanted { type_: types::APPLIED, status: value, reason: why, message, generation };
            condition::set(&mut status.conditions, wanted, now);
        }
        status.manifest_statuses = self.manifest_statuses(&old.manifest_statuses, interpreter);
        status
    }

    fn applied(&self) -> (&'static str, &'static str, String) {
        let done = self.attempts.iter().filter(|attempt| attempt.is_ok()).count();
        let all = self.attempts.len();
        if self.waits() {
            return ("False", WAITING, format!("Waiting: {}", self.complaint()));
        }
        if done < all {
            let message = format!("Failed to apply all manifests ({done}/{all}): {}", self.complaint());
            return ("False", reason::APPLIED_FAILED, message);
        }
        let remarks: Vec<&str> =
            self.attempts.iter().flatten().filter_map(|outcome| outcome.remark.as_deref()).collect();
        let message =
            if remarks.is_empty() { "Manifest has been successfully applied".to_owned() } else { remarks.join("; ") };
        ("True", reason::APPLIED_SUCCESSFUL, message)
    }

    /// What is seen of each object; of those that cannot be seen now, what was seen last.
    fn manifest_statuses(&self, old: &[ManifestStatus], interpreter: &Interpreter) -> Vec<ManifestStatus> {
        let all = self.pieces.iter().zip(self.attempts);
        all.filter_map(|(piece, attempt)| match attempt {
            Ok(Outcome { object: Some(observed), .. }) => Some(manifest_status(piece, observed, interpreter)),
            _ => old.iter().find(|known| known.identifier.ordinal == ordinal(piece)).cloned(),
        })
        .collect()
    }
}

/// Whether a failure has been told.
pub fn is_failed(conditions: &[Condition]) -> bool {
    let applied = condition::get(conditions, types::APPLIED);
    applied.is_some_and(|applied| applied.status == "False" && applied.reason != WAITING)
}

fn ordinal(piece: &Piece<'_>) -> i64 {
    i64::try_from(piece.ordinal).unwrap_or(i64::MAX)
}

fn manifest_status(piece: &Piece<'_>, observed: &Value, interpreter: &Interpreter) -> ManifestStatus {
    let health = match interpreter.health(observed) {
        Health::Healthy => ResourceHealth::Healthy,
        Health::Unhealthy => ResourceHealth::Unhealthy,
        Health::Unknown => ResourceHealth::Unknown,
    };
    let plural = piece.member().kinds.known().get(&piece.gvk).map(|info| info.gvr.resource.clone());
    ManifestStatus {
        identifier: ResourceIdentifier {
            ordinal: ordinal(piece),
            group: piece.gvk.group.clone(),
            version: piece.gvk.version.clone(),
            kind: piece.gvk.kind.clone(),
            resource: plural.unwrap_or_default(),
            namespace: piece.namespace().unwrap_or_default().to_owned(),
            name: piece.name().to_owned(),
        },
        status: interpreter.reflect(observed),
        health: Some(health),
    }
}
