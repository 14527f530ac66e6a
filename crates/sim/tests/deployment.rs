//! Deployments in a simulated cluster.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use serde_json::json;
use support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_rolls_out_scales_and_updates() {
    let cluster = Cluster::with_nodes(3).await;
    let nodes = cluster.list(&nodes()).await;
    assert_eq!(nodes.len(), 3);
    assert!(nodes.iter().all(is_ready));

    cluster.create(deployment("web", 4, "nginx:1")).await;
    let first = cluster.until(&apps("deployments"), "web", "rolled out", rolled_out).await;
    assert_eq!(condition(&first, "Available"), "True MinimumReplicasAvailable");
    let pods_now = cluster
        .until_all(&pods(), "four ready pods", |pods| pods.iter().filter(|pod| is_ready(pod)).count() == 4)
        .await;
    for pod in &pods_now {
        assert_eq!(pod["status"]["phase"], "Running");
        assert!(pod["status"]["podIP"].as_str().unwrap().starts_with("10.244."));
        assert_eq!(pod["status"]["containerStatuses"][0]["ready"], true);
    }
    let done = cluster
        .until(&apps("deployments"), "web", "progress told", |d| {
            condition(d, "Progressing") == "True NewReplicaSetAvailable"
        })
        .await;
    assert_eq!(done["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");

    cluster.merge(&apps("deployments"), "web", json!({"spec": {"replicas": 2}})).await;
    cluster.until(&apps("deployments"), "web", "scaled down", rolled_out).await;
    cluster.until_all(&pods(), "two pods", |pods| pods.len() == 2).await;

    let update = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}});
    cluster.merge(&apps("deployments"), "web", update).await;
    let done = cluster
        .until(&apps("deployments"), "web", "updated", |d| {
            rolled_out(d) && condition(d, "Progressing") == "True NewReplicaSetAvailable"
        })
        .await;
    assert_eq!(done["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    let sets = cluster.list(&apps("replicasets")).await;
    assert_eq!(sets.len(), 2);
    cluster
        .until_all(&pods(), "only new pods", |pods| {
            pods.len() == 2 && pods.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "nginx:2")
        })
        .await;
    cluster.sim.stop().await;
}

/// Pods that may not be made: the first reason is told, repetitions are counted, and tries become rare.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_pods_are_not_tried_hot() {
    let cluster = Cluster::with_nodes(1).await;
    cluster
        .create(json!({"kind": "LimitRange", "apiVersion": "v1", "metadata": {"name": "small"},
            "spec": {"limits": [{"type": "Pod", "max": {"cpu": "10m"}}]}}))
        .await;
    let mut wanted = deployment("web", 50, "nginx:1");
    wanted["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "1"}});
    cluster.create(wanted).await;
    let events = atoll_meta::Gvr::new("", "v1", "events");
    let count = |event: &serde_json::Value| event["count"].as_i64().unwrap_or_default();
    let told = cluster
        .until_all(&events, "told several times", |events| {
            events.iter().filter(|event| event["reason"] == "FailedCreate").map(count).sum::<i64>() >= 8
        })
        .await;
    let told: Vec<_> = told.iter().filter(|event| event["reason"] == "FailedCreate").collect();
    assert!(told.len() <= 10, "{} events", told.len());
    assert_eq!(told[0]["source"]["component"], "replicaset-controller");
    let set = cluster.list(&apps("replicasets")).await.remove(0);
    assert_eq!(condition(&set, "ReplicaFailure"), "True FailedCreate");
    // Eight tries take 5+10+…+640 ms; each sets the status at most once, at the first.
    assert_eq!(set["metadata"]["generation"], 1);
    cluster
        .until(&apps("deployments"), "web", "says so", |d| condition(d, "ReplicaFailure") == "True FailedCreate")
        .await;
    cluster.sim.stop().await;
}
