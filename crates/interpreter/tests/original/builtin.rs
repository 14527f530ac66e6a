//! Questions about kinds of Kubernetes.

use atoll_interpreter::Operation;
use serde_json::{Value, json};

use crate::case::Case;
use crate::random::{Choice, Dice, put, spoil, vary};

/// How many variations of each base there are for each operation.
const VARIATIONS: usize = 18;

const GENERATION: &str = "/metadata/annotations/resourcetemplate.karmada.io~1generation";

pub fn pod_spec() -> Value {
    json!({
        "serviceAccountName": "robot", "nodeSelector": {"disk": "ssd"}, "priorityClassName": "high",
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "overhead": {"cpu": "10m", "memory": "1Mi"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}},
        "imagePullSecrets": [{"name": "pull"}],
        "volumes": [
            {"name": "config", "configMap": {"name": "config"}},
            {"name": "secret", "secret": {"secretName": "secret"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "all", "projected": {"sources": [{"configMap": {"name": "p-config"}}, {"secret": {"name": "p-secret"}}]}},
            {"name": "azure", "azureFile": {"secretName": "azure", "shareName": "s"}},
            {"name": "csi", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi"}}},
            {"name": "ceph", "cephfs": {"monitors": ["m"], "secretRef": {"name": "ceph"}}},
            {"name": "flex", "flexVolume": {"driver": "d", "secretRef": {"name": "flex"}}},
            {"name": "iscsi", "iscsi": {"targetPortal": "t", "iqn": "i", "lun": 0, "secretRef": {"name": "iscsi"}}},
            {"name": "rbd", "rbd": {"monitors": ["m"], "image": "i", "secretRef": {"name": "rbd"}}},
            {"name": "scale", "scaleIO": {"gateway": "g", "system": "s", "secretRef": {"name": "scale"}}},
            {"name": "cinder", "cinder": {"volumeID": "v", "secretRef": {"name": "cinder"}}},
            {"name": "os", "storageos": {"volumeName": "v", "secretRef": {"name": "os"}}},
        ],
        "initContainers": [
            {"name": "first", "image": "i", "resources": {"requests": {"cpu": "2", "memory": "64Mi"}}},
            {"name": "beside", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "30m"}}},
            {"name": "second", "image": "i", "envFrom": [{"secretRef": {"name": "init-env"}}]},
        ],
        "containers": [
            {"name": "web", "image": "nginx:1",
             "resources": {"requests": {"cpu": "250m", "memory": "128Mi"}, "limits": {"cpu": "1", "example.io/gpu": "2"}},
             "env": [
                 {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "env-config", "key": "k"}}},
                 {"name": "B", "valueFrom": {"secretKeyRef": {"name": "env-secret", "key": "k"}}},
             ],
             "envFrom": [{"configMapRef": {"name": "from-config"}}, {"secretRef": {"name": "from-secret"}}],
             "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}]},
            {"name": "side", "image": "proxy", "resources": {"requests": {"cpu": "100m", "ephemeral-storage": "1Gi"}}},
        ],
    })
}

fn pod_choices(at: &str) -> Vec<Choice> {
    // The places live as long as the tests.
    let place = |rest: &str| -> &'static str { Box::leak(format!("{at}{rest}").into_boxed_str()) };
    vec![
        (place("/serviceAccountName"), vec![json!("default"), json!(""), Value::Null]),
        (place("/nodeSelector"), vec![Value::Null, json!({})]),
        (place("/tolerations"), vec![Value::Null, json!([])]),
        (place("/affinity"), vec![Value::Null, json!({"podAffinity": {}}), json!({"nodeAffinity": {}})]),
        (place("/priorityClassName"), vec![Value::Null]),
        (place("/overhead"), vec![Value::Null]),
        (place("/initContainers"), vec![Value::Null, json!([])]),
        (
            place("/containers/0/resources"),
            vec![
                Value::Null,
                json!({"requests": {"cpu": "1500m", "memory": "1G", "hugepages-2Mi": "4Mi", "pods": "3"}}),
                json!({"limits": {"cpu": "2", "memory": "1Ki"}}),
                json!({"requests": {"cpu": "0", "memory": "1k"}}),
                json!({"requests": {"cpu": "100u", "memory": "100m", "example.io/fpga": "1500m"}}),
            ],
        ),
        (place("/containers/1/resources"), vec![Value::Null, json!({"requests": {"memory": "1Gi"}})]),
        (place("/volumes"), vec![Value::Null, json!([{"name": "e", "emptyDir": {}}])]),
        (
            place("/imagePullSecrets"),
            vec![Value::Null, json!([{"name": ""}]), json!([{"name": "secret"}, {"name": "secret"}])],
        ),
    ]
}

