//! Roles and bindings every instance begins with.

use atoll_meta::Key;
use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";

/// All default roles and bindings.
pub fn all(now: &str) -> Vec<(Key, Value)> {
    let mut all = Vec::new();
    let mut role = |name: &str, rules: Value| {
        all.push((Key::new(GROUP, "clusterroles", "", name), object("ClusterRole", name, now, json!({"rules": rules}))));
    };
    role("cluster-admin", json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]));
    let public = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
    role("system:public-info-viewer", json!([{"nonResourceURLs": public, "verbs": ["get"]}]));
    let open = ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/"];
    role("system:discovery", json!([{"nonResourceURLs": open, "verbs": ["get"]}]));
    role("system:basic-user", json!([
        {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], "verbs": ["create"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
    ]));
    let mut bind = |name: &str, group: &str| {
        let body = json!({
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
            "subjects": subjects(name, group),
        });
        all.push((Key::new(GROUP, "clusterrolebindings", "", name), object("ClusterRoleBinding", name, now, body)));
    };
    bind("cluster-admin", "system:masters");
    bind("system:public-info-viewer", "system:authenticated");
    bind("system:discovery", "system:authenticated");
    bind("system:basic-user", "system:authenticated");
    all
}

fn subjects(role: &str, group: &str) -> Value {
    let subject = |name: &str| json!({"apiGroup": GROUP, "kind": "Group", "name": name});
    if role == "system:public-info-viewer" {
        return json!([subject(group), subject("system:unauthenticated")]);
    }
    json!([subject(group)])
}

fn object(kind: &str, name: &str, now: &str, mut body: Value) -> Value {
    body["kind"] = kind.into();
    body["apiVersion"] = format!("{GROUP}/v1").into();
    body["metadata"] = json!({
        "name": name, "creationTimestamp": now, "uid": uuid::Uuid::new_v4().to_string(),
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    });
    body
}
