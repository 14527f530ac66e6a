use serde_json::{Value, json};

use super::*;

/// 2026-01-01T01:00:00Z
const NOW: i64 = 1_767_229_200;
const MADE: &str = "2026-01-01T00:00:00Z";

fn shown(group: &str, kind: &str, mut object: Value) -> Value {
    object["metadata"]["name"] = json!("x");
    object["metadata"]["creationTimestamp"] = json!(MADE);
    let cells = cells(group, kind, &object, NOW);
    assert_eq!(cells.len(), columns(group, kind).len(), "{kind} has a cell for each column");
    Value::from(cells)
}

fn headings(group: &str, kind: &str) -> String {
    let mark =
        |column: &Column| if column.priority == 0 { column.name.to_owned() } else { format!("{}*", column.name) };
    columns(group, kind).iter().map(mark).collect::<Vec<_>>().join("|")
}

#[test]
fn headings_are_the_known_ones() {
    let cases = [
        ("", "Pod", "Name|Ready|Status|Restarts|Age|IP*|Node*|Nominated Node*|Readiness Gates*"),
        ("apps", "Deployment", "Name|Ready|Up-to-date|Available|Age|Containers*|Images*|Selector*"),
        (
            "apps",
            "DaemonSet",
            "Name|Desired|Current|Ready|Up-to-date|Available|Node Selector|Age|Containers*|Images*|Selector*",
        ),
        ("batch", "Job", "Name|Status|Completions|Duration|Age|Containers*|Images*|Selector*"),
        ("", "Service", "Name|Type|Cluster-IP|External-IP|Port(s)|Age|Selector*"),
        (
            "",
            "Node",
            "Name|Status|Roles|Age|Version|Internal-IP*|External-IP*|OS-Image*|Kernel-Version*|Container-Runtime*",
        ),
        ("", "Event", "Last Seen|Type|Reason|Object|Subobject*|Source*|Message|First Seen*|Count*|Name*"),
        (
            "",
            "PersistentVolumeClaim",
            "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|VolumeMode*",
        ),
        ("rbac.authorization.k8s.io", "Role", "Name|Created At"),
        ("apiextensions.k8s.io", "CustomResourceDefinition", "Name|Created At"),
    ];
    for (group, kind, expected) in cases {
        assert_eq!(headings(group, kind), expected, "{kind}");
    }
}

#[test]
fn durations_are_short() {
    for (seconds, expected) in [(45, "45s"), (130, "2m10s"), (442_800, "5d3h"), (-5, "<invalid>"), (3600, "60m")] {
        assert_eq!(age(seconds), expected);
    }
}

fn pod_line(spec: Value, status: Value, leaving: bool) -> Value {
    let mut pod = json!({"metadata": {}, "spec": spec, "status": status});
    if leaving {
        pod["metadata"]["deletionTimestamp"] = json!(MADE);
    }
    let line = shown("", "Pod", pod);
    json!([line[1], line[2], line[3]])
}

#[test]
fn pods_tell_what_they_are_doing() {
    let one = json!({"containers": [{"name": "a"}]});
    let two = json!({"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]});
    let running = json!({"name": "a", "ready": true, "restartCount": 0, "state": {"running": {}}});
    let cases = [
        (one.clone(), json!({"phase": "Pending"}), false, json!(["0/1", "Pending", "0"])),
        (
            one.clone(),
            json!({"phase": "Running", "containerStatuses": [running]}),
            false,
            json!(["1/1", "Running", "0"]),
        ),
        (
            one.clone(),
            json!({"phase": "Running", "containerStatuses": [running]}),
            true,
            json!(["1/1", "Terminating", "0"]),
        ),
        (
            one.clone(),
            json!({"phase": "Running", "containerStatuses": [{"name": "a", "restartCount": 3,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"finishedAt": "2026-01-01T00:55:00Z"}}}]}),
            false,
            json!(["0/1", "CrashLoopBackOff", "3 (5m ago)"]),
        ),
        (
            one.clone(),
            json!({"phase": "Failed", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 2}}}]}),
            false,
            json!(["0/1", "ExitCode:2", "0"]),
        ),
        (
            one.clone(),
            json!({"phase": "Succeeded", "containerStatuses": [{"name": "a", "state": {"terminated": {"reason": "Completed", "exitCode": 0}}}]}),
            false,
            json!(["0/1", "Completed", "0"]),
        ),
        (
            two.clone(),
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}),
            false,
            json!(["0/1", "Init:0/1", "0"]),
        ),
        (
            two.clone(),
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}),
            false,
            json!(["0/1", "Init:CrashLoopBackOff", "2"]),
        ),
        (
            two,
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}),
            false,
            json!(["0/1", "Init:Error", "0"]),
        ),
        (
            json!({"containers": [{"name": "a"}], "initContainers": [{"name": "s", "restartPolicy": "Always"}]}),
            json!({"phase": "Running", "containerStatuses": [running],
                "initContainerStatuses": [{"name": "s", "started": true, "ready": true, "state": {"running": {}}}]}),
            false,
            json!(["2/2", "Running", "0"]),
        ),
        (
            one,
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
            false,
            json!(["0/1", "SchedulingGated", "0"]),
        ),
    ];
    for (spec, status, leaving, expected) in cases {
        assert_eq!(pod_line(spec, status.clone(), leaving), expected, "{status}");
    }
}

