//! Reclaiming: pods leave when the windows close.

use std::time::Duration;

use atoll_api::kubeocean_names::taint;
use atoll_lease::{State, evict_at};
use atoll_meta::Status;
use serde_json::Value;

use super::expected::taints;
use super::taint::closed_since;
use crate::resource;
use crate::syncer::Syncer;
use crate::tree;

/// What pods are told that go.
const CLOSED: &str = "the owner of the node takes it back: no time window of its policy is open";

/// Whether a pod goes when the windows close: not if it goes already, nor if it tolerates that.
pub(crate) fn must_go(pod: &Value) -> bool {
    let tolerates = tree::list(&pod["spec"]["tolerations"]).iter().any(|own| own["key"] == taint::OUT_OF_WINDOWS);
    !tree::is_deleting(pod) && !tolerates && !atoll_lease::is_over(pod)
}

impl Syncer {
    /// Deletes the pods of a node when their time is over; else says how long it still is.
    pub(crate) async fn evict(&self, node: &Value, state: &State) -> Result<Option<Duration>, Status> {
        let now = self.now();
        let Some(when) = evict_at(state, closed_since(taints(node)), now) else { return Ok(None) };
        if when > now {
            return Ok(Some(self.until(when)));
        }
        let mut failures = Vec::new();
        for key in self.computing.pods_on(tree::name(node)) {
            let Some(pod) = self.computing.pods.get_key(&key).map(|item| item.tree()).filter(must_go) else { continue };
            let (namespace, name) = (tree::namespace(&pod), tree::name(&pod));
            match self.above().delete(&resource::pods(), Some(namespace), name, &tree::only(tree::uid(&pod))).await {
                Ok(()) => self.above().event(&pod, "Normal", "Reclaimed", CLOSED, now).await,
                Err(status) => failures.push(format!("{key}: {status}")),
            }
        }
        if failures.is_empty() { Ok(None) } else { Err(Status::unavailable(failures.join("; "))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_that_tolerate_closed_windows_or_go_already_are_left() {
        for (pod, goes) in [
            (json!({"spec": {}}), true),
            (json!({"spec": {"tolerations": [{"key": "other"}]}}), true),
            (
                json!({"spec": {"tolerations": [{"key": "kubeocean.io/out-of-time-windows", "operator": "Exists"}]}}),
                false,
            ),
            (json!({"metadata": {"deletionTimestamp": "2026-01-05T12:00:00Z"}}), false),
            (json!({"status": {"phase": "Succeeded"}}), false),
        ] {
            assert_eq!(must_go(&pod), goes, "{pod}");
        }
    }
}
