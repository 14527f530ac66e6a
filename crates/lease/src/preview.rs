//! What a policy would do, before it is applied.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::core::v1::NodeSelector;

use crate::amount::{Amounts, add};
use crate::choose::Policy;
use crate::decide::{Decision, Loan, NodeFacts, State, decide};
use crate::request::PodFacts;
use crate::window::until;

/// One node in a preview.
#[derive(Clone, Debug, PartialEq)]
pub struct PreviewNode {
    /// Its name.
    pub name: String,
    /// Everything its pods may use.
    pub has: Amounts,
    /// What becomes of it.
    pub decision: Decision,
}

/// What a policy would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// Every node, lent or not.
    pub nodes: Vec<PreviewNode>,
    /// Sum of what the lent nodes have.
    pub has: Amounts,
    /// Sum of what they lend.
    pub lends: Amounts,
    /// Whether a window is open, or what is wrong with the policy.
    pub state: State,
    /// When it opens or closes next.
    pub next_edge: Option<Timestamp>,
    /// The moment the preview is for.
    pub now: Timestamp,
    /// The zone times are shown in.
    pub zone: TimeZone,
}

/// Tries a policy on nodes and their pods. `selector` is that of the binding.
pub fn preview(
    policy: &Policy,
    selector: Option<&NodeSelector>,
    nodes: &[NodeFacts],
    pods: &[PodFacts],
    now: Timestamp,
    zone: &TimeZone,
) -> Preview {
    let (state, next_edge) = crate::decide::state(policy, now, zone);
    let mut preview = Preview {
        nodes: Vec::new(),
        has: Amounts::new(),
        lends: Amounts::new(),
        state,
        next_edge,
        now,
        zone: zone.clone(),
    };
    for node in nodes {
        let own = pods.iter().filter(|pod| pod.node == node.name);
        let decision = decide((&policy.spec.cluster, selector), node, own, [policy], now, zone);
        if let Decision::Lent(loan) = &decision {
            add(&mut preview.has, &node.allocatable);
            add(&mut preview.lends, &loan.amounts);
        }
        preview.nodes.push(PreviewNode { name: node.name.clone(), has: node.allocatable.clone(), decision });
    }
    preview
}

impl Preview {
    /// The nodes that are lent.
    pub fn lent(&self) -> impl Iterator<Item = (&PreviewNode, &Loan)> {
        self.nodes.iter().filter_map(|node| match &node.decision {
            Decision::Lent(loan) => Some((node, loan)),
            Decision::Withheld(_) => None,
        })
    }
}

impl fmt::Display for Preview {
    /// `this policy lends 12 of 48 CPU and 24Gi of 96Gi memory on 3 nodes, next window 20:00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let State::Invalid(why) = &self.state {
            return write!(f, "this policy lends nothing: {why}");
        }
        let count = self.lent().count();
        let amount = |name: &str, shown: &str| {
            let (lends, has) = (self.lends.get(name)?, self.has.get(name)?);
            Some(format!("{lends} of {has} {shown}"))
        };
        let known = ["cpu", "memory", "ephemeral-storage", "pods"];
        let devices: Vec<&String> = self.has.keys().filter(|name| !known.contains(&name.as_str())).collect();
        let mut parts: Vec<String> = [amount("cpu", "CPU"), amount("memory", "memory")].into_iter().flatten().collect();
        parts.extend(devices.iter().filter_map(|name| amount(name, name)));
        let what = if parts.is_empty() { "nothing".to_owned() } else { parts.join(" and ") };
        write!(f, "this policy lends {what} on {count} {}", if count == 1 { "node" } else { "nodes" })?;
        match (&self.state, self.next_edge) {
            (State::Open, None) => write!(f, ", always"),
            (State::Open, Some(edge)) => write!(f, ", now and until {}", self.clock(edge)),
            (_, Some(edge)) => write!(f, ", next window {}", self.clock(edge)),
            (_, None) => write!(f, ", but no window ever opens"),
        }
    }
}

impl Preview {
    fn clock(&self, at: Timestamp) -> String {
        let day = jiff::SignedDuration::from_hours(24);
        let form = if until(self.now, at) < day { "%H:%M" } else { "%A %H:%M" };
        at.to_zoned(self.zone.clone()).strftime(form).to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_preview_reads_as_one_sentence() {
        let node = |name: &str| {
            NodeFacts::of(
                &json!({"metadata": {"name": name, "labels": {"pool": "a"}}, "status": {"allocatable": {"cpu": "16", "memory": "32Gi", "pods": "110"}}}),
            )
        };
        let nodes = [node("a"), node("b"), node("c")];
        let text = |spec: serde_json::Value, now: &str| {
            let policy = Policy { spec: serde_json::from_value(spec).unwrap(), ..Policy::default() };
            preview(&policy, None, &nodes, &[], now.parse().unwrap(), &TimeZone::UTC).to_string()
        };
        let limits = json!([{"resource": "cpu", "percent": 25}, {"resource": "memory", "quantity": "8Gi"}]);
        let spec =
            json!({"cluster": "b", "resourceLimits": limits, "timeWindows": [{"start": "20:00", "end": "07:59"}]});
        assert_eq!(
            text(spec.clone(), "2026-01-05T12:00:00Z"),
            "this policy lends 12 of 48 CPU and 24Gi of 96Gi memory on 3 nodes, next window 20:00"
        );
        assert_eq!(
            text(spec, "2026-01-05T21:00:00Z"),
            "this policy lends 12 of 48 CPU and 24Gi of 96Gi memory on 3 nodes, now and until 08:00"
        );
        assert!(text(json!({"cluster": "b"}), "2026-01-05T21:00:00Z").ends_with("on 3 nodes, always"));
        let weekly = json!({"cluster": "b", "timeWindows": [{"start": "20:00", "end": "21:00", "days": ["saturday"]}]});
        assert!(text(weekly, "2026-01-05T12:00:00Z").ends_with("next window Saturday 20:00"));
        let wrong = json!({"cluster": "b", "timeWindows": [{"start": "20", "end": "21:00"}]});
        assert!(
            text(wrong, "2026-01-05T12:00:00Z").starts_with("this policy lends nothing: spec.timeWindows[0].start")
        );
        let none = json!({"cluster": "b", "nodeSelector": {"nodeSelectorTerms": [{}]}});
        assert_eq!(text(none, "2026-01-05T12:00:00Z"), "this policy lends nothing on 0 nodes, always");
    }
}
