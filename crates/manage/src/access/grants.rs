//! From grants to roles and bindings in every instance.

use std::collections::{BTreeMap, BTreeSet};

use atoll_meta::{Gvr, Status};
use atoll_runtime::Endpoint;
use serde_json::{Value, json};

use super::roles;

/// Marks what grants made; nothing else is touched.
const MADE: &str = "atoll.io/granted";
const API: &str = "rbac.authorization.k8s.io";

/// Everything grants depend on.
#[derive(Default)]
pub struct Known {
    /// Grant objects.
    pub grants: Vec<Value>,
    /// AccessRole objects.
    pub roles: Vec<Value>,
    /// Workspace objects.
    pub workspaces: Vec<Value>,
    /// Names of instances, without `root`.
    pub instances: Vec<String>,
}

/// A role or binding, by kind, namespace and name.
type Wanted = BTreeMap<(&'static str, String, String), Value>;

/// What each instance must hold, `root` included.
pub fn plan(known: &Known) -> BTreeMap<String, Wanted> {
    let mut plans: BTreeMap<String, Wanted> = BTreeMap::new();
    for name in known.instances.iter().map(String::as_str).chain(["root"]) {
        let wanted = plans.entry(name.to_owned()).or_default();
        // A search shows only what the caller may see anyway.
        let search = json!([{"apiGroups": ["clusterpedia.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]);
        put(wanted, "ClusterRole", "", "atoll:search", json!({"rules": search}));
        let everyone = json!([{"kind": "Group", "name": "system:authenticated", "apiGroup": API}]);
        put(wanted, "ClusterRoleBinding", "", "atoll:search", bound("atoll:search", &everyone));
    }
    for grant in &known.grants {
        add(&mut plans, known, grant);
    }
    plans
}

fn add(plans: &mut BTreeMap<String, Wanted>, known: &Known, grant: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (name, role) = (text(&grant["metadata"]["name"]), text(&grant["spec"]["role"]));
    let custom = || {
        known.roles.iter().find(|own| own["metadata"]["name"] == role.as_str()).map(|own| own["spec"]["rules"].clone())
    };
    let Some(rules) = roles::builtin(&role).or_else(custom) else { return };
    let subjects: Value = grant["spec"]["subjects"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|subject| !text(&subject["name"]).starts_with("system:"))
        .map(|subject| json!({"kind": subject["kind"], "name": subject["name"], "apiGroup": API}))
        .collect();
    let scope = &grant["spec"]["scope"];
    let (mut whole, mut parts): (BTreeSet<String>, BTreeSet<(String, String)>) = Default::default();
    let platform = scope["platform"] == true;
    if platform {
        whole.extend(known.instances.iter().cloned());
    } else if let Some(workspace) = scope["workspace"].as_str().filter(|name| !name.is_empty()) {
        for workspace in known.workspaces.iter().filter(|own| own["metadata"]["name"] == workspace) {
            whole.extend(workspace["spec"]["instances"].as_array().into_iter().flatten().map(text));
            parts.extend(
                workspace["spec"]["namespaces"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|place| (text(&place["instance"]), text(&place["namespace"]))),
            );
        }
    } else if let Some(instance) = scope["instance"].as_str().filter(|name| !name.is_empty() && *name != "root") {
        match scope["namespace"].as_str().filter(|name| !name.is_empty()) {
            Some(namespace) => drop(parts.insert((instance.to_owned(), namespace.to_owned()))),
            None => drop(whole.insert(instance.to_owned())),
        }
    }
    let own_role = format!("atoll:{role}");
    let binding = format!("atoll:grant:{name}");
    for instance in &whole {
        let Some(wanted) = plans.get_mut(instance) else { continue };
        put(wanted, "ClusterRole", "", &own_role, json!({"rules": rules}));
        put(wanted, "ClusterRoleBinding", "", &binding, bound(&own_role, &subjects));
    }
    for (instance, namespace) in &parts {
        let Some(wanted) = plans.get_mut(instance) else { continue };
        put(wanted, "ClusterRole", "", &own_role, json!({"rules": rules}));
        put(wanted, "RoleBinding", namespace, &binding, bound(&own_role, &subjects));
    }
    in_root(
        plans,
        &name,
        &role,
        platform,
        &subjects,
        whole.into_iter().chain(parts.into_iter().map(|(instance, _)| instance)).collect(),
    );
}

/// Rights on the hub's own objects: to see the instances of the grant, or to manage everything.
fn in_root(
    plans: &mut BTreeMap<String, Wanted>,
    name: &str,
    role: &str,
    platform: bool,
    subjects: &Value,
    instances: BTreeSet<String>,
) {
    let Some(wanted) = plans.get_mut("root") else { return };
    let rules = match (platform, role) {
        (true, "admin") => {
            json!([{"apiGroups": ["atoll.io"], "resources": ["*"], "verbs": ["*"]}, {"apiGroups": [""], "resources": ["secrets", "namespaces"], "verbs": ["*"]}])
        }
        (true, _) => {
            json!([{"apiGroups": ["atoll.io"], "resources": ["instances", "workspaces"], "verbs": ["get", "list", "watch"]}])
        }
        (false, _) if instances.is_empty() => return,
        (false, _) => {
            json!([{"apiGroups": ["atoll.io"], "resources": ["instances"], "resourceNames": instances, "verbs": roles::on_instance(role)}])
        }
    };
    let binding = format!("atoll:grant:{name}");
    put(wanted, "ClusterRole", "", &binding, json!({"rules": rules}));
    put(wanted, "ClusterRoleBinding", "", &binding, bound(&binding, subjects));
}

fn bound(role: &str, subjects: &Value) -> Value {
    json!({"roleRef": {"apiGroup": API, "kind": "ClusterRole", "name": role}, "subjects": subjects})
}

fn put(wanted: &mut Wanted, kind: &'static str, namespace: &str, name: &str, mut object: Value) {
    object["kind"] = kind.into();
    object["apiVersion"] = format!("{API}/v1").into();
    object["metadata"] = json!({"name": name, "labels": {MADE: "true"}});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    wanted.insert((kind, namespace.to_owned(), name.to_owned()), object);
}

/// Makes an instance hold what it must, and no more of what grants made.
pub async fn apply(endpoint: &Endpoint, mut wanted: Wanted) -> Result<(), Status> {
    let kinds = [
        ("RoleBinding", "rolebindings"),
        ("ClusterRoleBinding", "clusterrolebindings"),
        ("ClusterRole", "clusterroles"),
    ];
    let mut later = Vec::new();
    for (kind, resource) in kinds {
        let gvr = Gvr::new(API, "v1", resource);
        let query = format!("labelSelector={}%3Dtrue", MADE.replace('/', "%2F"));
        for present in endpoint.list(&gvr, None, &query).await?.items {
            let text = |key: &str| present["metadata"][key].as_str().unwrap_or_default().to_owned();
            let (namespace, name) = (text("namespace"), text("name"));
            let place = Some(namespace.as_str()).filter(|namespace| !namespace.is_empty());
            let same =
                |object: &Value| ["rules", "roleRef", "subjects"].iter().all(|key| object[*key] == present[*key]);
            match wanted.remove(&(kind, namespace.clone(), name.clone())) {
                Some(object) if same(&object) => {}
                Some(object) => {
                    // A binding cannot change its role: it is made anew.
                    if kind != "ClusterRole" {
                        endpoint.delete(&gvr, place, &name, &Value::Null).await?;
                        later.push((gvr.clone(), namespace, object));
                    } else {
                        endpoint.update(&gvr, place, &name, &object).await?;
                    }
                }
                // Revoked: gone before anything else is given.
                None => endpoint.delete(&gvr, place, &name, &Value::Null).await?,
            }
        }
    }
    let rest = wanted.into_iter().map(|((kind, namespace, _), object)| {
        let resource = kinds.iter().find(|(known, _)| *known == kind).map_or("clusterroles", |(_, resource)| resource);
        (Gvr::new(API, "v1", resource), namespace, object)
    });
    let mut failed = None;
    for (gvr, namespace, object) in rest.chain(later) {
        let place = Some(namespace.as_str()).filter(|namespace| !namespace.is_empty());
        match endpoint.create(&gvr, place, &object).await {
            // The namespace of a grant may come later; then the grants are compared again.
            Err(status) if !matches!(status.code, 404 | 409) => failed = Some(status),
            _ => {}
        }
    }
    failed.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn grant(name: &str, role: &str, scope: Value) -> Value {
        json!({"metadata": {"name": name}, "spec": {"role": role, "scope": scope, "subjects": [{"kind": "User", "name": "ann"}]}})
    }

    fn names(plan: &BTreeMap<String, Wanted>, instance: &str) -> Vec<String> {
        plan[instance]
            .keys()
            .filter(|(.., name)| !name.ends_with("search"))
            .map(|(kind, namespace, name)| format!("{kind} {namespace} {name}"))
            .collect()
    }

    #[test]
    fn a_grant_reaches_exactly_its_scope() {
        let workspace = json!({"metadata": {"name": "w"}, "spec": {"instances": ["b"], "namespaces": [{"instance": "a", "namespace": "n"}]}});
        let known = |scope: Value| Known {
            grants: vec![grant("g", "editor", scope)],
            workspaces: vec![workspace.clone()],
            instances: vec!["a".into(), "b".into()],
            ..Known::default()
        };
        let one = plan(&known(json!({"instance": "a"})));
        assert_eq!(names(&one, "a"), ["ClusterRole  atoll:editor", "ClusterRoleBinding  atoll:grant:g"]);
        assert!(names(&one, "b").is_empty());
        assert_eq!(
            one["root"][&("ClusterRole", String::new(), "atoll:grant:g".into())]["rules"][0]["resourceNames"],
            json!(["a"])
        );
        let part = plan(&known(json!({"instance": "a", "namespace": "n"})));
        assert_eq!(names(&part, "a"), ["ClusterRole  atoll:editor", "RoleBinding n atoll:grant:g"]);
        let both = plan(&known(json!({"workspace": "w"})));
        assert_eq!(names(&both, "a"), ["ClusterRole  atoll:editor", "RoleBinding n atoll:grant:g"]);
        assert_eq!(names(&both, "b"), ["ClusterRole  atoll:editor", "ClusterRoleBinding  atoll:grant:g"]);
        let root = plan(&known(json!({"instance": "root"})));
        assert!(names(&root, "root").is_empty(), "root is not granted through an instance scope");
        assert!(names(&plan(&known(json!({}))), "a").is_empty());
    }

    #[test]
    fn unknown_roles_and_system_subjects_grant_nothing() {
        let mut odd = grant("g", "nobody", json!({"instance": "a"}));
        let known =
            |grant: &Value| Known { grants: vec![grant.clone()], instances: vec!["a".into()], ..Known::default() };
        assert!(names(&plan(&known(&odd)), "a").is_empty());
        odd["spec"]["role"] = "viewer".into();
        odd["spec"]["subjects"] = json!([{"kind": "Group", "name": "system:authenticated"}]);
        let plan = plan(&known(&odd));
        assert_eq!(plan["a"][&("ClusterRoleBinding", String::new(), "atoll:grant:g".into())]["subjects"], json!([]));
    }
}
