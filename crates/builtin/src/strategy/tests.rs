#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-02T03:04:05Z";

fn ctx<'a>(group: &'a str, kind: &'a str) -> Context<'a> {
    Context { group, version: if group == "autoscaling" { "v2" } else { "v1" }, kind, now: NOW }
}

fn made(group: &str, kind: &str, fields: Value) -> Value {
    let mut object = json!({"metadata": {"name": "x"}});
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    default(&ctx(group, kind), &mut object);
    prepare_create(&ctx(group, kind), &mut object);
    object
}

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

const HOOK: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const NET: &str = "networking.k8s.io";
/// The two marks of a certificate request with nothing between them.
const CSR: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

fn hook() -> Value {
    json!({"name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://h/p"},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]})
}

#[test]
fn defaults_are_filled_in() {
    let cases = [
        (
            "autoscaling",
            "HorizontalPodAutoscaler",
            json!({"spec": {"maxReplicas": 3}}),
            "/spec/metrics/0/resource/target/averageUtilization",
            json!(80),
        ),
        (
            "autoscaling",
            "HorizontalPodAutoscaler",
            json!({"spec": {"behavior": {"scaleDown": {"selectPolicy": "Min"}}}}),
            "/spec/behavior/scaleDown",
            json!({"selectPolicy": "Min", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}),
        ),
        ("policy", "PodDisruptionBudget", json!({}), "/status/expectedPods", json!(0)),
        (
            NET,
            "NetworkPolicy",
            json!({"spec": {"egress": [{"ports": [{"port": 1}]}]}}),
            "/spec",
            json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "egress": [{"ports": [{"port": 1, "protocol": "TCP"}]}]}),
        ),
        (
            NET,
            "IngressClass",
            json!({"spec": {"parameters": {"kind": "k", "name": "n"}}}),
            "/spec/parameters/scope",
            json!("Cluster"),
        ),
        (
            RBAC,
            "RoleBinding",
            json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]}),
            "/subjects/0/apiGroup",
            json!(RBAC),
        ),
        (RBAC, "RoleBinding", json!({"roleRef": {"kind": "Role", "name": "r"}}), "/roleRef/apiGroup", json!(RBAC)),
        ("storage.k8s.io", "StorageClass", json!({}), "/volumeBindingMode", json!("Immediate")),
        ("storage.k8s.io", "CSIDriver", json!({}), "/spec/fsGroupPolicy", json!("ReadWriteOnceWithFSType")),
        ("scheduling.k8s.io", "PriorityClass", json!({"value": 1}), "/preemptionPolicy", json!("PreemptLowerPriority")),
        (
            HOOK,
            "MutatingWebhookConfiguration",
            json!({"webhooks": [hook()]}),
            "/webhooks/0/reinvocationPolicy",
            json!("Never"),
        ),
        (
            HOOK,
            "ValidatingWebhookConfiguration",
            json!({"webhooks": [hook()]}),
            "/webhooks/0/timeoutSeconds",
            json!(10),
        ),
        (
            HOOK,
            "ValidatingWebhookConfiguration",
            json!({"webhooks": [hook()]}),
            "/webhooks/0/rules/0/scope",
            json!("*"),
        ),
        (
            "apiregistration.k8s.io",
            "APIService",
            json!({"spec": {"service": {"name": "s"}}}),
            "/spec/service/port",
            json!(443),
        ),
        (
            "apiregistration.k8s.io",
            "APIService",
            json!({"spec": {"group": "a.b", "version": "v1"}}),
            "/status/conditions/0/status",
            json!("True"),
        ),
        (
            "flowcontrol.apiserver.k8s.io",
            "PriorityLevelConfiguration",
            json!({"spec": {"limited": {"limitResponse": {"queuing": {}}}}}),
            "/spec/limited/limitResponse/queuing",
            json!({"handSize": 8, "queues": 64, "queueLengthLimit": 50}),
        ),
        (
            "discovery.k8s.io",
            "EndpointSlice",
            json!({"ports": [{"port": 1}]}),
            "/ports/0",
            json!({"port": 1, "name": "", "protocol": "TCP"}),
        ),
    ];
    for (group, kind, fields, path, expected) in cases {
        assert_eq!(made(group, kind, fields).pointer(path), Some(&expected), "{kind} {path}");
    }
}

