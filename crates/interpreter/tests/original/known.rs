//! Questions about kinds of well-known projects.

use atoll_interpreter::Operation;
use serde_json::{Value, json};

use crate::builtin::{Base, numbers, object, pod_spec, times, variations};
use crate::case::Case;
use crate::random::{Choice, Dice, vary};

/// How many variations of each base there are for each operation.
const VARIATIONS: usize = 9;

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "it"}}, "spec": pod_spec()})
}

/// A smaller one, with other needs.
fn small(cpu: &str) -> Value {
    json!({"spec": {"serviceAccountName": "small", "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "2Gi"}}}],
        "volumes": [{"name": "v", "configMap": {"name": "small"}}]}})
}

fn base(api_version: &str, kind: &str, spec: Value, status: Value, choices: Vec<Choice>, reports: Vec<Choice>) -> Base {
    let mut reported = status.clone();
    let mut reports = reports;
    if status["observedGeneration"].is_number() {
        for field in ["generation", "observedGeneration", "resourceTemplateGeneration"] {
            reported[field] = json!(3);
            reports.push((Box::leak(format!("/{field}").into_boxed_str()), vec![json!(3), json!(3), json!(4)]));
        }
    }
    Base { object: object(api_version, kind, spec, status), choices, reported, reports }
}

