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
    assert_eq!(short, [("jobmanager", 1, "2Gi"), ("taskmanager", 3, "1Gi")]);
    let (replicas, needs) = it.replicas(&flink).unwrap().unwrap();
    assert_eq!(
        (replicas, serde_json::to_value(needs.unwrap().requests).unwrap()),
        (4, json!({"cpu": "2", "memory": "2Gi"}))
    );
    assert_eq!(it.try_health(&flink), Ok(Health::Healthy));
    assert_eq!(it.reflect(&flink), Some(json!({"jobStatus": {"state": "RUNNING"}, "error": "x"})));
}

fn ready(status: &str, message: &str) -> Value {
    json!({"observedGeneration": 1, "generation": 1, "resourceTemplateGeneration": 4,
        "conditions": [{"type": "Ready", "status": status, "reason": "Said", "message": message}]})
}

#[test]
fn kinds_of_flux_and_kyverno_are_as_ready_as_they_say() {
    let it = Interpreter::new();
    for (api_version, kind) in [
        ("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),
        ("helm.toolkit.fluxcd.io/v2beta1", "HelmRelease"),
        ("source.toolkit.fluxcd.io/v1", "GitRepository"),
        ("source.toolkit.fluxcd.io/v1beta2", "OCIRepository"),
        ("kyverno.io/v1", "ClusterPolicy"),
    ] {
        let object = |status: Value| {
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "it", "namespace": "ns", "generation": 1,
                "annotations": {"resourcetemplate.karmada.io/generation": "4"}}, "spec": {}, "status": status})
        };
        for (status, health) in [
            (ready("True", ""), Health::Healthy),
            (ready("False", ""), Health::Unhealthy),
            (json!({"observedGeneration": 0, "conditions": [{"type": "Ready", "status": "True"}]}), Health::Unhealthy),
            (json!({}), Health::Unhealthy),
            (json!({"ready": true}), Health::Healthy),
        ] {
            assert_eq!(it.try_health(&object(status.clone())), Ok(health), "{kind} {status}");
        }
        let told = json!({"observedGeneration": 1, "lastAppliedRevision": "main", "conditions": [{"type": "Ready", "status": "True"}]});
        let reflected = it.try_reflect(&object(told.clone())).unwrap().unwrap();
        assert_eq!(reflected["lastAppliedRevision"], "main");
        let generations = (reflected["generation"].as_i64(), reflected["resourceTemplateGeneration"].as_i64());
        assert_eq!(generations, if kind == "ClusterPolicy" { (None, None) } else { (Some(1), Some(4)) });
        let mut template = json!({"apiVersion": api_version, "kind": kind, "metadata": {"generation": 4}, "spec": {}});
        let mut items = vec![("a".to_owned(), ready("True", "fine")), ("b".to_owned(), ready("False", "no access"))];
        assert!(it.try_aggregate(&mut template, &items).unwrap());
        let conditions = &template["status"]["conditions"];
        assert_eq!((&conditions[0]["status"], &conditions[0]["message"]), (&json!("True"), &json!("a=fine")));
        assert_eq!((&conditions[1]["status"], &conditions[1]["message"]), (&json!("False"), &json!("b=no access")));
        assert_eq!(template["status"]["observedGeneration"] == 4, kind != "ClusterPolicy");
        assert!(template["status"].get("resourceTemplateGeneration").is_none());
        assert!(!it.try_aggregate(&mut template, &items).unwrap(), "the same again changes nothing");
        items[1].1 = ready("True", "fine");
        assert!(it.try_aggregate(&mut template, &items).unwrap());
        assert_eq!(template["status"]["conditions"][0]["message"], "a=fine, b=fine");
    }
}

#[test]
fn kinds_of_flux_stay_suspended_and_take_their_secrets_along() {
    let it = Interpreter::new();
    let spec = json!({"secretRef": {"name": "one"}, "decryption": {"secretRef": {"name": "two"}}, "serviceAccountName": "robot",
        "sourceRef": {"kind": "GitRepository", "name": "source"},
        "postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "vars"}]}, "valuesFrom": [{"kind": "Secret", "name": "values"}]});
    let mut wanted = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "it", "namespace": "ns"}, "spec": spec});
    let mut found: Vec<String> = it.try_dependencies(&wanted).unwrap().into_iter().map(|one| one.name).collect();
    found.sort();
    assert_eq!(found, ["one", "robot", "two", "values", "vars"]);
    let mut observed = wanted.clone();
    observed["spec"]["suspend"] = json!(true);
    it.retain(&mut wanted, &observed).unwrap();
    assert_eq!(wanted["spec"]["suspend"], true);
}

