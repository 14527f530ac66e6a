//! Questions about kinds of well-known projects.

use atoll_interpreter::Operation;
use serde_json::{Value, json};

use crate::builtin::{Base, numbers, object, pod_spec, times, variations};
use crate::case::Case;
use crate::flux::flux;
use crate::jobs::{jobs, ray, spark, volcano};
use crate::random::{Choice, Dice, vary};

/// How many variations of each base there are for each operation.
const VARIATIONS: usize = 9;

pub fn template() -> Value {
    json!({"metadata": {"labels": {"app": "it"}}, "spec": pod_spec()})
}

/// A smaller one, with other needs.
pub fn small(cpu: &str) -> Value {
    json!({"spec": {"serviceAccountName": "small", "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "2Gi"}}}],
        "volumes": [{"name": "v", "configMap": {"name": "small"}}]}})
}

pub fn base(
    api_version: &str,
    kind: &str,
    spec: Value,
    status: Value,
    choices: Vec<Choice>,
    reports: Vec<Choice>,
) -> Base {
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

fn flink() -> Base {
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
    base(
        "flink.apache.org/v1beta1",
        "FlinkDeployment",
        flink,
        status,
        choices,
        vec![("/jobStatus/state", states), ("/error", vec![json!("e")])],
    )
}

fn workflow() -> Base {
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
    base("argoproj.io/v1alpha1", "Workflow", workflow, json!({"phase": "Running"}), choices, vec![])
}

fn notebook() -> Base {
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
    base(
        "kubeflow.org/v1",
        "Notebook",
        json!({"template": template()}),
        status,
        vec![("/status/containerState", states()), ("/status", vec![Value::Null])],
        vec![("/containerState", states()), ("/readyReplicas", numbers())],
    )
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
    let plain = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "it"}, "spec": {"template": {"spec": {}}}});
    let request = |cpu: &str| json!({"requests": {"cpu": cpu}});
    let sidecar = json!({"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": {"name": "it"}, "spec": {"template": {"spec": {
        "containers": [{"name": "c", "resources": request("1")}], "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": request("2")}]}}}});
    vec![
        broadcast,
        Case::new(Operation::Replicas, &sidecar),
        Case::new(Operation::Dependencies, &plain),
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
    let bases = [
        kruise(),
        kruise_jobs(),
        flux(),
        jobs(),
        vec![volcano(), spark()],
        ray(),
        vec![flink(), workflow(), notebook()],
    ];
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
