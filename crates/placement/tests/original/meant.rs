//! Where a decision differs from the original's by intent, and what it is compared with then.

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
    // Zones and providers are spread over; the original refuses them or overlooks them beside others.
    if case.spreads_by(&["provider", "zone"]) {
        let unfit = |answer: &str| reason(answer).as_deref() == Some("NoClusterFit");
        return case.has_terms() || unfit(ours) == unfit(theirs);
    }
    // More regions than clusters cannot be: that is refused, where the original takes more clusters than it may.
    if case.wants_more_regions_than_clusters() && reason(theirs).as_deref() != Some("NoClusterFit") {
        return reason(ours).is_some();
    }
    // What is equal to the original's sort comes in any order, if it is much.
    let placed = reason(ours).is_none() && reason(theirs).is_none();
    if case.clusters.len() > STABLE && case.preference() == "Aggregated" && placed && ours != theirs {
        return case.has_previous() || counts(ours) == counts(theirs);
    }
    // Too little room has one reason, whichever step finds it; the original has another one when it selects.
    let full = theirs.starts_with("SchedulerError") && theirs.contains("no enough resource when selecting");
    match (reason(ours), reason(theirs)) {
        (None, None) => ours == theirs,
        (Some(ours), Some(theirs)) => ours == theirs || (full && ours == "Unschedulable"),
        _ => false,
    }
}

/// How many replicas clusters have, whichever they are.
fn counts(answer: &str) -> Vec<&str> {
    let mut counts: Vec<&str> = answer.split(' ').filter_map(|target| Some(target.split_once('=')?.1)).collect();
    counts.sort_unstable();
    counts
}