#[test]
fn lines_are_the_known_ones() {
    let template = json!({"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]}});
    let cases = [
        (
            "apps",
            "Deployment",
            json!({"spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template},
            "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1}}),
            json!(["x", "2/3", 3, 1, "60m", "c,d", "i,j", "a=b"]),
        ),
        (
            "apps",
            "ReplicaSet",
            json!({"spec": {"replicas": 1, "selector": {"matchExpressions": [
            {"key": "k", "operator": "In", "values": ["b", "a"]}, {"key": "e", "operator": "Exists"}]}, "template": template}}),
            json!(["x", 1, 0, 0, "60m", "c,d", "i,j", "e,k in (a,b)"]),
        ),
        (
            "apps",
            "StatefulSet",
            json!({"spec": {"replicas": 2, "template": template}}),
            json!(["x", "0/2", "60m", "c,d", "i,j"]),
        ),
        (
            "batch",
            "Job",
            json!({"spec": {"completions": 2, "template": template}, "status": {"succeeded": 1,
            "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:30Z", "conditions": [{"type": "Complete", "status": "True"}]}}),
            json!(["x", "Complete", "1/2", "30s", "60m", "c,d", "i,j", "<none>"]),
        ),
        (
            "batch",
            "CronJob",
            json!({"spec": {"schedule": "@daily", "suspend": false}, "status": {"active": [{}]}}),
            json!(["x", "@daily", "<none>", "False", 1, "<none>", "60m", "", "", "<none>"]),
        ),
        (
            "",
            "Service",
            json!({"spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "ports": [
            {"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}], "selector": {"a": "b"}}}),
            json!(["x", "LoadBalancer", "10.0.0.1", "<pending>", "80:30080/TCP,53/UDP", "60m", "a=b"]),
        ),
        (
            "",
            "Endpoints",
            json!({"subsets": [{"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], "ports": [{"port": 1}, {"port": 2}]}]}),
            json!(["x", "10.0.0.1:1,10.0.0.2:1,10.0.0.1:2 + 1 more...", "60m"]),
        ),
        (
            "discovery.k8s.io",
            "EndpointSlice",
            json!({"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": ["10.0.0.1"]}]}),
            json!(["x", "IPv4", "80", "10.0.0.1", "60m"]),
        ),
        (
            "",
            "Node",
            json!({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}, "spec": {"unschedulable": true},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1.35.0"},
                "addresses": [{"type": "InternalIP", "address": "10.1.1.1"}]}}),
            json!([
                "x",
                "Ready,SchedulingDisabled",
                "control-plane",
                "60m",
                "v1.35.0",
                "10.1.1.1",
                "<none>",
                "<unknown>",
                "<unknown>",
                "<unknown>"
            ]),
        ),
        ("", "ConfigMap", json!({"data": {"a": "1"}, "binaryData": {"b": "AA=="}}), json!(["x", 2, "60m"])),
        ("", "Secret", json!({"type": "Opaque", "data": {"a": "AA=="}}), json!(["x", "Opaque", 1, "60m"])),
        ("", "Namespace", json!({"status": {"phase": "Active"}}), json!(["x", "Active", "60m"])),
        (
            "",
            "Event",
            json!({"involvedObject": {"kind": "Pod", "name": "p"}, "message": " hi\n", "reason": "R", "type": "Normal",
            "lastTimestamp": "2026-01-01T00:59:00Z", "source": {"component": "kubelet", "host": "n"}}),
            json!(["60s", "Normal", "R", "pod/p", "", "kubelet, n", "hi", "<unknown>", 1, "x"]),
        ),
        (
            "",
            "PersistentVolume",
            json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "n", "name": "c"}}, "status": {"phase": "Bound"}}),
            json!(["x", "1Gi", "RWO,RWX", "Retain", "Bound", "n/c", "", "<unset>", "", "60m", "<unset>"]),
        ),
        (
            "storage.k8s.io",
            "StorageClass",
            json!({"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "p"}),
            json!(["x (default)", "p", "Delete", "Immediate", false, "60m"]),
        ),
        (
            "networking.k8s.io",
            "Ingress",
            json!({"spec": {"rules": [{"host": "a.b"}], "tls": [{}]}}),
            json!(["x", "<none>", "a.b", "", "80, 443", "60m"]),
        ),
        (
            "autoscaling",
            "HorizontalPodAutoscaler",
            json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "minReplicas": 1,
            "maxReplicas": 5, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}}]}}),
            json!(["x", "Deployment/d", "cpu: <unknown>/80%", "1", 5, 0, "60m"]),
        ),
        (
            "policy",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": "50%"}}),
            json!(["x", "50%", "N/A", 0, "60m"]),
        ),
        (
            "rbac.authorization.k8s.io",
            "RoleBinding",
            json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [
            {"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "namespace": "n", "name": "s"}]}),
            json!(["x", "Role/r", "60m", "u", "", "n/s"]),
        ),
        (
            "certificates.k8s.io",
            "CertificateSigningRequest",
            json!({"spec": {"signerName": "s", "username": "u", "expirationSeconds": 3600},
            "status": {"conditions": [{"type": "Approved"}], "certificate": "AA=="}}),
            json!(["x", "60m", "s", "u", "60m", "Approved,Issued"]),
        ),
        (
            "",
            "ResourceQuota",
            json!({"status": {"hard": {"limits.cpu": "2", "pods": "10"}, "used": {"pods": "3"}}}),
            json!(["x", "pods: 3/10", "limits.cpu: 0/2", "60m"]),
        ),
        (
            "apiregistration.k8s.io",
            "APIService",
            json!({"spec": {"service": {"namespace": "n", "name": "s"}},
            "status": {"conditions": [{"type": "Available", "status": "False", "reason": "Missing"}]}}),
            json!(["x", "n/s", "False (Missing)", "60m"]),
        ),
        (
            "apps",
            "ControllerRevision",
            json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": true}]},
            "revision": 2}),
            json!(["x", "daemonset.apps/d", 2, "60m"]),
        ),
        (
            "flowcontrol.apiserver.k8s.io",
            "PriorityLevelConfiguration",
            json!({"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 5,
            "limitResponse": {"type": "Reject"}}}}),
            json!(["x", "Limited", 5, "<none>", "<none>", "<none>", "60m"]),
        ),
        ("apiextensions.k8s.io", "CustomResourceDefinition", json!({}), json!(["x", MADE])),
    ];
    for (group, kind, object, expected) in cases {
        assert_eq!(shown(group, kind, object), expected, "{kind}");
    }
}

