#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use crate::strategy::{
    Context, default, prepare_create, prepare_update, validate_create, validate_status, validate_update,
};

fn ctx(kind: &'static str) -> Context<'static> {
    Context { group: "", version: "v1", kind, now: "2026-01-02T03:04:05Z" }
}

fn made(kind: &'static str, fields: Value) -> Value {
    let mut object = json!({"metadata": {"name": "x", "namespace": "n"}});
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    default(&ctx(kind), &mut object);
    prepare_create(&ctx(kind), &mut object);
    object
}

fn texts(kind: &'static str, fields: Value) -> Vec<String> {
    validate_create(&ctx(kind), &made(kind, fields)).iter().map(ToString::to_string).collect()
}

fn changes(kind: &'static str, before: Value, after: Value) -> Vec<String> {
    let old = made(kind, before);
    let mut new = made(kind, after);
    prepare_update(&ctx(kind), &mut new, &old);
    validate_update(&ctx(kind), &new, &old).iter().map(ToString::to_string).collect()
}

#[test]
fn defaults_are_filled_in() {
    let cases = [
        ("Namespace", json!({}), "/metadata/labels/kubernetes.io~1metadata.name", json!("x")),
        ("Namespace", json!({}), "/spec", json!({"finalizers": ["kubernetes"]})),
        ("Namespace", json!({"status": {"phase": "Odd"}}), "/status", json!({"phase": "Active"})),
        (
            "Secret",
            json!({"stringData": {"a": "b"}, "data": {"c": "ZA=="}}),
            "/data",
            json!({"a": "Yg==", "c": "ZA=="}),
        ),
        ("Secret", json!({}), "/type", json!("Opaque")),
        (
            "Service",
            json!({"spec": {"ports": [{"port": 80}]}}),
            "/spec/ports",
            json!([{"port": 80, "protocol": "TCP", "targetPort": 80}]),
        ),
        ("Service", json!({"spec": {"clusterIP": "None"}}), "/spec/clusterIPs", json!(["None"])),
        (
            "Service",
            json!({"spec": {}}),
            "/spec",
            json!({"type": "ClusterIP", "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}),
        ),
        ("Service", json!({"spec": {"type": "NodePort"}}), "/spec/externalTrafficPolicy", json!("Cluster")),
        ("Service", json!({}), "/status", json!({"loadBalancer": {}})),
        (
            "PersistentVolumeClaim",
            json!({"spec": {"resources": {"requests": {"storage": "1024Mi"}}}}),
            "/spec",
            json!({"volumeMode": "Filesystem", "resources": {"requests": {"storage": "1Gi"}}}),
        ),
        ("PersistentVolumeClaim", json!({}), "/status", json!({"phase": "Pending"})),
        (
            "PersistentVolume",
            json!({}),
            "/status",
            json!({"phase": "Pending", "lastPhaseTransitionTime": "2026-01-02T03:04:05Z"}),
        ),
        ("Node", json!({"status": {"capacity": {"cpu": 4}}}), "/status/allocatable", json!({"cpu": "4"})),
        ("Endpoints", json!({"subsets": [{"ports": [{"port": 1}]}]}), "/subsets/0/ports/0/protocol", json!("TCP")),
        (
            "LimitRange",
            json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}),
            "/spec/limits/0",
            json!({"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"}}),
        ),
        (
            "ReplicationController",
            json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
            "/spec/selector",
            json!({"a": "b"}),
        ),
    ];
    for (kind, fields, path, expected) in cases {
        assert_eq!(made(kind, fields).pointer(path), Some(&expected), "{kind} {path}");
    }
}

