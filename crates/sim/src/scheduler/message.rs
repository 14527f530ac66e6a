//! Why no node takes a pod, in the words people know.

use std::collections::BTreeMap;

use super::filter::Verdict;

/// When something about the pod itself is in the way.
pub fn before_nodes(total: usize, why: &str) -> String {
    format!(
        "0/{total} nodes are available: {why}. preemption: 0/{total} nodes are available: {total} Preemption is not helpful for scheduling."
    )
}

/// What came of looking for pods that could leave.
#[derive(Clone, Debug, PartialEq)]
pub enum Attempt {
    /// Some leave.
    Succeeded,
    /// The pod must not push others out.
    NotAllowed,
    /// Others are leaving already.
    UnderWay,
    /// Why each node cannot be made fit.
    Failed(Vec<Vec<String>>),
}

/// Reasons with how often each was given, in order.
fn counted<'a>(reasons: impl Iterator<Item = &'a String>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in reasons {
        *counts.entry(reason).or_default() += 1;
    }
    let mut told: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    told.sort();
    told.join(", ")
}

/// When every node has a reason.
pub fn unschedulable(total: usize, refusals: &[Verdict], attempt: &Attempt) -> String {
    if total == 0 {
        return "no nodes available to schedule pods".into();
    }
    let reasons = refusals.iter().flat_map(|refusal| match refusal {
        Verdict::Fits => [].iter(),
        Verdict::Refused(list) | Verdict::Never(list) => list.iter(),
    });
    let text = format!("0/{total} nodes are available: {}.", counted(reasons));
    match attempt {
        Attempt::Succeeded => text,
        Attempt::NotAllowed => format!("{text} preemption: not eligible due to preemptionPolicy=Never."),
        Attempt::UnderWay => {
            format!("{text} preemption: not eligible due to a terminating pod on the nominated node.")
        }
        Attempt::Failed(nodes) => {
            format!("{text} preemption: 0/{total} nodes are available: {}.", counted(nodes.iter().flatten()))
        }
    }
}
