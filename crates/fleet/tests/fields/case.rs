//! A field, the same specification with and without it, and what comes of both.

use serde_json::{Value, json};

/// What comes of a specification; policies come with a namespace and without.
pub type Outcome = fn(&Value, bool) -> String;

/// One field that makes a difference.
pub struct Case {
    /// Its path below `spec`, without the positions in lists.
    pub field: String,
    /// A specification that sets it, in the first element of each list on the way.
    pub with: Value,
    /// What stands there instead; nothing takes the field away.
    pub other: Option<Value>,
    /// What comes of it.
    pub outcome: Outcome,
}

/// A case whose field is taken away for comparison.
pub fn gone(field: &str, with: Value, outcome: Outcome) -> Case {
    Case { field: field.to_owned(), with, other: None, outcome }
}

/// A case whose field has another value for comparison.
pub fn other(field: &str, with: Value, other: Value, outcome: Outcome) -> Case {
    Case { field: field.to_owned(), with, other: Some(other), outcome }
}

impl Case {
    /// The specification with the other value, or without the field. Fails if it does not set the field.
    pub fn without(&self) -> Value {
        let mut spec = self.with.clone();
        let (path, last) = self.field.rsplit_once('.').unwrap_or(("", &self.field));
        let mut place = &mut spec;
        for name in path.split('.').filter(|name| !name.is_empty()) {
            place = &mut place[name];
            if place.is_array() {
                place = &mut place[0];
            }
        }
        let map = place.as_object_mut().unwrap_or_else(|| panic!("{}: {} has no {path}", self.field, self.with));
        let before = map.remove(last);
        assert!(before.is_some() && before != self.other, "{} is not set in {}", self.field, self.with);
        if let Some(other) = &self.other {
            map.insert(last.to_owned(), other.clone());
        }
        spec
    }

    /// Why the field does not show: the same comes of both.
    pub fn trouble(&self, namespaced: bool) -> Option<String> {
        let without = self.without();
        let (one, two) = ((self.outcome)(&self.with, namespaced), (self.outcome)(&without, namespaced));
        (one == two).then(|| format!("{}: {one} comes of {} and of {without}", self.field, self.with))
    }
}

/// The fields of an affinity at a path, each in a specification that `embed` puts it into.
pub fn affinity(path: &str, embed: impl Fn(Value) -> Value, outcome: Outcome) -> Vec<Case> {
    let named = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let labels = |key: &str, operator: &str, value: &str| {
        embed(json!({"labelSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": [value]}]}}))
    };
    let fields = || {
        embed(json!({"fieldSelector": {"matchExpressions": [{"key": "provider", "operator": "In", "values": ["p1"]}]}}))
    };
    let env = || labels("env", "In", "prod");
    vec![
        gone(&named("clusterNames"), embed(json!({"clusterNames": ["m1"]})), outcome),
        gone(&named("exclude"), embed(json!({"exclude": ["m1"]})), outcome),
        gone(
            &named("labelSelector.matchLabels"),
            embed(json!({"labelSelector": {"matchLabels": {"env": "prod"}}})),
            outcome,
        ),
        other(&named("labelSelector.matchExpressions.key"), env(), json!("none"), outcome),
        other(&named("labelSelector.matchExpressions.operator"), env(), json!("NotIn"), outcome),
        other(&named("labelSelector.matchExpressions.values"), env(), json!(["test"]), outcome),
        other(&named("fieldSelector.matchExpressions.key"), fields(), json!("region"), outcome),
        other(&named("fieldSelector.matchExpressions.operator"), fields(), json!("NotIn"), outcome),
        other(&named("fieldSelector.matchExpressions.values"), fields(), json!(["p2"]), outcome),
    ]
}

/// The fields of a selector of templates, for a Deployment `default/web` with label `tier=front`.
pub fn selectors(embed: impl Fn(Value) -> Value, outcome: Outcome) -> Vec<Case> {
    let selector = |more: Value| {
        let mut all = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
        atoll_patch::merge_patch(&mut all, &more);
        embed(json!([all]))
    };
    let expression = || {
        selector(
            json!({"labelSelector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["front"]}]}}),
        )
    };
    let below = |name: &str| format!("resourceSelectors.{name}");
    vec![
        other(&below("apiVersion"), selector(json!({})), json!("apps/v2"), outcome),
        other(&below("kind"), selector(json!({})), json!("StatefulSet"), outcome),
        gone(&below("name"), selector(json!({"name": "other"})), outcome),
        gone(&below("namespace"), selector(json!({"namespace": "other"})), outcome),
        gone(
            &below("labelSelector.matchLabels"),
            selector(json!({"labelSelector": {"matchLabels": {"tier": "back"}}})),
            outcome,
        ),
        other(&below("labelSelector.matchExpressions.key"), expression(), json!("none"), outcome),
        other(&below("labelSelector.matchExpressions.operator"), expression(), json!("NotIn"), outcome),
        other(&below("labelSelector.matchExpressions.values"), expression(), json!(["back"]), outcome),
    ]
}