#[test]
fn jobs_of_several_parts_say_what_each_needs() {
    let it = Interpreter::new();
    let part = |replicas: i64| json!({"replicas": replicas, "template": pod()});
    let worker = json!({"groupName": "small", "replicas": 2, "numOfHosts": 2, "template": pod()});
    let cluster = json!({"headGroupSpec": {"template": pod()}, "workerGroupSpecs": [worker]});
    let task = |name: &str, least: i64| json!({"name": name, "replicas": 9, "minAvailable": least, "template": pod()});
    for (api_version, kind, spec, wanted) in [
        (
            "kubeflow.org/v1",
            "PyTorchJob",
            json!({"pytorchReplicaSpecs": {"Worker": part(3), "Master": part(1)}}),
            vec![("master", 1), ("worker", 3)],
        ),
        (
            "kubeflow.org/v1",
            "TFJob",
            json!({"tfReplicaSpecs": {"PS": part(2), "Chief": {"template": pod()}}}),
            vec![("ps", 2), ("chief", 1)],
        ),
        (
            "kubeflow.org/v2beta1",
            "MPIJob",
            json!({"mpiReplicaSpecs": {"Launcher": part(1), "Worker": part(4)}}),
            vec![("Launcher", 1), ("Worker", 4)],
        ),
        ("batch.volcano.sh/v1alpha1", "Job", json!({"tasks": [task("b", 2), task("a", 1)]}), vec![("b", 2), ("a", 1)]),
        ("ray.io/v1", "RayCluster", cluster.clone(), vec![("ray-head", 1), ("small", 4)]),
        ("ray.io/v1", "RayJob", json!({"rayClusterSpec": cluster}), vec![("ray-head", 1), ("small", 4)]),
    ] {
        let mut job = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "it", "namespace": "ns"}, "spec": spec});
        let parts = it.components(&job).unwrap().unwrap();
        let short: Vec<(&str, i32)> = parts.iter().map(|part| (part.name.as_str(), part.replicas)).collect();
        assert_eq!(short, wanted, "{kind}");
        let needs = parts[0].replica_requirements.as_ref().unwrap();
        assert_eq!(needs.resource_request["cpu"].0, "100m", "{kind}");
        let found: Vec<String> = it.try_dependencies(&job).unwrap().into_iter().map(|one| one.name).collect();
        assert_eq!(found, ["robot"], "{kind}: once, although each part names it");
        let items = [("a".to_owned(), json!({"startTime": "2026-01-02T03:04:05Z"}))];
        assert!(it.try_aggregate(&mut job, &items).unwrap());
        assert_eq!(job["status"]["startTime"], "2026-01-02T03:04:05Z", "{kind}");
    }
}

#[test]
fn jobs_of_several_parts_are_well_until_they_fail() {
    let it = Interpreter::new();
    let condition = |kind: &str| json!({"conditions": [{"type": kind, "status": "True"}]});
    for (api_version, kind, status, health) in [
        ("kubeflow.org/v1", "PyTorchJob", condition("Running"), Health::Healthy),
        ("kubeflow.org/v1", "TFJob", condition("Failed"), Health::Unhealthy),
        ("kubeflow.org/v2beta1", "MPIJob", Value::Null, Health::Unhealthy),
        ("batch.volcano.sh/v1alpha1", "Job", json!({"state": {"phase": "Running"}}), Health::Healthy),
        ("batch.volcano.sh/v1alpha1", "Job", json!({"state": {"phase": "Failed"}}), Health::Unhealthy),
        ("ray.io/v1", "RayCluster", json!({"state": "ready"}), Health::Healthy),
        ("ray.io/v1", "RayCluster", json!({"state": "suspended"}), Health::Unhealthy),
        ("ray.io/v1", "RayCluster", condition("HeadPodReady"), Health::Unhealthy),
        ("ray.io/v1", "RayService", condition("Ready"), Health::Healthy),
        ("ray.io/v1", "RayService", json!({}), Health::Unhealthy),
        (
            "sparkoperator.k8s.io/v1beta2",
            "SparkApplication",
            json!({"applicationState": {"state": "RUNNING"}}),
            Health::Healthy,
        ),
        (
            "sparkoperator.k8s.io/v1beta2",
            "SparkApplication",
            json!({"applicationState": {"state": "FAILED"}}),
            Health::Unhealthy,
        ),
        ("ray.io/v1", "RayJob", json!({"jobStatus": "RUNNING", "jobDeploymentStatus": "Running"}), Health::Healthy),
        ("ray.io/v1", "RayJob", json!({"jobStatus": "FAILED", "jobDeploymentStatus": "Complete"}), Health::Unhealthy),
    ] {
        let mut job = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "it"}, "spec": {}});
        if !status.is_null() {
            job["status"] = status.clone();
        }
        assert_eq!(it.try_health(&job), Ok(health), "{kind} {status}");
    }
}

