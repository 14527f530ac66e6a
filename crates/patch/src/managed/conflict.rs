//! Why an apply is refused.

use std::fmt::Write as _;

use atoll_meta::{Reason, Status};

use super::entry::{Entry, Operation};
use crate::fields::Path;

/// A field that somebody else owns and the applied configuration would change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Conflict {
    /// Who owns the field.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: &'static str,
    /// Version the owner used.
    pub api_version: String,
    /// When the owner wrote last.
    pub time: Option<String>,
    /// Endpoint the owner used.
    pub subresource: String,
    /// The field.
    pub path: Path,
}

impl Conflict {
    pub(super) fn new(entry: &Entry, path: Path) -> Self {
        Self {
            manager: entry.manager.clone(),
            operation: entry.operation.as_str(),
            api_version: entry.api_version.clone(),
            time: entry.time.clone(),
            subresource: entry.subresource.clone(),
            path,
        }
    }

    /// The owner as the original writes it down, which decides the order in messages.
    pub(super) fn owner_text(&self) -> String {
        let mut text = format!("{:?},{:?}", self.manager, self.operation);
        // Writing to a string cannot fail.
        if self.operation == Operation::Update.as_str() {
            let _ = write!(text, ",{:?}", self.api_version);
        }
        if !self.subresource.is_empty() {
            let _ = write!(text, ",{:?}", self.subresource);
        }
        text.push('}');
        text
    }

    /// The owner as messages name it.
    fn owner(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        // Writing to a string cannot fail.
        if !self.subresource.is_empty() {
            let _ = write!(text, " with subresource {:?}", self.subresource);
        }
        if self.operation == Operation::Update.as_str() {
            let _ = write!(text, " using {}", self.api_version);
        }
        text
    }
}

/// A refused apply.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields that would change: 409.
    #[error("{}", message(.0))]
    Conflicts(Vec<Conflict>),
    /// The configuration is not one for this endpoint: 400.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration does not fit the schema; the original answers 500, with this message.
    #[error("{0}")]
    Invalid(String),
}

impl From<ApplyError> for Status {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Conflicts(conflicts) => conflict_status(&conflicts),
            ApplyError::BadRequest(message) => Self::bad_request(message),
            ApplyError::Invalid(message) => Self::new(500, Reason::Unknown, message),
        }
    }
}

/// The answer to an apply with conflicts: 409, with one cause per field.
pub fn conflict_status(conflicts: &[Conflict]) -> Status {
    let status = Status::new(409, Reason::Conflict, message(conflicts));
    conflicts.iter().fold(status, |status, conflict| {
        let message = format!("conflict with {}", conflict.owner());
        status.cause("FieldManagerConflict", message, &conflict.path.to_string())
    })
}

/// The conflicts come grouped by owner.
fn message(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", one.owner(), one.path);
    }
    let mut lines = Vec::new();
    let mut last = None;
    for conflict in conflicts {
        let owner = conflict.owner();
        if last.as_ref() != Some(&owner) {
            lines.push(format!("conflicts with {owner}:"));
            last = Some(owner);
        }
        lines.push(format!("- {}", conflict.path));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}
