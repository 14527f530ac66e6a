//! WorkloadRebalancers: new decisions on request.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::apps::{ObservedWorkload, WorkloadRebalancer, WorkloadRebalancerStatus, WorkloadReference};
use atoll_meta::{Gvk, Status, split_api_version};
use atoll_runtime::Patch;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::binding::Binding;
use crate::core::Core;
use crate::decision::Record;
use crate::keys::TemplateKey;
use crate::{decision, diff, gvr, scheduler};

type Again = Result<Option<Duration>, Status>;

/// Serves one request.
pub async fn rebalance(core: Arc<Core>, name: Arc<str>) -> Again {
    let Some(item) = core.informers().rebalancers.cache.get("", &name) else { return Ok(None) };
    if item.object.head.deleting {
        return Ok(None);
    }
    let rebalancer: WorkloadRebalancer = item.decode().map_err(Status::internal)?;
    let old = rebalancer.status.clone().unwrap_or_default();
    let generation = rebalancer.metadata.generation.unwrap_or_default();
    if old.observed_generation == generation && old.finish_time.is_some() {
        return expire(&core, &rebalancer, &old, &name).await;
    }
    catch_up(&core).await?;
    let asked = rebalancer.metadata.creation_timestamp.as_ref().map_or_else(|| core.now(), |time| time.0);
    let mut observed = Vec::new();
    for workload in &rebalancer.spec.workloads {
        let done =
            old.observed_workloads.iter().find(|known| known.workload == *workload && known.result == "Successful");
        observed.push(match done {
            Some(done) => done.clone(),
            None => serve(&core, workload, asked).await?,
        });
    }
    observed.sort_by(|a, b| order(&a.workload).cmp(&order(&b.workload)));
    let new = WorkloadRebalancerStatus {
        observed_workloads: observed,
        observed_generation: generation,
        finish_time: Some(Time(core.now())),
    };
    let trees = (serde_json::to_value(&old).unwrap_or_default(), serde_json::to_value(&new).unwrap_or_default());
    if let Some(patch) = diff::merge_patch(&trees.0, &trees.1) {
        core.instance
            .patch(&gvr::rebalancers(), None, &name, "status", Patch::Merge, &json!({"status": patch}))
            .await?;
    }
    Ok(None)
}

/// Who asks has seen the clusters as they are: the decision must not be made on older ones.
async fn catch_up(core: &Core) -> Result<(), Status> {
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    for cluster in core.instance.list(&gvr::clusters(), None, "").await?.items {
        let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
        let known = core.placed.lock().get(name).copied();
        if known.is_none_or(|known| known < number(cluster["metadata"]["resourceVersion"].as_str().unwrap_or_default()))
        {
            return Err(Status::unavailable("clusters have just changed"));
        }
    }
    Ok(())
}

fn order(workload: &WorkloadReference) -> (&str, &str, &str, &str) {
    (&workload.api_version, &workload.kind, &workload.namespace, &workload.name)
}

/// A served request goes after its time.
async fn expire(core: &Core, rebalancer: &WorkloadRebalancer, status: &WorkloadRebalancerStatus, name: &str) -> Again {
    let (Some(seconds), Some(finished)) = (rebalancer.spec.ttl_seconds_after_finished, &status.finish_time) else {
        return Ok(None);
    };
    let end = finished.0.checked_add(jiff::SignedDuration::from_secs(seconds.max(0).into())).unwrap_or(Timestamp::MAX);
    match Duration::try_from(end.duration_since(core.now())).ok().filter(|left| !left.is_zero()) {
        Some(left) => Ok(Some(left)),
        None => {
            core.instance.delete(&gvr::rebalancers(), None, name, &Value::Null).await?;
            Ok(None)
        }
    }
}

async fn serve(core: &Core, workload: &WorkloadReference, asked: Timestamp) -> Result<ObservedWorkload, Status> {
    let key = TemplateKey {
        gvk: Arc::new(Gvk::of(&workload.api_version, &workload.kind)),
        namespace: workload.namespace.as_str().into(),
        name: workload.name.as_str().into(),
    };
    // Kinds of different groups may share a name, and so a binding of that name.
    let same_group = |binding: &Binding| split_api_version(&binding.spec.resource.api_version).0 == key.gvk.group;
    let Some(before) = core.binding(&key.binding()).filter(same_group) else {
        return Ok(ObservedWorkload {
            workload: workload.clone(),
            result: "Failed".into(),
            reason: "ReferencedBindingNotFound".into(),
        });
    };
    let mut after = before.clone();
    after.spec.reschedule_triggered_at = Some(Time(trigger_time(&before, asked)));
    let epoch = scheduler::settle(core, &mut after);
    decision::stamp(&mut after, Some(&before));
    core.write_binding(Some(&before), &after, epoch).await?;
    scheduler::tell(core, Some(&before), &after);
    Ok(ObservedWorkload { workload: workload.clone(), result: "Successful".into(), reason: String::new() })
}

/// The time that asks for a new decision: later than the last one, which may be within the same second.
fn trigger_time(binding: &Binding, asked: Timestamp) -> Timestamp {
    let last = Record::of(binding).and_then(|record| atoll_meta::time::parse(&record.at));
    match last {
        Some(last) if asked <= last => Timestamp::from_second(last.as_second() + 1).unwrap_or(asked),
        _ => asked,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_request_is_always_later_than_the_decision_it_is_about() {
        let mut binding = Binding::default();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(trigger_time(&binding, at("2026-01-01T00:00:05Z")), at("2026-01-01T00:00:05Z"));
        binding.annotate(decision::DECISION, json!({"at": "2026-01-01T00:00:05.500000Z", "generation": 1}).to_string());
        assert_eq!(trigger_time(&binding, at("2026-01-01T00:00:05Z")), at("2026-01-01T00:00:06Z"));
        assert_eq!(trigger_time(&binding, at("2026-01-01T00:00:09Z")), at("2026-01-01T00:00:09Z"));
    }
}
