//! Override policies: how the copy for one cluster differs.

mod image;
mod text;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use atoll_api::policy::{ClusterAffinity, OverrideSpec, Overriders};
use atoll_meta::{Gvk, Head};
use atoll_placement::{Cluster, Matcher};
use atoll_runtime::Item;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::keys::PolicyKey;
use crate::policy::{Fit, Selector};

/// Why an override cannot be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("override policy {policy}: {why}")]
pub struct OverrideError {
    /// The policy.
    pub policy: String,
    /// What is wrong.
    pub why: String,
}

/// An OverridePolicy or ClusterOverridePolicy made ready.
#[derive(Clone, Debug)]
pub struct OverridePolicy {
    key: PolicyKey,
    selectors: Vec<Selector>,
    rules: Vec<(Option<ClusterAffinity>, Overriders)>,
}

#[derive(Deserialize)]
struct Body {
    spec: OverrideSpec,
}

impl OverridePolicy {
    /// Reads a policy; one that cannot be read or is being deleted counts as none.
    pub fn of(item: &Item) -> Option<Self> {
        let head = &item.object.head;
        if head.deleting {
            return None;
        }
        let Body { spec } = item.decode().ok()?;
        let mut rules: Vec<_> =
            spec.override_rules.into_iter().map(|rule| (rule.target_cluster, rule.overriders)).collect();
        // The old form counts only by itself.
        if let Some(overriders) = spec.overriders.filter(|_| rules.is_empty()) {
            rules.push((spec.target_cluster, overriders));
        }
        Some(Self {
            key: PolicyKey { namespace: (*head.namespace).into(), name: (*head.name).into() },
            selectors: spec.resource_selectors.iter().map(Selector::new).collect(),
            rules,
        })
    }

    /// Where it is.
    pub fn key(&self) -> &PolicyKey {
        &self.key
    }

    /// How closely it selects an object; none at all selects everything.
    pub fn fit(&self, gvk: &Gvk, head: &Head) -> Option<Fit> {
        if self.key.is_namespaced() && *self.key.namespace != *head.namespace {
            return None;
        }
        if self.selectors.is_empty() {
            return Some(Fit::Kind);
        }
        self.selectors.iter().filter_map(|selector| selector.fit(gvk, head)).max()
    }
}

/// One policy that changed a copy, as it is noted on the Work.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppliedOverride {
    policy_name: String,
    overriders: Overriders,
}

/// The policies that changed a copy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// Those of the instance.
    pub cluster: Vec<AppliedOverride>,
    /// Those of the namespace.
    pub namespaced: Vec<AppliedOverride>,
}

/// All override policies of an instance.
#[derive(Default)]
pub struct Overrides {
    all: RwLock<HashMap<Arc<str>, BTreeMap<Arc<str>, Arc<OverridePolicy>>>>,
}

impl Overrides {
    /// Puts a policy in.
    pub fn put(&self, policy: OverridePolicy) {
        let mut all = self.all.write();
        all.entry(policy.key.namespace.clone()).or_default().insert(policy.key.name.clone(), Arc::new(policy));
    }

    /// Takes a policy out.
    pub fn remove(&self, key: &PolicyKey) {
        if let Some(own) = self.all.write().get_mut(&key.namespace) {
            own.remove(&key.name);
        }
    }

    /// One policy.
    pub fn get(&self, key: &PolicyKey) -> Option<Arc<OverridePolicy>> {
        self.all.read().get(&key.namespace)?.get(&key.name).cloned()
    }

    /// The policies for an object in the order in which they apply: the most specific last.
    pub fn for_object(&self, gvk: &Gvk, head: &Head) -> Vec<Arc<OverridePolicy>> {
        let all = self.all.read();
        let mut found = Vec::new();
        let namespaces = std::iter::once("").chain((!head.namespace.is_empty()).then_some(&*head.namespace));
        for namespace in namespaces {
            let Some(own) = all.get(namespace) else { continue };
            let mut fitting: Vec<_> =
                own.values().filter_map(|policy| Some((policy.fit(gvk, head)?, policy.clone()))).collect();
            fitting.sort_by(|(a_fit, a), (b_fit, b)| match a_fit.cmp(b_fit) {
                Ordering::Equal => a.key.name.cmp(&b.key.name),
                other => other,
            });
            found.extend(fitting.into_iter().map(|(_, policy)| policy));
        }
        found
    }
}

/// Changes a manifest for a cluster by policies already chosen and ordered.
pub fn apply(
    manifest: &mut Value,
    cluster: &Cluster,
    policies: &[Arc<OverridePolicy>],
) -> Result<Applied, OverrideError> {
    let mut applied = Applied::default();
    for policy in policies {
        for (target, overriders) in &policy.rules {
            if !target.as_ref().is_none_or(|affinity| Matcher::new(affinity).matches(cluster)) {
                continue;
            }
            change(manifest, overriders).map_err(|why| OverrideError { policy: policy.key.name.to_string(), why })?;
            let note = AppliedOverride { policy_name: policy.key.name.to_string(), overriders: overriders.clone() };
            if policy.key.is_namespaced() { applied.namespaced.push(note) } else { applied.cluster.push(note) }
        }
    }
    // Noted by name, not in the order in which they counted.
    for notes in [&mut applied.cluster, &mut applied.namespaced] {
        notes.sort_by(|a, b| a.policy_name.cmp(&b.policy_name));
    }
    Ok(applied)
}

/// Makes the changes of one rule, kind by kind in their fixed order.
fn change(manifest: &mut Value, overriders: &Overriders) -> Result<(), String> {
    for overrider in &overriders.image_overrider {
        image::apply(manifest, overrider)?;
    }
    for overrider in &overriders.command_overrider {
        text::list(manifest, "command", overrider);
    }
    for overrider in &overriders.args_overrider {
        text::list(manifest, "args", overrider);
    }
    for overrider in &overriders.labels_overrider {
        text::map(manifest, "labels", overrider);
    }
    for overrider in &overriders.annotations_overrider {
        text::map(manifest, "annotations", overrider);
    }
    for overrider in &overriders.field_overrider {
        text::field(manifest, overrider)?;
    }
    text::plain(manifest, &overriders.plaintext)
}

#[cfg(test)]
mod tests;
