//! Who may do what so that members enrol themselves, and what their agents may do afterwards.

use atoll_api::names;
use atoll_api::words::{TRUE, label};
use atoll_meta::Gvr;
use serde_json::{Value, json};

use crate::gvr;

/// What the common name of an agent's certificate begins with.
pub const AGENT_PREFIX: &str = "system:karmada:agent:";
/// The organization of an agent's certificate.
pub const AGENTS: &str = "system:karmada:agents";
/// Who prepares the rights of an agent when `karmadactl register` runs.
pub const GENERATOR: &str = "system:karmada:agent:rbac-generator";
/// The group of the bootstrap tokens made for members.
pub const TOKENS: &str = "system:bootstrappers:karmada:default-cluster-token";

const RBAC: &str = "rbac.authorization.k8s.io";

fn cluster_role(name: &str, rules: Value) -> (Gvr, Value) {
    let object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
    (gvr::rbac("clusterroles"), object)
}

fn cluster_binding(name: &str, role: &str, kind: &str, subject: &str) -> (Gvr, Value) {
    let object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": kind, "name": subject}]});
    (gvr::rbac("clusterrolebindings"), object)
}

fn role(namespace: &str, name: &str, rules: Value) -> (Gvr, Value) {
    let object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": name, "namespace": namespace}, "rules": rules});
    (gvr::rbac("roles"), object)
}

fn binding(namespace: &str, name: &str, user: &str) -> (Gvr, Value) {
    let object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}]});
    (gvr::rbac("rolebindings"), object)
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn named(group: &str, resources: &[&str], verbs: &[&str], names: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs, "resourceNames": names})
}

/// The rights that let holders of bootstrap tokens ask, and agents renew.
pub fn standing() -> Vec<(Gvr, Value)> {
    let approve = |part: &str| {
        json!([rule("certificates.k8s.io", &[&format!("certificatesigningrequests/{part}")], &["create"])])
    };
    let (bootstrap, own) = (
        "system:karmada:certificatesigningrequest:autoapprover",
        "system:karmada:certificatesigningrequest:selfautoapprover",
    );
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names::CLUSTER_NAMESPACE}});
    let generator = "system:karmada:agent-rbac-generator";
    vec![
        (gvr::core("namespaces"), namespace),
        cluster_binding("system:karmada:agent-bootstrap", "system:node-bootstrapper", "Group", TOKENS),
        cluster_role(bootstrap, approve("clusteragent")),
        cluster_binding("system:karmada:agent-autoapprove-bootstrap", bootstrap, "Group", TOKENS),
        cluster_role(own, approve("selfclusteragent")),
        cluster_binding("system:karmada:agent-autoapprove-certificate-rotation", own, "Group", AGENTS),
        cluster_role(generator, generator_rules()),
        cluster_binding(generator, generator, "User", GENERATOR),
        role(names::CLUSTER_NAMESPACE, generator, json!([rule("", &["secrets"], &["get", "patch", "create"])])),
        binding(names::CLUSTER_NAMESPACE, generator, GENERATOR),
    ]
}

/// Enough to hand on what an agent needs, and no more: nobody can give what he does not hold.
fn generator_rules() -> Value {
    let mut rules = agent_rules(None).as_array().cloned().unwrap_or_default();
    rules.extend([
        rule(
            RBAC,
            &["clusterroles", "clusterrolebindings", "roles", "rolebindings"],
            &["get", "create", "update", "delete"],
        ),
        rule("", &["namespaces"], &["get", "create"]),
        rule("certificates.k8s.io", &["certificatesigningrequests"], &["get", "create", "delete"]),
        rule("work.karmada.io", &["works"], &["get", "create", "list", "watch", "update", "patch", "delete"]),
        rule("work.karmada.io", &["works/status"], &["get", "patch", "update"]),
    ]);
    rules.into()
}

