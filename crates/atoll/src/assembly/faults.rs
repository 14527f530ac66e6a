//! Faults of simulated clusters on demand: an annotation of their Instance says what is broken.

use atoll_sim::{Fault, Sim};
use serde_json::Value;

/// What is broken in a simulated cluster: a JSON list of words such as `unreachable` or `node=NAME`.
pub const FAULTS: &str = "sim.atoll.io/faults";

/// The faults an Instance asks for; words that mean nothing are logged and left out.
fn wanted(object: &Value) -> Vec<Fault> {
    let text = object["metadata"]["annotations"][FAULTS].as_str().unwrap_or("[]");
    let words: Vec<String> = serde_json::from_str(text).unwrap_or_default();
    let read = words.iter().filter_map(|word| {
        word.parse().inspect_err(|error: &String| tracing::warn!(%error, "a fault was not understood")).ok()
    });
    read.collect()
}

/// Breaks and repairs a simulated cluster as its Instance asks.
pub fn apply(sim: &Sim, object: &Value) {
    sim.set_faults(&wanted(object));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_instance_says_what_is_broken() {
        let object = |text: &str| json!({"metadata": {"annotations": {FAULTS: text}}});
        let found = wanted(&object(r#"["unreachable", "flood", "node=n1"]"#));
        assert_eq!(found, [Fault::Unreachable, Fault::NodeDown("n1".into())]);
        assert_eq!(wanted(&object("no JSON")), []);
        assert_eq!(wanted(&json!({})), []);
    }
}
