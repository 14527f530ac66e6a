//! What a binding consists of when its syncer and proxier are a Deployment of their own.

use atoll_api::kubeocean_names::{SYSTEM_NAMESPACE, label};
use atoll_meta::Gvr;
use serde_json::{Value, json};

use crate::binding::Binding;
use crate::role::syncer_roles;

const RBAC: &str = "rbac.authorization.k8s.io";
/// What the Deployments, and what belongs to them, are labelled with.
pub(super) const KEEPER: &str = "app.kubernetes.io/managed-by";
pub(super) const MANAGER: &str = "kubeocean-manager";

/// How syncers are run as Deployments.
#[derive(Clone, Debug)]
pub struct Deployed {
    /// The image, whose `atoll` is run.
    pub image: String,
    /// How many of each; one of them works, the others wait.
    pub replicas: u32,
    /// What else they are told on their command line.
    pub arguments: Vec<String>,
}

/// One object of a binding.
pub(super) struct Part {
    pub(super) gvr: Gvr,
    pub(super) namespace: Option<&'static str>,
    pub(super) object: Value,
}

/// The name of everything that belongs to a binding.
pub(crate) fn name_of(cluster_id: &str) -> String {
    format!("kubeocean-syncer-{cluster_id}")
}

/// Everything a binding needs, in the order it is made.
pub(super) fn parts(binding: &Binding, deployed: &Deployed) -> Vec<Part> {
    let name = name_of(&binding.cluster_id);
    let meta = |namespace: Option<&str>| {
        let mut meta = json!({
            "name": name, "labels": labels(binding),
            // With the binding everything goes, also when nobody is there to remove it.
            "ownerReferences": [{"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ClusterBinding",
                                 "name": binding.name, "uid": binding.uid, "controller": true}],
        });
        if let Some(namespace) = namespace {
            meta["namespace"] = namespace.into();
        }
        meta
    };
    let system = Some(SYSTEM_NAMESPACE);
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(system)});
    let mut out = vec![Part { gvr: Gvr::new("", "v1", "serviceaccounts"), namespace: system, object: account }];
    let places = [None, system, Some("kube-node-lease")];
    for (mut role, namespace) in syncer_roles(&name, &binding.name).into_iter().zip(places) {
        role["metadata"] = meta(namespace);
        let kind = role["kind"].as_str().unwrap_or_default().to_owned();
        let plural = kind.to_lowercase();
        let grant = json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": format!("{kind}Binding"), "metadata": meta(namespace),
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": SYSTEM_NAMESPACE}],
        });
        out.push(Part { gvr: Gvr::new(RBAC, "v1", &format!("{plural}s")), namespace, object: role });
        out.push(Part { gvr: Gvr::new(RBAC, "v1", &format!("{plural}bindings")), namespace, object: grant });
    }
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(system), "spec": spec(&name, binding, deployed),
    });
    out.push(Part { gvr: deployments(), namespace: system, object: deployment });
    out
}

pub(super) fn deployments() -> Gvr {
    Gvr::new("apps", "v1", "deployments")
}

fn labels(binding: &Binding) -> Value {
    json!({
        "app.kubernetes.io/name": "kubeocean-syncer", "app.kubernetes.io/instance": binding.name,
        "app.kubernetes.io/component": "syncer", "app.kubernetes.io/part-of": "kubeocean",
        KEEPER: MANAGER, label::CLUSTER_BINDING: binding.name,
    })
}

fn spec(name: &str, binding: &Binding, deployed: &Deployed) -> Value {
    let selector = json!({
        "app.kubernetes.io/name": "kubeocean-syncer", "app.kubernetes.io/instance": binding.name,
        "app.kubernetes.io/component": "syncer", "k8s-app": name,
    });
    let mut all = labels(binding);
    all["k8s-app"] = name.into();
    let mut command = vec!["atoll", "vnode-manager", "--binding", &binding.name];
    command.extend(deployed.arguments.iter().map(String::as_str));
    let own = |name: &str, field: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": field}}});
    let port = |name: &str, number: u16| json!({"name": name, "containerPort": number, "protocol": "TCP"});
    let ask = |path: &str| json!({"httpGet": {"path": path, "port": 8081}, "periodSeconds": 10});
    let container = json!({
        "name": "syncer", "image": deployed.image, "command": command,
        "env": [own("POD_NAME", "metadata.name"), own("POD_IP", "status.podIP")],
        "ports": [port("metrics", 8080), port("health", 8081)],
        "livenessProbe": ask("/healthz"), "readinessProbe": ask("/readyz"),
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true, "runAsUser": 65532,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
        },
    });
    // A syncer on a node it keeps would end with it.
    let real = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "type", "operator": "NotIn", "values": ["virtual-kubelet"]}]}]}}});
    json!({
        "replicas": deployed.replicas, "selector": {"matchLabels": selector},
        "template": {"metadata": {"labels": all}, "spec": {
            "serviceAccountName": name, "affinity": real, "containers": [container]}},
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_binding_gets_its_own_account_roles_and_deployment() {
        let binding = Binding { name: "gpu".into(), uid: "u".into(), cluster_id: "g1".into(), ..Binding::default() };
        let deployed = Deployed { image: "atoll:1".into(), replicas: 2, arguments: vec!["--without-intranet".into()] };
        let parts = parts(&binding, &deployed);
        let kinds: Vec<&str> = parts.iter().map(|part| part.object["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds.len(), 8);
        assert_eq!((kinds[0], kinds[7]), ("ServiceAccount", "Deployment"));
        for part in &parts {
            let meta = &part.object["metadata"];
            assert_eq!(
                (&meta["name"], &meta["ownerReferences"][0]["uid"]),
                (&json!("kubeocean-syncer-g1"), &json!("u"))
            );
            assert_eq!(meta["namespace"].as_str(), part.namespace);
        }
        let pod = &parts[7].object["spec"]["template"]["spec"];
        assert_eq!(pod["serviceAccountName"], "kubeocean-syncer-g1");
        assert_eq!(
            pod["containers"][0]["command"],
            json!(["atoll", "vnode-manager", "--binding", "gpu", "--without-intranet"])
        );
        let writes = |rule: &&Value| {
            rule["resources"][0].as_str().unwrap().starts_with("clusterbindings") && rule["verbs"] == json!(["patch"])
        };
        let role = parts.iter().find(|part| part.object["kind"] == "ClusterRole").unwrap();
        let rules = role.object["rules"].as_array().unwrap();
        let own: Vec<&Value> = rules.iter().filter(writes).collect();
        assert_eq!(own.len(), 2, "the binding and its status");
        assert!(own.iter().all(|rule| rule["resourceNames"] == json!(["gpu"])), "{own:?}");
    }
}
