//! What a manager may do in its clusters: as roles to hand out, and as questions to ask.

use atoll_api::kubeocean_names::SYSTEM_NAMESPACE;
use atoll_meta::{Gvr, Status};
use atoll_runtime::Endpoint;
use serde_json::{Value, json};

/// Some verbs on a resource, everywhere or only in the mount namespace.
struct Rule {
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    /// Whether a binding can do without.
    optional: bool,
}

const fn rule(group: &'static str, resource: &'static str, verbs: &'static [&'static str]) -> Rule {
    Rule { group, resource, verbs, optional: false }
}

const fn maybe(group: &'static str, resource: &'static str, verbs: &'static [&'static str]) -> Rule {
    Rule { group, resource, verbs, optional: true }
}

/// In the whole worker cluster. No Secrets here.
const CLUSTER: [Rule; 7] = [
    rule("", "nodes", &["list", "watch", "patch"]),
    rule("", "pods", &["list", "watch"]),
    rule("storage.k8s.io", "csinodes", &["list", "watch"]),
    rule("cloud.tencent.com", "resourceleasingpolicies", &["list", "watch", "patch"]),
    rule("cloud.tencent.com", "resourceleasingpolicies/status", &["patch"]),
    rule("scheduling.k8s.io", "priorityclasses", &["get", "create"]),
    rule("", "persistentvolumes", &["get", "list", "watch", "create", "delete"]),
];

/// In the mount namespace.
const MOUNT: [Rule; 13] = [
    rule("", "pods", &["get", "create", "patch", "delete"]),
    rule("", "configmaps", &["get", "list", "watch", "create", "update", "delete"]),
    rule("", "secrets", &["get", "list", "watch", "create", "update", "patch", "delete"]),
    rule("", "persistentvolumeclaims", &["get", "list", "watch", "create", "delete"]),
    rule("", "services", &["get", "list", "watch", "create", "update", "delete"]),
    rule("discovery.k8s.io", "endpointslices", &["get", "list", "watch", "create", "update", "delete"]),
    rule("", "events", &["list", "watch"]),
    maybe("", "pods/ephemeralcontainers", &["patch"]),
    maybe("", "pods/log", &["get"]),
    maybe("", "pods/exec", &["get", "create"]),
    maybe("", "pods/attach", &["get", "create"]),
    maybe("", "pods/portforward", &["get", "create"]),
    maybe("metrics.k8s.io", "pods", &["list"]),
];

/// In the whole computing cluster. Secrets are read, and marked when they are copied; never made here.
const COMPUTING: [Rule; 19] = [
    rule("", "namespaces", &["get", "create"]),
    rule("", "nodes", &["list", "watch", "create", "update", "patch", "delete"]),
    rule("", "nodes/status", &["update", "patch"]),
    rule("", "pods", &["get", "list", "watch", "create", "delete"]),
    rule("", "pods/status", &["patch"]),
    rule("storage.k8s.io", "csinodes", &["list", "watch", "create", "update", "delete"]),
    rule("", "configmaps", &["get", "list", "watch", "patch"]),
    rule("", "secrets", &["get", "list", "watch", "patch"]),
    rule("", "persistentvolumeclaims", &["get", "list", "watch", "patch"]),
    rule("", "persistentvolumes", &["get", "list", "watch", "patch"]),
    rule("", "services", &["get", "list", "watch"]),
    rule("discovery.k8s.io", "endpointslices", &["list", "watch"]),
    rule("apps", "replicasets", &["get"]),
    rule("", "serviceaccounts/token", &["create"]),
    rule("", "events", &["create", "patch"]),
    rule("cloud.tencent.com", "clusterbindings", &["get", "list", "watch", "patch"]),
    rule("cloud.tencent.com", "clusterbindings/status", &["patch"]),
    // Who calls the kubelet API, and may they.
    maybe("authentication.k8s.io", "tokenreviews", &["create"]),
    maybe("authorization.k8s.io", "subjectaccessreviews", &["create"]),
];
/// In the namespace of the system: which manager works, and the authority of the kubelet API.
const SYSTEM: [Rule; 2] =
    [rule("coordination.k8s.io", "leases", &["get", "create", "update"]), maybe("", "secrets", &["create"])];
/// Where nodes say that they live.
const LIVING: [Rule; 1] = [rule("coordination.k8s.io", "leases", &["create", "patch", "delete"])];

fn written(rules: &[Rule]) -> Vec<Value> {
    let one = |rule: &Rule| json!({"apiGroups": [rule.group], "resources": [rule.resource], "verbs": rule.verbs});
    rules.iter().map(one).collect()
}

fn cluster_role(name: &str, rules: &[Rule]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": written(rules),
    })
}

fn role(name: &str, namespace: &str, rules: &[Rule]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name, "namespace": namespace},
        "rules": written(rules),
    })
}