#[test]
fn every_kind_has_a_cell_for_each_column() {
    let kinds = [
        ("", "PodTemplate"),
        ("", "ReplicationController"),
        ("", "ServiceAccount"),
        ("", "LimitRange"),
        ("", "ComponentStatus"),
        ("", "PersistentVolumeClaim"),
        ("apps", "DaemonSet"),
        ("autoscaling", "Scale"),
        ("events.k8s.io", "Event"),
        ("networking.k8s.io", "IngressClass"),
        ("networking.k8s.io", "NetworkPolicy"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("networking.k8s.io", "IPAddress"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "CSIStorageCapacity"),
        ("storage.k8s.io", "VolumeAttributesClass"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("coordination.k8s.io", "Lease"),
        ("coordination.k8s.io", "LeaseCandidate"),
        ("node.k8s.io", "RuntimeClass"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("resource.k8s.io", "ResourceClaim"),
        ("resource.k8s.io", "ResourceSlice"),
        ("resource.k8s.io", "DeviceTaintRule"),
        ("resource.k8s.io", "DeviceClass"),
        ("certificates.k8s.io", "ClusterTrustBundle"),
        ("certificates.k8s.io", "PodCertificateRequest"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("internal.apiserver.k8s.io", "StorageVersion"),
        ("storagemigration.k8s.io", "StorageVersionMigration"),
        ("example.com", "Odd"),
    ];
    for (group, kind) in kinds {
        shown(group, kind, json!({}));
    }
}
