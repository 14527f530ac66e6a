//! The scheduling decision of a binding, and the record of it that is kept with the binding.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use atoll_api::policy::{Placement, ReplicaDivisionPreference, ReplicaSchedulingType};
use atoll_api::words::{annotation, reason};
use atoll_api::work::{ResourceBindingStatus, TargetCluster, WorkloadAffinityGroups};
use atoll_placement::{Decision, Request, Snapshot, Trigger, apart, decide, together, trigger};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use crate::binding::Binding;

/// Annotation of a binding with the record of its decision.
pub const DECISION: &str = "atoll.io/decision";

/// A cluster that was chosen: its name, its replicas, and the room it had if it was asked.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Chosen(pub String, pub i32, #[serde(default)] pub Option<i64>);

/// Why a decision is as it is, in few bytes.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When it was made.
    pub at: String,
    /// The generation of the binding it is for.
    pub generation: i64,
    /// What asked for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trigger: String,
    /// The chosen clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<Chosen>,
    /// The refused clusters by the rule and sentence that refused them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, Vec<String>>,
    /// The affinity term that was taken.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub affinity: String,
    /// Affinity terms tried in vain, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<(String, String)>,
    /// Reason and sentence when there is no decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<(String, String)>,
}

impl Record {
    /// The record kept with a binding.
    pub fn of(binding: &Binding) -> Option<Self> {
        serde_json::from_str(binding.annotation(DECISION)?).ok()
    }

    fn new(decision: &Decision, why: Trigger, now: Timestamp) -> Self {
        let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut chosen = Vec::new();
        for reason in &decision.reasons {
            match (&reason.refused_by, reason.chosen) {
                (Some(rule), _) => {
                    refused.entry(format!("{}: {rule}", rule.plugin())).or_default().push(reason.cluster.to_string());
                }
                (None, Some(replicas)) => chosen.push(Chosen(reason.cluster.to_string(), replicas, reason.available)),
                (None, None) => {}
            }
        }
        Self {
            at: atoll_meta::time::format_micro(now),
            generation: 0,
            trigger: serde_json::to_value(why)
                .ok()
                .and_then(|value| value.as_str().map(ToOwned::to_owned))
                .unwrap_or_default(),
            chosen,
            refused,
            affinity: decision.affinity.clone(),
            skipped: decision.skipped.iter().map(|term| (term.affinity.clone(), term.error.to_string())).collect(),
            error: decision.error.as_ref().map(|error| (error.reason().to_owned(), error.to_string())),
        }
    }

    /// What the record is kept for: which clusters were refused by what, and the trouble. Not in it are numbers that
    /// follow the room of clusters, which moves all the time.
    fn grounds(&self) -> (BTreeSet<(String, &str)>, Option<&str>) {
        let full = self.error.as_ref().is_some_and(|(reason, _)| reason == reason::UNSCHEDULABLE);
        let told = self.refused.iter().filter(|(rule, _)| !(full && is_by_room(rule)));
        let refused = told.flat_map(|(rule, clusters)| {
            let digit = |letter: char| letter.is_ascii_digit();
            let gist = if is_by_room(rule) { rule.replace(digit, "") } else { rule.clone() };
            clusters.iter().map(move |cluster| (gist.clone(), cluster.as_str()))
        });
        // Of a sentence on room only how many clusters it speaks of.
        let trouble = self.error.as_ref().map(|(_, message)| match message.split_once(' ') {
            Some((count, _)) if full => count,
            _ => message.as_str(),
        });
        (refused.collect(), trouble)
    }

    /// Why a cluster is in or out, in one sentence.
    pub fn of_cluster(&self, name: &str) -> Option<String> {
        if let Some(Chosen(_, replicas, available)) = self.chosen.iter().find(|chosen| chosen.0 == name) {
            // Less than what it got means that nobody counted.
            let counted = available.filter(|room| *room >= i64::from(*replicas));
            let room = counted.map(|room| format!(" (room for {room})")).unwrap_or_default();
            return Some(if *replicas > 0 {
                format!("chosen with {replicas} replicas{room}")
            } else {
                "chosen".to_owned()
            });
        }
        let (rule, _) = self.refused.iter().find(|(_, clusters)| clusters.iter().any(|cluster| cluster == name))?;
        Some(format!("refused by {rule}"))
    }
}

