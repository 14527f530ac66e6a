//! Why a patch cannot be applied.

use atoll_meta::{Reason, Status};

use crate::json::MAX_OPERATIONS;

/// A refused patch; each sort has its own HTTP answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PatchError {
    /// The patch is not a patch at all: 400.
    #[error("{0}")]
    Malformed(String),
    /// More operations than a JSON patch may have; how many there were: 413.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// The patch does not fit the object (a failed test, a missing path): 422.
    #[error("{0}")]
    Failed(String),
    /// The patch contradicts the schema; the original answers 500 here, with this message.
    #[error("{0}")]
    Mismatch(String),
}

impl From<PatchError> for Status {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Malformed(message) => Self::bad_request(message),
            PatchError::TooManyOperations(_) => Self::too_large(format!("Request entity too large: {error}")),
            // The original hides what exactly failed behind this fixed sentence.
            PatchError::Failed(_) => {
                let message = "the server rejected our request due to an error in our request";
                Self::new(422, Reason::Invalid, message).about("", "", "")
            }
            PatchError::Mismatch(message) => Self::new(500, Reason::Unknown, message),
        }
    }
}