#[test]
fn good_objects_pass() {
    let cases = [
        ("ConfigMap", json!({"data": {"a.b": "c"}, "binaryData": {"d": "AA=="}})),
        ("Secret", json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}})),
        ("Service", json!({"spec": {"ports": [{"port": 80, "targetPort": "http"}], "selector": {"a": "b"}}})),
        ("Service", json!({"spec": {"type": "ExternalName", "externalName": "example.com"}})),
        (
            "PersistentVolumeClaim",
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        (
            "PersistentVolume",
            json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/d"}}}),
        ),
        ("Node", json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})),
        ("Endpoints", json!({"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 1}]}]})),
        (
            "ResourceQuota",
            json!({"spec": {"hard": {"pods": "10", "requests.cpu": "1", "count/deployments.apps": "3"}}}),
        ),
        ("Event", json!({"involvedObject": {"namespace": "n"}})),
        ("ServiceAccount", json!({})),
    ];
    for (kind, fields) in cases {
        assert_eq!(texts(kind, fields), Vec::<String>::new(), "{kind}");
    }
}

#[test]
fn bad_objects_are_refused_with_the_known_words() {
    let cases = [
        (
            "ConfigMap",
            json!({"data": {"a": "b"}, "binaryData": {"a": "AA=="}}),
            "data[a]: Invalid value: \"a\": duplicate of key present in binaryData",
        ),
        ("Secret", json!({"type": "kubernetes.io/ssh-auth"}), "data[ssh-privatekey]: Required value"),
        ("Service", json!({"spec": {}}), "spec.ports: Required value"),
        (
            "Service",
            json!({"spec": {"ports": [{"port": 0, "targetPort": 1}]}}),
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            "Service",
            json!({"spec": {"ports": [{"port": 1, "name": "a"}, {"port": 2}]}}),
            "spec.ports[1].name: Required value",
        ),
        (
            "Service",
            json!({"spec": {"type": "Odd", "ports": [{"port": 1}]}}),
            "spec.type: Unsupported value: \"Odd\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
        ),
        (
            "Service",
            json!({"spec": {"ports": [{"port": 1, "nodePort": 30000}]}}),
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        ("Service", json!({"spec": {"type": "ExternalName"}}), "spec.externalName: Required value"),
        (
            "PersistentVolumeClaim",
            json!({"spec": {"accessModes": ["ReadWriteOnce"]}}),
            "spec.resources[storage]: Required value",
        ),
        (
            "PersistentVolumeClaim",
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "0"}}}}),
            "spec.resources[storage]: Invalid value: \"0\": must be greater than zero",
        ),
        (
            "PersistentVolume",
            json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}),
            "spec: Required value: must specify a volume type",
        ),
        (
            "Node",
            json!({"spec": {"taints": [{"key": "a", "effect": "Odd"}]}}),
            "metadata.taints[0].effect: Unsupported value: \"Odd\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
        ),
        (
            "Endpoints",
            json!({"subsets": [{"addresses": [{"ip": "127.0.0.1"}]}]}),
            "subsets[0].addresses[0].ip: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
        ),
        (
            "LimitRange",
            json!({"spec": {"limits": [{"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}}),
            "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
        ),
        (
            "ResourceQuota",
            json!({"spec": {"hard": {"storage": "1"}}}),
            "spec.hard[storage]: Invalid value: \"storage\": must be a standard resource for quota",
        ),
        (
            "Event",
            json!({"involvedObject": {"namespace": "other"}}),
            "involvedObject.namespace: Invalid value: \"other\": does not match event.namespace",
        ),
    ];
    for (kind, fields, expected) in cases {
        assert_eq!(texts(kind, fields), [expected], "{kind}");
    }
}

#[test]
fn immutable_things_stay() {
    let cases = [
        (
            "ConfigMap",
            json!({"immutable": true, "data": {"a": "1"}}),
            json!({"immutable": true, "data": {"a": "2"}}),
            vec!["data: Forbidden: field is immutable when `immutable` is set"],
        ),
        (
            "Secret",
            json!({"type": "a/b"}),
            json!({"type": "a/c"}),
            vec!["type: Invalid value: \"a/c\": field is immutable"],
        ),
        (
            "Secret",
            json!({"immutable": true}),
            json!({}),
            vec!["immutable: Forbidden: field is immutable when `immutable` is set"],
        ),
        (
            "Service",
            json!({"spec": {"ports": [{"port": 1}], "clusterIP": "10.0.0.1"}}),
            json!({"spec": {"ports": [{"port": 1}], "clusterIP": "10.0.0.2"}}),
            vec!["spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set"],
        ),
        (
            "Service",
            json!({"spec": {"ports": [{"port": 1}], "clusterIP": "10.0.0.1"}}),
            json!({"spec": {"ports": [{"port": 2}]}}),
            vec![],
        ),
        (
            "PersistentVolumeClaim",
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
            json!({"spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}}),
            vec![
                "spec: Forbidden: spec is immutable after creation except resources.requests and \
                  volumeAttributesClassName for bound claims",
            ],
        ),
    ];
    for (kind, before, after, expected) in cases {
        assert_eq!(changes(kind, before, after), expected, "{kind}");
    }
}

#[test]
fn a_service_keeps_what_it_was_given_and_drops_what_its_type_lacks() {
    let mut old = made("Service", json!({"spec": {"type": "NodePort", "ports": [{"port": 80}]}}));
    old["spec"]["clusterIP"] = json!("10.0.0.9");
    old["spec"]["clusterIPs"] = json!(["10.0.0.9"]);
    old["spec"]["ports"][0]["nodePort"] = json!(31000);
    let mut new = made("Service", json!({"spec": {"type": "NodePort", "ports": [{"port": 81}]}}));
    prepare_update(&ctx("Service"), &mut new, &old);
    assert_eq!(new["spec"]["clusterIPs"], json!(["10.0.0.9"]));
    assert_eq!(new["spec"]["ports"][0]["nodePort"], 31000);
    let mut plain = old.clone();
    plain["spec"]["type"] = json!("ClusterIP");
    prepare_update(&ctx("Service"), &mut plain, &old);
    assert_eq!(plain["spec"]["ports"][0].get("nodePort"), None);
    assert_eq!(plain["spec"].get("externalTrafficPolicy"), None);
    assert!(validate_update(&ctx("Service"), &plain, &old).is_empty());
}

#[test]
fn the_phase_of_a_namespace_follows_its_deletion() {
    let alive = json!({"metadata": {"name": "x"}, "status": {"phase": "Terminating"}});
    assert_eq!(
        validate_status(&ctx("Namespace"), &alive, &alive)[0].to_string(),
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    );
}