/// Whether a rule goes by numbers that follow the room of clusters, or the places of other workloads.
fn is_by_room(rule: &str) -> bool {
    ["SpreadConstraint:", "ReplicaAssignment:", "WorkloadAffinity:"].iter().any(|plugin| rule.starts_with(plugin))
}

/// What a decision needs to know besides the binding.
pub struct Surroundings<'a> {
    /// The clusters.
    pub snapshot: &'a Snapshot,
    /// Room by cluster as counted inside of it.
    pub estimates: Option<&'a HashMap<Arc<str>, i32>>,
    /// Clusters that host the group the workload wants to be with.
    pub affinity_hosts: Option<&'a BTreeSet<String>>,
    /// Clusters that host the group the workload keeps away from.
    pub anti_affinity_hosts: Option<&'a BTreeSet<String>>,
    /// Whether kinds with components and no replicas are placed as whole sets.
    pub components: bool,
    /// The present moment.
    pub now: Timestamp,
}

/// The status of a binding as of its last decision, which may not be written there yet.
pub fn effective_status(binding: &Binding) -> Option<ResourceBindingStatus> {
    let mut status = binding.status.clone();
    if let Some(record) = Record::of(binding) {
        let status = status.get_or_insert_default();
        status.last_scheduled_time = atoll_meta::time::parse(&record.at).map(Time);
        status.scheduler_observing_affinity_name = record.affinity;
        status.scheduler_observed_generation = record.generation;
    }
    status
}

/// Whether the last decision found no place.
pub fn failed(binding: &Binding) -> bool {
    // Most records have no trouble to tell and need not be read.
    binding.annotation(DECISION).is_some_and(|text| text.contains("\"error\""))
        && Record::of(binding).is_some_and(|record| record.error.is_some())
}

/// Whether our scheduler may decide on a binding.
pub fn is_ours(binding: &Binding) -> bool {
    let suspended = binding.spec.suspension.as_ref().is_some_and(|suspension| suspension.scheduling == Some(true));
    let scheduler = &binding.spec.scheduler_name;
    !binding.is_deleting()
        && !suspended
        && binding.is_managed()
        && binding.spec.placement.is_some()
        && (scheduler.is_empty() || scheduler == atoll_api::words::DEFAULT_SCHEDULER)
}

/// Whether the division of a binding depends on the room that clusters have.
pub fn asks_for_room(binding: &Binding) -> bool {
    let placement = binding.spec.placement.as_ref();
    let Some(strategy) = placement.and_then(|placement| placement.replica_scheduling.as_ref()) else { return false };
    let aggregated = strategy.replica_division_preference == Some(ReplicaDivisionPreference::Aggregated);
    let dynamic = strategy.weight_preference.as_ref().is_some_and(|weights| weights.dynamic_weight.is_some());
    binding.spec.replicas > 0
        && strategy.replica_scheduling_type != ReplicaSchedulingType::Duplicated
        && (aggregated || dynamic)
}

/// Clusters that host the groups of a workload.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Hosts {
    /// Where all of the group is that it wants to be with.
    pub together: Option<BTreeSet<String>>,
    /// Where any of the group is that it keeps away from.
    pub apart: Option<BTreeSet<String>>,
}

impl Hosts {
    /// Where the groups of a binding are, out of the `others` of the same namespace.
    pub fn of(others: &[impl Borrow<Binding>], binding: &Binding) -> Self {
        let groups = binding.spec.workload_affinity_groups.clone().unwrap_or_default();
        let with = members(others, binding, &groups.affinity_group, |other| &other.affinity_group);
        let without = members(others, binding, &groups.anti_affinity_group, |other| &other.anti_affinity_group);
        Self { together: with.and_then(together), apart: without.map(apart) }
    }
}

/// Where each workload of a group is; `of` reads the group of one.
fn members<'a>(
    others: &'a [impl Borrow<Binding>],
    binding: &Binding,
    group: &str,
    of: impl Fn(&WorkloadAffinityGroups) -> &String,
) -> Option<Vec<&'a [TargetCluster]>> {
    if group.is_empty() {
        return None;
    }
    let member = |other: &'a Binding| {
        let same = other.spec.workload_affinity_groups.as_ref().is_some_and(|groups| of(groups) == group);
        (same && other.metadata.name != binding.metadata.name).then_some(other.spec.clusters.as_slice())
    };
    Some(others.iter().filter_map(|other| member(other.borrow())).collect())
}

