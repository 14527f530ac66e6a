//! Definitions for clusters that run no code of ours: what admission refuses elsewhere, their schemas refuse there.

use serde_json::{Value, json};

const SPEC: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";

/// A definition whose schema also refuses what can never work.
pub(crate) fn strict(mut definition: Value) -> Value {
    let immutable = json!({"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "field is immutable"}]});
    let time = json!({"pattern": "^([01]?[0-9]|2[0-3]):[0-5][0-9]$"});
    for (place, rules) in [
        ("clusterID", &immutable),
        ("timeWindows/items/properties/start", &time),
        ("timeWindows/items/properties/end", &time),
        ("resourceLimits/items/properties/percent", &json!({"minimum": 0, "maximum": 100})),
        ("gracefulReclaimPeriodSeconds", &json!({"minimum": 0})),
    ] {
        let Some(field) = definition.pointer_mut(&format!("{SPEC}/{place}")).and_then(Value::as_object_mut) else {
            continue;
        };
        field.extend(rules.as_object().cloned().unwrap_or_default());
    }
    definition
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_finds_its_field() {
        let all: Vec<String> = crate::definitions().into_iter().map(|own| strict(own).to_string()).collect();
        let text = all.join("\n");
        for (rule, times) in
            [("self == oldSelf", 1), ("2[0-3]):[0-5][0-9]", 2), ("\"maximum\":100", 1), ("\"minimum\":0", 2)]
        {
            assert!(text.matches(rule).count() >= times, "{rule}");
        }
    }
}
