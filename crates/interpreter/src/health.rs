//! How an object is.

use std::fmt;

/// How an object is.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Health {
    /// It works, or nothing is known that could be wrong with its kind.
    Healthy,
    /// It does not.
    Unhealthy,
    /// There is no telling.
    Unknown,
}

impl Health {
    /// The word for it in statuses.
    pub fn as_str(self) -> &'static str {
        match self {
            Health::Healthy => "Healthy",
            Health::Unhealthy => "Unhealthy",
            Health::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Health {
    fn from(healthy: bool) -> Self {
        if healthy { Health::Healthy } else { Health::Unhealthy }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
