//! Kinds of well-known projects.
#![allow(clippy::unwrap_used, missing_docs)]

use atoll_interpreter::{Health, Interpreter};
use serde_json::{Value, json};

fn pod() -> Value {
    json!({"spec": {"serviceAccountName": "robot", "containers": [{"resources": {"requests": {"cpu": "100m"}}}]}})
}

#[test]
fn workloads_of_kruise_are_like_deployments() {
    let it = Interpreter::new();
    for (api_version, kind) in [("apps.kruise.io/v1alpha1", "CloneSet"), ("apps.kruise.io/v1beta1", "StatefulSet")] {
        let status = json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "observedGeneration": 3, "collisionCount": 1});
        let meta = json!({"name": "it", "namespace": "ns", "generation": 3, "annotations": {"resourcetemplate.karmada.io/generation": "5"}});
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": {"replicas": 2, "template": pod()}, "status": status});
        let (replicas, needs) = it.replicas(&object).unwrap().unwrap();
        assert_eq!((replicas, needs.unwrap().requests["cpu"].0.as_str()), (2, "100m"));
        assert_eq!(it.dependencies(&object)[0].name, "robot");
        assert_eq!(it.try_health(&object), Ok(Health::Healthy));
        let reflected = it.try_reflect(&object).unwrap().unwrap();
        let wanted = json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "generation": 3, "observedGeneration": 3, "resourceTemplateGeneration": 5});
        assert_eq!(reflected, wanted);
        let mut template = json!({"apiVersion": api_version, "kind": kind, "metadata": {"generation": 5}});
        let items = [("a".to_owned(), reflected.clone()), ("b".to_owned(), reflected)];
        assert!(it.try_aggregate(&mut template, &items).unwrap());
        assert_eq!(
            template["status"],
            json!({"replicas": 4, "readyReplicas": 4, "updatedReplicas": 4, "availableReplicas": 4, "observedGeneration": 5})
        );
        assert!(!it.try_aggregate(&mut template, &items).unwrap());
        it.revise(&mut object, 7).unwrap();
        assert_eq!(object["spec"]["replicas"], 7);
        object["status"]["observedGeneration"] = json!(2);
        assert_eq!(it.health(&object), Health::Unhealthy);
    }
}

#[test]
fn rollouts_of_argo_are_understood() {
    let it = Interpreter::new();
    let strategy = json!({"canary": {"stableService": "stable", "canaryService": "canary"}});
    let mut rollout = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "it", "namespace": "ns", "generation": 2},
        "spec": {"replicas": 4, "template": pod(), "strategy": strategy}, "status": {"observedGeneration": "2", "phase": "Healthy", "replicas": 4, "canary": {}}});
    assert_eq!(it.replicas(&rollout).unwrap().unwrap().0, 4);
    let names: Vec<String> = it.try_dependencies(&rollout).unwrap().into_iter().map(|found| found.name).collect();
    assert_eq!(names, ["canary", "stable", "robot"]);
    assert_eq!(it.try_health(&rollout), Ok(Health::Healthy));
    assert_eq!(it.reflect(&rollout), Some(json!({"observedGeneration": "2", "phase": "Healthy", "replicas": 4})));
    let items = [
        ("a".to_owned(), json!({"phase": "Healthy", "replicas": 1})),
        ("b".to_owned(), json!({"phase": "Degraded", "replicas": 2})),
    ];
    assert!(it.try_aggregate(&mut rollout, &items).unwrap());
    assert_eq!(
        (rollout["status"]["phase"].as_str(), rollout["status"]["replicas"].as_i64()),
        (Some("Degraded"), Some(3))
    );
}

#[test]
fn flink_has_two_components() {
    let it = Interpreter::new();
    let flink = json!({"apiVersion": "flink.apache.org/v1beta1", "kind": "FlinkDeployment", "metadata": {"namespace": "ns"},
        "spec": {"jobManager": {"resource": {"cpu": 1, "memory": "2048m"}}, "taskManager": {"resource": {"cpu": 2, "memory": "1g"}},
            "job": {"parallelism": 5}, "flinkConfiguration": {"taskmanager.numberOfTaskSlots": "2"},
            "podTemplate": {"spec": {"nodeSelector": {"disk": "ssd"}}}},
        "status": {"jobStatus": {"state": "RUNNING"}, "error": "x", "other": 1}});
    let parts = it.components(&flink).unwrap().unwrap();
    let short: Vec<(&str, i32, &str)> = parts
        .iter()
        .map(|part| {
            (
                part.name.as_str(),
                part.replicas,
                part.replica_requirements.as_ref().unwrap().resource_request["memory"].0.as_str(),
            )
        })
        .collect();
    assert_eq!(short, [("jobmanager", 1, "2048Mi"), ("taskmanager", 3, "1Gi")]);
    let (replicas, needs) = it.replicas(&flink).unwrap().unwrap();
    assert_eq!(
        (replicas, serde_json::to_value(needs.unwrap().requests).unwrap()),
        (4, json!({"cpu": "2", "memory": "2048Mi"}))
    );
    assert_eq!(it.try_health(&flink), Ok(Health::Healthy));
    assert_eq!(it.reflect(&flink), Some(json!({"jobStatus": {"state": "RUNNING"}, "error": "x"})));
}
