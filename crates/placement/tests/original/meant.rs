//! Where a decision differs from the original's by intent, and what it is compared with then.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::case::Case;

/// More groups than there are.
const UNBOUNDED: i64 = 1000;
/// Up to here the original's sort keeps the order of equals.
const STABLE: usize = 12;

/// The question that the original answers as Atoll answers the case.
///
/// - `maxGroups: 0`, the value of a bound that is left out, means no bound; the original takes no group at all.
/// - A workload that is scaled to none stays where it is, with none. The original takes one that says what a replica
///   needs away from all clusters, and leaves one that does not.
/// - Asked for anew, the affinity terms are tried from the first on, as the original does from 1.19.
pub fn question(case: &Case) -> Case {
    let mut meant = case.clone();
    let constraints = meant.spec.pointer_mut("/placement/spreadConstraints").and_then(Value::as_array_mut);
    for constraint in constraints.into_iter().flatten().filter(|it| it["maxGroups"] == 0) {
        constraint["maxGroups"] = UNBOUNDED.into();
    }
    if case.spec["replicas"] == 0 {
        meant.spec.as_object_mut().unwrap().remove("replicaRequirements");
    }
    if case.is_fresh() {
        meant.status.as_object_mut().unwrap().remove("schedulerObservingAffinityName");
    }
    meant
}

/// Whether two answers to a case are one.
pub fn is_same(case: &Case, ours: &str, theirs: &str) -> bool {
    let reason = |answer: &str| answer.split_once(": ").map(|(reason, _)| reason.to_owned());
    let decided = Decided::of(ours);
    if decided.as_ref().is_some_and(|decided| !decided.keeps_to(case)) {
        return false;
    }
    // Zones and providers are spread over; the original refuses them or overlooks them beside others. What it finds in
    // spite of that and keeps to all bounds has to be found as well.
    if case.spreads_by(&["provider", "zone"]) {
        let unfit = |answer: &str| reason(answer).as_deref() == Some("NoClusterFit");
        let found = Decided::of(theirs).is_some_and(|it| it.keeps_to(case) && it.is_spread(case, true));
        return (decided.is_some() || !found) && (case.has_terms() || unfit(ours) == unfit(theirs));
    }
    // More regions than clusters cannot be: that is refused, where the original takes more clusters than it may.
    if case.wants_more_regions_than_clusters() && reason(theirs).as_deref() != Some("NoClusterFit") {
        return reason(ours).is_some();
    }
    // What is equal to the original's sort comes in any order, if it is much.
    let placed = reason(ours).is_none() && reason(theirs).is_none();
    if case.clusters.len() > STABLE && case.preference() == "Aggregated" && placed && ours != theirs {
        let (ours_is, theirs_is) = (Decided::of(ours), Decided::of(theirs));
        let alike = |one: &Decided<'_>, other: &Decided<'_>| one.term == other.term && one.sum() == other.sum();
        return ours_is.zip(theirs_is).is_some_and(|(one, other)| alike(&one, &other))
            && (case.has_previous() || counts(ours) == counts(theirs));
    }
    // Too little room has one reason, whichever step finds it; the original has another one when it selects.
    let full = theirs.starts_with("SchedulerError") && theirs.contains("no enough resource when selecting");
    match (reason(ours), reason(theirs)) {
        (None, None) => ours == theirs,
        (Some(ours), Some(theirs)) => ours == theirs || (full && ours == "Unschedulable"),
        _ => false,
    }
}

/// A decision with clusters, read from its short form.
struct Decided<'a> {
    targets: BTreeMap<&'a str, i64>,
    term: &'a str,
}

impl<'a> Decided<'a> {
    /// `None` of a refusal.
    fn of(answer: &'a str) -> Option<Self> {
        if answer.contains(": ") {
            return None;
        }
        let (targets, term) = answer.split_once("by ").unwrap_or((answer, ""));
        let target = |text: &'a str| text.split_once('=').map(|(name, replicas)| (name, replicas.parse().unwrap()));
        Some(Self { targets: targets.split(' ').filter_map(target).collect(), term })
    }

    fn sum(&self) -> i64 {
        self.targets.values().sum()
    }

    /// Whether it gives out what there is, to clusters that may have it, within the bounds.
    fn keeps_to(&self, case: &Case) -> bool {
        let replicas = case.spec["replicas"].as_i64().unwrap();
        let shared = if case.is_copied() {
            self.targets.values().all(|share| *share == replicas)
        } else {
            self.sum() == replicas
        };
        let terms = case.spec["placement"]["clusterAffinities"].as_array();
        let termed = terms.map_or(self.term.is_empty(), |terms| terms.iter().any(|it| it["affinityName"] == self.term));
        // Those that are chosen and get no share are not told.
        let all_told = case.is_copied() || replicas == 0 || case.empty_workloads;
        shared && termed && self.targets.keys().all(|name| case.may_have(name)) && self.is_spread(case, all_told)
    }

    /// Whether it keeps to the upper bounds of all spread constraints, and with `least` to the lower ones.
    fn is_spread(&self, case: &Case, least: bool) -> bool {
        if case.is_static() {
            return true;
        }
        let constraints = case.spec["placement"]["spreadConstraints"].as_array();
        constraints.into_iter().flatten().all(|constraint| {
            let by = constraint["spreadByField"].as_str().unwrap();
            let groups: BTreeSet<&str> = self.targets.keys().map(|name| case.group(name, by)).collect();
            let bound = |field: &str| usize::try_from(constraint[field].as_i64().unwrap()).unwrap();
            let (fewest, most) = (bound("minGroups"), bound("maxGroups"));
            (most == 0 || groups.len() <= most) && (!least || groups.len() >= fewest)
        })
    }
}

/// How many replicas clusters have, whichever they are.
fn counts(answer: &str) -> Vec<&str> {
    let mut counts: Vec<&str> = answer.split(' ').filter_map(|target| Some(target.split_once('=')?.1)).collect();
    counts.sort_unstable();
    counts
}
