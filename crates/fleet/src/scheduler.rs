//! Decides on bindings when something they depend on changes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use atoll_api::work::WorkloadAffinityGroups;
use atoll_meta::Status;

use crate::binding::{Binding, Traits};
use crate::company::{self, Company};
use crate::core::Core;
use crate::decision::{self, Hosts, Surroundings};
use crate::events::About;
use crate::keys::BindingKey;

type Again = Result<Option<Duration>, Status>;

/// How soon to decide again after a write that failed.
const SOON: Duration = Duration::from_secs(1);

/// Decides on a binding if it needs it, and notes whether it found no place; gives the epoch of the clusters it saw.
pub fn settle(core: &Core, binding: &mut Binding) -> u64 {
    let epoch = core.epoch();
    let estimates = estimates(core, binding);
    if company::groups(binding).is_some() {
        settle_in_company(core, binding, estimates.as_ref(), &mut core.company.lock());
    } else {
        conclude(core, binding, estimates.as_ref(), &Hosts::default());
    }
    epoch
}

/// Decides on a workload of a group; nobody else of a group is decided on meanwhile.
fn settle_in_company(
    core: &Core,
    binding: &mut Binding,
    estimates: Option<&HashMap<Arc<str>, i32>>,
    company: &mut Company,
) {
    let key = binding.key();
    let items = core.bindings(key.is_namespaced()).list_in(&key.namespace);
    let known: Vec<Binding> = items.iter().filter_map(company::read).collect();
    let own = known.iter().find(|other| other.metadata.name == binding.metadata.name);
    let joins = own.and_then(company::groups) != company::groups(binding);
    let hosts = Hosts::of(&company.expected(&key.namespace, known), binding);
    let before = binding.spec.clusters.clone();
    conclude(core, binding, estimates, &hosts);
    if binding.spec.clusters != before || (joins && !before.is_empty()) {
        company.note(binding);
    }
}

/// Decides on a binding by what is known of the others.
fn conclude(core: &Core, binding: &mut Binding, estimates: Option<&HashMap<Arc<str>, i32>>, hosts: &Hosts) {
    let snapshot = core.snapshot.load();
    let around = Surroundings {
        snapshot: &snapshot,
        estimates,
        affinity_hosts: hosts.together.as_ref(),
        anti_affinity_hosts: hosts.apart.as_ref(),
        components: core.options.components,
        now: core.now(),
    };
    decision::settle(binding, &around);
    let key = binding.key();
    if decision::failed(binding) {
        core.unplaced.lock().insert(key);
    } else {
        core.unplaced.lock().remove(&key);
    }
}

/// A workload of these groups is elsewhere now, or gone: those that heed it and found no place may find one.
pub fn moved(core: &Core, namespace: &str, groups: &WorkloadAffinityGroups) {
    for (key, priority) in waiting(core, namespace, groups) {
        core.queues.decisions.add_ranked(key, priority);
    }
}

/// What was decided on a workload of these groups could not be written. Others may find a place after all, but not at
/// once: what failed may go on failing, and they would wake each other without end.
pub fn undone(core: &Core, own: &BindingKey, groups: &WorkloadAffinityGroups) {
    for (key, _) in waiting(core, &own.namespace, groups).into_iter().filter(|(key, _)| key != own) {
        core.queues.decisions.add_after(key, SOON);
    }
}

/// Those that heed workloads of these groups and found no place, with their priorities.
fn waiting(core: &Core, namespace: &str, groups: &WorkloadAffinityGroups) -> Vec<(BindingKey, i32)> {
    if !company::is_any(groups) {
        return Vec::new();
    }
    // Who was decided on before this was known has noted by now that it found no place.
    let company = core.company.lock();
    let unplaced: Vec<BindingKey> =
        core.unplaced.lock().iter().filter(|key| *key.namespace == *namespace).cloned().collect();
    drop(company);
    let heeding = unplaced.into_iter().filter_map(|key| {
        // One that is not known yet is decided on again when it is.
        let item = core.bindings(key.is_namespaced()).get(&key.namespace, &key.name)?;
        let traits = Traits::of(&item);
        company::is_shared(&traits.groups, groups).then_some((key, traits.priority))
    });
    heeding.collect()
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
        tell(&core, Some(&before), &after);
    }
    Ok(None)
}

/// Tells how a decision that was written came out, if otherwise than the one before.
pub fn tell(core: &Core, before: Option<&Binding>, after: &Binding) {
    let (warning, reason, message) = match decision::news(before, after) {
        None => return,
        Some(Ok(message)) => (false, "ScheduleBindingSucceed", message),
        Some(Err(message)) => (true, "ScheduleBindingFailed", message),
    };
    for about in About::both(after) {
        core.tell(about, warning, reason, &message);
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
