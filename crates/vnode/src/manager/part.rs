//! What a binding consists of when its syncer and proxier are Deployments of their own.

use atoll_api::kubeocean::ClusterBinding;
use atoll_api::kubeocean_names::{SYSTEM_NAMESPACE, label};
use atoll_meta::Gvr;
use atoll_runtime::Selection;
use serde_json::{Value, json};

use crate::binding::Binding;
use crate::proxier::MAIN_PORT;
use crate::resource;
use crate::role::{proxier_roles, syncer_roles};

const RBAC: &str = "rbac.authorization.k8s.io";
/// What the Deployments, and what belongs to them, are labelled with.
pub(super) const KEEPER: &str = "app.kubernetes.io/managed-by";
pub(super) const MANAGER: &str = "kubeocean-manager";

/// How syncers and proxiers are run as Deployments.
#[derive(Clone, Debug)]
pub struct Deployed {
    /// The image, whose `atoll` is run.
    pub image: String,
    /// How many of each; of syncers one works and the others wait, proxiers all serve.
    pub replicas: u32,
    /// What else syncers are told on their command line.
    pub arguments: Vec<String>,
}

/// One object of a binding.
pub(super) struct Part {
    pub(super) gvr: Gvr,
    pub(super) namespace: Option<String>,
    pub(super) object: Value,
}

/// The two halves of a binding.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Half {
    Syncer,
    Proxier,
}

impl Half {
    fn word(self) -> &'static str {
        match self {
            Self::Syncer => "syncer",
            Self::Proxier => "proxier",
        }
    }

    /// The name of everything that belongs to this half of a binding.
    pub(super) fn name(self, cluster_id: &str) -> String {
        format!("kubeocean-{}-{cluster_id}", self.word())
    }

    fn labels(self, binding: &str) -> Value {
        json!({
            "app.kubernetes.io/name": format!("kubeocean-{}", self.word()), "app.kubernetes.io/instance": binding,
            "app.kubernetes.io/component": self.word(), "app.kubernetes.io/part-of": "kubeocean",
            KEEPER: MANAGER, label::CLUSTER_BINDING: binding,
        })
    }
}

/// The pods of a binding's proxier.
pub(crate) fn proxier_pods(binding: &str) -> Selection {
    let query = format!(
        "labelSelector=app.kubernetes.io/name%3Dkubeocean-proxier%2Capp.kubernetes.io/instance%3D{binding}%2C\
         app.kubernetes.io/component%3Dproxier"
    );
    Selection { namespace: Some(SYSTEM_NAMESPACE.to_owned()), query }
}

fn deployments() -> Gvr {
    Gvr::new("apps", "v1", "deployments")
}

/// The kinds of what is made for bindings, and where: Deployments first. Roles are wherever a kubeconfig is.
pub(super) fn made() -> [(Gvr, Option<&'static str>); 7] {
    let access = |plural: &str| Gvr::new(RBAC, "v1", plural);
    [
        (deployments(), Some(SYSTEM_NAMESPACE)),
        (resource::services(), Some(SYSTEM_NAMESPACE)),
        (Gvr::new("", "v1", "serviceaccounts"), Some(SYSTEM_NAMESPACE)),
        (access("clusterroles"), None),
        (access("clusterrolebindings"), None),
        (access("roles"), None),
        (access("rolebindings"), None),
    ]
}

/// Everything a binding needs, in the order it is made.
pub(super) fn parts(binding: &ClusterBinding, deployed: &Deployed) -> Vec<Part> {
    let own = Binding::of(binding);
    let [syncer, proxier] = [Half::Syncer, Half::Proxier].map(|half| Maker { half, binding: &own, deployed });
    let secret = &binding.spec.secret_ref;
    let kubeconfig = (secret.namespace.as_deref().unwrap_or_default(), secret.name.as_deref().unwrap_or_default());
    let mut out = syncer.account(syncer_roles(&syncer.name(), &own.name).into());
    out.push(syncer.deployment());
    out.extend(proxier.account(proxier_roles(&proxier.name(), &own.name, kubeconfig)));
    out.push(proxier.service());
    out.push(proxier.deployment());
    out
}

/// Makes the objects of one half.
struct Maker<'a> {
    half: Half,
    binding: &'a Binding,
    deployed: &'a Deployed,
}

