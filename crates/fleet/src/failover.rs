//! Moves workloads away from clusters and members that fail, if that is switched on.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::cluster::Cluster;
use atoll_meta::Status;
use k8s_openapi::api::core::v1::Taint;

use crate::binding::Binding;
use crate::core::Core;
use crate::decision::{self, Record};
use crate::events::About;
use crate::evict::{self, sooner};
use crate::keys::BindingKey;
use crate::scheduler;

type Again = Result<Option<Duration>, Status>;

/// Looks after the evictions of a binding, and starts those that are due.
pub async fn look_after(core: Arc<Core>, key: BindingKey) -> Again {
    let Some(before) = core.binding(&key).filter(|binding| !binding.is_deleting()) else {
        core.unhealthy.lock().remove(&key);
        return Ok(None);
    };
    let now = core.now();
    let mut after = before.clone();
    let scheduled =
        Record::of(&after).is_some_and(|record| record.generation == after.generation() && record.error.is_none());
    let mut again = evict::settle(&mut after, scheduled, core.options.eviction_timeout, now);
    let mut trouble = Vec::new();
    let mut since = core.unhealthy.lock().get(&key).cloned().unwrap_or_default();
    if core.options.failover && decision::is_ours(&after) {
        if core.options.evict_on_taints {
            let (next, met) = evict::by_taints(&mut after, |name| taints(&core, name), || core.eviction_turn(), now);
            (again, trouble) = (sooner(again, next), met);
        }
        let (next, met) = evict::by_health(&mut after, &mut since, now);
        again = sooner(again, next);
        trouble.extend(met);
    }
    warn(&core, &before, &trouble);
    if after.spec != before.spec {
        // The new place is found in the same write.
        let epoch = scheduler::settle(&core, &mut after);
        decision::stamp(&mut after, Some(&before));
        let written = core.write_binding(Some(&before), &after, epoch).await;
        tell(&core, &before, &after, written.as_ref().err());
        // What could not be written has not been left: its time goes on.
        written?;
    }
    let mut unhealthy = core.unhealthy.lock();
    if since.is_empty() {
        unhealthy.remove(&key);
    } else {
        unhealthy.insert(key, since);
    }
    drop(unhealthy);
    Ok(again.map(|delay| delay.max(Duration::from_millis(10))))
}

/// Tells what came of evictions.
fn tell(core: &Core, before: &Binding, after: &Binding, failure: Option<&Status>) {
    match failure {
        None => {
            for step in evict::steps(before, after) {
                for about in About::both(after) {
                    core.tell(about, false, "EvictWorkloadFromClusterSucceed", &step);
                }
            }
            scheduler::tell(core, Some(before), after);
        }
        // Somebody else wrote the binding meanwhile, and it is looked at again.
        Some(status) if status.code == 409 => {}
        Some(status) => {
            let left = evict::begun(before, after).map(|task| &task.from_cluster);
            let sentences: Vec<String> =
                left.map(|name| format!("cannot be evicted from cluster {name}: {}", status.message)).collect();
            warn(core, before, &sentences);
        }
    }
}

fn warn(core: &Core, binding: &Binding, trouble: &[String]) {
    for sentence in trouble {
        for about in About::both(binding) {
            core.warn(about, "EvictWorkloadFromClusterFailed", sentence);
        }
    }
}

fn taints(core: &Core, cluster: &str) -> Option<Vec<Taint>> {
    let cluster: Cluster = core.informers().clusters.cache.get("", cluster)?.decode().ok()?;
    Some(cluster.spec.taints)
}
