//! Events about physical pods, told about their pods.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::kubeocean_names::annotation;
use atoll_meta::{Gvr, Status};
use serde_json::{Value, json};

use crate::syncer::{Syncer, is_ours};
use crate::tree;

pub(crate) fn events() -> Gvr {
    Gvr::new("", "v1", "events")
}

/// The event to tell above; `None` for what is told there anyway.
fn told(event: &Value, pod: &Value) -> Option<Value> {
    // The scheduler above has said what there is to say about scheduling.
    if event["reason"] == "Scheduled" {
        return None;
    }
    let mut out = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("{}.{}", tree::name(pod), tree::uid(event)), "namespace": tree::namespace(pod)},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "namespace": tree::namespace(pod), "name": tree::name(pod), "uid": tree::uid(pod),
            "fieldPath": event["involvedObject"]["fieldPath"],
        },
    });
    for field in [
        "type",
        "reason",
        "message",
        "count",
        "firstTimestamp",
        "lastTimestamp",
        "eventTime",
        "source",
        "action",
        "reportingComponent",
        "reportingInstance",
    ] {
        if !event[field].is_null() {
            out[field] = event[field].clone();
        }
    }
    Some(out)
}

impl Syncer {
    /// Tells an event of the worker cluster about the pod it is for.
    pub(crate) async fn tell(self: Arc<Self>, key: String) -> Result<Option<Duration>, Status> {
        let Some(item) = self.events.get_key(&key) else { return Ok(None) };
        let told = self.tell_event(&item.tree()).await?;
        // What was told need not be kept; the stream goes on where it is.
        self.events.remove_same(&item);
        Ok(told)
    }

    async fn tell_event(&self, event: &Value) -> Result<Option<Duration>, Status> {
        let about = &event["involvedObject"];
        let text = |field: &str| about[field].as_str().unwrap_or_default();
        let Some(below) = self.pods.get(text("namespace"), text("name")).map(|item| item.tree()) else {
            return Ok(None);
        };
        if !is_ours(&below, &self.computing.owner) || text("uid") != tree::uid(&below) {
            return Ok(None);
        }
        let (namespace, name) = (
            tree::annotation(&below, annotation::VIRTUAL_POD_NAMESPACE),
            tree::annotation(&below, annotation::VIRTUAL_POD_NAME),
        );
        let Some(pod) = self.computing.pods.get(namespace, name).map(|item| item.tree()) else { return Ok(None) };
        if tree::uid(&pod) != tree::annotation(&below, annotation::VIRTUAL_POD_UID) {
            return Ok(None);
        }
        let Some(event) = told(event, &pod) else { return Ok(None) };
        match self.above().create(&events(), Some(namespace), &event).await {
            Err(status) if status.code == 409 => {
                let patch = json!({"count": event["count"], "lastTimestamp": event["lastTimestamp"], "message": event["message"]});
                self.above()
                    .patch(&events(), Some(namespace), tree::name(&event), "", atoll_runtime::Patch::Merge, &patch)
                    .await?;
                Ok(None)
            }
            // An event is never worth a retry storm.
            Err(status) if status.code < 500 => Ok(None),
            result => result.map(|_| None),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn events_are_about_the_pod_above() {
        let pod = json!({"metadata": {"name": "web", "namespace": "default", "uid": "u"}});
        let event = json!({"metadata": {"uid": "e"}, "reason": "Pulled", "message": "m", "type": "Normal", "count": 2, "involvedObject": {"fieldPath": "spec.containers{c}", "name": "web-hash"}});
        let told_above = told(&event, &pod).unwrap();
        assert_eq!(
            (&told_above["involvedObject"]["name"], &told_above["count"], &told_above["metadata"]["name"]),
            (&json!("web"), &json!(2), &json!("web.e"))
        );
        assert_eq!(told(&json!({"reason": "Scheduled"}), &pod), None);
    }
}
