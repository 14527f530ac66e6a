//! Jobs and clusters with several pod templates.

use serde_json::{Value, json};

use crate::builtin::{Base, numbers, times};
use crate::known::{base, small, template};
use crate::random::Choice;

pub fn jobs() -> Vec<Base> {
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
            vec![
                ("/conditions", conditions()),
                ("/startTime", times()),
                ("/completionTime", times()),
                ("/lastReconcileTime", times()),
                (
                    "/replicaStatuses",
                    vec![json!({"Worker": {"active": 2, "failed": 1}, "Master": {"succeeded": 1}}), Value::Null],
                ),
            ],
        ));
    }
    all
}

fn phases(all: &[&str]) -> Vec<Value> {
    all.iter().map(|phase| json!(phase)).chain([Value::Null]).collect()
}

pub fn volcano() -> Base {
    let volcano = phases(&["Pending", "Running", "Completed", "Failed", "Aborted", "Restarting", "Odd"]);
    let tasks = json!([{"name": "one", "replicas": 3, "minAvailable": 2, "template": template()}, {"replicas": 1, "template": small("1")}]);
    let state = |status: &str, at: &str| json!({"status": status, "lastTransitionTime": at});
    let counted = json!({"one": {"phase": {"Running": 1, "Failed": 1}}, "two": {"phase": {"Pending": 3}}});
    base(
        "batch.volcano.sh/v1alpha1",
        "Job",
        json!({"tasks": tasks}),
        json!({"state": {"phase": "Running"}, "running": 2}),
        vec![("/status/state/phase", volcano.clone()), ("/spec/tasks", vec![json!([]), Value::Null])],
        vec![
            ("/running", numbers()),
            ("/state/phase", volcano),
            ("/version", numbers()),
            ("/runningDuration", vec![json!("1h2m"), json!("30s")]),
            ("/taskStatusCount", vec![json!({"one": {"phase": {"Running": 2}}}), counted]),
            ("/controlledResources", vec![json!({"plugin-env": "env"})]),
            (
                "/conditions",
                vec![
                    json!([state("Pending", "2026-01-01T00:00:00Z"), state("Running", "2026-01-02T00:00:00Z")]),
                    json!([state("Running", "2026-01-03T00:00:00Z")]),
                    json!([state("Aborting", "2026-01-02T00:00:00Z")]),
                ],
            ),
        ],
    )
}

pub fn spark() -> Base {
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
    let state = |state: &str| json!({"state": state});
    base(
        "sparkoperator.k8s.io/v1beta2",
        "SparkApplication",
        spark,
        json!({"applicationState": {"state": "RUNNING"}, "executionAttempts": 1}),
        choices,
        vec![
            ("/executionAttempts", numbers()),
            ("/applicationState", vec![state("FAILED"), state("COMPLETED"), state("SUBMITTED")]),
            ("/lastSubmissionAttemptTime", times()),
            ("/terminationTime", times()),
            ("/executorState", vec![json!({"e1": "RUNNING"}), json!({"e2": "FAILED"})]),
        ],
    )
}

fn ray_states(all: &[&str]) -> Vec<Value> {
    let mut sets: Vec<Value> = all.iter().map(|kind| json!([{"type": kind, "status": "True"}])).collect();
    sets.push(all.iter().map(|kind| json!({"type": kind, "status": "True"})).collect());
    sets.push(all.iter().take(2).map(|kind| json!({"type": kind, "status": "True"})).collect());
    sets.push(json!([]));
    sets
}

fn ray_choices(at: &str) -> Vec<Choice> {
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
}

pub fn ray() -> Vec<Base> {
    let config = json!({"headGroupSpec": {"template": small("1")}, "workerGroupSpecs": [{"groupName": "a", "replicas": 2, "template": template()}, {"replicas": 3, "template": small("4")}]});
    let mut cluster = ray_choices("/spec");
    cluster.push((
        "/status/conditions",
        ray_states(&["HeadPodReady", "RayClusterProvisioned", "RayClusterReplicaFailure"]),
    ));
    let mut job = ray_choices("/spec/rayClusterSpec");
    job.push(("/spec/submitterPodTemplate", vec![template()]));
    job.push((
        "/status/jobDeploymentStatus",
        ["Running", "Complete", "Failed", "Initializing", ""].iter().map(|text| json!(text)).collect(),
    ));
    job.push((
        "/status/jobStatus",
        ["SUCCEEDED", "FAILED", "RUNNING", "STOPPED"].iter().map(|text| json!(text)).collect(),
    ));
    let mut service = ray_choices("/spec/rayClusterConfig");
    service.push(("/status/conditions", ray_states(&["Ready", "UpgradeInProgress"])));
    let active = |name: &str, apps: Value| json!({"rayClusterName": name, "applicationStatuses": apps});
    vec![
        base(
            "ray.io/v1",
            "RayCluster",
            config.clone(),
            json!({"state": "ready", "conditions": [{"type": "HeadPodReady", "status": "True"}], "readyWorkerReplicas": 2}),
            cluster,
            vec![
                ("/readyWorkerReplicas", numbers()),
                ("/desiredCPU", vec![json!("4"), json!("500m")]),
                ("/desiredMemory", vec![json!("2Gi")]),
                ("/desiredGPU", vec![json!("1")]),
                ("/lastUpdateTime", times()),
                ("/head", vec![json!({"podIP": "1.2.3.4"})]),
                ("/state", vec![Value::Null, json!("failed")]),
            ],
        ),
        base(
            "ray.io/v1",
            "RayJob",
            json!({"rayClusterSpec": config.clone()}),
            json!({"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}),
            job,
            vec![
                ("/jobStatus", vec![json!("FAILED"), json!("SUCCEEDED")]),
                ("/jobDeploymentStatus", vec![json!("Failed"), json!("Complete"), json!("Waiting")]),
                ("/message", vec![json!("m")]),
            ],
        ),
        base(
            "ray.io/v1",
            "RayService",
            json!({"rayClusterConfig": config}),
            json!({"conditions": [{"type": "Ready", "status": "True"}], "numServeEndpoints": 1}),
            service,
            vec![
                ("/numServeEndpoints", numbers()),
                ("/serviceStatus", vec![json!("Running"), json!("")]),
                (
                    "/activeServiceStatus",
                    vec![
                        active("a", json!({"app": {"status": "RUNNING"}})),
                        active("b", json!({"app": {"status": "UNHEALTHY"}, "other": {"status": "DEPLOYING"}})),
                    ],
                ),
            ],
        ),
    ]
}
