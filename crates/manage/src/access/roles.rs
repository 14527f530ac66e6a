//! What the roles allow, as rules of Kubernetes.
//!
//! | | admin | editor | viewer |
//! |---|---|---|---|
//! | see workloads, configuration, policies, events, members | yes | yes | yes |
//! | see Secrets | yes | yes | no |
//! | make, change, delete workloads, configuration, Secrets, namespaced policies | yes | yes | no |
//! | exec, attach, port-forward | yes | yes | no |
//! | definitions, cluster-wide policies, members, roles, everything else | yes | no | no |
//!
//! Granted for a namespace or a workspace, a role ends where they end.

use serde_json::{Value, json};

const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// Everything of the core group that shows no secret.
const CORE: [&str; 16] = [
    "configmaps",
    "endpoints",
    "events",
    "limitranges",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "pods/log",
    "pods/status",
    "replicationcontrollers",
    "resourcequotas",
    "serviceaccounts",
    "services",
    "services/status",
];
/// What an editor changes in the core group.
const CORE_EDIT: [&str; 9] = [
    "configmaps",
    "events",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "secrets",
    "serviceaccounts",
    "services",
    "endpoints",
];
const WORKLOAD_GROUPS: [&str; 9] = [
    "apps",
    "batch",
    "autoscaling",
    "networking.k8s.io",
    "policy",
    "autoscaling.karmada.io",
    "networking.karmada.io",
    "multicluster.x-k8s.io",
    "discovery.k8s.io",
];
const POLICIES: [&str; 3] = ["propagationpolicies", "overridepolicies", "federatedresourcequotas"];
const SEEN_GROUPS: [&str; 6] = [
    "policy.karmada.io",
    "work.karmada.io",
    "cluster.karmada.io",
    "apiextensions.k8s.io",
    "storage.k8s.io",
    "config.karmada.io",
];

/// The rules of a built-in role; `None` when it is not one.
pub fn builtin(role: &str) -> Option<Value> {
    match role {
        "admin" => Some(json!([
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ])),
        "editor" => {
            let mut rules = viewer();
            rules.extend([
                json!({"apiGroups": [""], "resources": CORE_EDIT, "verbs": WRITE}),
                json!({"apiGroups": [""], "resources": ["pods/exec", "pods/attach", "pods/portforward", "pods/eviction"], "verbs": ["create", "get"]}),
                json!({"apiGroups": WORKLOAD_GROUPS, "resources": ["*"], "verbs": WRITE}),
                json!({"apiGroups": ["policy.karmada.io"], "resources": POLICIES, "verbs": WRITE}),
            ]);
            Some(rules.into())
        }
        "viewer" => Some(viewer().into()),
        _ => None,
    }
}

fn viewer() -> Vec<Value> {
    vec![
        json!({"apiGroups": [""], "resources": CORE, "verbs": READ}),
        json!({"apiGroups": WORKLOAD_GROUPS, "resources": ["*"], "verbs": READ}),
        json!({"apiGroups": SEEN_GROUPS, "resources": ["*"], "verbs": READ}),
    ]
}

/// What a role allows with the Instance object itself, in `root`.
pub fn on_instance(role: &str) -> &'static [&'static str] {
    if role == "admin" { &["get", "update", "patch"] } else { &["get"] }
}
