//! Propagation policies made ready for matching, and which one an object gets.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use atoll_api::policy::{ActivationPreference, PreemptionBehavior, PropagationSpec, ResourceSelector};
use atoll_api::words::label;
use atoll_meta::selector::LabelSelector;
use atoll_meta::{Gvk, Head};
use atoll_runtime::Item;
use parking_lot::RwLock;
use serde::Deserialize;

use crate::claim::Claim;
use crate::keys::PolicyKey;

/// How closely a selector names an object; closer is greater.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Ord, PartialOrd)]
pub enum Fit {
    /// By its kind.
    Kind,
    /// By its labels.
    Labels,
    /// By its name.
    Name,
}

/// A selector of objects, its labels parsed.
#[derive(Clone, Debug)]
pub struct Selector {
    gvk: Gvk,
    namespace: String,
    name: String,
    labels: Option<LabelSelector>,
}

impl Selector {
    /// Parses; a label selector that cannot be parsed selects nothing.
    pub fn new(selector: &ResourceSelector) -> Self {
        let labels = selector.label_selector.as_ref().map(|labels| {
            let value = serde_json::to_value(labels).unwrap_or_default();
            LabelSelector::from_value(&value).unwrap_or_else(|_| LabelSelector::nothing())
        });
        Self {
            gvk: Gvk::of(&selector.api_version, &selector.kind),
            namespace: selector.namespace.clone(),
            name: selector.name.clone(),
            labels,
        }
    }

    /// How closely it names an object, if it does.
    pub fn fit(&self, gvk: &Gvk, head: &Head) -> Option<Fit> {
        if self.gvk != *gvk || (!self.namespace.is_empty() && *self.namespace != *head.namespace) {
            return None;
        }
        if !self.name.is_empty() {
            return (*self.name == *head.name).then_some(Fit::Name);
        }
        match &self.labels {
            None => Some(Fit::Kind),
            Some(labels) => labels.matches_head(head).then_some(Fit::Labels),
        }
    }

    /// The kind it selects.
    pub fn gvk(&self) -> &Gvk {
        &self.gvk
    }
}

/// A PropagationPolicy or ClusterPropagationPolicy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Where it is.
    pub key: PolicyKey,
    /// Its permanent id.
    pub id: Arc<str>,
    /// What it says.
    pub spec: PropagationSpec,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// When it was last written, in the order of the instance.
    pub revision: u64,
    selectors: Vec<Selector>,
}

#[derive(Deserialize)]
struct Body {
    spec: PropagationSpec,
}

impl Policy {
    /// Reads a policy; one that cannot be read counts as none.
    pub fn of(item: &Item) -> Option<Self> {
        let head = &item.object.head;
        let body: Body = item.decode().ok()?;
        let key = PolicyKey { namespace: (*head.namespace).into(), name: (*head.name).into() };
        let id = if key.is_namespaced() { label::POLICY_ID } else { label::CLUSTER_POLICY_ID };
        // Without the label (an older writer) the uid is as permanent.
        let id = head.label(id).unwrap_or(&head.uid).into();
        let selectors = body.spec.resource_selectors.iter().map(Selector::new).collect();
        Some(Self {
            key,
            id,
            deleting: head.deleting,
            revision: item.revision.parse().unwrap_or_default(),
            selectors,
            spec: body.spec,
        })
    }

    /// How closely it selects an object, if it does.
    pub fn fit(&self, gvk: &Gvk, head: &Head) -> Option<Fit> {
        if self.deleting || (self.key.is_namespaced() && *self.key.namespace != *head.namespace) {
            return None;
        }
        self.selectors.iter().filter_map(|selector| selector.fit(gvk, head)).max()
    }

