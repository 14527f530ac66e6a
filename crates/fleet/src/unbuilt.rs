//! Clusters whose work could not be built, and how that is told: the others get theirs all the same.

use std::collections::BTreeMap;

use atoll_meta::Status;
use serde_json::Value;

use crate::core::Core;
use crate::work::BuildError;

/// So many clusters are named with one cause; events are to be read.
const NAMED: usize = 5;

/// The clusters that failed, by the reason of the event that tells of it and by their cause.
#[derive(Debug, Default)]
pub struct Unbuilt {
    causes: BTreeMap<(&'static str, String), Vec<String>>,
}

impl Unbuilt {
    /// Notes a cluster that failed.
    pub fn add(&mut self, cluster: &str, error: &BuildError) {
        let reason = match error {
            BuildError::Override(_) => "ApplyOverridePolicyFailed",
            BuildError::Revise(_) => "SyncWorkFailed",
        };
        self.causes.entry((reason, error.to_string())).or_default().push(cluster.to_owned());
    }

    /// What went wrong, by the reason of its event.
    fn messages(&self) -> BTreeMap<&'static str, String> {
        let mut all: BTreeMap<&'static str, String> = BTreeMap::new();
        for ((reason, why), clusters) in &self.causes {
            let message = all.entry(reason).or_default();
            let gap = if message.is_empty() { "" } else { "; " };
            *message = format!("{message}{gap}{}: {why}", named(clusters));
        }
        all
    }

    /// Sends events about a template; an error with all of it, if there is something to tell.
    pub async fn tell(&self, core: &Core, template: &Value) -> Result<(), Status> {
        let messages = self.messages();
        for (reason, message) in &messages {
            core.event(template, true, reason, message).await;
        }
        let all: Vec<String> = messages.into_values().collect();
        if all.is_empty() { Ok(()) } else { Err(Status::bad_request(all.join("; "))) }
    }
}

/// The names of clusters, of many only the first.
fn named(clusters: &[String]) -> String {
    let word = if clusters.len() == 1 { "cluster" } else { "clusters" };
    let first = clusters.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match clusters.len().saturating_sub(NAMED) {
        0 => format!("{word} {first}"),
        more => format!("{word} {first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overrides::OverrideError;

    #[test]
    fn clusters_are_named_once_with_each_cause_and_not_all_of_many() {
        let mut unbuilt = Unbuilt::default();
        assert!(unbuilt.messages().is_empty());
        let wrong = |why: &str| BuildError::Override(OverrideError { policy: "p".into(), why: why.into() });
        for number in 1..=7 {
            unbuilt.add(&format!("m{number}"), &wrong("no such path"));
        }
        unbuilt.add("m8", &wrong("not a number"));
        unbuilt.add("m9", &BuildError::Revise("script".into()));
        let messages = unbuilt.messages();
        assert_eq!(
            messages["ApplyOverridePolicyFailed"],
            "clusters m1, m2, m3, m4, m5 and 2 more: override policy p: no such path; \
             cluster m8: override policy p: not a number"
        );
        assert_eq!(messages["SyncWorkFailed"], "cluster m9: replicas cannot be revised: script");
    }
}
