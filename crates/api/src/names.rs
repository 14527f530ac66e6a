//! Names of the objects that propagation makes; other programs compute the same ones.

use crate::words::label;

/// Start of the names of execution namespaces.
pub const EXECUTION_PREFIX: &str = "karmada-es-";
/// Namespace of the system.
pub const SYSTEM_NAMESPACE: &str = "karmada-system";
/// Namespace of the credentials of members, in the instance and in each member.
pub const CLUSTER_NAMESPACE: &str = "karmada-cluster";
/// ServiceAccount in a member that may impersonate.
pub const IMPERSONATOR: &str = "karmada-impersonator";

const SAFE: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Namespace that holds the works of a member.
pub fn execution_namespace(member: &str) -> String {
    format!("{EXECUTION_PREFIX}{member}")
}

/// The member whose works a namespace holds.
pub fn member_of_execution_namespace(namespace: &str) -> Option<&str> {
    namespace.strip_prefix(EXECUTION_PREFIX).filter(|member| !member.is_empty())
}

/// Whether a namespace belongs to the system and is never spread over members.
pub fn is_reserved_namespace(namespace: &str) -> bool {
    namespace == SYSTEM_NAMESPACE || namespace == CLUSTER_NAMESPACE || namespace.starts_with(EXECUTION_PREFIX)
}

/// Name of the binding of a template. The namespace and the group are not part of it.
pub fn binding(kind: &str, name: &str) -> String {
    format!("{}-{kind}", name.replace(':', ".")).to_lowercase()
}

/// Name of the work of a template; the namespace is empty for cluster-scoped ones.
pub fn work(kind: &str, name: &str, namespace: &str) -> String {
    let name = name.replace(':', ".");
    let identity = if namespace.is_empty() { format!("{name}-{kind}") } else { format!("{namespace}-{name}-{kind}") };
    format!("{name}-{}", safe_hash(&identity.to_lowercase())).to_lowercase()
}

/// Label of a binding that goes along with another, which is named.
pub fn depended_by_label(namespace: &str, name: &str) -> String {
    let owner = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    format!("{}{}", label::DEPENDED_BY_PREFIX, safe_hash(&owner))
}

/// Name of the policy that a command makes for one object.
pub fn generated_policy(name: &str, namespace: &str, gvk: &str) -> String {
    format!("{}-{}", name.replace(':', "."), safe_hash(&format!("{namespace}{gvk}"))).to_lowercase()
}

/// ServiceAccount in a member through which the hub works.
pub fn service_account(member: &str) -> String {
    format!("karmada-{member}")
}

/// ClusterRole of a ServiceAccount in a member.
pub fn member_role(service_account: &str) -> String {
    format!("karmada-controller-manager:{service_account}")
}

/// Secret in [`CLUSTER_NAMESPACE`] with the impersonation token of a member.
pub fn impersonator_secret(member: &str) -> String {
    format!("{member}-impersonator")
}

/// Service of the accurate estimator of a member.
pub fn estimator_service(member: &str) -> String {
    format!("karmada-scheduler-estimator-{member}")
}

/// EndpointSlice that comes from another member.
pub fn imported_endpoint_slice(member: &str, name: &str) -> String {
    format!("imported-{member}-{name}")
}

/// Service that stands for an imported one.
pub fn derived_service(name: &str) -> String {
    format!("derived-{name}")
}

/// FNV-1a with 32 bits.
pub fn fnv1a_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// The hash of a text, in letters and digits that form no words.
fn safe_hash(text: &str) -> String {
    safe_encode(&fnv1a_32(text.as_bytes()).to_string())
}

fn safe_encode(text: &str) -> String {
    text.bytes().map(|byte| char::from(SAFE[usize::from(byte) % SAFE.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_is_named_after_its_template_and_a_hash() {
        assert_eq!(work("Deployment", "nginx", "default"), "nginx-687f7fb96f");
        assert_eq!(work("deployment", "NGINX", "default"), "nginx-687f7fb96f");
        assert_ne!(work("Deployment", "nginx", "other"), work("Deployment", "nginx", "default"));
    }

    #[test]
    fn colons_never_reach_a_name() {
        assert_eq!(binding("ClusterRole", "system:node"), "system.node-clusterrole");
        assert_eq!(work("ClusterRole", "system:node", ""), work("ClusterRole", "system.node", ""));
        assert_eq!(generated_policy("a:B", "", ""), "a.b-65bb57b6b5");
    }

    #[test]
    fn the_hash_is_fnv1a() {
        for (text, hash) in [("", 0x811c_9dc5), ("a", 0xe40c_292c), ("foobar", 0xbf9c_f968)] {
            assert_eq!(fnv1a_32(text.as_bytes()), hash, "{text}");
        }
    }

    #[test]
    fn execution_namespaces_lead_back_to_their_member() {
        assert_eq!(execution_namespace("member1"), "karmada-es-member1");
        assert_eq!(member_of_execution_namespace("karmada-es-member1"), Some("member1"));
        assert_eq!(member_of_execution_namespace("karmada-es-"), None);
        assert_eq!(member_of_execution_namespace("default"), None);
        assert!(is_reserved_namespace("karmada-es-x") && !is_reserved_namespace("default"));
    }
}
