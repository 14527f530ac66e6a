//! What templates of the built-in kinds ask for: replicas, needs, references, retained fields.
#![allow(clippy::unwrap_used, missing_docs)]

use atoll_interpreter::{Error, Interpreter, ObjectRef, Operation};
use serde_json::{Value, json};

fn object(api_version: &str, kind: &str, body: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "it", "namespace": "ns"}});
    for (key, value) in body.as_object().unwrap() {
        match object[key].as_object_mut() {
            Some(map) => map.extend(value.as_object().unwrap().clone()),
            None => object[key] = value.clone(),
        }
    }
    object
}

#[test]
fn each_kind_says_how_many_replicas_it_wants() {
    let template = json!({"spec": {"containers": []}});
    let cases = [
        ("apps/v1", "Deployment", json!({"replicas": 3, "template": template}), Some(3)),
        ("apps/v1", "Deployment", json!({"template": template}), Some(1)),
        ("apps/v1", "StatefulSet", json!({"replicas": 0, "template": template}), Some(0)),
        ("apps/v1", "ReplicaSet", json!({"replicas": 2, "template": template}), Some(2)),
        ("batch/v1", "Job", json!({"parallelism": 5, "completions": 3, "template": template}), Some(3)),
        ("batch/v1", "Job", json!({"parallelism": 5, "template": template}), Some(5)),
        ("v1", "Pod", json!({"containers": []}), Some(1)),
        ("apps/v1", "DaemonSet", json!({"template": template}), None),
        ("batch/v1", "CronJob", json!({}), None),
        ("v1", "ConfigMap", json!({}), None),
        ("example.io/v1", "Deployment", json!({"replicas": 3}), None),
    ];
    for (api_version, kind, spec, wanted) in cases {
        let found = Interpreter::new().replicas(&object(api_version, kind, json!({"spec": spec}))).unwrap();
        assert_eq!(found.map(|(replicas, _)| replicas), wanted, "{api_version} {kind}");
    }
}

fn requests(pod: Value) -> Value {
    let deployment = object("apps/v1", "Deployment", json!({"spec": {"replicas": 1, "template": {"spec": pod}}}));
    let (_, needs) = Interpreter::new().replicas(&deployment).unwrap().unwrap();
    serde_json::to_value(needs.unwrap_or_default().requests).unwrap()
}

#[test]
fn pods_that_ask_for_nothing_have_no_needs() {
    for spec in [json!({}), json!({"containers": [{"name": "c"}], "priorityClassName": "high"})] {
        let deployment = object("apps/v1", "Deployment", json!({"spec": {"replicas": 1, "template": {"spec": spec}}}));
        assert_eq!(Interpreter::new().replicas(&deployment), Ok(Some((1, None))), "{deployment}");
    }
}