pub fn meta() -> Value {
    json!({"name": "it", "namespace": "ns", "generation": 3, "annotations": {"resourcetemplate.karmada.io/generation": "5"}})
}

pub fn object(api_version: &str, kind: &str, spec: Value, status: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": meta(), "spec": spec, "status": status})
}

pub fn numbers() -> Vec<Value> {
    vec![json!(0), json!(1), json!(2), json!(3), json!(7), Value::Null]
}

/// An object, how it varies, and how the status that a member reports for it varies.
pub struct Base {
    pub object: Value,
    pub choices: Vec<Choice>,
    pub reported: Value,
    pub reports: Vec<Choice>,
}

fn workload(kind: &str, fields: &[&'static str]) -> Base {
    let mut status = json!({"observedGeneration": 3, "conditions": [{"type": "Available", "status": "True"}]});
    for field in fields {
        status[*field] = json!(2);
    }
    let mut spec = json!({"selector": {"matchLabels": {"app": "it"}},
        "template": {"metadata": {"labels": {"app": "it"}}, "spec": pod_spec()}});
    if kind != "DaemonSet" {
        spec["replicas"] = json!(2);
    }
    let mut choices: Vec<Choice> = vec![
        ("/status", vec![Value::Null, json!({})]),
        ("/metadata/generation", numbers()),
        (GENERATION, vec![json!("3"), json!("0"), Value::Null]),
        (
            "/metadata/labels",
            vec![
                json!({"resourcetemplate.karmada.io/retain-replicas": "true"}),
                json!({"resourcetemplate.karmada.io/retain-replicas": "false"}),
            ],
        ),
        ("/status/observedGeneration", numbers()),
    ];
    let places = ["/status/", "/"].map(|at| {
        fields.iter().map(move |field| -> &'static str { Box::leak(format!("{at}{field}").into_boxed_str()) })
    });
    let [in_object, in_report] = places;
    choices.extend(in_object.map(|place| (place, numbers())));
    if kind != "DaemonSet" {
        choices.push(("/spec/replicas", numbers()));
    }
    if kind == "StatefulSet" {
        spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {}}]);
        choices.push(("/spec/volumeClaimTemplates", vec![Value::Null, json!([{"metadata": {"name": "other"}}])]));
    }
    choices.extend(pod_choices("/spec/template/spec"));
    let mut reported = status.clone();
    reported["generation"] = json!(3);
    reported["resourceTemplateGeneration"] = json!(3);
    let mut reports: Vec<Choice> = in_report.map(|place| (place, numbers())).collect();
    for field in ["/generation", "/observedGeneration", "/resourceTemplateGeneration"] {
        reports.push((field, vec![json!(3), json!(3), json!(4), json!(2), Value::Null]));
    }
    Base { object: object("apps/v1", kind, spec, status), choices, reported, reports }
}

