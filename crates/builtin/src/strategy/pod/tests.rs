#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use crate::strategy::{
    Context, default, prepare_create, prepare_status, validate_create, validate_status, validate_update,
};

const POD: Context = Context { group: "", version: "v1", kind: "Pod", now: "2026-01-02T03:04:05Z" };

fn pod(spec: Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": spec});
    default(&POD, &mut pod);
    pod
}

fn simple() -> Value {
    json!({"containers": [{"name": "c", "image": "nginx"}]})
}

fn texts(object: &Value) -> Vec<String> {
    validate_create(&POD, object).iter().map(ToString::to_string).collect()
}

#[test]
fn a_bare_pod_gets_all_its_defaults() {
    let mut given =
        pod(json!({"serviceAccount": "sa", "volumes": [{"name": "v"}, {"name": "s", "secret": {"secretName": "x"}}],
        "containers": [{"name": "c", "image": "nginx:1.2", "ports": [{"containerPort": 80}],
            "livenessProbe": {"httpGet": {"port": 80}},
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"limits": {"cpu": "1000m"}}}]}));
    prepare_create(&POD, &mut given);
    assert_eq!(
        given,
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"},
            "spec": {
                "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "securityContext": {},
                "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler", "enableServiceLinks": true,
                "serviceAccount": "sa", "serviceAccountName": "sa",
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "x", "defaultMode": 420}}],
                "containers": [{
                    "name": "c", "image": "nginx:1.2", "imagePullPolicy": "IfNotPresent",
                    "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "livenessProbe": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1,
                        "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
                    "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}}],
                    "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
                }],
            },
            "status": {"phase": "Pending", "qosClass": "Burstable"},
        })
    );
    let again = given.clone();
    default(&POD, &mut given);
    assert_eq!(given, again);
}

#[test]
fn images_named_latest_are_always_pulled() {
    let cases = [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1", "IfNotPresent"),
        ("localhost:5000/nginx", "Always"),
        ("localhost:5000/nginx:2", "IfNotPresent"),
        ("nginx@sha256:0000000000000000000000000000000000000000000000000000000000000000", "IfNotPresent"),
        ("BAD IMAGE", "IfNotPresent"),
    ];
    for (image, policy) in cases {
        assert_eq!(super::defaults::pull_policy(image), policy, "{image}");
    }
}

#[test]
fn quality_of_service_follows_requests_and_limits() {
    let cases = [
        (json!({}), "BestEffort"),
        (json!({"requests": {"cpu": "1"}}), "Burstable"),
        (json!({"limits": {"cpu": "1", "memory": "1Gi"}}), "Guaranteed"),
        (json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}), "Burstable"),
        (json!({"limits": {"example.com/gpu": "1"}}), "BestEffort"),
    ];
    for (resources, class) in cases {
        let mut given = pod(json!({"containers": [{"name": "c", "image": "i", "resources": resources}]}));
        prepare_create(&POD, &mut given);
        assert_eq!(given["status"]["qosClass"], class, "{resources}");
    }
}

#[test]
fn good_pods_pass() {
    let cases = [
        simple(),
        json!({"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a/b"}]}],
            "initContainers": [{"name": "side", "image": "i", "restartPolicy": "Always", "readinessProbe": {"exec": {"command": ["x"]}}}],
            "volumes": [{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}}],
            "tolerations": [{"operator": "Exists"}], "nodeSelector": {"kubernetes.io/os": "linux"}}),
        json!({"containers": [{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "s"}}]}],
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}}]}}}),
    ];
    for spec in cases {
        assert_eq!(texts(&pod(spec)), Vec::<String>::new());
    }
}