/// Decides if the binding needs it, and writes the outcome into the binding. Whether anything changed.
///
/// A decision with the same clusters and the same trouble is none: the old one stands. Its record is written again only
/// when other clusters are refused or others are the reasons, not when numbers such as the room of a cluster move.
pub fn settle(binding: &mut Binding, around: &Surroundings<'_>) -> bool {
    if !is_ours(binding) {
        return false;
    }
    let status = effective_status(binding);
    let applied = binding.applied_placement();
    let Some(why) = trigger(around.snapshot, &binding.spec, status.as_ref(), applied.as_ref()) else { return false };
    let mut request = Request::of(&binding.spec, status.as_ref());
    request.estimates = around.estimates;
    request.affinity_hosts = around.affinity_hosts;
    request.anti_affinity_hosts = around.anti_affinity_hosts;
    request.options.components = around.components;
    let decision = decide(around.snapshot, &request);
    let clusters = match &decision.error {
        None => request.targets(&decision),
        Some(error) if error.clears_clusters() => Vec::new(),
        Some(_) => binding.spec.clusters.clone(),
    };
    let placement = binding.spec.placement.clone().unwrap_or_default();
    // A request may be dated into the running second; the decision is never older than what it answers.
    let asked = binding.spec.reschedule_triggered_at.as_ref().map(|time| time.0).filter(|_| why == Trigger::Requested);
    let now = asked.map_or(around.now, |asked| asked.max(around.now));
    write(binding, clusters, Record::new(&decision, why, now), &placement, applied.as_ref(), why)
}

fn write(
    binding: &mut Binding,
    clusters: Vec<TargetCluster>,
    record: Record,
    placement: &Placement,
    applied: Option<&Placement>,
    why: Trigger,
) -> bool {
    let before = Record::of(binding);
    let same = before.as_ref().is_some_and(|before| {
        before.error.as_ref().map(|error| &error.0) == record.error.as_ref().map(|error| &error.0)
            && before.affinity == record.affinity
    });
    if same && binding.spec.clusters == clusters && applied == Some(placement) && why != Trigger::Requested {
        return before.is_some_and(|before| renew(binding, before, record));
    }
    binding.spec.clusters = clusters;
    binding.annotate(annotation::APPLIED_PLACEMENT, serde_json::to_string(placement).unwrap_or_default());
    binding.annotate(DECISION, serde_json::to_string(&record).unwrap_or_default());
    true
}

/// Renews the record of a decision that stands, if it has become untrue; whether it had.
fn renew(binding: &mut Binding, before: Record, record: Record) -> bool {
    if before.refused == record.refused && before.error == record.error || before.grounds() == record.grounds() {
        return false;
    }
    let Record { at, generation, trigger, .. } = before;
    let renewed = Record { at, generation, trigger, ..record };
    binding.annotate(DECISION, serde_json::to_string(&renewed).unwrap_or_default());
    true
}

/// Notes in the record which generation the binding will have once it is written.
pub fn stamp(binding: &mut Binding, before: Option<&Binding>) {
    let generation = match before {
        None => 1,
        Some(before) if before.spec == binding.spec => before.generation(),
        Some(before) => before.generation() + 1,
    };
    if let Some(mut record) = Record::of(binding)
        && record.generation != generation
    {
        record.generation = generation;
        binding.annotate(DECISION, serde_json::to_string(&record).unwrap_or_default());
    }
}

/// What is to be told of a decision: where it goes, or why nowhere; `None` when it came out as the one before. That a
/// first decision found a place is expected, and would be an event for everything that is ever made.
pub fn news(before: Option<&Binding>, after: &Binding) -> Option<Result<String, String>> {
    if before.is_none() && !failed(after) {
        return None;
    }
    let record = Record::of(after)?;
    let former = before.and_then(Record::of);
    let known = former.as_ref().and_then(|former| former.error.as_ref()).map(|(reason, _)| reason);
    match record.error {
        Some((reason, message)) => (known != Some(&reason)).then_some(Err(message)),
        None => {
            let moved = known.is_some() || before.is_some_and(|before| before.spec.clusters != after.spec.clusters);
            (former.is_some() && moved).then(|| Ok(places(&after.spec.clusters)))
        }
    }
}

