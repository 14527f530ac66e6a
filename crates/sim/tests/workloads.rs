//! StatefulSets, DaemonSets, Jobs and what stands around them in a simulated cluster.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use atoll_meta::Gvr;
use serde_json::{Value, json};
use support::*;

fn names(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stateful_set_comes_in_order_with_its_volumes_and_updates() {
    let cluster = Cluster::with_nodes(2).await;
    cluster
        .create(json!({"kind": "StatefulSet", "apiVersion": "apps/v1", "metadata": {"name": "db"},
            "spec": {"replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "web"}}, "template": template("postgres:1"),
                     "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                               "resources": {"requests": {"storage": "1Gi"}}}}]}}))
        .await;
    let set =
        cluster.until(&apps("statefulsets"), "db", "three ready", |set| set["status"]["readyReplicas"] == 3).await;
    let all = cluster.list(&pods()).await;
    assert_eq!(names(&all), ["db-0", "db-1", "db-2"]);
    let claims = cluster.list(&Gvr::new("", "v1", "persistentvolumeclaims")).await;
    assert_eq!(names(&claims), ["data-db-0", "data-db-1", "data-db-2"]);
    assert!(claims.iter().all(|claim| claim["status"]["phase"] == "Bound"));
    let first = set["status"]["currentRevision"].clone();

    let update = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "postgres:2"}]}}}});
    cluster.merge(&apps("statefulsets"), "db", update).await;
    let set = cluster
        .until(&apps("statefulsets"), "db", "updated", |set| {
            set["status"]["observedGeneration"] == 2
                && set["status"]["updatedReplicas"] == 3
                && set["status"]["readyReplicas"] == 3
                && set["status"]["currentRevision"] == set["status"]["updateRevision"]
        })
        .await;
    assert_ne!(set["status"]["currentRevision"], first);
    assert!(cluster.list(&pods()).await.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "postgres:2"));

    cluster.merge(&apps("statefulsets"), "db", json!({"spec": {"replicas": 1}})).await;
    let left = cluster.until_all(&pods(), "one pod", |pods| pods.len() == 1).await;
    assert_eq!(names(&left), ["db-0"]);
    cluster.sim.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_set_is_on_every_node_and_follows_new_ones() {
    let cluster = Cluster::with_nodes(3).await;
    cluster
        .create(json!({"kind": "DaemonSet", "apiVersion": "apps/v1", "metadata": {"name": "agent"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template("agent:1")}}))
        .await;
    cluster.until(&apps("daemonsets"), "agent", "everywhere", |set| set["status"]["numberAvailable"] == 3).await;
    let on: std::collections::BTreeSet<String> =
        cluster.list(&pods()).await.iter().map(|pod| pod["spec"]["nodeName"].as_str().unwrap().to_owned()).collect();
    assert_eq!(on.len(), 3);

    let update = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "agent:2"}]}}}});
    cluster.merge(&apps("daemonsets"), "agent", update).await;
    cluster
        .until(&apps("daemonsets"), "agent", "updated", |set| {
            set["status"]["updatedNumberScheduled"] == 3
                && set["status"]["numberAvailable"] == 3
                && set["status"]["observedGeneration"] == 2
        })
        .await;
    let revisions = cluster.list(&apps("controllerrevisions")).await;
    assert_eq!(revisions.len(), 2);
    cluster.sim.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_complete_or_fail() {
    let cluster = Cluster::with_nodes(2).await;
    let jobs = Gvr::new("batch", "v1", "jobs");
    let job = |name: &str, spec: Value, command: Value| {
        let mut tree = json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": name}, "spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox", "command": command}]}}}});
        for (key, value) in spec.as_object().unwrap() {
            tree["spec"][key] = value.clone();
        }
        tree
    };
    cluster.create(job("good", json!({"completions": 4, "parallelism": 2}), json!(["true"]))).await;
    let done =
        cluster.until(&jobs, "good", "complete", |job| condition(job, "Complete") == "True CompletionsReached").await;
    assert_eq!(done["status"]["succeeded"], 4);
    assert_eq!(done["status"]["uncountedTerminatedPods"], json!({}));
    assert!(cluster.list(&pods()).await.iter().all(|pod| pod["metadata"].get("finalizers").is_none()));

    cluster
        .create(job(
            "numbered",
            json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"}),
            json!(["true"]),
        ))
        .await;
    let done = cluster
        .until(&jobs, "numbered", "complete", |job| condition(job, "Complete") == "True CompletionsReached")
        .await;
    assert_eq!(done["status"]["completedIndexes"], "0-2");

    cluster.create(job("bad", json!({"backoffLimit": 0}), json!(["sh", "-c", "exit 3"]))).await;
    let done =
        cluster.until(&jobs, "bad", "failed", |job| condition(job, "Failed") == "True BackoffLimitExceeded").await;
    assert_eq!(done["status"]["failed"], 1);
    cluster.sim.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_know_the_pods_behind_them() {
    let cluster = Cluster::with_nodes(2).await;
    cluster.create(deployment("web", 3, "nginx:1")).await;
    let service = cluster
        .create(json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "web"},
            "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}}))
        .await;
    assert!(service["spec"]["clusterIP"].as_str().unwrap().starts_with("10.96."));
    assert!(service["spec"]["ports"][0]["nodePort"].as_i64().unwrap() >= 30000);
    let endpoints = Gvr::new("", "v1", "endpoints");
    let slices = Gvr::new("discovery.k8s.io", "v1", "endpointslices");
    cluster
        .until(&endpoints, "web", "three addresses", |one| {
            one["subsets"][0]["addresses"].as_array().is_some_and(|list| list.len() == 3)
        })
        .await;
    let ready = |list: &[Value], wanted: usize| {
        let all = list.iter().filter(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == "web");
        all.flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default())
            .filter(|one| one["conditions"]["ready"] == true)
            .count()
            == wanted
    };
    cluster.until_all(&slices, "three endpoints", |list| ready(list, 3)).await;
    cluster
        .until(&Gvr::new("", "v1", "services"), "web", "an outer address", |one| {
            one["status"]["loadBalancer"]["ingress"][0]["ip"].is_string()
        })
        .await;
    cluster.merge(&apps("deployments"), "web", json!({"spec": {"replicas": 1}})).await;
    cluster.until_all(&slices, "one endpoint", |list| ready(list, 1)).await;
    cluster.sim.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_is_tainted_and_comes_back() {
    let cluster = Cluster::with_nodes(2).await;
    let mut quick = deployment("web", 2, "nginx:1");
    quick["spec"]["template"]["spec"]["tolerations"] = json!([{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}]);
    cluster.create(quick).await;
    cluster.until(&apps("deployments"), "web", "rolled out", rolled_out).await;
    cluster.sim.node_down("sim-node-1");
    let node = cluster
        .until(&nodes(), "sim-node-1", "unknown", |node| condition(node, "Ready") == "Unknown NodeStatusUnknown")
        .await;
    let _ = node;
    // The pod of the lost node cannot end, a new one runs on the other node.
    cluster
        .until_all(&pods(), "two ready pods on the other node", |pods| {
            pods.iter().filter(|pod| is_ready(pod) && pod["spec"]["nodeName"] == "sim-node-2").count() == 2
        })
        .await;
    cluster.sim.heal();
    cluster
        .until(&nodes(), "sim-node-1", "ready again", |node| {
            is_ready(node) && node["spec"].get("taints").is_none_or(|taints| taints == &json!([]))
        })
        .await;
    cluster.until_all(&pods(), "the old pod has ended", |pods| pods.len() == 2).await;
    cluster.sim.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_limits_evictions() {
    let cluster = Cluster::with_nodes(2).await;
    let budgets = Gvr::new("policy", "v1", "poddisruptionbudgets");
    cluster.create(deployment("web", 2, "nginx:1")).await;
    cluster
        .create(json!({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "web"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}}))
        .await;
    let budget =
        cluster.until(&budgets, "web", "one eviction allowed", |one| one["status"]["disruptionsAllowed"] == 1).await;
    assert_eq!(budget["status"]["expectedPods"], 2);
    cluster.sim.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_fits_nowhere_says_why() {
    let cluster = Cluster::with_nodes(3).await;
    cluster
        .create(json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "huge"},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100"}}}]}}))
        .await;
    let pod =
        cluster.until(&pods(), "huge", "refused", |pod| condition(pod, "PodScheduled") == "False Unschedulable").await;
    let message = pod["status"]["conditions"][0]["message"].as_str().unwrap();
    assert_eq!(
        message,
        "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    );
    cluster.sim.stop().await;
}

fn sized(name: &str, class: &str) -> Value {
    let resources = json!({"requests": {"cpu": "6"}});
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "labels": {"app": name}},
           "spec": {"priorityClassName": class, "containers": [{"name": "c", "image": "i", "resources": resources}]}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_important_pod_pushes_out_whom_no_budget_protects() {
    let cluster = Cluster::with_nodes(2).await;
    for (name, value) in [("low", 10), ("high", 1000)] {
        cluster
            .create(json!({"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": name}, "value": value}))
            .await;
    }
    for name in ["guarded", "free"] {
        cluster.create(sized(name, "low")).await;
        cluster.until(&pods(), name, "runs", is_ready).await;
    }
    cluster
        .create(json!({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "guarded"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}}))
        .await;
    let budgets = Gvr::new("policy", "v1", "poddisruptionbudgets");
    cluster.until(&budgets, "guarded", "counted", |one| one["status"]["currentHealthy"] == 1).await;
    let node = cluster.get(&pods(), "free").await["spec"]["nodeName"].clone();
    let winner = cluster.create(sized("winner", "high")).await;
    let runs = cluster.until(&pods(), "winner", "runs", is_ready).await;
    assert_eq!(runs["spec"]["nodeName"], node);
    let list = cluster.list(&pods()).await;
    let mut left = names(&list);
    left.sort_unstable();
    assert_eq!(left, ["guarded", "winner"]);
    let told =
        format!("Preempted by pod {} on node {}", winner["metadata"]["uid"].as_str().unwrap(), node.as_str().unwrap());
    let events = Gvr::new("", "v1", "events");
    let about = |event: &Value| event["involvedObject"]["name"] == "free" && event["reason"] == "Preempted";
    let found = cluster.until_all(&events, "told", |list| list.iter().any(about)).await;
    assert_eq!(found.iter().find(|event| about(event)).unwrap()["message"], told);
    cluster.sim.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_written_by_hand_have_slices() {
    let cluster = Cluster::with_nodes(1).await;
    cluster
        .create(json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "db"}, "spec": {"ports": [{"port": 5432}]}}))
        .await;
    let subset = json!({"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 5432, "protocol": "TCP"}]});
    cluster
        .create(json!({"kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": "db"}, "subsets": [subset]}))
        .await;
    let slices = Gvr::new("discovery.k8s.io", "v1", "endpointslices");
    let copies = |list: &[Value]| -> Vec<Value> {
        let own = list.iter().filter(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == "db");
        own.flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default()).collect()
    };
    cluster
        .until_all(&slices, "copied", |list| copies(list).iter().any(|one| one["addresses"] == json!(["192.0.2.7"])))
        .await;
    let endpoints = Gvr::new("", "v1", "endpoints");
    cluster
        .merge(&endpoints, "db", json!({"subsets": [{"addresses": [{"ip": "192.0.2.8"}], "ports": [{"port": 5432}]}]}))
        .await;
    cluster
        .until_all(&slices, "changed", |list| {
            copies(list).iter().all(|one| one["addresses"] == json!(["192.0.2.8"])) && copies(list).len() == 1
        })
        .await;
    cluster.delete(&endpoints, "db").await;
    cluster.until_all(&slices, "gone", |list| copies(list).is_empty()).await;
    cluster.sim.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_resumes_where_it_stopped() {
    let cluster = Cluster::with_nodes(2).await;
    cluster.create(deployment("web", 3, "nginx:1")).await;
    cluster.until(&apps("deployments"), "web", "rolled out", rolled_out).await;
    cluster.sim.stop().await;
    cluster.merge(&apps("deployments"), "web", json!({"spec": {"replicas": 5}})).await;
    let again = atoll_sim::Sim::start(
        cluster.hub.clone(),
        cluster.api.clone(),
        "sim",
        atoll_sim::Spec { nodes: 2, ..Default::default() },
        Default::default(),
    )
    .await
    .unwrap();
    cluster.until(&apps("deployments"), "web", "scaled after the restart", rolled_out).await;
    let all = cluster.list(&pods()).await;
    let addresses: std::collections::BTreeSet<&str> =
        all.iter().map(|pod| pod["status"]["podIP"].as_str().unwrap()).collect();
    assert_eq!(addresses.len(), 5);
    again.stop().await;
}
