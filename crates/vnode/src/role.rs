//! What a syncer may do in a worker cluster: as roles to hand out, and as questions to ask.

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

/// The ClusterRole and the Role of the mount namespace that a syncer needs, and no more.
pub fn worker_roles(name: &str, mount_namespace: &str) -> [Value; 2] {
    let rules = |rules: &[Rule]| -> Vec<Value> {
        rules
            .iter()
            .map(|rule| json!({"apiGroups": [rule.group], "resources": [rule.resource], "verbs": rule.verbs}))
            .collect()
    };
    [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules(&CLUSTER),
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name, "namespace": mount_namespace}, "rules": rules(&MOUNT),
        }),
    ]
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