#[test]
fn daemon_sets_of_kruise_are_counted_by_node() {
    let it = Interpreter::new();
    let status = json!({"currentNumberScheduled": 3, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3, "observedGeneration": 2, "other": 1});
    let mut object = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "DaemonSet", "metadata": {"name": "it", "namespace": "ns", "generation": 2,
        "annotations": {"resourcetemplate.karmada.io/generation": "5"}}, "spec": {"template": pod()}, "status": status});
    assert_eq!(it.try_health(&object), Ok(Health::Healthy));
    assert_eq!(it.try_dependencies(&object).unwrap()[0].name, "robot");
    let reflected = it.try_reflect(&object).unwrap().unwrap();
    assert!(reflected.get("other").is_none());
    let mut template =
        json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "DaemonSet", "metadata": {"generation": 5}});
    assert!(
        it.try_aggregate(&mut template, &[("a".to_owned(), reflected.clone()), ("b".to_owned(), reflected)]).unwrap()
    );
    assert_eq!(
        (&template["status"]["numberAvailable"], &template["status"]["observedGeneration"]),
        (&json!(6), &json!(5))
    );
    object["status"]["numberAvailable"] = json!(2);
    assert_eq!(it.try_health(&object), Ok(Health::Unhealthy));
}

#[test]
fn united_deployments_find_the_pods_of_their_workload() {
    let it = Interpreter::new();
    let template = json!({"cloneSetTemplate": {"spec": {"template": pod()}}});
    let object = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "UnitedDeployment", "metadata": {"name": "it", "namespace": "ns", "generation": 1},
        "spec": {"replicas": 2, "template": template},
        "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "updatedReadyReplicas": 2}});
    let (replicas, needs) = it.replicas(&object).unwrap().unwrap();
    assert_eq!((replicas, needs.unwrap().requests["cpu"].0.as_str()), (2, "100m"));
    assert_eq!(it.try_dependencies(&object).unwrap()[0].name, "robot");
    assert_eq!(it.try_health(&object), Ok(Health::Healthy));
}

#[test]
fn spark_has_a_driver_and_executors() {
    let it = Interpreter::new();
    let job = json!({"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "metadata": {"name": "it", "namespace": "ns"},
        "spec": {"type": "Scala", "driver": {"cores": 1, "memory": "512m"}, "executor": {"instances": 3, "coreRequest": "500m", "memory": "2g"}}});
    let parts = it.components(&job).unwrap().unwrap();
    let short: Vec<(&str, i32, &str, &str)> = parts
        .iter()
        .map(|part| {
            let needs = &part.replica_requirements.as_ref().unwrap().resource_request;
            (part.name.as_str(), part.replicas, needs["cpu"].0.as_str(), needs["memory"].0.as_str())
        })
        .collect();
    assert_eq!(short, [("driver", 1, "1", "896Mi"), ("executor", 3, "500m", "2432Mi")]);
}

#[test]
fn memory_of_spark_is_in_mebibytes_unless_it_says_otherwise() {
    let it = Interpreter::new();
    for (driver, wanted) in [
        (json!({"memory": "1024"}), Some("1408Mi")),
        (json!({"memory": 1024}), Some("1408Mi")),
        (json!({"memory": "1024", "memoryOverhead": "76"}), Some("1100Mi")),
        (json!({"memory": "1gb", "memoryOverhead": "1048576b"}), Some("1025Mi")),
        (json!({"memory": "1048576K", "memoryOverhead": "1g"}), Some("2Gi")),
        (json!({}), Some("1408Mi")),
        (json!({"memory": "much"}), None),
        (json!({"memory": "5x"}), None),
        (json!({"memory": "1g", "memoryOverhead": "more"}), None),
    ] {
        let job = json!({"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "metadata": {"name": "it"},
            "spec": {"type": "Scala", "driver": driver}});
        let parts = it.components(&job).unwrap().unwrap();
        let needs = &parts[0].replica_requirements.as_ref().unwrap().resource_request;
        assert_eq!(needs["cpu"].0, "1");
        assert_eq!(needs.get("memory").map(|amount| amount.0.as_str()), wanted, "{driver}");
    }
}