/// The same choices for fields of a status, in the object and in what members report.
fn counts(fields: &[&'static str]) -> (Vec<Choice>, Vec<Choice>) {
    let values = || vec![json!(0), json!(1), json!(2), json!(5)];
    let own =
        fields.iter().map(|field| -> Choice { (Box::leak(format!("/status{field}").into_boxed_str()), values()) });
    (own.collect(), fields.iter().map(|field| -> Choice { (*field, numbers()) }).collect())
}

fn filled(fields: &[&str], more: Value) -> Value {
    let mut status = more;
    for field in fields {
        status[&field[1..]] = json!(2);
    }
    status
}

fn kruise() -> Vec<Base> {
    let mut all = Vec::new();
    let clone: &[&str] = &[
        "/replicas",
        "/readyReplicas",
        "/updatedReplicas",
        "/availableReplicas",
        "/updatedReadyReplicas",
        "/expectedUpdatedReplicas",
    ];
    let stateful: &[&str] = &[
        "/replicas",
        "/readyReplicas",
        "/updatedReplicas",
        "/availableReplicas",
        "/updatedReadyReplicas",
        "/currentReplicas",
    ];
    let united: &[&str] =
        &["/replicas", "/readyReplicas", "/updatedReplicas", "/availableReplicas", "/unavailableReplicas"];
    let daemon: &[&str] = &[
        "/currentNumberScheduled",
        "/numberMisscheduled",
        "/desiredNumberScheduled",
        "/numberReady",
        "/updatedNumberScheduled",
        "/numberAvailable",
        "/numberUnavailable",
    ];
    let sets = [
        ("v1alpha1", "CloneSet", clone),
        ("v1beta1", "StatefulSet", stateful),
        ("v1alpha1", "UnitedDeployment", united),
        ("v1alpha1", "DaemonSet", daemon),
    ];
    for (version, kind, fields) in sets {
        let more = match kind {
            "CloneSet" => {
                json!({"observedGeneration": 3, "updateRevision": "u", "currentRevision": "c", "labelSelector": "app=it"})
            }
            "StatefulSet" => json!({"observedGeneration": 3, "updateRevision": "u", "currentRevision": "c"}),
            "DaemonSet" => json!({"observedGeneration": 3, "daemonSetHash": "h"}),
            _ => json!({"observedGeneration": 3, "conditions": [{"type": "Ready", "status": "True"}]}),
        };
        let (mut choices, mut reports) = counts(fields);
        choices.push(("/status/observedGeneration", vec![json!(2)]));
        if kind != "DaemonSet" {
            choices.push(("/spec/replicas", vec![json!(0), json!(2), json!(3)]));
        }
        reports.push(("/updateRevision", vec![json!(""), json!("v"), Value::Null]));
        reports.push(("/conditions", vec![json!([{"type": "Ready", "status": "False"}]), Value::Null]));
        let mut spec = json!({"template": template()});
        if kind != "DaemonSet" {
            spec["replicas"] = json!(2);
        }
        all.push(base(&format!("apps.kruise.io/{version}"), kind, spec, filled(fields, more), choices, reports));
    }
    all
}

fn kruise_jobs() -> Vec<Base> {
    let ends = || {
        let one = |kind: &str| json!([{"type": kind, "status": "True"}]);
        vec![one("Complete"), one("Failed"), one("Other"), json!([{"type": "Failed", "status": "False"}]), Value::Null]
    };
    let fields: &[&str] = &["/active", "/succeeded", "/failed", "/desired"];
    let (mut choices, mut reports) = counts(fields);
    choices.push(("/spec/parallelism", vec![json!(1), json!(9), Value::Null]));
    choices.push(("/spec/template/metadata", vec![json!({"labels": {"job": "u"}}), json!({})]));
    reports.push(("/conditions", ends()));
    let status = filled(fields, json!({"phase": "running", "startTime": "2026-01-02T03:04:05Z"}));
    let broadcast = base(
        "apps.kruise.io/v1alpha1",
        "BroadcastJob",
        json!({"parallelism": 3, "template": template()}),
        status,
        choices,
        reports,
    );
    let status = json!({"type": "Job", "lastScheduleTime": "2026-01-02T03:04:05Z", "active": [{"name": "a"}]});
    let spec = json!({"schedule": "* * * * *", "template": {"jobTemplate": {"spec": {"template": template()}}}});
    let other = json!({"broadcastJobTemplate": {"spec": {"template": small("1")}}});
    let reports: Vec<Choice> = vec![
        ("/active", vec![Value::Null, json!([{"name": "b"}, {"name": "c"}])]),
        ("/type", vec![json!("BroadcastJob"), Value::Null]),
        ("/lastScheduleTime", times()),
    ];
    let timed = base(
        "apps.kruise.io/v1alpha1",
        "AdvancedCronJob",
        spec,
        status,
        vec![("/spec/template", vec![other])],
        reports,
    );
    let fields: &[&str] = &["/matchedPods", "/updatedPods", "/readyPods"];
    let (mut choices, reports) = counts(fields);
    choices.push(("/spec/volumes", vec![Value::Null]));
    choices.push(("/spec/containers", vec![Value::Null]));
    let mut spec = pod_spec();
    for field in ["serviceAccountName", "imagePullSecrets", "initContainers"] {
        spec.as_object_mut().unwrap().remove(field);
    }
    spec["volumes"] = json!([{"name": "c", "configMap": {"name": "c"}}, {"name": "s", "secret": {"secretName": "s"}}, {"name": "p", "projected": {"sources": [{"configMap": {"name": "pc"}}, {"secret": {"name": "ps"}}]}}]);
    let sidecar = base("apps.kruise.io/v1alpha1", "SidecarSet", spec, filled(fields, json!({})), choices, reports);
    vec![broadcast, timed, sidecar]
}

fn flux() -> Vec<Base> {
    let ready = |reason: &str, status: &str, message: &str| json!({"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-02T03:04:05Z"});
    let mut all = Vec::new();
    for (api_version, kind, reason) in [
        ("helm.toolkit.fluxcd.io/v2beta1", "HelmRelease", "ReconciliationSucceeded"),
        ("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "ReconciliationSucceeded"),
        ("source.toolkit.fluxcd.io/v1", "GitRepository", "Succeeded"),
        ("source.toolkit.fluxcd.io/v1beta2", "Bucket", "Succeeded"),
        ("source.toolkit.fluxcd.io/v1beta2", "HelmChart", "Succeeded"),
        ("source.toolkit.fluxcd.io/v1beta2", "HelmRepository", "Succeeded"),
        ("source.toolkit.fluxcd.io/v1beta2", "OCIRepository", "Succeeded"),
        ("kyverno.io/v1", "ClusterPolicy", "Succeeded"),
        ("kyverno.io/v1", "Policy", "Succeeded"),
    ] {
        let good = json!([ready(reason, "True", "fine")]);
        let mut status = json!({"conditions": good});
        let mut spec = json!({"suspend": false});
        match kind {
            "HelmRelease" => {
                spec["serviceAccountName"] = json!("robot");
                spec["valuesFrom"] =
                    json!([{"kind": "Secret", "name": "values"}, {"kind": "ConfigMap", "name": "more"}]);
                spec["chart"] = json!({"spec": {"verify": {"secretRef": {"name": "keys"}}}});
                spec["kubeConfig"] = json!({"secretRef": {"name": "kube"}});
                for (field, value) in
                    [("lastAppliedRevision", "1"), ("lastAttemptedRevision", "2"), ("helmChart", "ns/it")]
                {
                    status[field] = json!(value);
                }
            }
            "Kustomization" => {
                spec["serviceAccountName"] = json!("robot");
                spec["decryption"] = json!({"secretRef": {"name": "sops"}});
                spec["kubeConfig"] = json!({"secretRef": {"name": "kube"}});
                status["lastAppliedRevision"] = json!("main");
                status["lastAttemptedRevision"] = json!("main");
            }
            "ClusterPolicy" | "Policy" => {
                status["ready"] = json!(true);
                status["autogen"] = json!({"rules": [{"name": "r"}]});
                status["rulecount"] = json!({"validate": 1, "generate": 0, "mutate": 2, "verifyimages": 0});
            }
            other => {
                status["artifact"] = json!({"revision": "main", "url": "u"});
                if other != "GitRepository" {
                    status["url"] = json!("u");
                }
                match other {
                    "GitRepository" => {
                        spec["secretRef"] = json!({"name": "login"});
                        spec["verify"] = json!({"secretRef": {"name": "keys"}});
                    }
                    "HelmChart" => spec["verify"] = json!({"secretRef": {"name": "keys"}}),
                    "OCIRepository" => {
                        spec["secretRef"] = json!({"name": "login"});
                        spec["verify"] = json!({"secretRef": {"name": "keys"}});
                        spec["certSecretRef"] = json!({"name": "ca"});
                        spec["serviceAccountName"] = json!("robot");
                    }
                    _ => spec["secretRef"] = json!({"name": "login"}),
                }
            }
        }
        if !api_version.starts_with("kyverno") {
            status["observedGeneration"] = json!(3);
        }
        let states = || {
            vec![
                json!([ready(reason, "False", "bad")]),
                json!([ready("Other", "True", "hm")]),
                json!([]),
                json!([ready(reason, "True", "fine"), {"type": "Stalled", "status": "False", "reason": "x", "message": "m"}]),
            ]
        };
        let choices: Vec<Choice> = vec![
            ("/spec/suspend", vec![json!(true), Value::Null]),
            ("/status/conditions", states()),
            (
                "/status/ready",
                if api_version.starts_with("kyverno") { vec![json!(false), Value::Null] } else { vec![Value::Null] },
            ),
            (
                "/status/observedGeneration",
                if status["observedGeneration"].is_number() { vec![json!(2)] } else { vec![Value::Null] },
            ),
        ];
        all.push(base(api_version, kind, spec, status, choices, vec![("/conditions", states())]));
    }
    all
}

fn jobs() -> Vec<Base> {
    let conditions = || {
        let one = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastUpdateTime": "2026-01-02T03:04:05Z", "lastTransitionTime": "2026-01-02T03:04:05Z"});
        vec![
            json!([one("Created", "True"), one("Running", "True")]),
            json!([one("Failed", "True")]),
            json!([one("Succeeded", "True")]),
            json!([one("Failed", "False")]),
            json!([]),
            Value::Null,
        ]
    };
    let status = json!({"conditions": conditions()[0], "replicaStatuses": {"Worker": {"active": 1}}, "startTime": "2026-01-02T03:04:05Z"});
    let roles = |names: &[&str]| -> Value {
        names
            .iter()
            .enumerate()
            .map(|(at, name)| ((*name).to_owned(), json!({"replicas": at + 1, "template": small("500m")})))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let mut all = Vec::new();
    for (api_version, kind, field, names) in [
        ("kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs", ["Master", "Worker"]),
        ("kubeflow.org/v1", "TFJob", "tfReplicaSpecs", ["PS", "Chief"]),
        ("kubeflow.org/v2beta1", "MPIJob", "mpiReplicaSpecs", ["Launcher", "Worker"]),
    ] {
        let place = |name: &str, rest: &str| -> &'static str {
            Box::leak(format!("/spec/{field}/{name}/{rest}").into_boxed_str())
        };
        let choices = vec![
            ("/status/conditions", conditions()),
            (place(names[1], "replicas"), vec![Value::Null, json!(0), json!(7)]),
            (place(names[0], "template"), vec![template()]),
        ];
        all.push(base(
            api_version,
            kind,
            json!({field: roles(&names)}),
            status.clone(),
            choices,
            vec![("/conditions", conditions())],
        ));
    }
    let phases = |all: &[&str]| -> Vec<Value> { all.iter().map(|phase| json!(phase)).chain([Value::Null]).collect() };
    let volcano = phases(&["Pending", "Running", "Completed", "Failed", "Aborted", "Restarting", "Odd"]);
    let tasks = json!([{"name": "one", "replicas": 3, "minAvailable": 2, "template": template()}, {"replicas": 1, "template": small("1")}]);
    all.push(base(
        "batch.volcano.sh/v1alpha1",
        "Job",
        json!({"tasks": tasks}),
        json!({"state": {"phase": "Running"}, "running": 2}),
        vec![("/status/state/phase", volcano), ("/spec/tasks", vec![json!([]), Value::Null])],
        vec![("/running", numbers())],
    ));
    let states = phases(&["RUNNING", "COMPLETED", "FAILED", "FAILING", "SUBMITTED", ""]);
    let spark = json!({"type": "Scala", "driver": {"cores": 1, "memory": "512m", "nodeSelector": {"a": "b"}}, "executor": {"cores": 2, "memory": "4g", "instances": 3, "priorityClassName": "p"}});
    let choices: Vec<Choice> = vec![
        ("/status/applicationState/state", states),
        ("/spec/type", vec![json!("Python"), json!("Java")]),
        ("/spec/driver/memoryOverhead", vec![json!("1g"), json!("100m")]),
        ("/spec/memoryOverheadFactor", vec![json!("0.2")]),
        (
            "/spec/executor/gpu",
            vec![json!({"name": "example.io/gpu", "quantity": 2}), json!({"name": "", "quantity": 1})],
        ),
        ("/spec/executor/tolerations", vec![json!([{"key": "k", "operator": "Exists"}])]),
        ("/spec/executor/memory", vec![Value::Null, json!("1024k")]),
        (
            "/spec/dynamicAllocation",
            vec![
                json!({"enabled": true, "initialExecutors": 5, "minExecutors": 2}),
                json!({"enabled": false, "minExecutors": 9}),
                json!({"enabled": true}),
            ],
        ),
        ("/spec/executor/instances", vec![Value::Null, json!(1)]),
    ];
    all.push(base(
        "sparkoperator.k8s.io/v1beta2",
        "SparkApplication",
        spark,
        json!({"applicationState": {"state": "RUNNING"}, "executionAttempts": 1}),
        choices,
        vec![("/executionAttempts", numbers())],
    ));
    all
}

fn ray() -> Vec<Base> {
    let config = json!({"headGroupSpec": {"template": small("1")}, "workerGroupSpecs": [{"groupName": "a", "replicas": 2, "template": template()}, {"replicas": 3, "template": small("4")}]});
    let states = |all: &[&str]| -> Vec<Value> {
        let mut sets: Vec<Value> = all.iter().map(|kind| json!([{"type": kind, "status": "True"}])).collect();
        sets.push(all.iter().map(|kind| json!({"type": kind, "status": "True"})).collect());
        sets.push(all.iter().take(2).map(|kind| json!({"type": kind, "status": "True"})).collect());
        sets.push(json!([]));
        sets
    };
    let choices = |at: &str| -> Vec<Choice> {
        let place = |rest: &str| -> &'static str { Box::leak(format!("{at}{rest}").into_boxed_str()) };
        vec![
            (place("/headGroupSpec"), vec![json!({}), json!({"template": template()})]),
            (
                place("/workerGroupSpecs"),
                vec![
                    json!([]),
                    Value::Null,
                    json!([{"replicas": 4}]),
                    json!([{"template": small("1")}, {"template": small("2")}, {"groupName": "c", "template": small("3")}]),
                ],
            ),
        ]
    };
    let mut cluster = choices("/spec");
    cluster
        .push(("/status/conditions", states(&["HeadPodReady", "RayClusterProvisioned", "RayClusterReplicaFailure"])));
    let mut job = choices("/spec/rayClusterSpec");
    job.push(("/spec/submitterPodTemplate", vec![template()]));
    job.push((
        "/status/jobDeploymentStatus",
        ["Running", "Complete", "Failed", "Initializing", ""].iter().map(|text| json!(text)).collect(),
    ));
    job.push((
        "/status/jobStatus",
        ["SUCCEEDED", "FAILED", "RUNNING", "STOPPED"].iter().map(|text| json!(text)).collect(),
    ));
    let mut service = choices("/spec/rayClusterConfig");
    service.push(("/status/conditions", states(&["Ready", "UpgradeInProgress"])));
    vec![
        base(
            "ray.io/v1",
            "RayCluster",
            config.clone(),
            json!({"state": "ready", "conditions": [{"type": "HeadPodReady", "status": "True"}], "readyWorkerReplicas": 2}),
            cluster,
            vec![("/readyWorkerReplicas", numbers())],
        ),
        base(
            "ray.io/v1",
            "RayJob",
            json!({"rayClusterSpec": config.clone()}),
            json!({"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}),
            job,
            vec![("/jobStatus", vec![json!("FAILED"), json!("SUCCEEDED")])],
        ),
        base(
            "ray.io/v1",
            "RayService",
            json!({"rayClusterConfig": config}),
            json!({"conditions": [{"type": "Ready", "status": "True"}], "numServeEndpoints": 1}),
            service,
            vec![("/numServeEndpoints", numbers())],
        ),
    ]
}

fn others() -> Vec<Base> {
    let flink = json!({"jobManager": {"replicas": 1, "resource": {"cpu": 1, "memory": "2Gi"}}, "taskManager": {"resource": {"cpu": 2.5, "memory": "1Gi"}}, "job": {"parallelism": 5},
        "flinkConfiguration": {"taskmanager.numberOfTaskSlots": "2"}, "podTemplate": {"spec": {"nodeSelector": {"a": "b"}, "priorityClassName": "p"}}});
    let states: Vec<Value> = ["RUNNING", "FINISHED", "CREATED", "INITIALIZING", "RECONCILING", "FAILING", "ODD"]
        .iter()
        .map(|text| json!(text))
        .chain([Value::Null])
        .collect();
    let choices: Vec<Choice> = vec![
        ("/status/jobStatus/state", states.clone()),
        ("/status/error", vec![json!("ErrImagePull: no"), json!("other"), json!("")]),
        ("/status/lifecycleState", vec![json!("STABLE"), json!("DEPLOYED")]),
        ("/status/jobManagerDeploymentStatus", vec![json!("READY"), json!("ERROR")]),
        ("/spec/taskManager/replicas", vec![json!(4)]),
        ("/spec/job", vec![Value::Null, json!({"parallelism": 7})]),
        (
            "/spec/podTemplate",
            vec![Value::Null, json!({"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}})],
        ),
        ("/spec/jobManager/resource", vec![Value::Null, json!({"cpu": 3})]),
        ("/spec/flinkConfiguration", vec![json!({}), json!({"taskmanager.numberOfTaskSlots": "0"})]),
    ];
    let status = json!({"jobStatus": {"state": "RUNNING"}, "lifecycleState": "STABLE", "jobManagerDeploymentStatus": "READY", "observedGeneration": 1, "taskManager": {"replicas": 3}});
    let flink = base(
        "flink.apache.org/v1beta1",
        "FlinkDeployment",
        flink,
        status,
        choices,
        vec![("/jobStatus/state", states), ("/error", vec![json!("e")])],
    );
    let workflow = json!({"parallelism": 2, "serviceAccountName": "robot", "nodeSelector": {"a": "b"}, "executor": {"serviceAccountName": "exec"}, "imagePullSecrets": [{"name": "pull"}],
        "volumes": [{"name": "c", "configMap": {"name": "c"}}, {"name": "p", "persistentVolumeClaim": {"claimName": "p"}}], "affinity": pod_spec()["affinity"]});
    let choices: Vec<Choice> = vec![
        ("/spec/parallelism", vec![json!(5), Value::Null]),
        ("/spec/affinity", vec![Value::Null]),
        ("/spec/suspend", vec![json!(true), json!(false)]),
        ("/spec/executor", vec![Value::Null, json!({})]),
        ("/spec/tolerations", vec![json!([{"key": "k", "operator": "Exists"}])]),
        ("/spec/serviceAccountName", vec![json!("default"), Value::Null]),
        ("/status/phase", ["Running", "Failed", "Error", "Succeeded", ""].iter().map(|text| json!(text)).collect()),
        ("/status", vec![Value::Null]),
    ];
    let workflow = base("argoproj.io/v1alpha1", "Workflow", workflow, json!({"phase": "Running"}), choices, vec![]);
    let states = || {
        vec![
            json!({"running": {"startedAt": "2026-01-03T00:00:00Z"}}),
            json!({"waiting": {"reason": "ContainerCreating"}}),
            json!({"waiting": {"reason": "ErrImagePull"}}),
            json!({"terminated": {"exitCode": 0}}),
            json!({"terminated": {"exitCode": 1}}),
            json!({"terminated": {"reason": "OOMKilled"}}),
            json!({}),
            Value::Null,
        ]
    };
    let status = json!({"readyReplicas": 1, "containerState": {"running": {"startedAt": "2026-01-02T00:00:00Z"}}, "conditions": [{"type": "Running"}]});
    let notebook = base(
        "kubeflow.org/v1",
        "Notebook",
        json!({"template": template()}),
        status,
        vec![("/status/containerState", states()), ("/status", vec![Value::Null])],
        vec![("/containerState", states()), ("/readyReplicas", numbers())],
    );
    vec![flink, workflow, notebook]
}

/// Where the original is known to go wrong.
fn odd() -> Vec<Case> {
    let mut broadcast = Case::new(
        Operation::Aggregate,
        &json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "BroadcastJob", "metadata": {"name": "it"}, "spec": {}}),
    );
    let failed = json!({"failed": 1, "conditions": [{"type": "Failed", "status": "True"}]});
    broadcast.items = vec![("a".to_owned(), failed), ("b".to_owned(), json!({"active": 1}))];
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "UnitedDeployment", "metadata": {"name": "it", "namespace": "ns"},
        "spec": {"replicas": 2, "template": {"cloneSetTemplate": {"spec": {"template": template()}}}}});
    let old = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "it"}, "status": {"state": "ready"}});
    let spark = json!({"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "metadata": {"name": "it"},
        "spec": {"type": "Java", "driver": {"cores": 2, "coreRequest": "500m"}}});
    let hosts = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "it"},
        "spec": {"workerGroupSpecs": [{"groupName": "a", "replicas": 2, "numOfHosts": 2}]}});
    let share = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "BroadcastJob", "metadata": {"name": "it"},
        "spec": {"parallelism": "50%", "template": {}}});
    vec![
        broadcast,
        Case::new(Operation::Replicas, &set),
        Case::new(Operation::Dependencies, &set),
        Case::new(Operation::Health, &old),
        Case::new(Operation::Components, &spark),
        Case::new(Operation::Components, &hosts),
        Case::new(Operation::Replicas, &share),
        Case::new(Operation::Revise, &share),
    ]
}

pub fn cases() -> Vec<Case> {
    let mut dice = Dice::new(2026);
    let bases = [kruise(), kruise_jobs(), flux(), jobs(), ray(), others()];
    let mut cases = odd();
    for base in bases.iter().flatten() {
        for mut case in variations(base, &Operation::ALL, VARIATIONS, &mut dice) {
            // Without a member there is nothing to put together.
            if case.operation == Operation::Aggregate && case.items.is_empty() {
                case.items = vec![("member0".to_owned(), vary(&base.reported, &base.reports, &mut dice))];
            }
            cases.push(case);
        }
    }
    cases
}
