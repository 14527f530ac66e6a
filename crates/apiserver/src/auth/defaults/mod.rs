//! Roles, bindings and priority classes every instance begins with.
//!
//! They are the same everywhere, down to their uids, so that thousands of instances share one copy.

mod tables;

use std::sync::{Arc, OnceLock};

use atoll_meta::{Key, Object};
use aws_lc_rs::digest;
use serde_json::{Map, Value, json};

use super::aggregate;
use super::rbac::{GROUP, Rule};
use tables::{AGGREGATED, BINDINGS, CLUSTER_ROLES, Line, ROLES};

/// All default objects. Those made later in the same process are the very same.
pub fn all(now: &str) -> &'static [(Key, Arc<Object>)] {
    static ALL: OnceLock<Vec<(Key, Arc<Object>)>> = OnceLock::new();
    ALL.get_or_init(|| trees(now).iter().filter_map(encode).collect())
}

fn encode(tree: &Value) -> Option<(Key, Arc<Object>)> {
    let (group, plural) = match tree["kind"].as_str()? {
        "ClusterRole" => (GROUP, "clusterroles"),
        "ClusterRoleBinding" => (GROUP, "clusterrolebindings"),
        "Role" => (GROUP, "roles"),
        "RoleBinding" => (GROUP, "rolebindings"),
        _ => ("scheduling.k8s.io", "priorityclasses"),
    };
    let object = Object::encode(tree).ok()?;
    Some((Key::new(group, plural, &object.head.namespace, &object.head.name), Arc::new(object)))
}

fn trees(now: &str) -> Vec<Value> {
    let mut cluster: Vec<Value> =
        CLUSTER_ROLES.iter().map(|(name, to, lines)| cluster_role(name, to, lines, now)).collect();
    cluster.extend(AGGREGATED.iter().map(|(name, to)| {
        let mut role = cluster_role(name, to, &[], now);
        let label = format!("{GROUP}/aggregate-to-{name}");
        role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
        role
    }));
    aggregate::settle(&mut cluster);
    cluster.extend(ROLES.iter().map(|(namespace, name, lines)| {
        let mut role = object("Role", namespace, name, now);
        role["rules"] = rules(lines);
        role
    }));
    cluster
        .extend(BINDINGS.iter().map(|(namespace, name, role, subjects)| binding(namespace, name, role, subjects, now)));
    cluster.extend([
        priority("system-cluster-critical", 2_000_000_000, "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.", now),
        priority("system-node-critical", 2_000_001_000, "Used for system critical pods that must not be moved from their current node.", now),
    ]);
    cluster
}

fn cluster_role(name: &str, to: &str, lines: &[Line], now: &str) -> Value {
    let mut role = object("ClusterRole", "", name, now);
    for aggregated in to.split_whitespace() {
        role["metadata"]["labels"][format!("{GROUP}/aggregate-to-{aggregated}")] = "true".into();
    }
    role["rules"] = rules(lines);
    role
}

fn rules(lines: &[Line]) -> Value {
    let words = |text: &str| {
        text.split_whitespace().map(|word| if word == "core" { String::new() } else { word.to_owned() }).collect()
    };
    let rules: Vec<Rule> = lines
        .iter()
        .map(|line| match line {
            Line::On(verbs, groups, resources) => {
                Rule { verbs: words(verbs), api_groups: words(groups), resources: words(resources), ..Rule::default() }
            }
            Line::Named(verbs, groups, resources, names) => Rule {
                verbs: words(verbs),
                api_groups: words(groups),
                resources: words(resources),
                resource_names: words(names),
                ..Rule::default()
            },
            Line::Url(verbs, urls) => Rule { verbs: words(verbs), urls: words(urls), ..Rule::default() },
        })
        .collect();
    json!(rules)
}

fn binding(namespace: &str, name: &str, role: &str, subjects: &[&str], now: &str) -> Value {
    let (kind, role_kind) =
        if namespace.is_empty() { ("ClusterRoleBinding", "ClusterRole") } else { ("RoleBinding", "Role") };
    let mut binding = object(kind, namespace, name, now);
    binding["roleRef"] = json!({"apiGroup": GROUP, "kind": role_kind, "name": role});
    let subjects: Vec<Value> = subjects
        .iter()
        .filter_map(|subject| {
            let (kind, name) = subject.split_once(':')?;
            Some(match name.split_once('/') {
                Some((namespace, name)) => json!({"kind": kind, "namespace": namespace, "name": name}),
                None => json!({"apiGroup": GROUP, "kind": kind, "name": name}),
            })
        })
        .collect();
    if !subjects.is_empty() {
        binding["subjects"] = subjects.into();
    }
    binding
}

fn priority(name: &str, value: i64, description: &str, now: &str) -> Value {
    let metadata =
        json!({"name": name, "uid": uid("PriorityClass", "", name), "creationTimestamp": now, "generation": 1});
    json!({
        "kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": metadata,
        "value": value, "description": description, "preemptionPolicy": "PreemptLowerPriority",
    })
}

fn object(kind: &str, namespace: &str, name: &str, now: &str) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".into(), name.into());
    if !namespace.is_empty() {
        metadata.insert("namespace".into(), namespace.into());
    }
    metadata.insert("uid".into(), uid(kind, namespace, name).into());
    metadata.insert("creationTimestamp".into(), now.into());
    metadata.insert("labels".into(), json!({"kubernetes.io/bootstrapping": "rbac-defaults"}));
    metadata.insert("annotations".into(), json!({"rbac.authorization.kubernetes.io/autoupdate": "true"}));
    json!({"kind": kind, "apiVersion": format!("{GROUP}/v1"), "metadata": metadata})
}

/// A uid that follows from the name, so that the bytes are the same in all instances.
fn uid(kind: &str, namespace: &str, name: &str) -> String {
    let hash = digest::digest(&digest::SHA256, format!("{kind}/{namespace}/{name}").as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_ref()[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn default_objects_are_shared_and_aggregated_roles_filled() {
        let first = all("2026-01-01T00:00:00Z");
        let again = all("2027-01-01T00:00:00Z");
        assert!(std::ptr::eq(first, again));
        let rules = |name: &str| {
            let key = format!("clusterroles.{GROUP}/{name}");
            let (_, object) = first.iter().find(|(own, _)| own.as_str() == key).unwrap();
            let tree = object.tree(atoll_meta::Revision(1));
            serde_json::from_value::<Vec<Rule>>(tree["rules"].clone()).unwrap()
        };
        assert!(rules("view").iter().all(|rule| !rule.resources.iter().any(|resource| resource == "secrets")));
        assert!(rules("edit").iter().any(|rule| rule.resources.iter().any(|resource| resource == "secrets")));
        let view = rules("view");
        assert!(view.iter().all(|rule| rules("admin").contains(rule)), "admin may do what view may");
        let roles = first.iter().filter(|(key, _)| key.as_str().starts_with("clusterroles.")).count();
        assert!(roles >= 28, "{roles}");
    }
}
