//! Leaving a cluster: what is decided, without the doing.

use std::collections::BTreeMap;
use std::time::Duration;

use atoll_api::policy::{ClusterPurgeMode, PurgeMode, StatePreservation};
use atoll_api::words::{producer, reason};
use atoll_api::work::{GracefulEvictionTask, ResourceHealth};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use crate::binding::Binding;

/// How and why a cluster is left.
#[derive(Clone, Debug)]
pub struct Eviction<'a> {
    /// How the old copy is removed.
    pub purge_mode: PurgeMode,
    /// Why, in one word.
    pub reason: &'a str,
    /// Why, in a sentence.
    pub message: String,
    /// Who asks for it.
    pub producer: &'a str,
    /// How long the old copy may stay at most.
    pub grace: Option<i32>,
    /// Labels for the new copy.
    pub preserved: BTreeMap<String, String>,
}

/// Moves a cluster from the targets to those being left; whether it was a target.
pub fn evict(binding: &mut Binding, cluster: &str, eviction: Eviction<'_>, now: Timestamp) -> bool {
    let spec = &mut binding.spec;
    let Some(at) = spec.clusters.iter().position(|target| target.name == cluster) else { return false };
    let before: Vec<String> = spec.clusters.iter().map(|target| target.name.clone()).collect();
    let target = spec.clusters.remove(at);
    if spec.graceful_eviction_tasks.iter().any(|task| task.from_cluster == cluster) {
        return true;
    }
    spec.graceful_eviction_tasks.push(GracefulEvictionTask {
        from_cluster: cluster.to_owned(),
        purge_mode: Some(eviction.purge_mode),
        replicas: (target.replicas > 0).then_some(target.replicas),
        reason: eviction.reason.to_owned(),
        message: eviction.message,
        producer: eviction.producer.to_owned(),
        grace_period_seconds: eviction.grace,
        suppress_deletion: (eviction.purge_mode == PurgeMode::Never).then_some(true),
        preserved_label_state: eviction.preserved,
        creation_timestamp: Some(Time(now)),
        clusters_before_failover: before,
    });
    true
}

/// Looks after the evictions of a binding: those that are done go. Gives when to look again.
pub fn settle(binding: &mut Binding, scheduled: bool, default_grace: Duration, now: Timestamp) -> Option<Duration> {
    let healthy = scheduled && all_healthy(binding);
    let mut next: Option<Duration> = None;
    binding.spec.graceful_eviction_tasks.retain_mut(|task| {
        let since = task.creation_timestamp.get_or_insert(Time(now)).0;
        match task.suppress_deletion {
            Some(keep) => return keep,
            None if task.purge_mode == Some(PurgeMode::Directly) => {}
            None if healthy => return false,
            None => {}
        }
        let own = task.grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
        let elapsed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        let left = own.unwrap_or(default_grace).saturating_sub(elapsed);
        if left.is_zero() {
            return false;
        }
        next = Some(next.map_or(left, |next| next.min(left)));
        true
    });
    next
}

/// Whether every target reports a healthy copy.
fn all_healthy(binding: &Binding) -> bool {
    let items = binding.status.as_ref().map(|status| status.aggregated_status.as_slice()).unwrap_or_default();
    !binding.spec.clusters.is_empty()
        && binding.spec.clusters.iter().all(|target| {
            items.iter().any(|item| item.cluster_name == target.name && item.health == Some(ResourceHealth::Healthy))
        })
}

/// When a workload has to leave because of the taints of a cluster: `None` is never.
pub fn leave_at(taints: &[Taint], tolerations: &[Toleration], now: Timestamp) -> Option<Timestamp> {
    let mut earliest: Option<Timestamp> = None;
    for taint in taints.iter().filter(|taint| taint.effect == "NoExecute") {
        let since = taint.time_added.as_ref().map_or(now, |time| time.0);
        let fitting: Vec<&Toleration> = tolerations.iter().filter(|toleration| tolerates(toleration, taint)).collect();
        let at = if fitting.is_empty() {
            since
        } else {
            // Without a limit it stays for ever; otherwise the shortest limit counts.
            let Some(seconds) = fitting.iter().filter_map(|toleration| toleration.toleration_seconds).min() else {
                continue;
            };
            since.checked_add(jiff::SignedDuration::from_secs(seconds.max(0))).unwrap_or(Timestamp::MAX)
        };
        earliest = Some(earliest.map_or(at, |earliest| earliest.min(at)));
    }
    earliest
}

