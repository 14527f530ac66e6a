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
