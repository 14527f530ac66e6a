//! Disruption budgets: how many pods of a group may be evicted now.

use atoll_meta::selector::LabelSelector;
use atoll_meta::{Key, Revision, Status};
use serde_json::Value;

use crate::call::Call;

/// Refuses an eviction a budget does not allow; charges it otherwise, and says in the pod why it goes.
pub async fn check(call: &Call) -> Result<(), Status> {
    allow(call).await?;
    mark(call).await
}

/// Says in the pod that it is evicted: those who own it may judge its end by that.
async fn mark(call: &Call) -> Result<(), Status> {
    let mut own = call.fork();
    own.query = crate::query::Query::default();
    let now = call.timestamp();
    own.modify("status", call.query.dry_run()?, |old| {
        let mut new = old.clone(); // the old tree is needed for comparison
        let mut conditions = new["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.retain(|one| one["type"] != "DisruptionTarget");
        conditions.push(serde_json::json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
        }));
        new["status"]["conditions"] = conditions.into();
        new["metadata"]["resourceVersion"] = "".into();
        Ok(new)
    })
    .await
    .map(drop)
}

/// Whether a pod that is not ready may go without charge.
fn goes_free(budget: &Value, pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    if conditions.into_iter().any(|one| one["type"] == "Ready" && one["status"] == "True") {
        return false;
    }
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or_default();
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        || number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0
}

async fn allow(call: &Call) -> Result<(), Status> {
    let pod = call.fetch().await?;
    let tree = pod.object.tree(Revision(0));
    let finished = matches!(tree["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Pending"));
    if finished || pod.object.head.deleting {
        return Ok(());
    }
    let snapshot = call.hub.snapshot(&call.instance).await?;
    let prefix = Key::prefix("policy", "poddisruptionbudgets", &call.target.namespace);
    let budgets: Vec<Value> = snapshot
        .range(&prefix, None)
        .map(|(_, entry)| entry.object.tree(entry.modified))
        .filter(|budget| {
            LabelSelector::from_value(&budget["spec"]["selector"])
                .is_ok_and(|selector| selector.matches_head(&pod.object.head))
        })
        .collect();
    match budgets.as_slice() {
        [] => Ok(()),
        [budget] if goes_free(budget, &tree) => Ok(()),
        [budget] => charge(call, budget).await,
        _ => Err(Status::internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        )),
    }
}

async fn charge(call: &Call, budget: &Value) -> Result<(), Status> {
    let mut own = call.fork();
    let Some(kind) = call.instance.kind("policy", "v1", "poddisruptionbudgets") else { return Ok(()) };
    own.kind = kind;
    own.target.resource = "poddisruptionbudgets".into();
    own.target.group = "policy".into();
    own.target.name = budget["metadata"]["name"].as_str().unwrap_or_default().into();
    own.query = crate::query::Query::default();
    let name = own.target.name.clone();
    let pod = call.target.name.clone();
    let now = call.timestamp();
    own.modify("status", call.query.dry_run()?, |old| {
        let allowed = old["status"]["disruptionsAllowed"].as_i64().unwrap_or_default();
        let observed = old["status"]["observedGeneration"].as_i64().unwrap_or_default();
        if observed < old["metadata"]["generation"].as_i64().unwrap_or_default() {
            return Err(blocked(
                "Cannot evict pod as it would violate the pod's disruption budget.",
                format!("The disruption budget {name} is still being processed by the server."),
                10,
            ));
        }
        if allowed <= 0 {
            let healthy = old["status"]["currentHealthy"].as_i64().unwrap_or_default();
            let desired = old["status"]["desiredHealthy"].as_i64().unwrap_or_default();
            let message =
                format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently");
            return Err(blocked("Cannot evict pod as it would violate the pod's disruption budget.", message, 0));
        }
        let mut new = old.clone(); // the old tree is needed for comparison
        new["status"]["disruptionsAllowed"] = (allowed - 1).into();
        new["status"]["disruptedPods"][&pod] = now.clone().into();
        new["metadata"]["resourceVersion"] = "".into();
        Ok(new)
    })
    .await
    .map(drop)
}

fn blocked(message: &str, cause: String, seconds: u32) -> Status {
    Status::too_many_requests(message, seconds).cause("DisruptionBudget", cause, "")
}
