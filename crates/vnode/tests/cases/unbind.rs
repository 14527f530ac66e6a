//! E: the end of a binding.

use serde_json::json;

use crate::pods::{leased, start_pod};
use crate::stage::*;

const VNODE: &str = "vnode-w1-n1";

#[tokio::test(start_paused = true)]
async fn unbinding_leaves_nothing_of_ours_below_and_everything_of_theirs_above() {
    let (stage, _manager) = leased(json!({})).await;
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}, "data": {"k": "v"}});
    stage.compute.create(&configs(), Some("default"), &config).await.unwrap();
    for name in ["a", "b", "c"] {
        let mut pod = pod(name, VNODE, "100m");
        pod["spec"]["volumes"] = json!([{"name": "c", "configMap": {"name": "c"}}]);
        start_pod(&stage, &pod).await;
        run(&stage.w1, MOUNT, &below("default", name), "n1").await;
    }
    let orphan = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "somebody-elses", "namespace": MOUNT, "labels": {"kubeocean.io/managed-by": "kubeocean"}}});
    stage.w1.create(&configs(), Some(MOUNT), &orphan).await.unwrap();

    stage.compute.delete(&bindings(), None, "w1", &json!({})).await.unwrap();
    for name in ["a", "b", "c"] {
        until(&stage.w1, &pods(), Some(MOUNT), &below("default", name), |pod| {
            pod.is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_string())
        })
        .await;
    }
    stage.pass(30).await;
    let binding = stage.compute.get(&bindings(), None, "w1").await.unwrap();
    let (reason, why) = (&condition(&binding, "Ready")["reason"], &condition(&binding, "Ready")["message"]);
    assert_eq!(
        (reason, why),
        (&json!("CleanupInProgress"), &json!("waits until these are gone: Node vnode-w1-n1 with 3 pods"))
    );
    for name in ["a", "b", "c"] {
        kill(&stage.w1, MOUNT, &below("default", name)).await;
    }
    // Unlike in the original, what is not ours does not hold the binding back.
    until_gone(&stage.compute, &bindings(), None, "w1").await;
    assert!(stage.compute.list(&pods(), None, "").await.unwrap().items.is_empty());
    assert!(stage.compute.get_opt(&nodes(), None, VNODE).await.unwrap().is_none());
    let config = stage.compute.get(&configs(), Some("default"), "c").await.unwrap();
    assert!(
        config["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty)
            && label(&config, "managed-by").is_empty()
    );
    let left = stage.w1.list(&configs(), Some(MOUNT), "labelSelector=kubeocean.io/managed-by").await.unwrap().items;
    assert_eq!(left.len(), 1, "only what is somebody else's: {left:?}");
    assert_eq!(
        stage.w1.get(&policies(), None, "p1").await.unwrap()["metadata"]["finalizers"].as_array().map_or(0, Vec::len),
        0
    );
    assert_eq!(label(&stage.w1.get(&nodes(), None, "n1").await.unwrap(), "policy-applied"), "");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_gone_for_good_can_be_left_by_force() {
    let (stage, _manager) = leased(json!({})).await;
    start_pod(&stage, &pod("web", VNODE, "100m")).await;
    run(&stage.w1, MOUNT, &below("default", "web"), "n1").await;
    until(&stage.compute, &pods(), Some("default"), "web", |pod| {
        pod.is_some_and(|pod| pod["status"]["phase"] == "Running")
    })
    .await;
    stage.line.store(false, std::sync::atomic::Ordering::SeqCst);
    stage.pass(30).await;
    stage.compute.delete(&bindings(), None, "w1", &json!({})).await.unwrap();
    stage.pass(120).await;
    assert!(stage.compute.get_opt(&bindings(), None, "w1").await.unwrap().is_some(), "waits for the worker");
    patch(
        &stage.compute,
        &bindings(),
        None,
        "w1",
        "",
        json!({"metadata": {"annotations": {"atoll.io/force-unbind": "true"}}}),
    )
    .await;
    until_gone(&stage.compute, &bindings(), None, "w1").await;
    until_gone(&stage.compute, &nodes(), None, VNODE).await;
    until_gone(&stage.compute, &pods(), Some("default"), "web").await;
    let told = stage.compute.list(&events(), Some("default"), "").await.unwrap().items;
    let behind = told.iter().find(|event| event["reason"] == "LeftBehind").unwrap();
    assert!(behind["message"].as_str().unwrap().contains(&below("default", "web")), "{behind}");
}
