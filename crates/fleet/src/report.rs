//! From the status of works to that of bindings and templates.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use atoll_api::work::{AggregatedStatusItem, ResourceBindingStatus};
use atoll_meta::Status;
use atoll_runtime::Patch;
use serde_json::{Value, json};

use crate::binding::Binding;
use crate::core::Core;
use crate::keys::{BindingKey, TemplateKey};
use crate::{aggregate, diff, taints};

type Again = Result<Option<Duration>, Status>;

/// Tells how the works of a binding are, on the binding and on its template.
pub async fn report(core: Arc<Core>, key: BindingKey) -> Again {
    let Some(binding) = core.binding(&key).filter(|binding| !binding.is_deleting()) else { return Ok(None) };
    let works = core.work_states(&binding);
    let mut new = aggregate::status(&binding, &works, core.now());
    let snapshot = core.snapshot.load();
    aggregate::doubt(&mut new, |cluster| snapshot.get(cluster).is_some_and(|cluster| taints::is_away(cluster)));
    if let Some(patch) = difference(binding.status.as_ref(), &new) {
        // It may wait for long: the uid keeps it off a successor of the same name.
        let body = json!({"metadata": {"uid": binding.metadata.uid}, "status": patch});
        core.instance
            .patient()
            .brief()
            .patch(&key.gvr(), key.in_namespace(), &key.name, "status", Patch::Merge, &body)
            .await?;
    }
    let items = reported(&binding, works.keys(), &new);
    tell_template(&core, &binding, &items).await
}

fn difference(old: Option<&ResourceBindingStatus>, new: &ResourceBindingStatus) -> Option<Value> {
    if old == Some(new) {
        return None;
    }
    let tree = |status| serde_json::to_value(status).unwrap_or_default();
    diff::merge_patch(&old.map_or_else(|| json!({}), tree), &tree(new))
}

/// A member and what is known of its copy.
type Reported<'a> = (String, Option<&'a AggregatedStatusItem>);

/// All members that have or shall have a copy. Those that have not reported count too: what is done elsewhere is not
/// done everywhere.
fn reported<'a>(
    binding: &Binding,
    copies: impl Iterator<Item = &'a String>,
    status: &'a ResourceBindingStatus,
) -> Vec<Reported<'a>> {
    let targets = binding.spec.clusters.iter().map(|target| target.name.clone());
    let members: BTreeSet<String> = targets.chain(copies.cloned()).collect();
    let known = |name: &str| status.aggregated_status.iter().find(|item| item.cluster_name == name);
    members.into_iter().map(|name| (name.clone(), known(&name))).collect()
}

async fn tell_template(core: &Core, binding: &Binding, items: &[Reported<'_>]) -> Again {
    let key = TemplateKey::of(&binding.spec.resource);
    let Some(watched) = core.templates.get(&key.gvk).filter(|watched| watched.info.has_status) else { return Ok(None) };
    let Some(item) = watched.cache().get(&key.namespace, &key.name) else { return Ok(None) };
    if item.object.head.deleting
        || *item.object.head.uid != *binding.spec.resource.uid
        || items.iter().all(|(_, item)| item.is_none_or(|item| item.status.is_none()))
    {
        return Ok(None);
    }
    let old = item.tree();
    let mut new = old.clone();
    match core.interpreter.load().try_aggregate(&mut new, items) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(error) => {
            core.event(&old, true, "AggregateStatusFailed", &error.to_string()).await;
            return Err(Status::bad_request(error.to_string()));
        }
    }
    let Some(patch) = diff::merge_patch(&old["status"], &new["status"]) else { return Ok(None) };
    let patch = if old["status"].is_object() { patch } else { new["status"].clone() };
    let body = json!({"metadata": {"uid": old["metadata"]["uid"]}, "status": patch});
    core.instance
        .patient()
        .brief()
        .patch(&watched.info.gvr, key.in_namespace(), &key.name, "status", Patch::Merge, &body)
        .await?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use atoll_interpreter::Interpreter;

    use super::*;

    #[test]
    fn a_job_is_not_complete_while_a_member_has_not_reported() {
        let binding: Binding = serde_json::from_value(json!({"metadata": {"name": "b", "namespace": "d"},
            "spec": {"resource": {"apiVersion": "batch/v1", "kind": "Job", "name": "x"}, "clusters": [{"name": "m1"}, {"name": "m2"}]}}))
        .unwrap();
        let done = json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]});
        let item = |name: &str| json!({"clusterName": name, "applied": true, "status": done});
        let copies = ["m1".to_owned()];
        for (items, complete) in [(json!([item("m1")]), false), (json!([item("m1"), item("m2")]), true)] {
            let status: ResourceBindingStatus = serde_json::from_value(json!({"aggregatedStatus": items})).unwrap();
            let mut job = json!({"apiVersion": "batch/v1", "kind": "Job"});
            let all = reported(&binding, copies.iter(), &status);
            assert_eq!(all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["m1", "m2"]);
            Interpreter::new().try_aggregate(&mut job, &all).unwrap();
            assert_eq!(job.to_string().contains("Complete"), complete, "{job}");
        }
    }
}
