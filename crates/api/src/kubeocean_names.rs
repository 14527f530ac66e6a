//! Names, labels, annotations, finalizers and taints of leased nodes and mapped pods.

use md5::{Digest, Md5};

/// Start of every label and annotation.
pub const PREFIX: &str = "kubeocean.io/";
/// Value of [`label::MANAGED_BY`].
pub const MANAGED_BY: &str = "kubeocean";
/// Priority class of pods in worker clusters, unless the binding names another.
pub const DEFAULT_PRIORITY_CLASS: &str = "kubeocean-default";
/// Value of that priority class.
pub const DEFAULT_PRIORITY: i32 = -10_000;
/// Namespace of the system in the computing cluster.
pub const SYSTEM_NAMESPACE: &str = "kubeocean-system";
/// Namespace of the system in worker clusters.
pub const WORKER_NAMESPACE: &str = "kubeocean-worker";
/// Namespace of placeholder pods.
pub const FAKE_NAMESPACE: &str = "kubeocean-fake";
/// Key of the kubeconfig in the Secret of a binding.
pub const KUBECONFIG_KEY: &str = "kubeconfig";

/// Labels.
pub mod label {
    /// On everything that is made or mapped.
    pub const MANAGED_BY: &str = "kubeocean.io/managed-by";
    /// Name of the ClusterBinding.
    pub const CLUSTER_BINDING: &str = "kubeocean.io/cluster-binding";
    /// Short name of the worker cluster.
    pub const PHYSICAL_CLUSTER_ID: &str = "kubeocean.io/physical-cluster-id";
    /// Name of the leased node.
    pub const PHYSICAL_NODE_NAME: &str = "kubeocean.io/physical-node-name";
    /// Uid of the leased node.
    pub const PHYSICAL_NODE_UID: &str = "kubeocean.io/physical-node-uid";
    /// Address of the leased node.
    pub const PHYSICAL_NODE_INNER_IP: &str = "kubeocean.io/physical-node-innerip";
    /// Port of the proxier for the node.
    pub const PROXIER_PORT: &str = "kubeocean.io/proxier_port";
    /// On leased nodes: the policies in force.
    pub const POLICY_APPLIED: &str = "kubeocean.io/policy-applied";
    /// On placeholder pods.
    pub const HOST_PORT_FAKE_POD: &str = "kubeocean.io/hostport-fake-pod";
    /// Namespace of the pod in the computing cluster.
    pub const VIRTUAL_NAMESPACE: &str = "kubeocean.io/virtual-namespace";
    /// Kind of the workload of the pod.
    pub const WORKLOAD_TYPE: &str = "kubeocean.io/workload-type";
    /// Name of the workload of the pod.
    pub const WORKLOAD_NAME: &str = "kubeocean.io/workload-name";
    /// On Secrets that hold tokens.
    pub const SERVICE_ACCOUNT_TOKEN: &str = "kubeocean.io/service-account-token";
    /// On Secrets that volumes need.
    pub const USED_BY_PV: &str = "kubeocean.io/used-by-pv";
}

/// Annotations.
pub mod annotation {
    /// Namespace of the pod in the computing cluster.
    pub const VIRTUAL_POD_NAMESPACE: &str = "kubeocean.io/virtual-pod-namespace";
    /// Name of the pod in the computing cluster.
    pub const VIRTUAL_POD_NAME: &str = "kubeocean.io/virtual-pod-name";
    /// Uid of the pod in the computing cluster.
    pub const VIRTUAL_POD_UID: &str = "kubeocean.io/virtual-pod-uid";
    /// Node of the pod in the computing cluster.
    pub const VIRTUAL_NODE_NAME: &str = "kubeocean.io/virtual-node-name";
    /// Namespace of the pod in the worker cluster.
    pub const PHYSICAL_POD_NAMESPACE: &str = "kubeocean.io/physical-pod-namespace";
    /// Name of the pod in the worker cluster.
    pub const PHYSICAL_POD_NAME: &str = "kubeocean.io/physical-pod-name";
    /// Uid of the pod in the worker cluster.
    pub const PHYSICAL_POD_UID: &str = "kubeocean.io/physical-pod-uid";
    /// When the object was last brought in line.
    pub const LAST_SYNC_TIME: &str = "kubeocean.io/last-sync-time";
    /// The policies in force, by name.
    pub const POLICIES_APPLIED: &str = "kubeocean.io/policies-applied";
    /// The policies in force, in full.
    pub const POLICY_DETAILS: &str = "kubeocean.io/policy-details";
    /// The labels and annotations last written.
    pub const EXPECTED_METADATA: &str = "kubeocean.io/expected-metadata";
    /// Where the metrics of the node are.
    pub const PROMETHEUS_URL: &str = "kubeocean.io/prometheus-url";
    /// Name of the leased node.
    pub const PHYSICAL_NODE_NAME: &str = "kubeocean.io/physical-node-name";
    /// Uid of the leased node.
    pub const PHYSICAL_NODE_UID: &str = "kubeocean.io/physical-node-uid";
    /// Uid of the CSINode of the leased node.
    pub const PHYSICAL_CSINODE_UID: &str = "kubeocean.io/physical-csinode-uid";
    /// Since when the node is being taken back.
    pub const DELETION_TAINT_TIME: &str = "kubeocean.io/deletion-taint-time";
    /// Name of the copy in the worker cluster.
    pub const PHYSICAL_NAME: &str = "kubeocean.io/physical-name";
    /// Namespace of the copy in the worker cluster.
    pub const PHYSICAL_NAMESPACE: &str = "kubeocean.io/physical-namespace";
    /// Name of the original.
    pub const VIRTUAL_NAME: &str = "kubeocean.io/virtual-name";
    /// Namespace of the original.
    pub const VIRTUAL_NAMESPACE: &str = "kubeocean.io/virtual-namespace";
    /// On pods of DaemonSets that are to run.
    pub const RUNNING_DAEMONSET: &str = "kubeocean.io/running-daemonset";
    /// ServiceAccount of a token.
    pub const SERVICE_ACCOUNT: &str = "kubeocean.io/service-account";
    /// ClusterBinding of a virtual node, when given it wins over the label.
    pub const PHYSICAL_CLUSTER_NAME: &str = "kubeocean.io/physical-cluster-name";
    /// On ClusterBindings: whether logs are proxied.
    pub const LOGS_PROXY_ENABLED: &str = "kubeocean.io/logs-proxy-enabled";
    /// On ClusterBindings: Secret with the certificate of the proxy.
    pub const LOGS_PROXY_SECRET_NAME: &str = "kubeocean.io/logs-proxy-secret-name";
    /// On ClusterBindings: namespace of that Secret.
    pub const LOGS_PROXY_SECRET_NAMESPACE: &str = "kubeocean.io/logs-proxy-secret-namespace";
}

