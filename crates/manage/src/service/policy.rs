//! Policies: which are in use, and which touch an object.

use std::collections::HashSet;

use atoll_api::words::annotation;
use atoll_index::{Everything, Item, Query, ResourceName};
use atoll_meta::selector::LabelSelector;
use atoll_meta::{Status, split_api_version};
use serde_json::Value;

use super::list;
use crate::context::Ctx;
use crate::kinds::{BINDING, CLUSTER_BINDING, CLUSTER_OVERRIDE, CLUSTER_POLICY, Kind, OVERRIDE, POLICY};
use crate::transcode::status::precondition;

/// Whether a kind is one of the four policies.
pub fn is_policy(kind: &Kind) -> bool {
    [&POLICY, &CLUSTER_POLICY, &OVERRIDE, &CLUSTER_OVERRIDE].contains(&kind)
}

/// Names of policies that bindings say they follow.
#[derive(Default)]
pub struct Used {
    names: HashSet<(String, String)>,
    overrides: HashSet<String>,
}

impl Used {
    /// Whether a policy is among them.
    pub fn contains(&self, kind: &Kind, policy: &Value) -> bool {
        let text = |key: &str| policy["metadata"][key].as_str().unwrap_or_default().to_owned();
        if *kind == OVERRIDE || *kind == CLUSTER_OVERRIDE {
            return self.overrides.contains(&text("name"));
        }
        self.names.contains(&(text("namespace"), text("name")))
    }
}

/// What the bindings of an instance follow.
pub async fn used(ctx: &Ctx, instance: &str) -> Result<Used, Status> {
    let mut used = Used::default();
    let query = Query {
        sources: vec![instance.to_owned()],
        resources: [&BINDING, &CLUSTER_BINDING]
            .iter()
            .map(|kind| ResourceName::new(&kind.group, &kind.resource))
            .collect(),
        ..Query::default()
    };
    for item in ctx.core.index.query(&query, &Everything).await?.items.iter().map(Item::tree) {
        let told = |key: &str| item["metadata"]["annotations"][key].as_str().map(ToOwned::to_owned);
        if let Some(name) = told(annotation::POLICY_NAME) {
            used.names.insert((told(annotation::POLICY_NAMESPACE).unwrap_or_default(), name));
        }
        if let Some(name) = told(annotation::CLUSTER_POLICY_NAME) {
            used.names.insert((String::new(), name));
        }
        for text in
            [told(annotation::APPLIED_OVERRIDES), told(annotation::APPLIED_CLUSTER_OVERRIDES)].into_iter().flatten()
        {
            let list: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
            used.overrides.extend(list.iter().filter_map(|entry| entry["policyName"].as_str().map(ToOwned::to_owned)));
        }
    }
    Ok(used)
}

/// A policy that something follows is not deleted.
pub async fn refuse_if_used(ctx: &Ctx, kind: &Kind, instance: &str, namespace: &str, name: &str) -> Result<(), Status> {
    let policy = serde_json::json!({"metadata": {"name": name, "namespace": namespace}});
    let used = used(ctx, instance).await?;
    if matches!(kind.kind.as_ref(), "PropagationPolicy" | "ClusterPropagationPolicy") && used.contains(kind, &policy) {
        return Err(precondition(format!("{} {name} is in use", kind.kind)));
    }
    Ok(())
}

/// An object that policies may select.
pub struct Target {
    /// Its `apiVersion`; empty fits any.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name; empty fits any.
    pub name: String,
}

impl Target {
    /// Its labels, for selectors by label.
    pub async fn labels(&self, ctx: &Ctx, instance: &str) -> Result<Value, Status> {
        let (group, _) = split_api_version(&self.api_version);
        let shelves = ctx.core.index.shelves_of(Some(instance));
        let Some(shelf) = shelves
            .iter()
            .find(|shelf| shelf.kind == self.kind && (self.api_version.is_empty() || shelf.key.group == group))
        else {
            return Ok(Value::Null);
        };
        let kind = Kind::of(&shelf.key.group, &shelf.version, &shelf.key.resource, shelf.namespaced);
        let found = list::find(ctx, &kind, instance, &self.namespace, &self.name).await?;
        Ok(found.map(|object| object["metadata"]["labels"].clone()).unwrap_or_default())
    }

    /// Whether one of a policy's selectors means it.
    pub fn selected_by(&self, policy: &Value, labels: &Value) -> bool {
        let selectors = policy["spec"]["resourceSelectors"].as_array();
        selectors.into_iter().flatten().any(|selector| {
            let same = |key: &str, own: &str| {
                own.is_empty() || selector[key].as_str().is_none_or(|text| text.is_empty() || text == own)
            };
            let by_label = match selector.get("labelSelector").filter(|value| !value.is_null()) {
                Some(value) => {
                    LabelSelector::from_value(value).is_ok_and(|wanted| wanted.matches(|key| labels[key].as_str()))
                }
                None => true,
            };
            let named = selector["name"].as_str().is_some_and(|name| !name.is_empty());
            same("apiVersion", &self.api_version)
                && selector["kind"] == self.kind.as_str()
                && same("namespace", &self.namespace)
                && same("name", &self.name)
                && (named || by_label)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn policies_are_found_by_what_they_select() {
        let target = Target {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: "n".into(),
            name: "web".into(),
        };
        let labels = json!({"app": "web"});
        let table = [
            (json!({"apiVersion": "apps/v1", "kind": "Deployment"}), true),
            (json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}), true),
            (json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "db"}), false),
            (json!({"apiVersion": "v1", "kind": "Deployment"}), false),
            (json!({"apiVersion": "apps/v1", "kind": "StatefulSet"}), false),
            (json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "m"}), false),
            (
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "web"}}}),
                true,
            ),
            (
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "x"}}}),
                false,
            ),
        ];
        for (selector, expected) in table {
            let policy = json!({"spec": {"resourceSelectors": [selector]}});
            assert_eq!(target.selected_by(&policy, &labels), expected, "{policy}");
        }
    }
}