fn workloads() -> Vec<Base> {
    vec![
        workload(
            "Deployment",
            &["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"],
        ),
        workload(
            "StatefulSet",
            &["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "currentReplicas"],
        ),
        workload("ReplicaSet", &["replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas"]),
        workload(
            "DaemonSet",
            &[
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
            ],
        ),
    ]
}

pub fn times() -> Vec<Value> {
    ["2026-01-02T03:04:05Z", "2026-01-02T02:04:05Z", "2025-12-31T23:59:59Z"]
        .iter()
        .map(|time| json!(time))
        .chain([Value::Null])
        .collect()
}

fn jobs() -> Vec<Base> {
    let conditions = || {
        let one = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": "2026-01-02T03:04:05Z"});
        vec![
            json!([one("Complete", "True")]),
            json!([one("Complete", "False")]),
            json!([one("Failed", "True")]),
            json!([one("SuccessCriteriaMet", "True"), one("Complete", "True")]),
            json!([one("FailureTarget", "True"), one("Failed", "True")]),
            json!([one("Suspended", "True")]),
            Value::Null,
        ]
    };
    let status = json!({"active": 1, "succeeded": 2, "failed": 1, "ready": 1, "startTime": "2026-01-02T03:04:05Z",
        "uncountedTerminatedPods": {"succeeded": ["a"]}});
    let labels = json!({"controller-uid": "u", "batch.kubernetes.io/controller-uid": "u", "app": "it"});
    let spec = json!({"parallelism": 3, "completions": 5, "selector": {"matchLabels": labels.clone()},
        "template": {"metadata": {"labels": labels}, "spec": pod_spec()}});
    let mut choices: Vec<Choice> = vec![
        ("/spec/parallelism", numbers()),
        ("/spec/completions", numbers()),
        ("/spec/selector", vec![Value::Null, json!({"matchLabels": {"other": "x"}})]),
        ("/status", vec![Value::Null, json!({})]),
        ("/status/conditions", conditions()),
        ("/status/startTime", times()),
        ("/status/active", numbers()),
    ];
    choices.extend(pod_choices("/spec/template/spec"));
    let reports: Vec<Choice> = vec![
        ("/active", numbers()),
        ("/succeeded", numbers()),
        ("/failed", numbers()),
        ("/conditions", conditions()),
        ("/conditions", conditions()),
        ("/startTime", times()),
        ("/completionTime", times()),
    ];
    let job = Base { object: object("batch/v1", "Job", spec, status.clone()), choices, reported: status, reports };

    let status = json!({"active": [{"kind": "Job", "namespace": "ns", "name": "a", "uid": "u"}], "lastScheduleTime": "2026-01-02T03:04:05Z"});
    let spec = json!({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": pod_spec()}}}});
    let mut choices: Vec<Choice> = vec![("/status", vec![Value::Null]), ("/spec/suspend", vec![json!(true)])];
    choices.extend(pod_choices("/spec/jobTemplate/spec/template/spec"));
    let reports: Vec<Choice> = vec![
        ("/active", vec![Value::Null, json!([]), json!([{"name": "x"}, {"name": "y"}])]),
        ("/lastScheduleTime", times()),
        ("/lastSuccessfulTime", times()),
    ];
    let cron = Base { object: object("batch/v1", "CronJob", spec, status.clone()), choices, reported: status, reports };
    vec![job, cron]
}

fn pods() -> Vec<Base> {
    let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.0.0.1",
        "containerStatuses": [{"name": "web", "image": "nginx:1", "imageID": "x", "ready": true, "restartCount": 2, "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}, "lastState": {}}]});
    let phases = vec![
        json!("Running"),
        json!("Pending"),
        json!("Succeeded"),
        json!("Failed"),
        json!("Unknown"),
        json!(""),
        Value::Null,
    ];
    let ready = vec![
        json!([{"type": "Ready", "status": "False"}]),
        json!([]),
        Value::Null,
        json!([{"type": "Initialized", "status": "True"}]),
    ];
    let mut choices: Vec<Choice> = vec![
        ("/status/phase", phases.clone()),
        ("/status/conditions", ready.clone()),
        ("/status", vec![Value::Null]),
        ("/spec/nodeName", vec![json!("node"), Value::Null]),
        ("/spec/containers/0/volumeMounts", vec![Value::Null, json!([{"name": "secret", "mountPath": "/x"}])]),
    ];
    choices.extend(pod_choices("/spec"));
    let reports = vec![
        ("/phase", phases),
        ("/containerStatuses", vec![Value::Null, json!([])]),
        (
            "/initContainerStatuses",
            vec![
                json!([{"name": "first", "image": "i", "imageID": "", "ready": true, "restartCount": 0, "state": {"terminated": {"exitCode": 0}}}]),
            ],
        ),
        ("/conditions", ready),
    ];
    vec![Base { object: object("v1", "Pod", pod_spec(), status.clone()), choices, reported: status, reports }]
}

fn addresses() -> Vec<Value> {
    vec![
        Value::Null,
        json!({}),
        json!({"ingress": []}),
        json!({"ingress": [{"ip": "1.2.3.4"}]}),
        json!({"ingress": [{"hostname": "b.example.io"}, {"hostname": "a.example.io"}, {"ip": "9.9.9.9"}]}),
        json!({"ingress": [{"ip": "1.2.3.4", "ports": [{"port": 80, "protocol": "TCP"}]}, {"ip": "1.2.3.4"}]}),
        json!({"ingress": [{}]}),
        json!({"ingress": [{"ip": "10.0.0.2", "hostname": "z"}, {"ip": "10.0.0.2", "hostname": "c"}]}),
    ]
}

fn balanced() -> Vec<Base> {
    let spec = json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "healthCheckNodePort": 30000, "ports": [{"port": 80}]});
    let status = json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}});
    let service = Base {
        object: object("v1", "Service", spec, status.clone()),
        choices: vec![
            ("/spec/type", vec![json!("ClusterIP"), json!("NodePort"), json!("ExternalName"), Value::Null]),
            ("/spec/clusterIP", vec![json!(""), json!("None"), json!("10.0.0.9"), Value::Null]),
            ("/spec/clusterIPs", vec![Value::Null]),
            ("/spec/healthCheckNodePort", vec![json!(0), json!(31000), Value::Null]),
            ("/status/loadBalancer", addresses()),
            ("/status", vec![Value::Null, json!({})]),
            (
                "/status/conditions",
                vec![
                    json!([{"type": "X", "status": "True", "reason": "r", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}]),
                ],
            ),
        ],
        reported: status.clone(),
        reports: vec![("/loadBalancer", addresses())],
    };
    let tls = vec![
        json!([]),
        json!([{"secretName": "b"}, {"secretName": "a"}, {"secretName": "a"}]),
        json!([{"hosts": ["h"]}]),
        Value::Null,
    ];
    let ingress = Base {
        object: object(
            "networking.k8s.io/v1",
            "Ingress",
            json!({"tls": [{"hosts": ["h"], "secretName": "tls"}]}),
            status.clone(),
        ),
        choices: vec![("/spec/tls", tls), ("/status/loadBalancer", addresses()), ("/status", vec![Value::Null])],
        reported: status,
        reports: vec![("/loadBalancer", addresses())],
    };
    vec![service, ingress]
}