/// Finalizers.
pub mod finalizer {
    /// On ClusterBindings, of the manager.
    pub const MANAGER: &str = "kubeocean.io/clusterbinding-manager";
    /// On ClusterBindings, of the syncer.
    pub const SYNCER: &str = "kubeocean.io/clusterbinding-syncer";
    /// On virtual nodes.
    pub const VIRTUAL_NODE: &str = "kubeocean.io/vnode";
    /// On ResourceLeasingPolicies.
    pub const POLICY: &str = "policy.kubeocean.io/finalizer";
}

/// Taints of virtual nodes.
pub mod taint {
    /// On every one, unless the binding says otherwise.
    pub const VIRTUAL_NODE: &str = "kubeocean.io/vnode";
    /// The leased node is cordoned.
    pub const UNSCHEDULABLE: &str = "kubeocean.io/physical-node-unschedulable";
    /// No window is open.
    pub const OUT_OF_WINDOWS: &str = "kubeocean.io/out-of-time-windows";
    /// The node is being taken back.
    pub const DELETING: &str = "kubeocean.io/vnode-deleting";
}

/// How much of a name is kept before its hash.
const KEPT: usize = 30;
/// Names from this length on are cut.
const TOO_LONG: usize = 64;

/// Name of the virtual node for a node of a worker cluster.
pub fn virtual_node(cluster_id: &str, node: &str) -> String {
    let name = format!("vnode-{cluster_id}-{node}");
    if name.len() < TOO_LONG { name } else { cut_with_hash(&name, &name) }
}

/// Name in the worker cluster of an object of the computing cluster; volumes have no namespace.
pub fn physical(namespace: &str, name: &str) -> String {
    cut_with_hash(name, &format!("{namespace}/{name}"))
}

/// Name in the worker cluster of the Secret with a pod's token.
pub fn token_secret(namespace: &str, pod: &str, volume: &str, pod_uid: &str) -> String {
    physical(namespace, &format!("{pod}-{volume}-{pod_uid}"))
}

/// Label on originals that have a copy in a worker cluster.
pub fn synced_by_label(cluster_id: &str) -> String {
    format!("{PREFIX}synced-by-{cluster_id}")
}

/// Annotation on originals whose copy is to be removed.
pub fn deleting_annotation(cluster_id: &str) -> String {
    format!("{PREFIX}deleting-{cluster_id}")
}

/// Finalizer on originals that have a copy in a worker cluster.
pub fn object_finalizer(cluster_id: &str) -> String {
    format!("{PREFIX}finalizer-{cluster_id}")
}

/// Secret in [`SYSTEM_NAMESPACE`] with the certificate of a binding's proxier.
pub fn proxier_tls_secret(cluster_id: &str) -> String {
    format!("{cluster_id}-logs-proxy-tls")
}

fn cut_with_hash(name: &str, identity: &str) -> String {
    let mut end = KEPT.min(name.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let mut out = name[..end].to_owned();
    out.push('-');
    for byte in Md5::digest(identity.as_bytes()) {
        out.push_str(&format!("{byte:02x}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_nodes_are_named_after_cluster_and_node() {
        for (cluster_id, node, expected) in [
            ("cls-worker1", "kubeocean-worker1-worker", "vnode-cls-worker1-kubeocean-worker1-worker"),
            (
                "prod-cluster-east-1",
                "ip-10-0-12-34.ap-southeast-1.compute.internal",
                "vnode-prod-cluster-east-1-ip-1-42d43ac2077e9547e54d870904a729ed",
            ),
        ] {
            assert_eq!(virtual_node(cluster_id, node), expected);
        }
    }

    #[test]
    fn a_virtual_node_name_never_exceeds_63_bytes() {
        for length in 1..120 {
            assert!(virtual_node("c", &"n".repeat(length)).len() <= 63);
        }
    }

    #[test]
    fn copies_are_named_after_the_original_and_a_hash() {
        for (namespace, name, expected) in [
            ("default", "test-pod", "test-pod-49d2ec05688689cc55230ecf7101f2de"),
            ("default", "my-config", "my-config-078167b8edae8c89d2ffe824c39f4648"),
            ("", "pv-1", "pv-1-8cb1e6436dce562d7538b2167b7c4b84"),
        ] {
            assert_eq!(physical(namespace, name), expected);
        }
    }

    #[test]
    fn token_secrets_are_named_after_pod_and_volume() {
        assert_eq!(
            token_secret("default", "web-0", "kube-api-access-x7z9k", "11111111-2222-3333-4444-555555555555"),
            "web-0-kube-api-access-x7z9k-11-57b84d42d1288b585870a7fba794e1a7"
        );
    }
}
