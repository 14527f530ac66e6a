//! What the owner of a worker cluster may leave out: a binding works without it, and says so.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Something leased pods can do only with further rights in the worker cluster.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Feature {
    /// Claims with their volumes, and which storage drivers nodes have.
    Volumes,
    /// Services and EndpointSlices of the binding's `serviceNamespaces`.
    Services,
    /// What the worker cluster tells about pods.
    Events,
    /// Reading logs.
    Logs,
    /// Running commands in containers, and attaching to them.
    Exec,
    /// Forwarding ports.
    PortForward,
    /// Containers added to a running pod.
    Debug,
    /// What pods use.
    Metrics,
}

/// Some features.
pub type Features = BTreeSet<Feature>;

impl Feature {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Volumes,
        Self::Services,
        Self::Events,
        Self::Logs,
        Self::Exec,
        Self::PortForward,
        Self::Debug,
        Self::Metrics,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Volumes => "volumes",
            Self::Services => "services",
            Self::Events => "events",
            Self::Logs => "logs",
            Self::Exec => "exec",
            Self::PortForward => "port-forward",
            Self::Debug => "debug",
            Self::Metrics => "metrics",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

impl FromStr for Feature {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = || Self::ALL.map(Self::word).join(", ");
        let found = Self::ALL.into_iter().find(|own| own.word() == text);
        found.ok_or_else(|| format!("{text:?} is none of {}", words()))
    }
}

/// Features in words, separated by commas.
pub(crate) fn listed(features: &Features) -> String {
    features.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read_as_they_are_written() {
        for feature in Feature::ALL {
            assert_eq!(feature.to_string().parse(), Ok(feature));
        }
        let wrong = "volume".parse::<Feature>();
        assert!(wrong.is_err_and(|why| why.contains("volumes, services") && why.starts_with("\"volume\"")));
        assert_eq!(listed(&[Feature::Metrics, Feature::Volumes].into()), "volumes, metrics");
    }
}