fn volumes() -> Vec<Base> {
    let phases = |all: &[&str]| all.iter().map(|phase| json!(phase)).chain([Value::Null]).collect::<Vec<_>>();
    let claim_phases = phases(&["Bound", "Pending", "Lost", ""]);
    let claim = Base {
        object: object(
            "v1",
            "PersistentVolumeClaim",
            json!({"volumeName": "v", "accessModes": ["ReadWriteOnce"]}),
            json!({"phase": "Bound", "capacity": {"storage": "1Gi"}}),
        ),
        choices: vec![
            ("/spec/volumeName", vec![json!(""), json!("w"), Value::Null]),
            ("/status/phase", claim_phases.clone()),
            ("/status", vec![Value::Null]),
        ],
        reported: json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"]}),
        reports: vec![("/phase", claim_phases)],
    };
    let volume_phases = phases(&["Failed", "Pending", "Available", "Bound", "Released", "Odd"]);
    let volume = Base {
        object: object(
            "v1",
            "PersistentVolume",
            json!({"claimRef": {"name": "c", "namespace": "ns"}, "capacity": {"storage": "1Gi"}}),
            json!({"phase": "Bound"}),
        ),
        choices: vec![
            ("/spec/claimRef", vec![json!({"name": "d"}), Value::Null]),
            ("/status/phase", volume_phases.clone()),
            ("/status", vec![Value::Null]),
        ],
        reported: json!({"phase": "Bound"}),
        reports: vec![("/phase", volume_phases)],
    };
    vec![claim, volume]
}

fn counted() -> Vec<Base> {
    let status = json!({"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3, "observedGeneration": 3, "disruptedPods": {"pod": "2026-01-02T03:04:05Z"}});
    let fields = ["/currentHealthy", "/desiredHealthy", "/expectedPods", "/disruptionsAllowed"];
    let mut reports: Vec<Choice> = fields.iter().map(|field| (*field, numbers())).collect();
    reports.push((
        "/disruptedPods",
        vec![Value::Null, json!({}), json!({"a": "2026-01-02T03:04:05Z", "b": "2026-01-02T03:04:05Z"})],
    ));
    let budget = Base {
        object: object("policy/v1", "PodDisruptionBudget", json!({"minAvailable": 1}), status.clone()),
        choices: vec![
            ("/status/currentHealthy", numbers()),
            ("/status/desiredHealthy", numbers()),
            ("/status", vec![Value::Null, json!({})]),
            ("/status/disruptedPods", vec![Value::Null]),
        ],
        reported: status,
        reports,
    };
    let status = json!({"currentReplicas": 2, "desiredReplicas": 3, "lastScaleTime": "2026-01-02T03:04:05Z", "currentMetrics": null, "conditions": [{"type": "AbleToScale", "status": "True", "reason": "r", "message": "", "lastTransitionTime": null}]});
    let scaler = Base {
        object: object(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "it"}}),
            status.clone(),
        ),
        choices: vec![("/status/currentReplicas", numbers()), ("/status", vec![Value::Null, json!({})])],
        reported: status,
        reports: vec![("/currentReplicas", numbers()), ("/desiredReplicas", numbers())],
    };
    vec![budget, scaler]
}

