//! Who may reach members through the instance may be impersonated there, and nobody else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use atoll_api::cluster::Cluster;
use atoll_api::names;
use atoll_api::work::Work;
use atoll_meta::Status;
use serde_json::{Value, json};

use crate::core::{Core, fresh_id};
use crate::work::{Draft, finish};
use crate::{gvr, render};

/// Whom the hub's own token stands for.
const ADMINISTRATOR: &str = "atoll:admin";

type Again = Result<Option<Duration>, Status>;

/// Whom the proxy may name in a member.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Subjects {
    users: BTreeSet<String>,
    groups: BTreeSet<String>,
    /// By namespace.
    accounts: BTreeMap<String, BTreeSet<String>>,
}

/// Whether a role lets its holders reach a cluster through the proxy.
fn allows(role: &Value, cluster: &str) -> bool {
    let holds = |list: &Value, wanted: &[&str]| {
        list.as_array().into_iter().flatten().any(|item| item == "*" || wanted.iter().any(|word| item == word))
    };
    role["rules"].as_array().into_iter().flatten().any(|rule| {
        let names = rule["resourceNames"].as_array().map(Vec::as_slice).unwrap_or_default();
        let clusters = holds(&rule["apiGroups"], &["cluster.karmada.io"])
            && holds(&rule["resources"], &["clusters/proxy", "*/proxy"]);
        let search =
            holds(&rule["apiGroups"], &["search.karmada.io"]) && holds(&rule["resources"], &["proxying/proxy"]);
        (clusters && (names.is_empty() || names.iter().any(|name| name == cluster))) || search
    })
}

/// Everyone who may reach a cluster, from the roles and bindings of the instance.
pub fn subjects(roles: &[Value], bindings: &[Value], cluster: &str) -> Subjects {
    let allowed: BTreeSet<&str> = roles
        .iter()
        .filter(|role| allows(role, cluster))
        .filter_map(|role| role["metadata"]["name"].as_str())
        .collect();
    let mut found = Subjects::default();
    for binding in
        bindings.iter().filter(|binding| binding["roleRef"]["name"].as_str().is_some_and(|name| allowed.contains(name)))
    {
        for subject in binding["subjects"].as_array().into_iter().flatten() {
            let name = subject["name"].as_str().unwrap_or_default().to_owned();
            match subject["kind"].as_str() {
                Some("User") => found.users.insert(name),
                Some("Group") => found.groups.insert(name),
                Some("ServiceAccount") => {
                    let namespace = subject["namespace"].as_str().unwrap_or_default().to_owned();
                    // Their groups come with them.
                    found
                        .groups
                        .extend(["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]);
                    found.accounts.entry(namespace).or_default().insert(name)
                }
                _ => false,
            };
        }
    }
    // The administrator of the hub is in the group that may everything, and has a name like everyone.
    if found.groups.contains("system:masters") {
        found.users.insert(ADMINISTRATOR.to_owned());
    }
    found
}

/// The role and the binding for the impersonator in a member.
pub fn grants(subjects: &Subjects) -> [Value; 2] {
    let mut rules = Vec::new();
    let mut rule = |resource: &str, names: Vec<String>| {
        if !names.is_empty() {
            rules.push(
                json!({"apiGroups": [""], "resources": [resource], "verbs": ["impersonate"], "resourceNames": names}),
            );
        }
    };
    rule("users", subjects.users.iter().cloned().collect());
    rule("groups", subjects.groups.iter().cloned().collect());
    // The verb is asked for accounts without their namespace too.
    rule(
        "serviceaccounts",
        subjects.accounts.values().flatten().cloned().collect::<BTreeSet<_>>().into_iter().collect(),
    );
    let meta = json!({"name": names::IMPERSONATOR});
    [
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": meta,
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": names::IMPERSONATOR},
               "subjects": [{"kind": "ServiceAccount", "name": names::IMPERSONATOR, "namespace": names::CLUSTER_NAMESPACE}]}),
    ]
}

/// Brings the grants in all members in line with the roles of the instance.
pub async fn grant(core: Arc<Core>, _: ()) -> Again {
    let informers = core.informers();
    let trees = |informer: &atoll_runtime::Informer| -> Vec<Value> {
        informer.cache.list().iter().map(atoll_runtime::Item::tree).collect()
    };
    let (roles, bindings) = (trees(&informers.roles[0]), trees(&informers.roles[1]));
    for item in informers.clusters.cache.list() {
        let Ok(cluster) = item.decode::<Cluster>() else { continue };
        if item.object.head.deleting || cluster.spec.impersonator_secret_ref.is_none() {
            continue;
        }
        let name = &*item.object.head.name;
        for manifest in grants(&subjects(&roles, &bindings, name)) {
            put(&core, name, manifest).await?;
        }
    }
    Ok(None)
}

async fn put(core: &Core, cluster: &str, manifest: Value) -> Result<(), Status> {
    let namespace = names::execution_namespace(cluster);
    let name = names::work(manifest["kind"].as_str().unwrap_or_default(), names::IMPERSONATOR, "");
    let existing = core.informers().works.cache.get(&namespace, &name).and_then(|item| {
        let mut work: Work = item.decode().ok()?;
        work.metadata.resource_version = Some(item.revision.to_string());
        Some(work)
    });
    let conflict =
        (atoll_api::words::annotation::CONFLICT_RESOLUTION.to_owned(), atoll_api::words::OVERWRITE.to_owned());
    let draft = Draft {
        namespace,
        name,
        labels: BTreeMap::new(),
        annotations: BTreeMap::from([conflict]),
        suspended: false,
        preserve: None,
    };
    let template = manifest.clone();
    let built = finish(draft, manifest, &template, existing.as_ref(), fresh_id);
    render::put(core, existing.as_ref(), built).await
}

/// Where roles and their bindings are.
pub fn resources() -> [atoll_meta::Gvr; 2] {
    [gvr::rbac("clusterroles"), gvr::rbac("clusterrolebindings")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_who_may_use_the_proxy_are_named() {
        let role = |name: &str, resources: Value, names: Value| json!({"metadata": {"name": name}, "rules": [{"apiGroups": ["cluster.karmada.io"], "resources": resources, "verbs": ["*"], "resourceNames": names}]});
        let roles = [
            role("all", json!(["clusters/proxy"]), json!([])),
            role("one", json!(["clusters/proxy"]), json!(["m1"])),
            role("none", json!(["clusters"]), json!([])),
        ];
        let bind = |role: &str, subject: Value| json!({"roleRef": {"name": role}, "subjects": [subject]});
        let bindings = [
            bind("all", json!({"kind": "User", "name": "jane"})),
            bind("one", json!({"kind": "Group", "name": "devs"})),
            bind("none", json!({"kind": "User", "name": "eve"})),
            bind("all", json!({"kind": "ServiceAccount", "name": "bot", "namespace": "ci"})),
        ];
        let found = subjects(&roles, &bindings, "m1");
        assert_eq!(found.users.iter().collect::<Vec<_>>(), ["jane"]);
        assert!(found.groups.contains("devs") && found.groups.contains("system:serviceaccounts:ci"));
        assert!(!subjects(&roles, &bindings, "m2").groups.contains("devs"));
        let [role, binding] = grants(&found);
        assert_eq!(role["rules"].as_array().map(Vec::len), Some(3));
        assert_eq!(binding["subjects"][0]["name"], names::IMPERSONATOR);
    }
}