impl Maker<'_> {
    fn name(&self) -> String {
        self.half.name(&self.binding.cluster_id)
    }

    fn part(&self, gvr: Gvr, namespace: Option<&str>, mut object: Value) -> Part {
        let name = object["metadata"]["name"].as_str().map_or_else(|| self.name(), ToOwned::to_owned);
        object["metadata"] = json!({
            "name": name, "labels": self.half.labels(&self.binding.name),
            // With the binding everything goes, also when nobody is there to remove it.
            "ownerReferences": [{"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ClusterBinding",
                                 "name": self.binding.name, "uid": self.binding.uid, "controller": true}],
        });
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        Part { gvr, namespace: namespace.map(ToOwned::to_owned), object }
    }

    /// An account with these roles.
    fn account(&self, roles: Vec<Value>) -> Vec<Part> {
        let name = self.name();
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount"});
        let mut out = vec![self.part(Gvr::new("", "v1", "serviceaccounts"), Some(SYSTEM_NAMESPACE), account)];
        for role in roles {
            let namespace = role["metadata"]["namespace"].as_str().map(ToOwned::to_owned);
            let kind = role["kind"].as_str().unwrap_or_default().to_owned();
            let plural = kind.to_lowercase();
            let grant = json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": format!("{kind}Binding"),
                "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": SYSTEM_NAMESPACE}],
            });
            out.push(self.part(Gvr::new(RBAC, "v1", &format!("{plural}s")), namespace.as_deref(), role));
            out.push(self.part(Gvr::new(RBAC, "v1", &format!("{plural}bindings")), namespace.as_deref(), grant));
        }
        out
    }

    /// Which pods are of this half.
    fn selector(&self) -> Value {
        json!({
            "app.kubernetes.io/name": format!("kubeocean-{}", self.half.word()),
            "app.kubernetes.io/instance": self.binding.name,
            "app.kubernetes.io/component": self.half.word(), "k8s-app": self.name(),
        })
    }

    fn service(&self) -> Part {
        let port = json!({"name": "kubelet-api", "port": MAIN_PORT, "targetPort": MAIN_PORT, "protocol": "TCP"});
        let object = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("{}-svc", self.name())},
            "spec": {"type": "ClusterIP", "selector": self.selector(), "ports": [port]},
        });
        self.part(resource::services(), Some(SYSTEM_NAMESPACE), object)
    }

    fn deployment(&self) -> Part {
        let name = self.name();
        let mut labels = self.half.labels(&self.binding.name);
        labels["k8s-app"] = name.as_str().into();
        // One on a node that the binding keeps would end with it.
        let real = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "type", "operator": "NotIn", "values": ["virtual-kubelet"]}]}]}}});
        let spec = json!({
            "replicas": self.deployed.replicas, "selector": {"matchLabels": self.selector()},
            "template": {"metadata": {"labels": labels}, "spec": {
                "serviceAccountName": name, "affinity": real, "containers": [self.container()]}},
        });
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec});
        self.part(deployments(), Some(SYSTEM_NAMESPACE), object)
    }

    fn container(&self) -> Value {
        let own = |name: &str, field: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": field}}});
        let port = |name: &str, number: u16| json!({"name": name, "containerPort": number, "protocol": "TCP"});
        let ask = |path: &str| json!({"httpGet": {"path": path, "port": 8081}, "periodSeconds": 10});
        let mut command = vec!["atoll".to_owned(), "vnode-manager".to_owned()];
        command.extend([format!("--{}", self.half.word()), self.binding.name.clone()]);
        let mut env = vec![own("POD_NAME", "metadata.name")];
        let mut ports = vec![port("metrics", 8080), port("health", 8081)];
        match self.half {
            Half::Syncer => command.extend(self.deployed.arguments.iter().cloned()),
            Half::Proxier => {
                let service = format!("{}-svc.{SYSTEM_NAMESPACE}.svc", self.name());
                command.extend(["--kubelet-name".to_owned(), service]);
                env.push(own("POD_IP", "status.podIP"));
                ports.push(port("kubelet-api", MAIN_PORT));
            }
        }
        json!({
            "name": self.half.word(), "image": self.deployed.image, "command": command, "env": env, "ports": ports,
            "livenessProbe": ask("/healthz"), "readinessProbe": ask("/readyz"),
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true, "runAsUser": 65532,
                "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
            },
        })
    }
}

#[cfg(test)]
#[path = "part_tests.rs"]
mod tests;