/// Whether a toleration bears a taint.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let same =
        |given: &Option<String>, own: &str| given.as_deref().is_none_or(|given| given.is_empty() || given == own);
    let value = taint.value.as_deref().unwrap_or_default();
    same(&toleration.effect, &taint.effect)
        && same(&toleration.key, &taint.key)
        && match toleration.operator.as_deref() {
            None | Some("" | "Equal") => toleration.value.as_deref().unwrap_or_default() == value,
            Some("Exists") => true,
            Some(_) => false,
        }
}

/// What the new copy is told of the state of the old one. A rule whose path finds nothing fails.
pub fn preserve(rules: Option<&StatePreservation>, status: Option<&Value>) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    for rule in rules.into_iter().flat_map(|preservation| &preservation.rules) {
        let path = atoll_meta::path::JsonPath::parse(&rule.json_path).map_err(|error| error.0)?;
        let found =
            status.and_then(|status| path.first(status)).ok_or_else(|| format!("{} finds nothing", rule.json_path))?;
        let text = found.as_str().map_or_else(|| found.to_string(), ToOwned::to_owned);
        labels.insert(rule.alias_label_name.clone(), text);
    }
    Ok(labels)
}

/// Since when copies of one workload are unhealthy, by cluster.
pub type Unhealthy = BTreeMap<String, Timestamp>;

/// The sooner of two moments to look again.
pub fn sooner(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    [a, b].into_iter().flatten().min()
}

/// Evictions that began between two states of a binding.
pub fn begun<'a>(before: &'a Binding, after: &'a Binding) -> impl Iterator<Item = &'a GracefulEvictionTask> {
    missing(&after.spec.graceful_eviction_tasks, &before.spec.graceful_eviction_tasks)
}

/// The evictions of `some` that are not among `others`.
fn missing<'a>(
    some: &'a [GracefulEvictionTask],
    others: &'a [GracefulEvictionTask],
) -> impl Iterator<Item = &'a GracefulEvictionTask> {
    some.iter().filter(|task| !others.iter().any(|other| other.from_cluster == task.from_cluster))
}

/// What came of evictions between two states of a binding, in sentences.
pub fn steps(before: &Binding, after: &Binding) -> Vec<String> {
    let over = missing(&before.spec.graceful_eviction_tasks, &after.spec.graceful_eviction_tasks);
    let over = over.map(|task| format!("eviction from cluster {} is over", task.from_cluster));
    let begun = begun(before, after).map(|task| {
        let why = if task.message.is_empty() { &task.reason } else { &task.message };
        format!("eviction from cluster {} began: {why}", task.from_cluster)
    });
    over.chain(begun).collect()
}

/// When the next eviction is due, and what went wrong with those that were, in sentences.
type Outcome = (Option<Duration>, Vec<String>);

/// Leaves clusters whose taints are not borne (any longer). `turn` tells how long to wait for the right to leave one
/// more: too many at once would make a small fault a large one.
pub fn by_taints(
    binding: &mut Binding,
    taints: impl Fn(&str) -> Option<Vec<Taint>>,
    turn: impl Fn() -> Option<Duration>,
    now: Timestamp,
) -> Outcome {
    let mut trouble = Vec::new();
    // What was agreed at the last decision counts, not what the policy says by now.
    let Some(placement) = binding.applied_placement() else { return (None, trouble) };
    let rule = binding.spec.failover.as_ref().and_then(|failover| failover.cluster.clone());
    let directly = rule.as_ref().is_some_and(|rule| rule.purge_mode == ClusterPurgeMode::Directly);
    let state = rule.and_then(|rule| rule.state_preservation);
    let mut next: Option<Duration> = None;
    let names: Vec<String> = binding.spec.clusters.iter().map(|cluster| cluster.name.clone()).collect();
    for name in names {
        let Some(at) = taints(&name).and_then(|taints| leave_at(&taints, &placement.cluster_tolerations, now)) else {
            continue;
        };
        let left = Duration::try_from(at.duration_since(now)).ok().filter(|left| !left.is_zero());
        if let Some(wait) = left.or_else(&turn) {
            next = sooner(next, Some(wait));
            continue;
        }
        // A cluster that is lost cannot be asked again, so its workloads go without their state rather than not at all.
        let preserved = preserve(state.as_ref(), status_in(binding, &name)).unwrap_or_else(|why| {
            trouble.push(format!("evicted from cluster {name} without its state, which cannot be preserved: {why}"));
            BTreeMap::new()
        });
        let eviction = Eviction {
            purge_mode: if directly { PurgeMode::Directly } else { PurgeMode::Gracefully },
            reason: reason::TAINT_UNTOLERATED,
            message: format!("cluster {name} has a NoExecute taint that is not tolerated"),
            producer: producer::TAINT_MANAGER,
            grace: None,
            preserved,
        };
        evict(binding, &name, eviction, now);
    }
    (next, trouble)
}

