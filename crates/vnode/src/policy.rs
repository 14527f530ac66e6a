//! Policies in the worker cluster: their finalizer and their status.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::kubeocean_names::finalizer;
use atoll_lease::{Policy, Window, check_policy, is_open, next_edge};
use atoll_meta::Status;
use atoll_runtime::Patch;
use serde_json::{Value, json};

use crate::resource;
use crate::syncer::Syncer;
use crate::tree;

impl Syncer {
    /// Brings one policy in line, and all nodes with it.
    pub(crate) async fn policy(self: Arc<Self>, name: String) -> Result<Option<Duration>, Status> {
        let binding = self.binding();
        self.look_at_nodes();
        self.relent();
        let Some(item) = self.policies.get("", &name) else { return Ok(None) };
        let object = item.tree();
        if object["spec"]["cluster"] != *binding.name {
            return Ok(None);
        }
        if tree::is_deleting(&object) || binding.deleting {
            // Nodes no longer see a policy that is being deleted, so nothing else is needed.
            return self.release_policy(&object).await.map(|()| None);
        }
        if !tree::has_finalizer(&object, finalizer::POLICY) {
            let mut finalizers = tree::list(&object["metadata"]["finalizers"]).to_vec();
            finalizers.push(finalizer::POLICY.into());
            self.patch_policy(&object, "", tree::with_finalizers(&object, finalizers)).await?;
        }
        let policy = Policy {
            name: name.clone(),
            spec: serde_json::from_value(object["spec"].clone())
                .map_err(|error| Status::bad_request(error.to_string()))?,
            ..Policy::default()
        };
        let now = self.now();
        let valid = check_policy(&policy.spec);
        let zone = &self.settings.zone;
        let windows: Vec<Window> =
            policy.spec.time_windows.iter().filter_map(|window| Window::read(window, zone).ok()).collect();
        let open = valid.is_ok() && is_open(&windows, now);
        let status = status(&object, &valid, open, now);
        if let Some(patch) = tree::difference(&object["status"], &status) {
            self.patch_policy(&object, "status", json!({"status": patch})).await?;
        }
        Ok(valid.ok().and_then(|()| next_edge(&windows, now)).map(|edge| self.until(edge)))
    }

    async fn release_policy(&self, object: &Value) -> Result<(), Status> {
        if !tree::has_finalizer(object, finalizer::POLICY) {
            return Ok(());
        }
        let rest = tree::finalizers_without(object, finalizer::POLICY);
        self.patch_policy(object, "", tree::with_finalizers(object, rest)).await
    }

    async fn patch_policy(&self, object: &Value, sub: &str, patch: Value) -> Result<(), Status> {
        match self.below().patch(&resource::policies(), None, tree::name(object), sub, Patch::Merge, &patch).await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }
}

/// The status of a policy; the time moves only when something else does.
fn status(object: &Value, valid: &Result<(), String>, open: bool, now: jiff::Timestamp) -> Value {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    let now: Value = atoll_meta::time::format(now).into();
    let condition = |kind: &str, status: bool, reason: &str, message: &str| {
        let status = if status { "True" } else { "False" };
        let known = tree::list(&object["status"]["conditions"]).iter().find(|known| known["type"] == kind);
        let same = known.filter(|known| known["status"] == status);
        let since = same.map_or(now.clone(), |known| known["lastTransitionTime"].clone());
        json!({"type": kind, "status": status, "reason": reason, "message": message,
               "observedGeneration": generation, "lastTransitionTime": since})
    };
    let (phase, conditions) = match valid {
        Err(why) => (
            "Failed",
            [condition("Valid", false, "ValidationError", why), condition("Active", false, "ValidationError", why)],
        ),
        Ok(()) if open => (
            "Active",
            [
                condition("Valid", true, "ValidationPassed", "the policy can be applied"),
                condition("Active", true, "ActiveTimeWindow", "a time window is open"),
            ],
        ),
        Ok(()) => (
            "Inactive",
            [
                condition("Valid", true, "ValidationPassed", "the policy can be applied"),
                condition("Active", false, "InactiveTimeWindow", "no time window is open"),
            ],
        ),
    };
    let mut status = json!({"phase": phase, "conditions": conditions});
    if open {
        status["activeTimeWindow"] = true.into();
    }
    let applied = object["status"]["lastAppliedTime"].clone();
    let same = {
        let mut known = object["status"].clone();
        known.as_object_mut().map(|map| map.remove("lastAppliedTime"));
        known == status
    };
    status["lastAppliedTime"] = if same && applied.is_string() { applied } else { now };
    status
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_status_says_whether_the_policy_is_valid_and_active() {
        let object = json!({"metadata": {"generation": 3}});
        let now = "2026-01-05T12:00:00Z".parse().unwrap();
        for (valid, open, phase, reasons) in [
            (Ok(()), true, "Active", ["ValidationPassed", "ActiveTimeWindow"]),
            (Ok(()), false, "Inactive", ["ValidationPassed", "InactiveTimeWindow"]),
            (Err("bad".to_owned()), false, "Failed", ["ValidationError", "ValidationError"]),
        ] {
            let status = status(&object, &valid, open, now);
            assert_eq!(status["phase"], phase);
            let found: Vec<_> =
                tree::list(&status["conditions"]).iter().map(|condition| condition["reason"].clone()).collect();
            assert_eq!(found, reasons);
            let later = super::status(
                &json!({"metadata": {"generation": 3}, "status": status}),
                &valid,
                open,
                "2026-01-05T13:00:00Z".parse().unwrap(),
            );
            assert_eq!(later, status, "nothing changed");
        }
    }
}
