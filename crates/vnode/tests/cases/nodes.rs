//! B and C: policies and virtual nodes.

use serde_json::{Value, json};

use crate::stage::*;

async fn lease(spec: Value) -> (Stage, atoll_vnode::Manager) {
    let (stage, manager) = Stage::play().await;
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    make_policy(&stage.w1, "p1", "w1", spec).await;
    stage.bind("w1", json!({})).await;
    until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    (stage, manager)
}

async fn lends(stage: &Stage, cpu: &str, memory: &str) {
    until(&stage.compute, &nodes(), None, "vnode-w1-n1", |node| {
        node.is_some_and(|node| {
            node["status"]["allocatable"]["cpu"] == cpu && node["status"]["allocatable"]["memory"] == memory
        })
    })
    .await;
}

async fn vnode(stage: &Stage) -> Value {
    stage.compute.get(&nodes(), None, "vnode-w1-n1").await.unwrap()
}

async fn until_node(stage: &Stage, wanted: impl Fn(&Value) -> bool) -> Value {
    until(&stage.compute, &nodes(), None, "vnode-w1-n1", |node| node.is_some_and(&wanted)).await.unwrap()
}

fn own_pod(name: &str, node: &str, cpu: &str, memory: &str) -> Value {
    let mut pod = pod(name, node, cpu);
    pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = memory.into();
    pod
}

#[tokio::test(start_paused = true)]
async fn what_is_lent_follows_the_pods_of_the_worker_cluster() {
    let (stage, _manager) = lease(json!({})).await;
    lends(&stage, "4", "8Gi").await;
    make_pod(&stage.w1, &own_pod("a", "n1", "1", "2Gi")).await;
    lends(&stage, "3", "6Gi").await;
    make_pod(&stage.w1, &own_pod("b", "n1", "1500m", "1Gi")).await;
    lends(&stage, "1500m", "5Gi").await;
    kill(&stage.w1, "default", "a").await;
    lends(&stage, "2500m", "7Gi").await;
    // In the original a pod that just ends is noticed five minutes later.
    patch(&stage.w1, &pods(), Some("default"), "b", "status", json!({"status": {"phase": "Succeeded"}})).await;
    lends(&stage, "4", "8Gi").await;
}

#[tokio::test(start_paused = true)]
async fn leased_pods_are_not_subtracted_and_limits_apply() {
    let (stage, _manager) = lease(json!({"resourceLimits": [{"resource": "cpu", "quantity": "3", "percent": 50}, {"resource": "memory", "quantity": "2Gi", "percent": 75}]})).await;
    make_pod(&stage.w1, &own_pod("a", "n1", "1", "2Gi")).await;
    lends(&stage, "1500m", "2Gi").await;
    make_pod(&stage.compute, &pod("leased", "vnode-w1-n1", "1")).await;
    until_there(&stage.w1, &pods(), Some(MOUNT), &below("default", "leased")).await;
    run(&stage.w1, MOUNT, &below("default", "leased"), "n1").await;
    stage.pass(5).await;
    lends(&stage, "1500m", "2Gi").await;
}

#[tokio::test(start_paused = true)]
async fn the_oldest_policy_counts_and_the_next_takes_over() {
    let (stage, _manager) = Stage::play().await;
    make_node(&stage.w1, "n1", "8", "16Gi").await;
    for (name, cpu, memory) in [("p1", "2", "4Gi"), ("p2", "4", "8Gi"), ("p3", "6", "12Gi")] {
        let limits = json!([{"resource": "cpu", "quantity": cpu}, {"resource": "memory", "quantity": memory}]);
        make_policy(&stage.w1, name, "w1", json!({"resourceLimits": limits})).await;
        stage.pass(2).await;
    }
    stage.bind("w1", json!({})).await;
    until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    lends(&stage, "2", "4Gi").await;
    until(&stage.w1, &nodes(), None, "n1", |node| node.is_some_and(|node| label(node, "policy-applied") == "p1")).await;
    stage.w1.delete(&policies(), None, "p1", &json!({})).await.unwrap();
    lends(&stage, "4", "8Gi").await;
    until(&stage.w1, &nodes(), None, "n1", |node| node.is_some_and(|node| label(node, "policy-applied") == "p2")).await;
    until_gone(&stage.w1, &policies(), None, "p1").await;
}

