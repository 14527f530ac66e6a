//! Why no node takes a pod, in the words people know.

use std::collections::BTreeMap;

use super::filter::Verdict;
use super::want::Want;

/// When something about the pod itself is in the way.
pub fn before_nodes(total: usize, why: &str) -> String {
    format!(
        "0/{total} nodes are available: {why}. preemption: 0/{total} nodes are available: {total} Preemption is not helpful for scheduling."
    )
}

/// When every node has a reason.
pub fn unschedulable(total: usize, refusals: &[Verdict], want: &Want) -> String {
    if total == 0 {
        return "no nodes available to schedule pods".into();
    }
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut hopeless, mut crowded) = (0, 0);
    for refusal in refusals {
        let list = match refusal {
            Verdict::Fits => continue,
            Verdict::Refused(list) => {
                crowded += 1;
                list
            }
            Verdict::Never(list) => {
                hopeless += 1;
                list
            }
        };
        for reason in list {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    let mut told: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    told.sort();
    let mut text = format!("0/{total} nodes are available: {}.", told.join(", "));
    if want.preemption_policy == "Never" {
        text.push_str(" preemption: not eligible due to preemptionPolicy=Never.");
        return text;
    }
    let mut after = Vec::new();
    if crowded > 0 {
        after.push(format!("{crowded} No preemption victims found for incoming pod"));
    }
    if hopeless > 0 {
        after.push(format!("{hopeless} Preemption is not helpful for scheduling"));
    }
    after.sort();
    text.push_str(&format!(" preemption: 0/{total} nodes are available: {}.", after.join(", ")));
    text
}