#[test]
fn a_pod_needs_the_most_it_asks_for_at_any_time() {
    let with = |requests: Value| json!({"resources": {"requests": requests}});
    let cases = [
        (
            "sum of containers",
            json!({"containers": [with(json!({"cpu": "100m"})), with(json!({"cpu": "0.4", "memory": "64Mi"}))]}),
            json!({"cpu": "500m", "memory": "64Mi"}),
        ),
        (
            "largest init container",
            json!({"containers": [with(json!({"cpu": "100m"}))], "initContainers": [with(json!({"cpu": "1"})), with(json!({"cpu": "300m"}))]}),
            json!({"cpu": "1"}),
        ),
        (
            "sidecars run along",
            json!({"containers": [with(json!({"cpu": "1"}))], "initContainers": [
                {"restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}}, with(json!({"cpu": "1200m"}))]}),
            json!({"cpu": "1700m"}),
        ),
        (
            "overhead",
            json!({"containers": [with(json!({"cpu": "1"}))], "overhead": {"cpu": "250m"}}),
            json!({"cpu": "1250m"}),
        ),
        (
            "limits stand in",
            json!({"containers": [{"resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}]}),
            json!({"cpu": "1", "memory": "1Gi"}),
        ),
        (
            "numbers and devices",
            json!({"containers": [with(json!({"cpu": 2, "nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi"}))]}),
            json!({"cpu": "2", "nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi"}),
        ),
        ("nothing", json!({"containers": [{}]}), json!({})),
        ("zero is nothing", json!({"containers": [with(json!({"cpu": "0"}))]}), json!({})),
    ];
    for (what, pod, wanted) in cases {
        assert_eq!(requests(pod), wanted, "{what}");
    }
}

#[test]
fn a_pod_says_where_it_can_run() {
    let affinity =
        json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]});
    let pod = object(
        "v1",
        "Pod",
        json!({"spec": {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": affinity}},
            "priorityClassName": "high",
            "containers": [],
        }}),
    );
    let (_, needs) = Interpreter::new().replicas(&pod).unwrap().unwrap();
    let needs = needs.unwrap();
    assert_eq!((needs.priority_class.as_str(), needs.namespace.as_str()), ("high", "ns"));
    let claim = serde_json::to_value(needs.node_claim).unwrap();
    let wanted = json!({
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "hardNodeAffinity": affinity,
    });
    assert_eq!(claim, wanted);
}

#[test]
fn needs_that_cannot_be_read_are_an_error() {
    let bad = |pod: Value| {
        let deployment = object("apps/v1", "Deployment", json!({"spec": {"replicas": 1, "template": {"spec": pod}}}));
        Interpreter::new().replicas(&deployment).unwrap_err()
    };
    let amount = bad(json!({"containers": [{"resources": {"requests": {"cpu": "much"}}}]}));
    assert!(matches!(&amount, Error::Shape(message) if message.starts_with("amount of cpu")), "{amount}");
    let selector = bad(json!({"nodeSelector": "ssd", "containers": []}));
    assert!(matches!(&selector, Error::Shape(message) if message.starts_with("nodeSelector")), "{selector}");
}

#[test]
fn replicas_are_set_where_there_is_a_number_of_them() {
    let cases = [
        ("apps/v1", "Deployment", json!({"replicas": 9}), json!({"replicas": 2})),
        ("apps/v1", "StatefulSet", json!({"replicas": 9}), json!({"replicas": 2})),
        ("apps/v1", "ReplicaSet", json!({"replicas": 9}), json!({"replicas": 2})),
        ("batch/v1", "Job", json!({"parallelism": 9, "completions": 9}), json!({"parallelism": 2, "completions": 9})),
        ("apps/v1", "Deployment", json!({}), json!({})),
        ("apps/v1", "DaemonSet", json!({"replicas": 9}), json!({"replicas": 9})),
        ("apps/v1", "Deployment", json!("nonsense"), json!("nonsense")),
    ];
    for (api_version, kind, spec, wanted) in cases {
        let mut it = json!({"apiVersion": api_version, "kind": kind, "spec": spec});
        Interpreter::new().revise(&mut it, 2).unwrap();
        assert_eq!(it["spec"], wanted, "{kind}");
    }
}

fn retained(api_version: &str, kind: &str, desired: Value, observed: Value) -> Value {
    let mut desired = object(api_version, kind, desired);
    Interpreter::new().retain(&mut desired, &object(api_version, kind, observed)).unwrap();
    desired
}

#[test]
fn what_a_member_decides_is_kept() {
    let label = json!({"labels": {"resourcetemplate.karmada.io/retain-replicas": "true"}});
    let cases = [
        (
            "apps/v1",
            "Deployment",
            json!({"metadata": label, "spec": {"replicas": 1}}),
            json!({"spec": {"replicas": 7}}),
            "/spec/replicas",
            json!(7),
        ),
        (
            "apps/v1",
            "Deployment",
            json!({"spec": {"replicas": 1}}),
            json!({"spec": {"replicas": 7}}),
            "/spec/replicas",
            json!(1),
        ),
        (
            "v1",
            "Service",
            json!({"spec": {}}),
            json!({"spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "healthCheckNodePort": 30000}}),
            "/spec",
            json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "healthCheckNodePort": 30000}),
        ),
        (
            "v1",
            "Service",
            json!({"spec": {"type": "ExternalName"}}),
            json!({"spec": {"clusterIP": "10.0.0.1"}}),
            "/spec",
            json!({"type": "ExternalName"}),
        ),
        (
            "v1",
            "Service",
            json!({"spec": {}}),
            json!({"spec": {"clusterIP": "", "healthCheckNodePort": 0}}),
            "/spec",
            json!({}),
        ),
        (
            "v1",
            "ServiceAccount",
            json!({"secrets": [{"name": "a"}]}),
            json!({"secrets": [{"name": "a"}, {"name": "b"}], "imagePullSecrets": [{"name": "c"}]}),
            "/secrets",
            json!([{"name": "a"}, {"name": "b"}]),
        ),
        (
            "v1",
            "ServiceAccount",
            json!({}),
            json!({"imagePullSecrets": [{"name": "c"}]}),
            "/imagePullSecrets",
            json!([{"name": "c"}]),
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            json!({"spec": {}}),
            json!({"spec": {"volumeName": "pv"}}),
            "/spec/volumeName",
            json!("pv"),
        ),
        (
            "v1",
            "PersistentVolume",
            json!({}),
            json!({"spec": {"claimRef": {"name": "c"}}}),
            "/spec/claimRef/name",
            json!("c"),
        ),
        (
            "batch/v1",
            "Job",
            json!({"spec": {"template": {}}}),
            json!({"spec": {"selector": {"matchLabels": {"uid": "1"}}, "template": {"metadata": {"labels": {"uid": "1"}}}}}),
            "/spec/template/metadata/labels",
            json!({"uid": "1"}),
        ),
        (
            "batch/v1",
            "Job",
            json!({"spec": {}}),
            json!({"spec": {"selector": {"matchLabels": {"uid": "1"}}}}),
            "/spec/selector",
            json!({"matchLabels": {"uid": "1"}}),
        ),
        (
            "v1",
            "Secret",
            json!({"type": "kubernetes.io/service-account-token", "data": {"extra": "x"}}),
            json!({"data": {"token": "t"}}),
            "/data",
            json!({"token": "t"}),
        ),
        (
            "v1",
            "Secret",
            json!({"type": "kubernetes.io/service-account-token"}),
            json!({"metadata": {"annotations": {"kubernetes.io/service-account.uid": "u"}}}),
            "/metadata/annotations",
            json!({"kubernetes.io/service-account.uid": "u"}),
        ),
        (
            "v1",
            "Secret",
            json!({"type": "Opaque", "data": {"a": "1"}}),
            json!({"data": {"b": "2"}}),
            "/data",
            json!({"a": "1"}),
        ),
        ("v1", "ConfigMap", json!({"data": {"a": "1"}}), json!({"data": {"b": "2"}}), "/data", json!({"a": "1"})),
    ];
    for (api_version, kind, desired, observed, path, wanted) in cases {
        let made = retained(api_version, kind, desired, observed);
        assert_eq!(made.pointer(path), Some(&wanted), "{kind} {path}");
    }
}

#[test]
fn a_pod_keeps_its_node_its_volumes_and_what_was_added_but_takes_the_new_image() {
    let desired = json!({"spec": {
        "nodeName": "wished", "volumes": [{"name": "mine"}],
        "containers": [{"name": "a", "image": "new", "volumeMounts": []}, {"name": "b", "volumeMounts": [{"name": "mine"}]}],
    }});
    let observed = json!({"spec": {
        "serviceAccountName": "default", "volumes": [{"name": "token"}],
        "containers": [{"name": "b"}, {"name": "added", "image": "mesh"}, {"name": "a", "image": "old", "volumeMounts": [{"name": "token"}]}],
    }});
    let made = retained("v1", "Pod", desired, observed);
    let wanted = json!({
        "serviceAccountName": "default", "volumes": [{"name": "token"}],
        "containers": [{"name": "b"}, {"name": "added", "image": "mesh"}, {"name": "a", "image": "new", "volumeMounts": [{"name": "token"}]}],
    });
    assert_eq!(made["spec"], wanted);
}

fn names(found: &[ObjectRef]) -> Vec<String> {
    found.iter().map(|found| format!("{}/{}", found.kind, found.name)).collect()
}

fn pod_spec() -> Value {
    json!({
        "serviceAccountName": "robot",
        "imagePullSecrets": [{"name": "pull"}],
        "volumes": [
            {"configMap": {"name": "cm-volume"}},
            {"secret": {"secretName": "secret-volume"}},
            {"persistentVolumeClaim": {"claimName": "data"}},
            {"projected": {"sources": [{"configMap": {"name": "cm-projected"}}, {"secret": {"name": "secret-projected"}}]}},
            {"csi": {"nodePublishSecretRef": {"name": "secret-csi"}}},
            {"rbd": {"secretRef": {"name": "secret-rbd"}}},
            {"azureFile": {"secretName": "secret-azure"}},
        ],
        "initContainers": [{"envFrom": [{"configMapRef": {"name": "cm-init"}}]}],
        "containers": [{
            "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "secret-env", "key": "k"}}},
                {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "cm-env", "key": "k"}}},
                {"name": "C", "value": "plain"},
            ],
            "envFrom": [{"secretRef": {"name": "secret-from"}}],
        }],
    })
}

#[test]
fn workloads_refer_to_what_their_pods_use() {
    let wanted = [
        "ConfigMap/cm-env",
        "ConfigMap/cm-init",
        "ConfigMap/cm-projected",
        "ConfigMap/cm-volume",
        "PersistentVolumeClaim/data",
        "Secret/pull",
        "Secret/secret-azure",
        "Secret/secret-csi",
        "Secret/secret-env",
        "Secret/secret-from",
        "Secret/secret-projected",
        "Secret/secret-rbd",
        "Secret/secret-volume",
        "ServiceAccount/robot",
    ];
    let template = json!({"template": {"spec": pod_spec()}});
    let kinds = [
        ("apps/v1", "Deployment", template.clone()),
        ("apps/v1", "StatefulSet", template.clone()),
        ("apps/v1", "ReplicaSet", template.clone()),
        ("apps/v1", "DaemonSet", template.clone()),
        ("batch/v1", "Job", template.clone()),
        ("batch/v1", "CronJob", json!({"jobTemplate": {"spec": template}})),
        ("v1", "Pod", pod_spec()),
    ];
    for (api_version, kind, spec) in kinds {
        let found = Interpreter::new().dependencies(&object(api_version, kind, json!({"spec": spec})));
        assert_eq!(names(&found), wanted, "{kind}");
        assert!(found.iter().all(|found| found.namespace == "ns" && found.api_version == "v1"), "{kind}");
    }
}

#[test]
fn a_stateful_set_does_not_wait_for_the_claims_it_makes() {
    let volumes = json!([
        {"name": "data", "persistentVolumeClaim": {"claimName": "placeholder"}},
        {"name": "shared", "persistentVolumeClaim": {"claimName": "shared"}},
    ]);
    let set = object(
        "apps/v1",
        "StatefulSet",
        json!({"spec": {
            "template": {"spec": {"volumes": volumes, "serviceAccountName": "default"}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
        }}),
    );
    assert_eq!(names(&Interpreter::new().dependencies(&set)), ["PersistentVolumeClaim/shared"]);
}

#[test]
fn ingresses_and_imports_refer_to_other_things() {
    let ingress = object(
        "networking.k8s.io/v1",
        "Ingress",
        json!({"spec": {"tls": [{"secretName": "b"}, {"secretName": "a"}, {}]}}),
    );
    assert_eq!(names(&Interpreter::new().dependencies(&ingress)), ["Secret/a", "Secret/b"]);
    let import = object("multicluster.x-k8s.io/v1alpha1", "ServiceImport", json!({}));
    let found = serde_json::to_value(Interpreter::new().dependencies(&import)).unwrap();
    let slices = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "namespace": "ns",
        "labelSelector": {"matchLabels": {"kubernetes.io/service-name": "derived-it"}}});
    assert_eq!(
        found,
        json!([slices, {"apiVersion": "v1", "kind": "Service", "namespace": "ns", "name": "derived-it"}])
    );
    assert!(Interpreter::new().dependencies(&object("v1", "ConfigMap", json!({}))).is_empty());
}

#[test]
fn it_is_known_for_which_operations_a_kind_is_special() {
    let it = Interpreter::new();
    let handles = |api, kind| -> Vec<&str> {
        Operation::ALL
            .into_iter()
            .filter(|operation| it.handles(api, kind, *operation))
            .map(Operation::as_str)
            .collect()
    };
    let all = [
        "InterpretReplica",
        "ReviseReplica",
        "Retain",
        "InterpretStatus",
        "AggregateStatus",
        "InterpretHealth",
        "InterpretDependency",
    ];
    assert_eq!(handles("apps/v1", "Deployment"), all);
    assert_eq!(handles("v1", "ConfigMap"), [""; 0]);
    assert_eq!(handles("v1", "PersistentVolume"), ["Retain", "AggregateStatus"]);
    assert_eq!(handles("apps.kruise.io/v1alpha1", "CloneSet").len(), 6);
}