fn status_in<'a>(binding: &'a Binding, cluster: &str) -> Option<&'a Value> {
    let items = &binding.status.as_ref()?.aggregated_status;
    items.iter().find(|item| item.cluster_name == cluster)?.status.as_ref()
}

/// Leaves clusters in which the application has been unhealthy for too long.
pub fn by_health(binding: &mut Binding, unhealthy: &mut Unhealthy, now: Timestamp) -> Outcome {
    let mut trouble = Vec::new();
    let rule = binding.spec.failover.as_ref().and_then(|failover| failover.application.clone());
    let Some(rule) = rule else { return (None, trouble) };
    let patience = Duration::from_secs(u64::try_from(rule.decision_conditions.toleration_seconds).unwrap_or_default());
    let items = binding.status.as_ref().map(|status| status.aggregated_status.clone()).unwrap_or_default();
    let namespaced = binding.key().is_namespaced();
    let mut next: Option<Duration> = None;
    for item in items {
        let since = match item.health {
            Some(ResourceHealth::Unhealthy) => *unhealthy.entry(item.cluster_name.clone()).or_insert(now),
            Some(ResourceHealth::Healthy) => {
                unhealthy.remove(&item.cluster_name);
                continue;
            }
            // Not knowing is neither better nor worse: the time goes on if it had begun.
            _ => match unhealthy.get(&item.cluster_name) {
                Some(since) => *since,
                None => continue,
            },
        };
        let elapsed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        let left = patience.saturating_sub(elapsed);
        if !left.is_zero() {
            next = sooner(next, Some(left));
            continue;
        }
        let preserved = match preserve(rule.state_preservation.as_ref(), item.status.as_ref()) {
            Ok(preserved) => preserved,
            Err(why) => {
                let name = &item.cluster_name;
                if binding.spec.clusters.iter().any(|target| target.name == *name) {
                    trouble.push(format!("not evicted from cluster {name}: its state cannot be preserved: {why}"));
                }
                continue;
            }
        };
        let eviction = Eviction {
            purge_mode: rule.purge_mode,
            reason: reason::APPLICATION_FAILURE,
            message: format!("unhealthy in cluster {} for {} s", item.cluster_name, elapsed.as_secs()),
            producer: if namespaced { producer::APPLICATION_FAILOVER } else { producer::CLUSTER_APPLICATION_FAILOVER },
            grace: rule.grace_period_seconds,
            preserved,
        };
        if evict(binding, &item.cluster_name, eviction, now) {
            unhealthy.remove(&item.cluster_name);
        }
    }
    (next, trouble)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn binding(health: &str) -> Binding {
        serde_json::from_value(json!({"metadata": {"name": "b", "namespace": "d"},
            "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
                     "clusters": [{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 1}]},
            "status": {"aggregatedStatus": [{"clusterName": "m2", "health": health}]}}))
        .unwrap()
    }

    fn eviction(purge_mode: PurgeMode) -> Eviction<'static> {
        Eviction {
            purge_mode,
            reason: "TaintUntolerated",
            message: String::new(),
            producer: "TaintManager",
            grace: None,
            preserved: BTreeMap::new(),
        }
    }

    #[test]
    fn a_gentle_eviction_lasts_until_the_others_are_well_or_time_is_up() {
        let grace = Duration::from_secs(600);
        for (health, scheduled, second, gone) in [
            ("Healthy", true, 10, true),
            ("Healthy", false, 10, false),
            ("Unhealthy", true, 10, false),
            ("Unhealthy", true, 601, true),
        ] {
            let mut binding = binding(health);
            assert!(evict(&mut binding, "m1", eviction(PurgeMode::Gracefully), at(0)));
            assert_eq!(binding.spec.clusters.len(), 1);
            assert_eq!(binding.spec.graceful_eviction_tasks[0].clusters_before_failover, ["m1", "m2"]);
            let next = settle(&mut binding, scheduled, grace, at(second));
            assert_eq!(binding.spec.graceful_eviction_tasks.is_empty(), gone, "{health} {scheduled} {second}");
            assert_eq!(next.is_none(), gone);
        }
    }

    #[test]
    fn an_eviction_that_must_not_delete_stays_until_someone_decides() {
        let mut binding = binding("Healthy");
        evict(&mut binding, "m1", eviction(PurgeMode::Never), at(0));
        settle(&mut binding, true, Duration::from_secs(1), at(1_000_000));
        assert_eq!(binding.spec.graceful_eviction_tasks.len(), 1);
        binding.spec.graceful_eviction_tasks[0].suppress_deletion = Some(false);
        settle(&mut binding, true, Duration::from_secs(1), at(0));
        assert!(binding.spec.graceful_eviction_tasks.is_empty());
    }

    #[test]
    fn a_cluster_that_is_no_target_is_not_left() {
        let mut binding = binding("Healthy");
        assert!(!evict(&mut binding, "m9", eviction(PurgeMode::Directly), at(0)));
        assert!(binding.spec.graceful_eviction_tasks.is_empty());
    }

    #[test]
    fn tolerations_say_how_long_a_taint_is_borne() {
        let taint = |key: &str, effect: &str| Taint {
            key: key.into(),
            effect: effect.into(),
            time_added: Some(Time(at(100))),
            ..Taint::default()
        };
        let bear = |key: &str, seconds: Option<i64>| Toleration {
            key: Some(key.into()),
            operator: Some("Exists".into()),
            toleration_seconds: seconds,
            ..Toleration::default()
        };
        let cases = [
            (vec![], vec![], None),
            (vec![taint("a", "NoSchedule")], vec![], None),
            (vec![taint("a", "NoExecute")], vec![], Some(at(100))),
            (vec![taint("a", "NoExecute")], vec![bear("a", None)], None),
            (vec![taint("a", "NoExecute")], vec![bear("a", Some(30))], Some(at(130))),
            (vec![taint("a", "NoExecute")], vec![bear("a", None), bear("a", Some(30))], Some(at(130))),
            (vec![taint("a", "NoExecute"), taint("b", "NoExecute")], vec![bear("a", Some(30))], Some(at(100))),
        ];
        for (taints, tolerations, expected) in cases {
            assert_eq!(leave_at(&taints, &tolerations, at(200)), expected, "{taints:?} {tolerations:?}");
        }
    }

    #[test]
    fn evictions_are_told_when_they_begin_and_end() {
        let before = binding("Healthy");
        let mut after = before.clone();
        let asked = Eviction { message: "asked for".to_owned(), ..eviction(PurgeMode::Gracefully) };
        evict(&mut after, "m1", asked, at(0));
        assert_eq!(steps(&before, &after), ["eviction from cluster m1 began: asked for"]);
        assert_eq!(steps(&after, &after), [""; 0]);
        let mut ended = after.clone();
        settle(&mut ended, true, Duration::from_secs(600), at(1));
        assert_eq!(steps(&after, &ended), ["eviction from cluster m1 is over"]);
    }

    #[test]
    fn state_that_cannot_be_preserved_is_told() {
        let state = json!({"rules": [{"aliasLabelName": "job", "jsonPath": "{.jobID}"}]});
        let mut unwell = binding("Unhealthy");
        unwell.spec.failover = serde_json::from_value(json!({"application": {
            "decisionConditions": {"tolerationSeconds": 5}, "statePreservation": state.clone()},
            "cluster": {"statePreservation": state}}))
        .unwrap();
        let mut since = Unhealthy::from([("m2".to_owned(), at(0))]);
        let (next, trouble) = by_health(&mut unwell, &mut since, at(5));
        assert_eq!(next, None);
        assert_eq!(trouble, ["not evicted from cluster m2: its state cannot be preserved: {.jobID} finds nothing"]);
        assert!(unwell.spec.graceful_eviction_tasks.is_empty());
        unwell.annotate(atoll_api::words::annotation::APPLIED_PLACEMENT, "{}".to_owned());
        let tainted = |name: &str| {
            let taint = Taint { key: "a".into(), effect: "NoExecute".into(), ..Taint::default() };
            (name == "m2").then(|| vec![taint])
        };
        let (_, trouble) = by_taints(&mut unwell, tainted, || None, at(5));
        assert_eq!(trouble.len(), 1);
        assert!(trouble[0].starts_with("evicted from cluster m2 without its state"), "{trouble:?}");
        assert_eq!(unwell.spec.graceful_eviction_tasks.len(), 1);
    }

    #[test]
    fn state_is_taken_from_the_status() {
        let rules: StatePreservation =
            serde_json::from_value(json!({"rules": [{"aliasLabelName": "job", "jsonPath": "{.jobStatus.jobID}"}]}))
                .unwrap();
        let found = preserve(Some(&rules), Some(&json!({"jobStatus": {"jobID": "17"}}))).unwrap();
        assert_eq!(found, BTreeMap::from([("job".to_owned(), "17".to_owned())]));
        assert!(preserve(Some(&rules), Some(&json!({}))).is_err());
        assert!(preserve(None, None).unwrap().is_empty());
    }
}
