//! Questions about kinds of well-known projects.

use crate::case::Case;

pub fn cases() -> Vec<Case> {
    Vec::new()
}
