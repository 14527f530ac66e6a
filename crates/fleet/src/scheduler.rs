//! Decides on bindings when something they depend on changes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use atoll_api::work::{TargetCluster, WorkloadAffinityGroups};
use atoll_meta::Status;
use atoll_placement::{apart, together};

use crate::binding::{Binding, Traits};
use crate::core::Core;
use crate::decision::{self, Record, Surroundings};
use crate::keys::BindingKey;

type Again = Result<Option<Duration>, Status>;

/// Decides on a binding if it needs it, and notes whether it found no place; gives the epoch of the clusters it saw.
pub fn settle(core: &Core, binding: &mut Binding) -> u64 {
    let epoch = core.epoch();
    let snapshot = core.snapshot.load();
    let groups = binding.spec.workload_affinity_groups.clone().unwrap_or_default();
    let with = members(core, binding, &groups.affinity_group, |other| &other.affinity_group);
    let without = members(core, binding, &groups.anti_affinity_group, |other| &other.anti_affinity_group);
    let (together, apart) = (with.and_then(together), without.map(apart));
    let estimates = estimates(core, binding);
    let around = Surroundings {
        snapshot: &snapshot,
        estimates: estimates.as_ref(),
        affinity_hosts: together.as_ref(),
        anti_affinity_hosts: apart.as_ref(),
        now: core.now(),
    };
    decision::settle(binding, &around);
    let key = binding.key();
    if decision::failed(binding) {
        core.unplaced.lock().insert(key);
    } else {
        core.unplaced.lock().remove(&key);
    }
    epoch
}

/// Room counted node by node in members we reach, where the division depends on it.
fn estimates(core: &Core, binding: &Binding) -> Option<HashMap<Arc<str>, i32>> {
    if !decision::asks_for_room(binding) {
        return None;
    }
    let counted = core.members.list().into_iter().filter(|member| member.counted.load(Ordering::Acquire));
    let room = counted.map(|member| {
        let estimate = member.summary.lock().estimate(binding.spec.replica_requirements.as_ref());
        (member.name.clone(), estimate)
    });
    Some(room.collect())
}

/// Where each workload of a group of the same namespace is.
fn members(
    core: &Core,
    binding: &Binding,
    group: &str,
    of: impl Fn(&WorkloadAffinityGroups) -> &String,
) -> Option<Vec<Vec<TargetCluster>>> {
    if group.is_empty() {
        return None;
    }
    let key = binding.key();
    let others = core.bindings(key.is_namespaced()).list_in(&key.namespace);
    decision::members(others.iter().filter_map(Binding::of), binding, group, of)
}

/// Decides on one binding.
pub async fn decide(core: Arc<Core>, key: BindingKey) -> Again {
    let Some(before) = core.binding(&key) else {
        core.unplaced.lock().remove(&key);
        return Ok(None);
    };
    let mut after = before.clone();
    let epoch = settle(&core, &mut after);
    if decision::is_ours(&after) {
        decision::stamp(&mut after, Some(&before));
    }
    if after != before {
        core.write_binding(Some(&before), &after, epoch).await?;
        tell(&core, &before, &after).await;
    }
    Ok(None)
}

async fn tell(core: &Core, before: &Binding, after: &Binding) {
    let Some(record) = Record::of(after) else { return };
    let old = Record::of(before).and_then(|record| record.error);
    if let Some((_, message)) = &record.error
        && old.as_ref() != record.error.as_ref()
    {
        core.event(&crate::binding::about(after), true, "ScheduleBindingFailed", message).await;
    }
}

/// Clusters changed: which bindings are to be looked at again. With `all` not only room changed.
pub async fn shift(core: Arc<Core>, all: bool) -> Again {
    let keys = if all { core.binding_keys() } else { core.unplaced.lock().iter().cloned().collect() };
    for key in keys {
        core.queues.decisions.add_ranked(key.clone(), rank(&core, &key));
        if all {
            if core.options.failover {
                core.queues.evictions.add(key.clone());
            }
            core.queues.reports.add(key.clone());
            core.queues.works.add(key);
        }
    }
    Ok(None)
}

/// The place of a binding in the queue: the most important are decided on first.
pub fn rank(core: &Core, key: &BindingKey) -> i32 {
    let item = core.bindings(key.is_namespaced()).get(&key.namespace, &key.name);
    item.map(|item| Traits::of(&item).priority).unwrap_or_default()
}