#[test]
fn workflows_of_argo_keep_their_state_and_find_what_their_steps_need() {
    let it = Interpreter::new();
    let step = json!({"name": "s", "container": {"image": "x", "envFrom": [{"secretRef": {"name": "env"}}]}});
    let mut flow = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "it", "namespace": "ns"},
        "spec": {"parallelism": 3, "serviceAccountName": "robot", "templates": [step], "volumes": [{"name": "v", "configMap": {"name": "map"}}]}});
    assert_eq!(it.replicas(&flow).unwrap().unwrap().0, 3);
    it.revise(&mut flow, 2).unwrap();
    assert_eq!(flow["spec"]["parallelism"], 2);
    let mut found: Vec<String> = it.try_dependencies(&flow).unwrap().into_iter().map(|one| one.name).collect();
    found.sort();
    assert_eq!(found, ["env", "map", "robot"]);
    let mut observed = flow.clone();
    observed["status"] = json!({"phase": "Running"});
    observed["spec"]["suspend"] = json!(true);
    assert_eq!(it.try_health(&flow), Ok(Health::Unhealthy));
    assert_eq!(it.try_health(&observed), Ok(Health::Healthy));
    it.retain(&mut flow, &observed).unwrap();
    assert_eq!((&flow["spec"]["suspend"], &flow["status"]["phase"]), (&json!(true), &json!("Running")));
}

#[test]
fn notebooks_of_kubeflow_are_one_pod() {
    let it = Interpreter::new();
    let mut book = json!({"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "metadata": {"name": "it", "namespace": "ns"},
        "spec": {"template": pod()}, "status": {"readyReplicas": 1, "containerState": {"running": {}}, "other": 2}});
    let (replicas, needs) = it.replicas(&book).unwrap().unwrap();
    assert_eq!((replicas, needs.unwrap().requests["cpu"].0.as_str()), (1, "100m"));
    assert_eq!(it.try_health(&book), Ok(Health::Healthy));
    assert_eq!(it.reflect(&book), Some(json!({"readyReplicas": 1, "containerState": {"running": {}}})));
    let items = [("a".to_owned(), json!({"readyReplicas": 1})), ("b".to_owned(), json!({"readyReplicas": 0}))];
    book["status"] = json!({});
    assert!(it.try_aggregate(&mut book, &items).unwrap());
    assert_eq!(book["status"]["readyReplicas"], 1);
    let message = "Notebook executed failed in member clusters: a, b";
    assert_eq!(book["status"]["conditions"][0]["message"], message);
}

#[test]
fn jobs_of_kruise_are_summed_up_and_the_worst_phase_counts() {
    let it = Interpreter::new();
    let mut job = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "BroadcastJob", "metadata": {"name": "it", "namespace": "ns"},
        "spec": {"parallelism": 2, "template": pod()}});
    assert_eq!(it.replicas(&job).unwrap().unwrap().0, 2);
    it.revise(&mut job, 5).unwrap();
    assert_eq!(job["spec"]["parallelism"], 5);
    job["spec"]["parallelism"] = json!("50%");
    assert_eq!(it.replicas(&job).unwrap().unwrap().0, 1);
    it.revise(&mut job, 5).unwrap();
    assert_eq!(job["spec"]["parallelism"], "50%");
    assert_eq!(it.try_dependencies(&job).unwrap()[0].name, "robot");
    let part = |phase: &str, failed: i64| json!({"phase": phase, "desired": 3, "failed": failed, "active": 1});
    let items = [("a".to_owned(), part("completed", 0)), ("b".to_owned(), part("running", 1))];
    assert!(it.try_aggregate(&mut job, &items).unwrap());
    assert_eq!(job["status"], json!({"phase": "running", "desired": 6, "failed": 1, "active": 2}));
    assert_eq!(it.try_health(&job), Ok(Health::Unhealthy));
    job["status"] = part("running", 0);
    assert_eq!(it.try_health(&job), Ok(Health::Healthy));

    let template = json!({"broadcastJobTemplate": {"spec": {"template": pod()}}});
    let mut timed = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "AdvancedCronJob", "metadata": {"name": "it", "namespace": "ns"},
        "spec": {"template": template}});
    assert_eq!(it.try_dependencies(&timed).unwrap()[0].name, "robot");
    let run =
        |name: &str, at: &str| json!({"type": "BroadcastJob", "active": [{"name": name}], "lastScheduleTime": at});
    let items =
        [("a".to_owned(), run("one", "2026-01-02T00:00:00Z")), ("b".to_owned(), run("two", "2026-01-01T00:00:00Z"))];
    assert!(it.try_aggregate(&mut timed, &items).unwrap());
    let wanted = json!({"type": "BroadcastJob", "active": [{"name": "one"}, {"name": "two"}], "lastScheduleTime": "2026-01-02T00:00:00Z"});
    assert_eq!(timed["status"], wanted);
}