/// The ClusterRole and the Role of the mount namespace that a syncer needs, and no more.
pub fn worker_roles(name: &str, mount_namespace: &str) -> [Value; 2] {
    [cluster_role(name, &CLUSTER), role(name, mount_namespace, &MOUNT)]
}

/// The ClusterRole and the Roles that a manager needs in its computing cluster, and no more.
pub fn computing_roles(name: &str) -> [Value; 3] {
    [cluster_role(name, &COMPUTING), role(name, SYSTEM_NAMESPACE, &SYSTEM), role(name, "kube-node-lease", &LIVING)]
}

/// The roles of one binding's syncer in its computing cluster, where it runs apart from its manager: as those of a
/// manager, but it writes no other binding and holds no other lease.
pub fn syncer_roles(name: &str, binding: &str) -> [Value; 3] {
    let lease = crate::manager::lease_of(binding);
    let [mut everywhere, mut system, living] = computing_roles(name);
    narrow(&mut everywhere, "clusterbindings", &["patch"], binding);
    narrow(&mut everywhere, "clusterbindings/status", &["patch"], binding);
    narrow(&mut system, "leases", &["get", "update"], &lease);
    // The authority of the kubelet API is made by the manager.
    if let Some(rules) = system["rules"].as_array_mut() {
        rules.retain(|rule| rule["resources"][0] != "secrets");
    }
    [everywhere, system, living]
}

/// Restricts some verbs of a rule to the object of one name.
fn narrow(role: &mut Value, resource: &str, verbs: &[&str], name: &str) {
    let Some(rules) = role["rules"].as_array_mut() else { return };
    let Some(at) = rules.iter().position(|rule| rule["resources"][0] == resource) else { return };
    let mut own = rules[at].clone();
    let (some, rest): (Vec<Value>, Vec<Value>) = own["verbs"]
        .as_array()
        .cloned()
        .unwrap_or_default()
        .into_iter()
        .partition(|verb| verbs.iter().any(|narrowed| verb == narrowed));
    own["verbs"] = some.into();
    own["resourceNames"] = json!([name]);
    if rest.is_empty() {
        rules[at] = own;
    } else {
        rules[at]["verbs"] = rest.into();
        rules.insert(at + 1, own);
    }
}

/// What a manager needs besides to run syncers as Deployments: to make them, their accounts and their roles. It can
/// hand out only what it may do itself.
pub fn deploying_roles(name: &str) -> [Value; 3] {
    const ALL: &[&str] = &["get", "create", "patch", "delete"];
    const RBAC: &str = "rbac.authorization.k8s.io";
    let everywhere = [rule(RBAC, "clusterroles", ALL), rule(RBAC, "clusterrolebindings", ALL)];
    let system = [
        rule("", "serviceaccounts", ALL),
        rule(RBAC, "roles", ALL),
        rule(RBAC, "rolebindings", ALL),
        rule("apps", "deployments", &["get", "list", "watch", "create", "patch", "delete"]),
    ];
    let living = [rule(RBAC, "roles", ALL), rule(RBAC, "rolebindings", ALL)];
    let name = &format!("{name}-deployments");
    [cluster_role(name, &everywhere), role(name, SYSTEM_NAMESPACE, &system), role(name, "kube-node-lease", &living)]
}

/// What a syncer needs and may not do, in words.
pub(crate) async fn missing(worker: &Endpoint, mount_namespace: &str) -> Result<Vec<String>, Status> {
    let mut questions = Vec::new();
    for (rules, namespace) in [(CLUSTER.as_slice(), ""), (MOUNT.as_slice(), mount_namespace)] {
        for rule in rules.iter().filter(|rule| !rule.optional) {
            questions.extend(rule.verbs.iter().map(|verb| ask(worker, rule, namespace, verb)));
        }
    }
    let answers = futures::future::join_all(questions).await;
    let answers: Result<Vec<Option<String>>, Status> = answers.into_iter().collect();
    Ok(answers?.into_iter().flatten().collect())
}

/// Asks whether we may; returns what we may not.
async fn ask(worker: &Endpoint, rule: &Rule, namespace: &str, verb: &str) -> Result<Option<String>, Status> {
    let (resource, subresource) = rule.resource.split_once('/').unwrap_or((rule.resource, ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"group": rule.group, "resource": resource, "subresource": subresource, "namespace": namespace, "verb": verb}},
    });
    let answer =
        worker.create(&Gvr::new("authorization.k8s.io", "v1", "selfsubjectaccessreviews"), None, &review).await?;
    if answer["status"]["allowed"] == true {
        return Ok(None);
    }
    let group = if rule.group.is_empty() { String::new() } else { format!(".{}", rule.group) };
    let place = if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
    Ok(Some(format!("{verb} {}{group}{place}", rule.resource)))
}