    /// The kinds it selects.
    pub fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.selectors.iter().map(Selector::gvk)
    }

    /// How it claims an object.
    pub fn claim(&self) -> Claim {
        Claim { namespace: self.key.namespace.clone(), name: self.key.name.clone(), id: self.id.clone() }
    }

    /// Whether its changes wait for a change of the template.
    pub fn is_lazy(&self) -> bool {
        self.spec.activation_preference == Some(ActivationPreference::Lazy)
    }

    /// Whether a template that is still nobody's was written after the policy was.
    pub fn precedes(&self, revision: &str) -> bool {
        revision.parse().is_ok_and(|revision: u64| revision > self.revision)
    }

    fn preempts(&self) -> bool {
        self.spec.preemption == PreemptionBehavior::Always
    }
}

/// `Kind namespace/name` of a policy.
pub fn title(key: &PolicyKey) -> String {
    if key.is_namespaced() {
        format!("PropagationPolicy {}/{}", key.namespace, key.name)
    } else {
        format!("ClusterPropagationPolicy {}", key.name)
    }
}

/// All policies of an instance.
#[derive(Default)]
pub struct Policies {
    by_namespace: RwLock<HashMap<Arc<str>, BTreeMap<Arc<str>, Arc<Policy>>>>,
}

impl Policies {
    /// Puts a policy in, in place of an older state.
    pub fn put(&self, policy: Policy) -> Arc<Policy> {
        let policy = Arc::new(policy);
        let mut all = self.by_namespace.write();
        let own = all.entry(policy.key.namespace.clone()).or_default();
        own.insert(policy.key.name.clone(), policy.clone());
        policy
    }

    /// Takes a policy out.
    pub fn remove(&self, key: &PolicyKey) {
        if let Some(own) = self.by_namespace.write().get_mut(&key.namespace) {
            own.remove(&key.name);
        }
    }

    /// One policy.
    pub fn get(&self, key: &PolicyKey) -> Option<Arc<Policy>> {
        self.by_namespace.read().get(&key.namespace)?.get(&key.name).cloned()
    }

    /// All policies.
    pub fn list(&self) -> Vec<Arc<Policy>> {
        self.by_namespace.read().values().flat_map(|own| own.values().cloned()).collect()
    }

    /// The best policy of a namespace (or, if empty, of the instance) for an object.
    fn best(&self, namespace: &str, gvk: &Gvk, head: &Head) -> Option<Arc<Policy>> {
        let all = self.by_namespace.read();
        let fitting = all.get(namespace)?.values().filter_map(|policy| Some((policy.fit(gvk, head)?, policy)));
        fitting
            .max_by_key(|(fit, policy)| (policy.spec.priority, *fit, Reverse(policy.key.name.clone())))
            .map(|(_, policy)| policy.clone())
    }

    /// The policy an object gets: the one that holds it as long as it fits, unless another may take it over.
    pub fn choose(&self, gvk: &Gvk, head: &Head, claim: Option<&Claim>, preemption: bool) -> Option<Arc<Policy>> {
        let own = || (!head.namespace.is_empty()).then(|| self.best(&head.namespace, gvk, head)).flatten();
        let any = || self.best("", gvk, head);
        let holder = claim.and_then(|claim| {
            let policy = self.get(&PolicyKey { namespace: claim.namespace.clone(), name: claim.name.clone() })?;
            (policy.id == claim.id && policy.fit(gvk, head).is_some()).then_some(policy)
        });
        let Some(holder) = holder else { return own().or_else(any) };
        if !preemption {
            return Some(holder);
        }
        let rival = if holder.key.is_namespaced() { own() } else { own().or_else(any) };
        match rival {
            Some(rival) if rival.preempts() && takes_over(&rival, &holder) => Some(rival),
            _ => Some(holder),
        }
    }
}

