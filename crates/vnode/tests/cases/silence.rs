//! A worker cluster that falls silent and comes back: nothing is deleted.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::pods::{leased, start_pod};
use crate::stage::*;

const VNODE: &str = "vnode-w1-n1";

#[tokio::test(start_paused = true)]
async fn nodes_of_a_silent_worker_are_not_ready_its_pods_stay_and_all_comes_back() {
    let (stage, _manager) = leased(json!({})).await;
    let name = below("default", "web");
    start_pod(&stage, &pod("web", VNODE, "100m")).await;
    run(&stage.w1, MOUNT, &name, "n1").await;
    until(&stage.compute, &pods(), Some("default"), "web", |pod| {
        pod.is_some_and(|pod| pod["status"]["phase"] == "Running")
    })
    .await;

    stage.line.store(false, Ordering::SeqCst);
    let node = until(&stage.compute, &nodes(), None, VNODE, |node| {
        node.is_some_and(|node| condition(node, "Ready")["status"] == "Unknown")
    })
    .await
    .unwrap();
    assert_eq!(condition(&node, "Ready")["reason"], "WorkerUnreachable");
    let binding = until(&stage.compute, &bindings(), None, "w1", |binding| {
        binding.is_some_and(|binding| binding["status"]["phase"] == "Failed")
    })
    .await
    .unwrap();
    assert_eq!(
        (&condition(&binding, "Connected")["status"], &condition(&binding, "Ready")["reason"]),
        (&json!("False"), &json!("ConnectivityFailed"))
    );
    let lease = stage.compute.get(&leases(), Some("kube-node-lease"), VNODE).await.unwrap();
    // Somebody deletes one pod and makes another meanwhile; an hour passes.
    stage.compute.delete(&pods(), Some("default"), "web", &json!({})).await.unwrap();
    make_pod(&stage.compute, &pod("late", VNODE, "100m")).await;
    stage.pass(3600).await;
    assert!(
        stage
            .compute
            .get_opt(&nodes(), None, VNODE)
            .await
            .unwrap()
            .is_some_and(|node| node["metadata"]["deletionTimestamp"].is_null())
    );
    assert!(
        stage.compute.get_opt(&pods(), Some("default"), "web").await.unwrap().is_some(),
        "its physical pod may still run"
    );
    assert!(stage.w1.get(&pods(), Some(MOUNT), &name).await.unwrap()["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(
        stage.compute.get(&leases(), Some("kube-node-lease"), VNODE).await.unwrap()["spec"]["renewTime"],
        lease["spec"]["renewTime"]
    );

    stage.line.store(true, Ordering::SeqCst);
    until(&stage.compute, &nodes(), None, VNODE, |node| {
        node.is_some_and(|node| condition(node, "Ready")["status"] == "True")
    })
    .await;
    until(&stage.compute, &bindings(), None, "w1", |binding| {
        binding.is_some_and(|binding| binding["status"]["phase"] == "Ready")
    })
    .await;
    until_there(&stage.w1, &pods(), Some(MOUNT), &below("default", "late")).await;
    until(&stage.w1, &pods(), Some(MOUNT), &name, |pod| {
        pod.is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    })
    .await;
    kill(&stage.w1, MOUNT, &name).await;
    until_gone(&stage.compute, &pods(), Some("default"), "web").await;
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_starts_while_the_worker_is_silent_says_so_on_its_nodes() {
    let (stage, manager) = leased(json!({})).await;
    stage.pass(5).await;
    stage.stop.cancel();
    stage.pass(5).await;
    drop(manager);
    stage.line.store(false, Ordering::SeqCst);
    let again = Stage { stop: Default::default(), ..stage };
    let _manager = again.start().await;
    until(&again.compute, &nodes(), None, VNODE, |node| {
        node.is_some_and(|node| condition(node, "Ready")["status"] == "Unknown")
    })
    .await;
    again.line.store(true, Ordering::SeqCst);
    until(&again.compute, &nodes(), None, VNODE, |node| {
        node.is_some_and(|node| condition(node, "Ready")["status"] == "True")
    })
    .await;
}
