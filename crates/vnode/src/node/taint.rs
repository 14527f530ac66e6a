//! The taints of a virtual node.

use atoll_api::kubeocean_names::taint;
use atoll_lease::State;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The node controllers of the worker put this on a cordoned node.
const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// The taints of the leased node, then ours: the default one, then that of closed windows.
pub(crate) fn wanted(
    physical: &[Value],
    default_taint: bool,
    state: &State,
    existing: &[Value],
    now: Timestamp,
) -> Vec<Value> {
    let mut out: Vec<Value> = physical.iter().filter(|own| own["key"] != taint::OUT_OF_WINDOWS).map(renamed).collect();
    if default_taint {
        out.push(json!({"key": taint::VIRTUAL_NODE, "effect": "NoSchedule"}));
    }
    let effect = match state {
        State::Open => return out,
        State::Closed { force: true, .. } => "NoExecute",
        State::Closed { force: false, .. } | State::Invalid(_) => "NoSchedule",
    };
    // The grace period counts from when the windows closed, not from the last look at the node.
    let since = existing.iter().find(|own| own["key"] == taint::OUT_OF_WINDOWS).map(|own| own["timeAdded"].clone());
    let since = since.filter(Value::is_string).unwrap_or_else(|| atoll_meta::time::format(now).into());
    out.push(json!({"key": taint::OUT_OF_WINDOWS, "value": "true", "effect": effect, "timeAdded": since}));
    out
}

fn renamed(own: &Value) -> Value {
    let mut own = own.clone();
    if own["key"] == CORDONED {
        own["key"] = taint::UNSCHEDULABLE.into();
    }
    own
}

/// Since when the windows are closed, as the taint says.
pub(crate) fn closed_since(taints: &[Value]) -> Option<Timestamp> {
    let own = taints.iter().find(|own| own["key"] == taint::OUT_OF_WINDOWS)?;
    atoll_meta::time::parse(own["timeAdded"].as_str()?)
}

/// The taint of a node that is being taken back.
pub(crate) fn deleting() -> Value {
    json!({"key": taint::DELETING, "value": "true", "effect": "NoSchedule"})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use jiff::SignedDuration;

    const NOW: &str = "2026-01-05T12:00:00Z";

    fn keys(physical: Value, default_taint: bool, state: &State) -> Vec<String> {
        let taints = wanted(physical.as_array().unwrap(), default_taint, state, &[], NOW.parse().unwrap());
        taints
            .iter()
            .map(|own| format!("{}:{}", own["key"].as_str().unwrap(), own["effect"].as_str().unwrap()))
            .collect()
    }

    #[test]
    fn taints_of_the_node_come_first_and_are_translated() {
        let vnode = "kubeocean.io/vnode:NoSchedule";
        for (physical, default_taint, expected) in [
            (json!([]), true, vec![vnode]),
            (json!([]), false, vec![]),
            (
                json!([{"key": "a", "effect": "NoExecute"}, {"key": CORDONED, "value": "x", "effect": "PreferNoSchedule"}]),
                true,
                vec!["a:NoExecute", "kubeocean.io/physical-node-unschedulable:PreferNoSchedule", vnode],
            ),
            (json!([{"key": taint::OUT_OF_WINDOWS, "effect": "NoExecute"}]), true, vec![vnode]),
        ] {
            assert_eq!(keys(physical, default_taint, &State::Open), expected);
        }
    }

    #[test]
    fn closed_windows_taint_and_force_makes_pods_go() {
        let closed = |force| State::Closed { force, grace: SignedDuration::ZERO };
        assert_eq!(keys(json!([]), false, &closed(false)), ["kubeocean.io/out-of-time-windows:NoSchedule"]);
        assert_eq!(keys(json!([]), false, &closed(true)), ["kubeocean.io/out-of-time-windows:NoExecute"]);
        assert_eq!(
            keys(json!([]), false, &State::Invalid("x".into())),
            ["kubeocean.io/out-of-time-windows:NoSchedule"]
        );
    }

    #[test]
    fn the_time_of_closing_does_not_move() {
        let state = State::Closed { force: true, grace: SignedDuration::ZERO };
        let first = wanted(&[], true, &state, &[], NOW.parse().unwrap());
        let later = wanted(&[], true, &state, &first, "2026-01-05T13:00:00Z".parse().unwrap());
        assert_eq!(first, later);
        assert_eq!(closed_since(&later), Some(NOW.parse().unwrap()));
    }
}