/// A policy of the namespace beats one of the instance; among equals only a higher priority does.
fn takes_over(rival: &Policy, holder: &Policy) -> bool {
    if rival.key == holder.key {
        return false;
    }
    (rival.key.is_namespaced() && !holder.key.is_namespaced()) || rival.spec.priority > holder.spec.priority
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn policy(namespace: &str, name: &str, more: Value) -> Policy {
        let mut spec = json!({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]});
        atoll_patch::merge_patch(&mut spec, &more);
        let mut meta = json!({"name": name, "uid": name});
        if !namespace.is_empty() {
            meta["namespace"] = namespace.into();
        }
        Policy::of(&Item::of(&json!({"metadata": meta, "spec": spec})).unwrap()).unwrap()
    }

    fn head() -> Head {
        Head::of(json!({"name": "web", "namespace": "default", "labels": {"app": "web"}}).as_object().unwrap())
    }

    fn select(extra: Value) -> Value {
        let mut selector = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
        atoll_patch::merge_patch(&mut selector, &extra);
        json!({"resourceSelectors": [selector]})
    }

    #[test]
    fn priority_then_closeness_then_name_decide() {
        let labels = select(json!({"labelSelector": {"matchLabels": {"app": "web"}}}));
        let named = select(json!({"name": "web"}));
        let mut urgent = select(json!({}));
        urgent["priority"] = 1.into();
        let cases: Vec<(Vec<(&str, &str, Value)>, Option<&str>)> = vec![
            (vec![], None),
            (vec![("other", "a", json!({}))], None),
            (vec![("default", "b", json!({})), ("default", "a", json!({}))], Some("a")),
            (vec![("default", "a", json!({})), ("default", "b", labels.clone())], Some("b")),
            (vec![("default", "b", labels.clone()), ("default", "c", named.clone())], Some("c")),
            (vec![("default", "c", named.clone()), ("default", "d", urgent)], Some("d")),
            (vec![("", "a", named), ("default", "b", json!({}))], Some("b")),
            (vec![("", "a", select(json!({"namespace": "other"}))), ("", "b", json!({}))], Some("b")),
            (vec![("default", "a", select(json!({"labelSelector": {"matchLabels": {"app": "no"}}})))], None),
        ];
        for (given, expected) in cases {
            let policies = Policies::default();
            for (namespace, name, spec) in &given {
                policies.put(policy(namespace, name, spec.clone()));
            }
            let chosen = policies.choose(&Gvk::new("apps", "v1", "Deployment"), &head(), None, false);
            assert_eq!(chosen.as_ref().map(|policy| &*policy.key.name), expected, "{given:?}");
        }
    }

    #[test]
    fn a_claim_stays_unless_preemption_is_on_and_asked_for() {
        let gvk = Gvk::new("apps", "v1", "Deployment");
        let policies = Policies::default();
        let holder = policies.put(policy("default", "old", json!({})));
        let claim = holder.claim();
        let name = |preemption| policies.choose(&gvk, &head(), Some(&claim), preemption).unwrap().key.name.to_string();
        policies.put(policy("default", "new", json!({"priority": 5})));
        assert_eq!(name(true), "old");
        policies.put(policy("default", "new", json!({"priority": 5, "preemption": "Always"})));
        assert_eq!(name(false), "old");
        assert_eq!(name(true), "new");
        policies.put(policy("default", "new", json!({"priority": 0, "preemption": "Always"})));
        assert_eq!(name(true), "old", "only a higher priority takes over");
        let of_instance = policies.put(policy("", "wide", json!({"priority": 9}))).claim();
        let taken = policies.choose(&gvk, &head(), Some(&of_instance), true).unwrap();
        assert_eq!(&*taken.key.name, "new", "a policy of the namespace beats one of the instance");
    }

    #[test]
    fn a_policy_that_no_longer_fits_loses_its_claim() {
        let gvk = Gvk::new("apps", "v1", "Deployment");
        let policies = Policies::default();
        let claim = policies.put(policy("default", "a", json!({}))).claim();
        policies.put(policy("default", "a", select(json!({"name": "other"}))));
        assert!(policies.choose(&gvk, &head(), Some(&claim), false).is_none());
    }
}