fn others() -> Vec<Base> {
    let plain = |object: Value, choices: Vec<Choice>| Base {
        object,
        choices,
        reported: json!({"phase": "X"}),
        reports: vec![("/phase", vec![json!("Y"), Value::Null])],
    };
    let refs = || vec![Value::Null, json!([]), json!([{"name": "own"}]), json!([{"name": "a"}, {"name": "b"}])];
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(), "secrets": [{"name": "own"}, {"name": "it-token-x"}], "imagePullSecrets": [{"name": "pull"}]});
    let token = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": meta(), "data": {"token": "eA=="}});
    vec![
        plain(account, vec![("/secrets", refs()), ("/imagePullSecrets", refs())]),
        plain(
            token,
            vec![
                ("/type", vec![json!("Opaque"), Value::Null]),
                ("/data", vec![Value::Null, json!({}), json!({"token": "eQ==", "ca.crt": "eg=="})]),
                ("/metadata/annotations", vec![Value::Null, json!({"kubernetes.io/service-account.name": "it"})]),
            ],
        ),
        plain(
            object("multicluster.x-k8s.io/v1alpha1", "ServiceImport", json!({"type": "ClusterSetIP"}), json!({})),
            vec![("/metadata/namespace", vec![json!("other")])],
        ),
        plain(object("discovery.k8s.io/v1", "EndpointSlice", json!({}), json!({})), vec![]),
        plain(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(), "data": {"a": "b"}}),
            vec![("/status", vec![json!({"x": 1})])],
        ),
        plain(
            object("v1", "Namespace", json!({}), json!({"phase": "Active"})),
            vec![("/status/phase", vec![json!("Terminating")])],
        ),
        plain(object("v1", "Node", json!({}), json!({"phase": "Active"})), vec![]),
        plain(
            object("example.io/v1", "Thing", json!({"replicas": 1}), json!({"deep": {"list": [1, {"a": 1.5}]}})),
            vec![("/status", vec![Value::Null, json!({})])],
        ),
    ]
}

/// What members report: none, one or several, some nothing at all.
pub fn items(base: &Base, dice: &mut Dice) -> Vec<(String, Value)> {
    (0..dice.below(4))
        .map(|number| {
            let status = match dice.below(6) {
                0 => Value::Null,
                _ => vary(&base.reported, &base.reports, dice),
            };
            (format!("member{number}"), status)
        })
        .collect()
}

/// Variations of a base for each operation.
pub fn variations(base: &Base, operations: &[Operation], count: usize, dice: &mut Dice) -> Vec<Case> {
    let mut cases = Vec::new();
    for operation in operations {
        for number in 0..count {
            let same = number == 0;
            let object = if same { base.object.clone() } else { vary(&base.object, &base.choices, dice) };
            let mut case = Case::new(*operation, &object);
            case.replicas = *dice.pick(&[0, 1, 4, 100]);
            if *operation == Operation::Retain {
                case.observed = vary(&base.object, &base.choices, dice);
            }
            if *operation == Operation::Aggregate {
                case.items = items(base, dice);
                if dice.below(3) == 0 {
                    put(&mut case.object, "/status", Value::Null);
                }
            }
            cases.push(case);
        }
    }
    cases
}

pub fn cases() -> Vec<Case> {
    let operations: Vec<Operation> = Operation::ALL.into_iter().filter(|one| *one != Operation::Components).collect();
    let mut dice = Dice::new(20_261_116);
    let bases = [workloads(), jobs(), pods(), balanced(), volumes(), counted(), others()];
    let mut cases = Vec::new();
    for base in bases.iter().flatten() {
        cases.extend(variations(base, &operations, VARIATIONS, &mut dice));
        for mut case in variations(base, &operations, 3, &mut dice) {
            case.object = spoil(&case.object, &mut dice);
            cases.push(case);
        }
    }
    let mut nameless = Case::new(
        Operation::Retain,
        &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(), "secrets": [{}]}),
    );
    nameless.observed = nameless.object.clone();
    cases.push(nameless);
    cases
}
