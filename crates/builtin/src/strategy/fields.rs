//! Fields a `fieldSelector` may name, kind by kind.

use serde_json::Value;

use super::tree::{flag, int, items, text};

const NAMESPACED: &[&str] = &["metadata.name", "metadata.namespace"];

const POD: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
    "spec.host",
];

const CORE_EVENT: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

const EVENT: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "reason",
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reportingController",
    "type",
];

/// The field labels the kind supports.
pub fn selectable(group: &str, kind: &str) -> &'static [&'static str] {
    match (group, kind) {
        ("", "Pod") => POD,
        ("", "Event") => CORE_EVENT,
        ("events.k8s.io", "Event") => EVENT,
        ("", "Node") => &["metadata.name", "spec.unschedulable"],
        ("", "Namespace") => &["metadata.name", "status.phase"],
        ("", "Secret") => &["metadata.name", "metadata.namespace", "type"],
        ("", "Service") => &["metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"],
        ("", "ReplicationController") => &["metadata.name", "metadata.namespace", "status.replicas"],
        ("batch", "Job") => &["metadata.name", "metadata.namespace", "status.successful"],
        ("certificates.k8s.io", "CertificateSigningRequest" | "ClusterTrustBundle") => {
            &["metadata.name", "spec.signerName"]
        }
        ("certificates.k8s.io", "PodCertificateRequest") => {
            &["metadata.name", "metadata.namespace", "spec.signerName", "spec.podName", "spec.nodeName"]
        }
        ("resource.k8s.io", "ResourceSlice") => &["metadata.name", "spec.nodeName", "spec.driver"],
        _ => NAMESPACED,
    }
}

/// The value of a selectable field; the outer `None` means the label is not supported.
pub fn field(group: &str, kind: &str, object: &Value, path: &str) -> Option<Option<String>> {
    if !selectable(group, kind).contains(&path) {
        return None;
    }
    let value = match (kind, path) {
        ("Pod", "spec.host") => text(object, "spec.nodeName").to_owned(),
        ("Pod", "spec.hostNetwork") => flag(object, path).to_string(),
        ("Pod", "status.podIP" | "status.podIPs") => items(object, "status.podIPs")
            .first()
            .map_or(text(object, "status.podIP"), |first| text(first, "ip"))
            .to_owned(),
        ("Node", "spec.unschedulable") => flag(object, path).to_string(),
        ("Job", "status.successful") => int(object, "status.succeeded").unwrap_or(0).to_string(),
        ("ReplicationController", "status.replicas") => int(object, path).unwrap_or(0).to_string(),
        ("Event", "source") => first(&[text(object, "source.component"), text(object, "reportingComponent")]),
        ("Event", _) if path.starts_with("regarding.") || path.starts_with("involvedObject.") => {
            let (_, leaf) = path.split_once('.').unwrap_or_default();
            // One event is served in two groups under different names.
            first(&[text(object, &format!("involvedObject.{leaf}")), text(object, &format!("regarding.{leaf}"))])
        }
        ("Event", "reportingController" | "reportingComponent") => {
            first(&[text(object, "reportingComponent"), text(object, "reportingController")])
        }
        _ => text(object, path).to_owned(),
    };
    Some(Some(value))
}

fn first(candidates: &[&str]) -> String {
    candidates.iter().find(|text| !text.is_empty()).copied().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_read_and_unknown_labels_are_told_apart() {
        let pod =
            json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n1"}, "status": {"podIPs": [{"ip": "10.0.0.1"}]}});
        let cases = [
            ("spec.nodeName", Some("n1")),
            ("spec.host", Some("n1")),
            ("spec.hostNetwork", Some("false")),
            ("status.podIP", Some("10.0.0.1")),
            ("status.phase", Some("")),
            ("spec.nope", None),
        ];
        for (path, expected) in cases {
            let found = field("", "Pod", &pod, path).map(Option::unwrap_or_default);
            assert_eq!(found.as_deref(), expected, "{path}");
        }
        let event = json!({"involvedObject": {"name": "p"}, "reportingComponent": "kubelet"});
        assert_eq!(field("events.k8s.io", "Event", &event, "regarding.name"), Some(Some("p".into())));
        assert_eq!(field("", "Event", &event, "source"), Some(Some("kubelet".into())));
        assert_eq!(field("apps", "ReplicaSet", &event, "status.replicas"), None);
    }
}
