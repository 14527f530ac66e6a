//! The main story: a worker's node appears, a pod runs there, both sides let go.

use crate::stage::*;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_leased_node_runs_in_the_worker_cluster_until_it_is_deleted() {
    let (stage, manager) = Stage::play().await;
    make_node(&stage.w1, "n1", "2", "4Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({})).await;

    let node = until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    assert_eq!(node["status"]["allocatable"], json!({"cpu": "2", "memory": "4Gi", "pods": "110"}));
    assert_eq!(
        (label(&node, "cluster-binding"), label(&node, "physical-node-name"), label(&node, "managed-by")),
        ("w1", "n1", "kubeocean")
    );
    until(&stage.compute, &bindings(), None, "w1", |binding| {
        binding.is_some_and(|binding| binding["status"]["phase"] == "Ready")
    })
    .await;
    assert_eq!(manager.bindings(), ["w1"]);
    until(&stage.w1, &nodes(), None, "n1", |node| node.is_some_and(|node| label(node, "policy-applied") == "p1")).await;

    let pod = make_pod(&stage.compute, &pod("web", "vnode-w1-n1", "500m")).await;
    let name = below("default", "web");
    let physical = until_there(&stage.w1, &pods(), Some(MOUNT), &name).await;
    assert_eq!(annotation(&physical, "virtual-pod-uid"), pod["metadata"]["uid"].as_str().unwrap());
    assert_eq!(physical["spec"]["priorityClassName"], "kubeocean-default");
    assert_eq!(stage.w1.get(&classes(), None, "kubeocean-default").await.unwrap()["value"], -10_000);

    run(&stage.w1, MOUNT, &name, "n1").await;
    let pod = until(&stage.compute, &pods(), Some("default"), "web", |pod| {
        pod.is_some_and(|pod| pod["status"]["phase"] == "Running")
    })
    .await
    .unwrap();
    assert_eq!(pod["status"]["podIP"], "10.2.0.7");
    assert_eq!(
        (annotation(&pod, "physical-pod-name"), annotation(&pod, "physical-pod-namespace")),
        (name.as_str(), MOUNT)
    );
    assert_eq!(annotation(&pod, "physical-pod-uid"), physical["metadata"]["uid"].as_str().unwrap());

    stage.compute.delete(&pods(), Some("default"), "web", &json!({"gracePeriodSeconds": 7})).await.unwrap();
    let going = until(&stage.w1, &pods(), Some(MOUNT), &name, |pod| {
        pod.is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    })
    .await
    .unwrap();
    assert_eq!(going["metadata"]["deletionGracePeriodSeconds"], 7, "the grace period is the one that was asked for");
    assert!(
        stage.compute.get_opt(&pods(), Some("default"), "web").await.unwrap().is_some(),
        "waits for the physical pod"
    );
    kill(&stage.w1, MOUNT, &name).await;
    until_gone(&stage.compute, &pods(), Some("default"), "web").await;

    stage.compute.delete(&bindings(), None, "w1", &json!({})).await.unwrap();
    until_gone(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    until_gone(&stage.compute, &bindings(), None, "w1").await;
    assert_eq!(label(&stage.w1.get(&nodes(), None, "n1").await.unwrap(), "policy-applied"), "");
    assert!(manager.bindings().is_empty());
}