fn good() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        (
            "autoscaling",
            "HorizontalPodAutoscaler",
            json!({"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}}),
        ),
        (
            "policy",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}),
        ),
        (
            NET,
            "Ingress",
            json!({"spec": {"rules": [{"host": "*.a.b", "http": {"paths": [{"path": "/", "pathType": "Prefix",
            "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]}}),
        ),
        (NET, "IngressClass", json!({"spec": {"controller": "example.com/c"}})),
        (
            NET,
            "NetworkPolicy",
            json!({"spec": {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}]}}),
        ),
        (
            "discovery.k8s.io",
            "EndpointSlice",
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 1}]}),
        ),
        (RBAC, "ClusterRole", json!({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}]})),
        (
            RBAC,
            "RoleBinding",
            json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "ServiceAccount", "name": "s"}]}),
        ),
        ("coordination.k8s.io", "Lease", json!({"spec": {"leaseDurationSeconds": 15}})),
        ("storage.k8s.io", "StorageClass", json!({"provisioner": "example.com/p"})),
        ("storage.k8s.io", "CSIDriver", json!({})),
        (
            "storage.k8s.io",
            "VolumeAttachment",
            json!({"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}}),
        ),
        ("scheduling.k8s.io", "PriorityClass", json!({"value": 100})),
        ("node.k8s.io", "RuntimeClass", json!({"handler": "runc"})),
        (
            "certificates.k8s.io",
            "CertificateSigningRequest",
            json!({"spec": {"request": CSR, "signerName": "example.com/s", "usages": ["client auth"]}}),
        ),
        (HOOK, "ValidatingWebhookConfiguration", json!({"webhooks": [hook()]})),
        (
            "apiregistration.k8s.io",
            "APIService",
            json!({"metadata": {"name": "v1.a.b"}, "spec": {"group": "a.b", "version": "v1",
            "groupPriorityMinimum": 100, "versionPriority": 10, "service": {"namespace": "n", "name": "s"}}}),
        ),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema", json!({"spec": {"priorityLevelConfiguration": {"name": "p"}}})),
        (
            "flowcontrol.apiserver.k8s.io",
            "PriorityLevelConfiguration",
            json!({"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}),
        ),
    ]
}

#[test]
fn good_objects_pass_and_stay_the_same() {
    for (group, kind, fields) in good() {
        let mut object = made(group, kind, fields);
        assert_eq!(texts(&validate_create(&ctx(group, kind), &object)), Vec::<String>::new(), "{kind}");
        assert_eq!(texts(&validate_update(&ctx(group, kind), &object, &object)), Vec::<String>::new(), "{kind}");
        let before = object.clone();
        default(&ctx(group, kind), &mut object);
        assert_eq!(object, before, "defaults of {kind} are filled in once");
    }
}

#[test]
fn bad_objects_are_refused_with_the_known_words() {
    let broken_hook = |field: &str, value: Value| {
        let mut hook = hook();
        hook[field] = value;
        json!({"webhooks": [hook]})
    };
    let cases = [
        (
            "autoscaling",
            "HorizontalPodAutoscaler",
            json!({"spec": {"minReplicas": 5, "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "a/v1", "kind": "D", "name": "d"}}}),
            "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`",
        ),
        (
            "policy",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": "200%"}}),
            "spec.minAvailable: Invalid value: \"200%\": must not be greater than 100%",
        ),
        (
            NET,
            "Ingress",
            json!({"spec": {}}),
            "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified",
        ),
        (
            NET,
            "Ingress",
            json!({"spec": {"rules": [{"host": "10.0.0.1"}]}}),
            "spec.rules[0].host: Invalid value: \"10.0.0.1\": must be a DNS name, not an IP address",
        ),
        (
            NET,
            "Ingress",
            json!({"spec": {"defaultBackend": {}}}),
            "spec.defaultBackend: Invalid value: \"\": resource or service backend is required",
        ),
        (
            NET,
            "NetworkPolicy",
            json!({"spec": {"ingress": [{"from": [{}]}]}}),
            "spec.ingress[0].from[0]: Required value: must specify a peer",
        ),
        (
            NET,
            "NetworkPolicy",
            json!({"spec": {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}}]}]}}),
            "spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`",
        ),
        (
            RBAC,
            "Role",
            json!({"rules": [{"verbs": [], "apiGroups": [""], "resources": ["pods"]}]}),
            "rules[0].verbs: Required value: verbs must contain at least one value",
        ),
        (
            RBAC,
            "ClusterRoleBinding",
            json!({"roleRef": {"kind": "Role", "name": "r"}}),
            "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
        ),
        (
            "coordination.k8s.io",
            "Lease",
            json!({"spec": {"leaseDurationSeconds": 0}}),
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
        ("storage.k8s.io", "StorageClass", json!({}), "provisioner: Required value"),
        (
            "scheduling.k8s.io",
            "PriorityClass",
            json!({"value": 2_000_000_000}),
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        ),
        (
            "node.k8s.io",
            "RuntimeClass",
            json!({"handler": "a.b"}),
            "handler: Invalid value: \"a.b\": must not contain dots",
        ),
        (
            HOOK,
            "ValidatingWebhookConfiguration",
            broken_hook("name", json!("short")),
            "webhooks[0].name: Invalid value: \"short\": should be a domain with at least three segments separated by dots",
        ),
        (
            HOOK,
            "ValidatingWebhookConfiguration",
            broken_hook("sideEffects", Value::Null),
            "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
        ),
        (
            HOOK,
            "ValidatingWebhookConfiguration",
            broken_hook("clientConfig", json!({"url": "http://h"})),
            "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
        ),
        (
            "discovery.k8s.io",
            "EndpointSlice",
            json!({"addressType": "IPv4", "endpoints": [{"addresses": []}]}),
            "endpoints[0].addresses: Required value: must contain at least 1 address",
        ),
        (
            "flowcontrol.apiserver.k8s.io",
            "FlowSchema",
            json!({"spec": {}}),
            "spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
        ),
    ];
    for (group, kind, fields, expected) in cases {
        assert_eq!(texts(&validate_create(&ctx(group, kind), &made(group, kind, fields))), [expected], "{kind}");
    }
}

#[test]
fn immutable_things_stay() {
    let role = |name: &str| json!({"roleRef": {"kind": "ClusterRole", "name": name}});
    let shown = json!({"APIGroup": RBAC, "Kind": "ClusterRole", "Name": "b"});
    let cases = [
        (
            RBAC,
            "ClusterRoleBinding",
            role("a"),
            role("b"),
            format!("roleRef: Invalid value: {shown}: cannot change roleRef"),
        ),
        (
            "storage.k8s.io",
            "StorageClass",
            json!({"provisioner": "a"}),
            json!({"provisioner": "b"}),
            "provisioner: Forbidden: updates to provisioner are forbidden.".to_owned(),
        ),
        (
            "scheduling.k8s.io",
            "PriorityClass",
            json!({"value": 1}),
            json!({"value": 2}),
            "value: Forbidden: may not be changed in an update.".to_owned(),
        ),
        (
            "node.k8s.io",
            "RuntimeClass",
            json!({"handler": "a"}),
            json!({"handler": "b"}),
            "handler: Invalid value: \"b\": field is immutable".to_owned(),
        ),
        (
            NET,
            "IngressClass",
            json!({"spec": {"controller": "a.b/c"}}),
            json!({"spec": {"controller": "a.b/d"}}),
            "spec.controller: Invalid value: \"a.b/d\": field is immutable".to_owned(),
        ),
    ];
    for (group, kind, before, after, expected) in cases {
        let (old, new) = (made(group, kind, before), made(group, kind, after));
        assert_eq!(texts(&validate_update(&ctx(group, kind), &new, &old)), [expected], "{kind}");
    }
}

#[test]
fn only_approval_decides_on_a_certificate() {
    let group = "certificates.k8s.io";
    let mut old = made(group, "CertificateSigningRequest", json!({"spec": {"request": "AA=="}}));
    old["status"]["conditions"] = json!([{"type": "Approved", "status": "True", "message": "by somebody"}]);
    let mut new = old.clone();
    new["status"]["conditions"] = json!([
        {"type": "Other", "status": "True"},
        {"type": "Approved", "status": "False", "message": "by another"},
        {"type": "Failed", "status": "True"},
    ]);
    prepare_status(&ctx(group, "CertificateSigningRequest"), &mut new, &old);
    let kinds: Vec<(&str, &str)> =
        items(&new, "status.conditions").iter().map(|own| (text(own, "type"), text(own, "message"))).collect();
    assert_eq!(kinds, [("Other", ""), ("Approved", "by somebody"), ("Failed", "")]);
}

#[test]
fn nothing_breaks_on_trees_of_any_shape() {
    let shapes = [
        json!({}),
        json!(null),
        json!([1]),
        json!({"spec": 1, "metadata": [], "status": "x", "data": 3}),
        json!({"spec": {"template": 4, "containers": {}, "ports": [null, 5], "rules": [[]], "metrics": [7]}, "webhooks": [1], "subsets": {}}),
    ];
    let kinds = good().into_iter().map(|(group, kind, _)| (group, kind)).chain([
        ("", "Pod"),
        ("", "Service"),
        ("", "Node"),
        ("", "Secret"),
        ("", "Namespace"),
        ("", "PersistentVolumeClaim"),
        ("", "LimitRange"),
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("batch", "Job"),
        ("batch", "CronJob"),
    ]);
    for (group, kind) in kinds {
        for shape in &shapes {
            let mut object = shape.clone();
            default(&ctx(group, kind), &mut object);
            prepare_create(&ctx(group, kind), &mut object);
            prepare_update(&ctx(group, kind), &mut object, shape);
            prepare_status(&ctx(group, kind), &mut object, shape);
            validate_create(&ctx(group, kind), &object);
            validate_update(&ctx(group, kind), &object, shape);
            validate_status(&ctx(group, kind), &object, shape);
            crate::print::cells(group, kind, &object, 0);
        }
    }
}