/// Where something goes, in words.
fn places(clusters: &[TargetCluster]) -> String {
    let place = |target: &TargetCluster| match target.replicas {
        0 => target.name.clone(),
        1 => format!("{} (1 replica)", target.name),
        many => format!("{} ({many} replicas)", target.name),
    };
    let all: Vec<String> = clusters.iter().map(place).collect();
    if all.is_empty() { "placed in no cluster".to_owned() } else { format!("placed in {}", all.join(", ")) }
}

/// The reason and message of the condition `Scheduled`.
pub fn verdict(record: &Record) -> (&'static str, String, String) {
    match &record.error {
        None => ("True", reason::SUCCESS.to_owned(), "Binding has been scheduled successfully.".to_owned()),
        Some((reason, message)) => ("False", reason.clone(), message.clone()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use atoll_placement::Cluster;
    use serde_json::json;

    use super::*;

    fn snapshot(names: &[&str]) -> Snapshot {
        Snapshot::new(names.iter().map(|name| Cluster {
            name: (*name).into(),
            apis: ["apps/v1/Deployment".into()].into_iter().collect(),
            ..Cluster::default()
        }))
    }

    fn binding(placement: serde_json::Value) -> Binding {
        serde_json::from_value(json!({
            "metadata": {"name": "web-deployment", "namespace": "default", "labels": {"propagationpolicy.karmada.io/permanent-id": "x"}},
            "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "default"},
                     "replicas": 3, "placement": placement},
        }))
        .unwrap()
    }

    fn around(snapshot: &Snapshot) -> Surroundings<'_> {
        Surroundings {
            snapshot,
            estimates: None,
            affinity_hosts: None,
            anti_affinity_hosts: None,
            components: false,
            now: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_decision_is_written_once_and_says_why() {
        let members = snapshot(&["m1", "m2", "m3"]);
        let mut binding = binding(json!({"clusterAffinity": {"clusterNames": ["m1", "m2"]}}));
        assert!(settle(&mut binding, &around(&members)));
        stamp(&mut binding, None);
        let names: Vec<&str> = binding.spec.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        assert_eq!(names, ["m1", "m2"]);
        let record = Record::of(&binding).unwrap();
        assert_eq!((record.generation, record.error.as_ref()), (1, None));
        assert_eq!(record.of_cluster("m3").unwrap(), "refused by ClusterAffinity: not named in clusterNames");
        assert!(record.of_cluster("m1").unwrap().starts_with("chosen with 3 replicas"));
        assert!(!settle(&mut binding, &around(&members)), "the same question gets no second write");
    }

    #[test]
    fn components_go_as_a_whole_set_where_there_is_room_for_one() {
        let sized = |name: &str, cpu| Cluster {
            name: name.into(),
            apis: ["apps/v1/Deployment".into()].into_iter().collect(),
            capacity: atoll_placement::Capacity::new(10, [("cpu", cpu)]),
            ..Cluster::default()
        };
        let members = Snapshot::new([sized("m1", "3"), sized("m2", "5")]);
        let mut binding = binding(json!({
            "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
            "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
        }));
        binding.spec.replicas = 0;
        let needs = |cpu: &str| json!({"resourceRequest": {"cpu": cpu}});
        binding.spec.components = serde_json::from_value(json!([
            {"name": "head", "replicas": 1, "replicaRequirements": needs("1")},
            {"name": "worker", "replicas": 2, "replicaRequirements": needs("1500m")},
        ]))
        .unwrap();
        let mut copied = binding.clone();
        assert!(settle(&mut copied, &around(&members)));
        assert_eq!(copied.spec.clusters[0].name, "m1", "unless the gate is open nobody counts them");
        assert!(settle(&mut binding, &Surroundings { components: true, ..around(&members) }));
        let found = serde_json::to_value(&binding.spec.clusters).unwrap();
        let parts = json!([{"name": "head", "replicas": 1}, {"name": "worker", "replicas": 2}]);
        assert_eq!((&found[0]["name"], &found[0]["components"]), (&json!("m2"), &parts), "{found}");
        assert_eq!(found.as_array().unwrap().len(), 1);
    }

    #[test]
    fn no_fitting_cluster_clears_the_targets_and_is_told() {
        let mut binding = binding(json!({"clusterAffinity": {"clusterNames": ["gone"]}}));
        assert!(settle(&mut binding, &around(&snapshot(&["m1"]))));
        let (status, reason, message) = verdict(&Record::of(&binding).unwrap());
        assert_eq!((status, reason.as_str()), ("False", "NoClusterFit"));
        assert!(message.contains("0/1"), "{message}");
        assert!(binding.spec.clusters.is_empty());
    }

    #[test]
    fn the_record_of_a_decision_that_stands_follows_the_clusters_but_not_their_room() {
        let mut copied = binding(json!({"clusterAffinity": {"clusterNames": ["m1"]}}));
        assert!(settle(&mut copied, &around(&snapshot(&["m1"]))));
        let first = Record::of(&copied).unwrap();
        let wider = snapshot(&["m1", "m2"]);
        let later = Surroundings { now: Timestamp::from_second(60).unwrap(), ..around(&wider) };
        assert!(settle(&mut copied, &later), "m2 joined and is refused");
        let second = Record::of(&copied).unwrap();
        assert_eq!(second.of_cluster("m2").unwrap(), "refused by ClusterAffinity: not named in clusterNames");
        assert_eq!((&second.at, &second.trigger), (&first.at, &first.trigger), "the decision stands as it was");
        assert_eq!(news(Some(&copied), &copied), None);
        assert!(!settle(&mut copied, &later));

        let mut nowhere = binding(json!({"clusterAffinity": {"clusterNames": ["gone"]}}));
        settle(&mut nowhere, &around(&snapshot(&["m1"])));
        assert!(settle(&mut nowhere, &around(&snapshot(&["m1", "m2"]))));
        assert!(verdict(&Record::of(&nowhere).unwrap()).2.contains("0/2"), "the condition tells of both");

        let record = |rule: &str, error: Option<(&str, &str)>| Record {
            refused: BTreeMap::from([(rule.to_owned(), vec!["m2".to_owned()])]),
            error: error.map(|(reason, message)| (reason.to_owned(), message.to_owned())),
            ..Record::default()
        };
        let room = |message| Some((reason::UNSCHEDULABLE, message));
        for (one, other, same) in [
            (record("TaintToleration: a=1", None), record("TaintToleration: a=2", None), false),
            (record("SpreadConstraint: ranked 3 of 3", None), record("SpreadConstraint: ranked 2 of 3", None), true),
            (record("SpreadConstraint: ranked 3 of 3", None), record("SpreadConstraint: has no region", None), false),
            (record("x", room("2 clusters have room for 5")), record("x", room("2 clusters have room for 6")), true),
            (record("x", room("2 clusters have room for 5")), record("x", room("3 clusters have room for 5")), false),
        ] {
            assert_eq!(one.grounds() == other.grounds(), same, "{one:?} {other:?}");
        }
    }

    #[test]
    fn an_outcome_is_told_when_it_changes() {
        let (here, nowhere) = (snapshot(&["m1", "m2"]), snapshot(&["m3"]));
        let mut first = binding(json!({"clusterAffinity": {"clusterNames": ["m1", "m2"]}}));
        let fresh = first.clone();
        settle(&mut first, &around(&here));
        assert_eq!(news(None, &first), None, "a first place is expected");
        assert_eq!(news(Some(&fresh), &first), None);
        let mut lost = first.clone();
        settle(&mut lost, &around(&nowhere));
        for before in [None, Some(&fresh), Some(&first)] {
            assert!(news(before, &lost).unwrap().unwrap_err().starts_with("0/1 clusters"));
        }
        assert_eq!(news(Some(&lost), &lost), None);
        let mut back = lost.clone();
        settle(&mut back, &around(&here));
        let told = "placed in m1 (3 replicas), m2 (3 replicas)".to_owned();
        assert_eq!(news(Some(&lost), &back), Some(Ok(told)));
        let mut fewer = back.clone();
        fewer.spec.clusters.truncate(1);
        fewer.spec.clusters[0].replicas = 1;
        assert_eq!(news(Some(&back), &fewer), Some(Ok("placed in m1 (1 replica)".to_owned())));
    }

    #[test]
    fn bindings_of_nobody_or_suspended_ones_are_left_alone() {
        let members = snapshot(&["m1"]);
        let mut orphan = binding(json!({}));
        orphan.metadata.labels = None;
        assert!(!settle(&mut orphan, &around(&members)));
        let mut held = binding(json!({}));
        held.spec.suspension = serde_json::from_value(json!({"scheduling": true})).unwrap();
        assert!(!settle(&mut held, &around(&members)));
    }
}
