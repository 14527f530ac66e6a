//! Moves workloads away from clusters and members that fail, if that is switched on.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::cluster::Cluster;
use atoll_api::policy::{ClusterPurgeMode, PurgeMode};
use atoll_api::words::{producer, reason};
use atoll_api::work::ResourceHealth;
use atoll_meta::Status;
use jiff::Timestamp;

use crate::binding::Binding;
use crate::core::Core;
use crate::decision::{self, Record};
use crate::evict::{self, Eviction};
use crate::keys::BindingKey;
use crate::scheduler;

type Again = Result<Option<Duration>, Status>;

/// Looks after the evictions of a binding, and starts those that are due.
pub async fn look_after(core: Arc<Core>, key: BindingKey) -> Again {
    let Some(before) = core.binding(&key).filter(|binding| !binding.is_deleting()) else {
        core.unhealthy.lock().retain(|(other, _), _| *other != key);
        return Ok(None);
    };
    let now = core.now();
    let mut after = before.clone();
    let scheduled =
        Record::of(&after).is_some_and(|record| record.generation == after.generation() && record.error.is_none());
    let mut again = evict::settle(&mut after, scheduled, core.options.eviction_timeout, now);
    if core.options.failover && decision::is_ours(&after) {
        let more = [by_taints(&core, &mut after, now), by_health(&core, &mut after, &key, now)];
        again = more.into_iter().chain([again]).flatten().min();
    }
    if after.spec != before.spec {
        // The new place is found in the same write.
        let epoch = scheduler::settle(&core, &mut after);
        decision::stamp(&mut after, Some(&before));
        core.write_binding(Some(&before), &after, epoch).await?;
    }
    Ok(again.map(|delay| delay.max(Duration::from_millis(10))))
}

fn until(at: Timestamp, now: Timestamp) -> Option<Duration> {
    Duration::try_from(at.duration_since(now)).ok().filter(|left| !left.is_zero())
}

/// Leaves clusters whose taints are not borne (any longer); gives when the next one is due.
fn by_taints(core: &Core, binding: &mut Binding, now: Timestamp) -> Option<Duration> {
    if !core.options.evict_on_taints {
        return None;
    }
    // What was agreed at the last decision counts, not what the policy says by now.
    let placement = binding.applied_placement()?;
    let mode = binding.spec.failover.as_ref().and_then(|failover| failover.cluster.as_ref());
    let (purge_mode, rules) = match mode {
        Some(cluster) if cluster.purge_mode == ClusterPurgeMode::Directly => {
            (PurgeMode::Directly, cluster.state_preservation.clone())
        }
        Some(cluster) => (PurgeMode::Gracefully, cluster.state_preservation.clone()),
        None => (PurgeMode::Gracefully, None),
    };
    let mut next: Option<Duration> = None;
    let names: Vec<String> = binding.spec.clusters.iter().map(|cluster| cluster.name.clone()).collect();
    for name in names {
        let Some(cluster) =
            core.informers().clusters.cache.get("", &name).and_then(|item| item.decode::<Cluster>().ok())
        else {
            continue;
        };
        let Some(at) = evict::leave_at(&cluster.spec.taints, &placement.cluster_tolerations, now) else { continue };
        if let Some(left) = until(at, now) {
            next = Some(next.map_or(left, |next| next.min(left)));
            continue;
        }
        if let Some(wait) = core.eviction_turn() {
            // Too many at once would make a small fault a large one.
            next = Some(next.map_or(wait, |next| next.min(wait)));
            continue;
        }
        let preserved = evict::preserve(rules.as_ref(), status_in(binding, &name)).unwrap_or_default();
        let eviction = Eviction {
            purge_mode,
            reason: reason::TAINT_UNTOLERATED,
            message: format!("cluster {name} has a NoExecute taint that is not tolerated"),
            producer: producer::TAINT_MANAGER,
            grace: None,
            preserved,
        };
        evict::evict(binding, &name, eviction, now);
    }
    next
}

fn status_in<'a>(binding: &'a Binding, cluster: &str) -> Option<&'a serde_json::Value> {
    let items = &binding.status.as_ref()?.aggregated_status;
    items.iter().find(|item| item.cluster_name == cluster)?.status.as_ref()
}

/// Leaves clusters in which the application has been unhealthy for too long; gives when the next one is due.
fn by_health(core: &Core, binding: &mut Binding, key: &BindingKey, now: Timestamp) -> Option<Duration> {
    let rule = binding.spec.failover.as_ref()?.application.clone()?;
    let patience = Duration::from_secs(u64::try_from(rule.decision_conditions.toleration_seconds).unwrap_or_default());
    let items = binding.status.as_ref().map(|status| status.aggregated_status.clone()).unwrap_or_default();
    let mut next: Option<Duration> = None;
    for item in items {
        let place = (key.clone(), item.cluster_name.clone());
        let since = match item.health {
            Some(ResourceHealth::Unhealthy) => *core.unhealthy.lock().entry(place).or_insert(now),
            Some(ResourceHealth::Healthy) => {
                core.unhealthy.lock().remove(&place);
                continue;
            }
            // Not knowing is neither better nor worse: the time goes on if it had begun.
            _ => match core.unhealthy.lock().get(&place) {
                Some(since) => *since,
                None => continue,
            },
        };
        let elapsed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        let left = patience.saturating_sub(elapsed);
        if !left.is_zero() {
            next = Some(next.map_or(left, |next| next.min(left)));
            continue;
        }
        let preserved = match evict::preserve(rule.state_preservation.as_ref(), item.status.as_ref()) {
            Ok(preserved) => preserved,
            Err(why) => {
                tracing::debug!(?key, cluster = item.cluster_name, why, "state cannot be preserved");
                continue;
            }
        };
        let by =
            if key.is_namespaced() { producer::APPLICATION_FAILOVER } else { producer::CLUSTER_APPLICATION_FAILOVER };
        let eviction = Eviction {
            purge_mode: rule.purge_mode,
            reason: reason::APPLICATION_FAILURE,
            message: format!("unhealthy in cluster {} for {} s", item.cluster_name, elapsed.as_secs()),
            producer: by,
            grace: rule.grace_period_seconds,
            preserved,
        };
        if evict::evict(binding, &item.cluster_name, eviction, now) {
            core.unhealthy.lock().remove(&(key.clone(), item.cluster_name));
        }
    }
    next
}