#[test]
fn sidecar_sets_are_counted_by_the_pods_they_are_in() {
    let it = Interpreter::new();
    let volumes = json!([{"name": "v", "configMap": {"name": "map"}}]);
    let mut set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "it"},
        "spec": {"volumes": volumes, "containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "env"}}]}]}});
    assert_eq!(it.replicas(&set), Ok(Some((0, None))));
    let found: Vec<String> = it.try_dependencies(&set).unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(found, ["map", "env"]);
    assert_eq!(it.try_health(&set), Ok(Health::Unhealthy));
    let part =
        |matched: i64, updated: i64| json!({"matchedPods": matched, "updatedPods": updated, "readyPods": updated});
    let items = [("a".to_owned(), part(2, 2)), ("b".to_owned(), part(3, 1))];
    assert!(it.try_aggregate(&mut set, &items).unwrap());
    assert_eq!(set["status"], part(5, 3));
    assert_eq!(it.try_health(&set), Ok(Health::Unhealthy));
    set["status"] = part(5, 5);
    assert_eq!(it.try_health(&set), Ok(Health::Healthy));
}

#[test]
fn services_of_ray_divide_their_workers() {
    let it = Interpreter::new();
    let group = |replicas: i64| json!({"replicas": replicas, "template": pod()});
    let service = |groups: Value| {
        json!({"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": {"name": "it", "namespace": "ns"},
            "spec": {"rayClusterConfig": {"headGroupSpec": {"template": pod()}, "workerGroupSpecs": groups}}})
    };
    let (replicas, needs) = it.replicas(&service(json!([group(2), group(4)]))).unwrap().unwrap();
    assert_eq!((replicas, needs.unwrap().requests["cpu"].0.as_str()), (7, "100m"));
    for (groups, replicas, wanted) in [
        (vec![2, 4], 4, vec![1, 2]),
        (vec![0, 0], 6, vec![3, 2]),
        (vec![2, 4], 1, vec![0, 0]),
        (vec![1; 5], 4, vec![1, 1, 1, 0, 0]),
        (vec![1; 4], 3, vec![1, 1, 0, 0]),
    ] {
        let mut object = service(groups.iter().copied().map(group).collect());
        it.revise(&mut object, replicas).unwrap();
        let found = object["spec"]["rayClusterConfig"]["workerGroupSpecs"].as_array().unwrap();
        let found: Vec<i64> = found.iter().map(|group| group["replicas"].as_i64().unwrap()).collect();
        assert_eq!(found, wanted, "{groups:?}");
    }
}

#[test]
fn hosts_of_a_worker_of_ray_do_not_multiply_workers() {
    let it = Interpreter::new();
    for (replicas, hosts) in [(2, 4), (3, 1), (0, 8), (5, 2)] {
        let group = json!({"groupName": "a", "replicas": replicas, "numOfHosts": hosts, "template": pod()});
        let config = json!({"headGroupSpec": {"template": pod()}, "workerGroupSpecs": [group]});
        let mut service = json!({"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": {"name": "it", "namespace": "ns"},
            "spec": {"rayClusterConfig": config}});
        let (counted, _) = it.replicas(&service).unwrap().unwrap();
        assert_eq!(counted, replicas + 1);
        let before = service.clone();
        it.revise(&mut service, counted).unwrap();
        assert_eq!(service, before, "one member that gets all of it gets what was written");
    }
}

#[test]
fn what_several_members_say_of_a_job_is_put_together() {
    let it = Interpreter::new();
    let ended = |kind: &str| json!({"conditions": [{"type": kind, "status": "True"}], "replicaStatuses": {"Worker": {"active": 2}}});
    for (members, wanted) in [(["Succeeded", "Succeeded"], "Succeeded"), (["Succeeded", "Failed"], "Failed")] {
        let mut job =
            json!({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "it"}, "spec": {}});
        let items = members.map(ended).map(|status| (format!("m{}", status.to_string().len()), status));
        it.try_aggregate(&mut job, &items).unwrap();
        assert_eq!(job["status"]["conditions"][0]["type"], wanted);
        assert_eq!(job["status"]["replicaStatuses"], json!({"Worker": {"active": 4}}));
    }
    let mut job = json!({"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "it"}, "spec": {}});
    let part = |status: &str| json!({"jobDeploymentStatus": status, "jobStatus": "RUNNING", "message": status});
    let items = [("a".to_owned(), part("Failed")), ("b".to_owned(), part("Running"))];
    it.try_aggregate(&mut job, &items).unwrap();
    assert_eq!(job["status"], part("Failed"));
}