/// What an agent may do outside namespaces: everything about its own Cluster, and little else.
fn agent_rules(cluster: Option<&str>) -> Value {
    let own = |resources: &[&str], verbs: &[&str]| match cluster {
        Some(cluster) => named("cluster.karmada.io", resources, verbs, &[cluster]),
        None => rule("cluster.karmada.io", resources, verbs),
    };
    json!([
        own(&["clusters"], &["get", "update", "patch", "delete"]),
        rule("cluster.karmada.io", &["clusters"], &["create", "list", "watch"]),
        own(&["clusters/status"], &["get", "update", "patch"]),
        rule(
            "config.karmada.io",
            &["resourceinterpreterwebhookconfigurations", "resourceinterpretercustomizations"],
            &["get", "list", "watch"]
        ),
        rule("", &["namespaces"], &["get"]),
        rule("coordination.k8s.io", &["leases"], &["get", "create", "update"]),
        rule("certificates.k8s.io", &["certificatesigningrequests"], &["get", "create"]),
        rule("", &["services"], &["list", "watch"]),
        rule("", &["events"], &["patch", "create", "update"]),
    ])
}

/// The rights of the agent of one member: its Cluster, its works, its lease and its own two Secrets.
pub fn of_agent(cluster: &str) -> Vec<(Gvr, Value)> {
    let (user, name) = (format!("{AGENT_PREFIX}{cluster}"), format!("atoll:agent:{cluster}"));
    let space = names::execution_namespace(cluster);
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space, "labels": {label::SYSTEM: TRUE}}});
    let works = json!([
        rule("work.karmada.io", &["works"], &["get", "list", "watch", "update", "patch"]),
        rule("work.karmada.io", &["works/status"], &["get", "patch", "update"]),
        rule("", &["events"], &["create", "patch", "update"]),
    ]);
    let secrets = [cluster, &names::impersonator_secret(cluster)];
    let shared = json!([
        named("", &["secrets"], &["get", "patch", "update"], &secrets),
        rule("", &["secrets"], &["create"]),
        named("coordination.k8s.io", &["leases"], &["get", "update", "patch"], &[cluster]),
        rule("coordination.k8s.io", &["leases"], &["create"]),
    ]);
    let outside = json!([
        named("cluster.karmada.io", &["clusters"], &["get"], &[cluster]),
        rule("cluster.karmada.io", &["clusters"], &["create"]),
        named("cluster.karmada.io", &["clusters/status"], &["get", "update", "patch"], &[cluster]),
        rule("config.karmada.io", &["resourceinterpretercustomizations"], &["get", "list", "watch"]),
        rule("certificates.k8s.io", &["certificatesigningrequests"], &["get", "create"]),
        // What a member refuses is told where people look, which is at the template.
        rule("", &["events"], &["create"]),
    ]);
    vec![
        (gvr::core("namespaces"), namespace),
        cluster_role(&name, outside),
        cluster_binding(&name, &name, "User", &user),
        role(&space, &name, works),
        binding(&space, &name, &user),
        role(names::CLUSTER_NAMESPACE, &name, shared),
        binding(names::CLUSTER_NAMESPACE, &name, &user),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_reads_no_secret_but_its_own_and_no_work_of_others() {
        for (resource, object) in of_agent("m1") {
            for rule in object["rules"].as_array().into_iter().flatten() {
                let has = |field: &str, word: &str| {
                    rule[field].as_array().is_some_and(|list| list.iter().any(|one| one == word))
                };
                assert!(!has("verbs", "*") && !has("resources", "*") && !has("apiGroups", "*"), "{rule}");
                if has("resources", "secrets") && !has("verbs", "create") {
                    assert_eq!(rule["resourceNames"], json!(["m1", "m1-impersonator"]));
                }
                if has("resources", "works") {
                    assert_eq!(
                        (resource.resource.as_str(), &object["metadata"]["namespace"]),
                        ("roles", &json!("karmada-es-m1"))
                    );
                }
            }
        }
    }
}