#[test]
fn bad_pods_are_refused_with_the_known_words() {
    let with = |extra: Value| {
        let mut spec = simple();
        spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        spec
    };
    let inside = |extra: Value| {
        let mut spec = simple();
        spec["containers"][0].as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        spec
    };
    let cases = [
        (json!({}), "spec.containers: Required value"),
        (json!({"containers": [{"name": "c"}]}), "spec.containers[0].image: Required value"),
        (
            json!({"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]}),
            "spec.containers[1].name: Duplicate value: \"c\"",
        ),
        (
            with(json!({"restartPolicy": "Sometimes"})),
            "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
        ),
        (
            with(json!({"activeDeadlineSeconds": 0})),
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
        ),
        (
            with(json!({"volumes": [{"name": "v", "hostPath": {"path": "/a/../b"}}]})),
            "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
        ),
        (
            with(json!({"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]})),
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        ),
        (
            with(json!({"dnsPolicy": "None"})),
            "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
        ),
        (
            with(json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]})),
            "spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
        ),
        (
            with(
                json!({"hostNetwork": true, "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 2}]}]}),
            ),
            "spec.containers[0].ports[0].hostPort: Invalid value: 2: must match `containerPort` when `hostNetwork` is true",
        ),
        (
            with(json!({"ephemeralContainers": [{"name": "e", "image": "i"}]})),
            "spec.ephemeralContainers: Forbidden: cannot be set on create",
        ),
        (
            with(
                json!({"initContainers": [{"name": "x", "image": "i", "livenessProbe": {"exec": {"command": ["x"]}}}]}),
            ),
            "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
        ),
        (
            inside(json!({"ports": [{"containerPort": 70000}]})),
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        (
            inside(json!({"ports": [{"containerPort": 1, "protocol": "HTTP"}]})),
            "spec.containers[0].ports[0].protocol: Unsupported value: \"HTTP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
        ),
        (
            inside(json!({"volumeMounts": [{"name": "nope", "mountPath": "/x"}]})),
            "spec.containers[0].volumeMounts[0].name: Not found: \"nope\"",
        ),
        (
            inside(json!({"livenessProbe": {"exec": {"command": ["x"]}, "successThreshold": 2}})),
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            inside(json!({"readinessProbe": {}})),
            "spec.containers[0].readinessProbe: Required value: must specify a handler type",
        ),
        (
            inside(json!({"imagePullPolicy": "Maybe"})),
            "spec.containers[0].imagePullPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \"IfNotPresent\", \"Never\"",
        ),
        (
            inside(
                json!({"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
            ),
            "spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
        ),
        (
            inside(json!({"image": " i"})),
            "spec.containers[0].image: Invalid value: \" i\": must not have leading or trailing whitespace",
        ),
        (
            inside(json!({"securityContext": {"runAsUser": -1}})),
            "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(texts(&pod(spec)), [expected]);
    }
}

#[test]
fn only_images_deadlines_and_tolerations_may_change() {
    let old = pod(simple());
    let change = |path: &str, value: Value| {
        let mut new = old.clone();
        *new.pointer_mut(path).unwrap() = value;
        validate_update(&POD, &new, &old).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(change("/spec/containers/0/image", json!("nginx:2")).is_empty());
    let refused = change("/spec/dnsPolicy", json!("Default"));
    assert_eq!(refused.len(), 1);
    assert!(
        refused[0]
            .starts_with("spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,")
    );
    let more = json!([{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]);
    assert!(
        change("/spec/containers", more)
            .contains(&"spec.containers: Forbidden: pod updates may not add or remove containers".to_owned())
    );
}

#[test]
fn status_writes_keep_the_spec_and_the_quality_of_service() {
    let mut old = pod(simple());
    prepare_create(&POD, &mut old);
    let mut new = old.clone();
    new["spec"]["nodeName"] = json!("n");
    new["metadata"]["labels"] = json!({"a": "b"});
    new["status"] = json!({"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]});
    prepare_status(&POD, &mut new, &old);
    assert_eq!(new["spec"], old["spec"]);
    assert_eq!(new["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(
        new["status"],
        json!({"phase": "Running", "qosClass": "BestEffort", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]})
    );
    assert!(validate_status(&POD, &new, &old).is_empty());
    new["status"]["qosClass"] = json!("Guaranteed");
    assert_eq!(
        validate_status(&POD, &new, &old)[0].to_string(),
        "status.qosClass: Invalid value: \"Guaranteed\": field is immutable"
    );
}