#[tokio::test(start_paused = true)]
async fn a_node_goes_when_selector_or_policy_no_longer_mean_it() {
    let (stage, _manager) = lease(json!({})).await;
    let nobody = json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "none", "operator": "Exists"}]}]});
    patch(&stage.compute, &bindings(), None, "w1", "", json!({"spec": {"nodeSelector": nobody}})).await;
    until_gone(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    until(&stage.w1, &nodes(), None, "n1", |node| node.is_some_and(|node| label(node, "policy-applied").is_empty()))
        .await;
    patch(&stage.compute, &bindings(), None, "w1", "", json!({"spec": {"nodeSelector": null}})).await;
    until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    stage.w1.delete(&policies(), None, "p1", &json!({})).await.unwrap();
    until_gone(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    assert_eq!(
        told(&stage, "vnode-w1-n1", "TakenBack").await,
        [
            "the node is taken back: the binding does not select it",
            "the node is taken back: no policy of the binding selects it"
        ]
    );
}

/// What events of this reason say of an object, in the order they were told.
async fn told(stage: &Stage, name: &str, reason: &str) -> Vec<String> {
    let mut events = stage.compute.list(&events(), Some("default"), "").await.unwrap().items;
    events.retain(|event| event["involvedObject"]["name"] == name && event["reason"] == reason);
    events.sort_by_key(|event| event["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap());
    events.iter().map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn changes_of_the_node_appear_and_edits_of_people_stay() {
    let (stage, _manager) = lease(json!({})).await;
    patch(
        &stage.compute,
        &nodes(),
        None,
        "vnode-w1-n1",
        "",
        json!({"metadata": {"labels": {"mine": "1"}, "annotations": {"mine": "1"}}}),
    )
    .await;
    let change = json!({"metadata": {"labels": {"zone": "a"}, "annotations": {"note": "n"}}, "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}, {"key": "x", "effect": "NoExecute"}]}});
    patch(&stage.w1, &nodes(), None, "n1", "", change).await;
    let node = until_node(&stage, |node| node["metadata"]["labels"]["zone"] == "a").await;
    assert_eq!(
        (&node["metadata"]["labels"]["mine"], &node["metadata"]["annotations"]["mine"]),
        (&json!("1"), &json!("1"))
    );
    assert_eq!(node["metadata"]["annotations"]["note"], "n");
    assert_eq!(taint_keys(&node), ["gpu", "x", "kubeocean.io/vnode"]);
    patch(
        &stage.w1,
        &nodes(),
        None,
        "n1",
        "",
        json!({"metadata": {"labels": {"zone": null}}, "spec": {"taints": null}}),
    )
    .await;
    let node = until_node(&stage, |node| {
        node["metadata"]["labels"]["zone"].is_null() && taint_keys(node) == ["kubeocean.io/vnode"]
    })
    .await;
    assert_eq!(node["metadata"]["labels"]["mine"], "1");
    patch(&stage.compute, &bindings(), None, "w1", "", json!({"spec": {"disableNodeDefaultTaint": true}})).await;
    until_node(&stage, |node| taint_keys(node).is_empty()).await;
    // A manual deletion taint on a healthy node goes.
    patch(
        &stage.compute,
        &nodes(),
        None,
        "vnode-w1-n1",
        "",
        json!({"spec": {"taints": [{"key": "kubeocean.io/vnode-deleting", "value": "true", "effect": "NoSchedule"}]}}),
    )
    .await;
    until_node(&stage, |node| taint_keys(node).is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_while_nothing_happens() {
    let (stage, _manager) = lease(json!({})).await;
    stage.pass(30).await;
    let before = vnode(&stage).await;
    stage.pass(1200).await;
    assert_eq!(vnode(&stage).await["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
}

#[tokio::test(start_paused = true)]
async fn windows_close_and_open_to_the_second() {
    // It is Monday, 12:00.
    let (stage, _manager) =
        lease(json!({"timeWindows": [{"start": "11:00", "end": "12:09"}, {"start": "12:20", "end": "12:30"}]})).await;
    make_pod(&stage.compute, &pod("web", "vnode-w1-n1", "1")).await;
    until_there(&stage.w1, &pods(), Some(MOUNT), &below("default", "web")).await;
    until(&stage.w1, &policies(), None, "p1", |policy| {
        policy.is_some_and(|policy| policy["status"]["phase"] == "Active")
    })
    .await;
    let node =
        until_node(&stage, |node| taint_keys(node).contains(&"kubeocean.io/out-of-time-windows".to_owned())).await;
    let late = stage.now().duration_since("2026-01-05T12:10:00Z".parse().unwrap());
    assert!((0..2).contains(&late.as_secs()), "{late}: within a second of the edge");
    assert_eq!(node["spec"]["taints"][1]["effect"], "NoSchedule");
    until(&stage.w1, &policies(), None, "p1", |policy| {
        policy.is_some_and(|policy| policy["status"]["phase"] == "Inactive")
    })
    .await;
    assert!(
        stage.compute.get(&pods(), Some("default"), "web").await.unwrap()["metadata"]["deletionTimestamp"].is_null()
    );
    until_node(&stage, |node| taint_keys(node) == ["kubeocean.io/vnode"]).await;
    let late = stage.now().duration_since("2026-01-05T12:20:00Z".parse().unwrap());
    assert!((0..2).contains(&late.as_secs()), "{late}");
}

#[tokio::test(start_paused = true)]
async fn reclaiming_by_force_evicts_after_the_grace_period_but_not_those_who_tolerate_it() {
    let (stage, _manager) = lease(json!({"timeWindows": [{"start": "11:00", "end": "12:09"}], "forceReclaim": true, "gracefulReclaimPeriodSeconds": 30})).await;
    let mut tolerant = pod("tolerant", "vnode-w1-n1", "1");
    tolerant["spec"]["tolerations"] = json!([{"key": "kubeocean.io/out-of-time-windows", "operator": "Exists"}]);
    for pod in [pod("web", "vnode-w1-n1", "1"), tolerant] {
        make_pod(&stage.compute, &pod).await;
        let name = below("default", pod["metadata"]["name"].as_str().unwrap());
        until_there(&stage.w1, &pods(), Some(MOUNT), &name).await;
        run(&stage.w1, MOUNT, &name, "n1").await;
    }
    let node =
        until_node(&stage, |node| taint_keys(node).contains(&"kubeocean.io/out-of-time-windows".to_owned())).await;
    assert_eq!(node["spec"]["taints"][1]["effect"], "NoExecute");
    let since = node["spec"]["taints"][1]["timeAdded"].clone();
    stage.pass(20).await;
    assert!(
        stage.compute.get(&pods(), Some("default"), "web").await.unwrap()["metadata"]["deletionTimestamp"].is_null()
    );
    assert_eq!(vnode(&stage).await["spec"]["taints"][1]["timeAdded"], since);
    until(&stage.compute, &pods(), Some("default"), "web", |pod| {
        pod.is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    })
    .await;
    let late = stage.now().duration_since("2026-01-05T12:10:30Z".parse().unwrap());
    assert!((0..2).contains(&late.as_secs()), "{late}");
    stage.pass(1).await;
    let why = "the owner of the node takes it back: no time window of its policy is open";
    assert_eq!(told(&stage, "web", "Reclaimed").await, [why]);
    assert!(
        stage.compute.get(&pods(), Some("default"), "tolerant").await.unwrap()["metadata"]["deletionTimestamp"]
            .is_null()
    );
}

#[tokio::test(start_paused = true)]
async fn a_malformed_window_fails_the_policy_and_evicts_nobody() {
    let (stage, _manager) =
        lease(json!({"timeWindows": [{"start": "25:00", "end": "02:00"}], "forceReclaim": true})).await;
    let policy = until(&stage.w1, &policies(), None, "p1", |policy| {
        policy.is_some_and(|policy| policy["status"]["phase"] == "Failed")
    })
    .await
    .unwrap();
    for kind in ["Valid", "Active"] {
        assert_eq!(
            (&condition(&policy, kind)["status"], &condition(&policy, kind)["reason"]),
            (&json!("False"), &json!("ValidationError"))
        );
    }
    let node = until_node(&stage, |node| taint_keys(node).len() == 2).await;
    assert_eq!(node["spec"]["taints"][1]["effect"], "NoSchedule");
    // A policy for another binding is left alone.
    make_policy(&stage.w1, "other", "somebody", json!({})).await;
    stage.pass(10).await;
    let other = stage.w1.get(&policies(), None, "other").await.unwrap();
    assert!(other["metadata"]["finalizers"].is_null() && other["status"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_vanishes_takes_its_pods_along_in_order() {
    let (stage, _manager) = lease(json!({})).await;
    make_pod(&stage.compute, &pod("web", "vnode-w1-n1", "1")).await;
    let name = below("default", "web");
    until_there(&stage.w1, &pods(), Some(MOUNT), &name).await;
    run(&stage.w1, MOUNT, &name, "n1").await;
    stage.w1.delete(&nodes(), None, "n1", &json!({})).await.unwrap();
    let node = until_node(&stage, |node| node["metadata"]["deletionTimestamp"].is_string()).await;
    assert!(taint_keys(&node).contains(&"kubeocean.io/vnode-deleting".to_owned()));
    assert!(!annotation(&node, "deletion-taint-time").is_empty());
    until(&stage.w1, &pods(), Some(MOUNT), &name, |pod| {
        pod.is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    })
    .await;
    stage.pass(60).await;
    assert!(stage.compute.get_opt(&nodes(), None, "vnode-w1-n1").await.unwrap().is_some(), "waits for the pod");
    kill(&stage.w1, MOUNT, &name).await;
    until_gone(&stage.compute, &pods(), Some("default"), "web").await;
    until_gone(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    assert!(stage.compute.get_opt(&leases(), Some("kube-node-lease"), "vnode-w1-n1").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_node_replaced_by_another_of_its_name_is_lent_anew() {
    let (stage, _manager) = lease(json!({})).await;
    let before = vnode(&stage).await;
    stage.w1.delete(&nodes(), None, "n1", &json!({})).await.unwrap();
    make_node(&stage.w1, "n1", "2", "4Gi").await;
    until(&stage.compute, &nodes(), None, "vnode-w1-n1", |node| {
        node.is_some_and(|node| node["metadata"]["uid"] != before["metadata"]["uid"])
    })
    .await;
    lends(&stage, "2", "4Gi").await;
}

#[tokio::test(start_paused = true)]
async fn leases_are_renewed_while_the_node_is_ready() {
    let (stage, _manager) = lease(json!({})).await;
    let lease = || async { until_there(&stage.compute, &leases(), Some("kube-node-lease"), "vnode-w1-n1").await };
    let first = lease().await;
    assert_eq!(
        (&first["spec"]["holderIdentity"], &first["spec"]["leaseDurationSeconds"]),
        (&json!("vnode-w1-n1"), &json!(40))
    );
    assert_eq!(first["metadata"]["ownerReferences"][0]["kind"], "Node");
    stage.pass(45).await;
    assert_ne!(lease().await["spec"]["renewTime"], first["spec"]["renewTime"]);
    let broken = json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]}});
    patch(&stage.w1, &nodes(), None, "n1", "status", broken).await;
    until_node(&stage, |node| condition(node, "Ready")["status"] == "False").await;
    let frozen = lease().await;
    stage.pass(60).await;
    assert_eq!(lease().await["spec"]["renewTime"], frozen["spec"]["renewTime"]);
}

#[tokio::test(start_paused = true)]
async fn storage_drivers_and_host_ports_are_shown() {
    let (stage, _manager) = lease(json!({})).await;
    let csi = |count: i64| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n1"},
        "spec": {"drivers": [{"name": "d", "nodeID": "id-1", "topologyKeys": ["zone"], "allocatable": {"count": count}}]}})
    };
    stage.w1.create(&csi_nodes(), None, &csi(8)).await.unwrap();
    let mirrored = until_there(&stage.compute, &csi_nodes(), None, "vnode-w1-n1").await;
    assert_eq!(mirrored["spec"], csi(8)["spec"]);
    assert_eq!(label(&mirrored, "physical-node-name"), "n1");
    let mut own = own_pod("web", "n1", "1", "1Gi");
    own["spec"]["containers"][0]["ports"] =
        json!([{"containerPort": 80, "hostPort": 8080}, {"containerPort": 53, "hostPort": 53, "protocol": "UDP"}]);
    make_pod(&stage.w1, &own).await;
    let placeholder = || async {
        let list = stage.compute.list(&pods(), Some("kubeocean-fake"), "").await.unwrap();
        list.items
    };
    let mut found = Vec::new();
    for _ in 0..200 {
        found = placeholder().await;
        if !found.is_empty() {
            break;
        }
        stage.pass(1).await;
    }
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&found[0]["spec"]["nodeName"], &found[0]["spec"]["priorityClassName"]),
        (&json!("vnode-w1-n1"), &json!("system-node-critical"))
    );
    let ports: Vec<_> = found[0]["spec"]["containers"][0]["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| port["hostPort"].as_i64().unwrap())
        .collect();
    assert_eq!(ports, [8080, 53]);
    let name = found[0]["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(
        stage.w1.get_opt(&pods(), Some(MOUNT), &below("kubeocean-fake", &name)).await.unwrap().is_none(),
        "never mapped"
    );
    kill(&stage.w1, "default", "web").await;
    until_gone(&stage.compute, &pods(), Some("kubeocean-fake"), &name).await;
    stage.w1.delete(&csi_nodes(), None, "n1", &json!({})).await.unwrap();
    until_gone(&stage.compute, &csi_nodes(), None, "vnode-w1-n1").await;
}

#[tokio::test(start_paused = true)]
async fn virtual_nodes_of_the_worker_cluster_are_never_lent_on() {
    let (stage, _manager) = lease(json!({})).await;
    for (name, labels) in
        [("v1", json!({"type": "virtual-kubelet"})), ("v2", json!({"node.kubernetes.io/instance-type": "eklet"}))]
    {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
        stage.w1.create(&nodes(), None, &node).await.unwrap();
    }
    stage.pass(20).await;
    assert_eq!(stage.compute.list(&nodes(), None, "").await.unwrap().items.len(), 1);
}
