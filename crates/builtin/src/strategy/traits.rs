//! What is true of a kind as a whole: does it have a status, how is it named, deleted, replaced.

use serde_json::Value;

use super::NameRule;
use super::tree::{int, text};

const ADMISSION: &str = "admissionregistration.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";
const COORDINATION: &str = "coordination.k8s.io";
const FLOW: &str = "flowcontrol.apiserver.k8s.io";
const NETWORKING: &str = "networking.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const RESOURCE: &str = "resource.k8s.io";
const STORAGE: &str = "storage.k8s.io";

/// Does the kind count changes of its desired state in `metadata.generation`?
pub fn tracks_generation(group: &str, kind: &str) -> bool {
    match group {
        "" => matches!(kind, "Pod" | "PodTemplate" | "ReplicationController"),
        "apps" => kind != "ControllerRevision",
        "batch" | "policy" | FLOW | ADMISSION | "discovery.k8s.io" | "apiextensions.k8s.io" => true,
        NETWORKING => matches!(kind, "Ingress" | "IngressClass" | "NetworkPolicy"),
        "scheduling.k8s.io" => kind == "PriorityClass",
        RESOURCE => matches!(kind, "ResourceSlice" | "DeviceClass" | "DeviceTaintRule"),
        _ => false,
    }
}

/// Does the kind have a `/status` subresource, and so a status the main resource ignores?
pub fn has_status(group: &str, kind: &str) -> bool {
    match group {
        "" => matches!(
            kind,
            "Namespace"
                | "Node"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                | "Pod"
                | "ReplicationController"
                | "ResourceQuota"
                | "Service"
        ),
        "apps" => kind != "ControllerRevision",
        "batch" | "autoscaling" | "policy" | FLOW => true,
        "apiextensions.k8s.io" | "apiregistration.k8s.io" | "internal.apiserver.k8s.io" | "storagemigration.k8s.io" => {
            true
        }
        CERTIFICATES => matches!(kind, "CertificateSigningRequest" | "PodCertificateRequest"),
        NETWORKING => matches!(kind, "Ingress" | "ServiceCIDR"),
        STORAGE => kind == "VolumeAttachment",
        ADMISSION => kind == "ValidatingAdmissionPolicy",
        RESOURCE => matches!(kind, "ResourceClaim" | "DeviceTaintRule"),
        _ => false,
    }
}

/// May a PUT to a name that does not exist create the object?
pub fn allows_create_on_update(group: &str, kind: &str) -> bool {
    match group {
        "" => matches!(kind, "Endpoints" | "Event" | "LimitRange" | "Service"),
        "events.k8s.io" | COORDINATION | "node.k8s.io" | RBAC => true,
        _ => false,
    }
}

/// May a PUT leave `metadata.resourceVersion` empty?
pub fn allows_unconditional_update(group: &str, kind: &str) -> bool {
    match group {
        ADMISSION
        | COORDINATION
        | "node.k8s.io"
        | "policy"
        | "apiextensions.k8s.io"
        | "apiregistration.k8s.io"
        | "internal.apiserver.k8s.io"
        | "storagemigration.k8s.io" => false,
        CERTIFICATES => kind == "CertificateSigningRequest",
        STORAGE => matches!(kind, "StorageClass" | "VolumeAttributesClass"),
        _ => true,
    }
}

/// How objects of the kind may be named.
pub fn name_rule(group: &str, kind: &str) -> NameRule {
    match (group, kind) {
        ("", "Event") => NameRule::PathSegment,
        ("", "Namespace") => NameRule::Label,
        ("", "Service") => NameRule::Label1035,
        (RBAC, _) => NameRule::PathSegment,
        // These have rules of their own, judged with the rest of the object.
        ("apiregistration.k8s.io" | "internal.apiserver.k8s.io", _)
        | (NETWORKING, "IPAddress")
        | (CERTIFICATES, "ClusterTrustBundle" | "CertificateSigningRequest")
        | (COORDINATION, "LeaseCandidate")
        | ("policy", _) => NameRule::PathSegment,
        _ => NameRule::Subdomain,
    }
}

/// The grace period of a deletion for kinds that die gracefully (pods), else `None`.
pub fn default_grace(group: &str, kind: &str, object: &Value, requested: Option<i64>) -> Option<i64> {
    if (group, kind) != ("", "Pod") {
        return None;
    }
    let finished = matches!(text(object, "status.phase"), "Failed" | "Succeeded");
    if text(object, "spec.nodeName").is_empty() || finished {
        return Some(0);
    }
    let period = requested.or_else(|| int(object, "spec.terminationGracePeriodSeconds")).unwrap_or(0);
    Some(if period < 0 { 1 } else { period })
}

/// What happens to dependents when a deletion names no policy.
pub fn delete_default_policy(group: &str, version: &str, kind: &str) -> &'static str {
    match (group, version, kind) {
        ("", "v1", "ReplicationController") | ("batch", "v1", "Job") => "Orphan",
        _ => "Background",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unscheduled_and_finished_pods_die_at_once() {
        let running =
            json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}, "status": {"phase": "Running"}});
        assert_eq!(default_grace("", "Pod", &running, None), Some(30));
        assert_eq!(default_grace("", "Pod", &running, Some(5)), Some(5));
        assert_eq!(default_grace("", "Pod", &running, Some(-3)), Some(1));
        assert_eq!(default_grace("", "Pod", &json!({"spec": {}}), Some(5)), Some(0));
        let done = json!({"spec": {"nodeName": "n"}, "status": {"phase": "Failed"}});
        assert_eq!(default_grace("", "Pod", &done, Some(5)), Some(0));
        assert_eq!(default_grace("apps", "Deployment", &running, Some(5)), None);
    }

    #[test]
    fn kinds_have_their_traits() {
        let cases = [
            ("", "Service", true, false, true, true),
            ("", "ConfigMap", false, false, false, true),
            ("apps", "Deployment", true, true, false, true),
            ("coordination.k8s.io", "Lease", false, false, true, false),
            ("policy", "PodDisruptionBudget", true, true, false, false),
            ("autoscaling", "HorizontalPodAutoscaler", true, false, false, true),
            ("rbac.authorization.k8s.io", "Role", false, false, true, true),
        ];
        for (group, kind, status, generation, creates, unconditional) in cases {
            assert_eq!(has_status(group, kind), status, "{kind} status");
            assert_eq!(tracks_generation(group, kind), generation, "{kind} generation");
            assert_eq!(allows_create_on_update(group, kind), creates, "{kind} create on update");
            assert_eq!(allows_unconditional_update(group, kind), unconditional, "{kind} unconditional");
        }
        assert_eq!(delete_default_policy("batch", "v1", "Job"), "Orphan");
        assert_eq!(delete_default_policy("apps", "v1", "Deployment"), "Background");
    }
}
