//! D: pods on virtual nodes.

use serde_json::{Value, json};

use crate::stage::*;

const VNODE: &str = "vnode-w1-n1";

pub async fn leased(more: Value) -> (Stage, atoll_vnode::Manager) {
    let (stage, manager) = Stage::play().await;
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", more).await;
    until_there(&stage.compute, &nodes(), None, VNODE).await;
    (stage, manager)
}

pub async fn start_pod(stage: &Stage, pod: &Value) -> Value {
    make_pod(&stage.compute, pod).await;
    let (namespace, name) = (pod["metadata"]["namespace"].as_str().unwrap(), pod["metadata"]["name"].as_str().unwrap());
    until_there(&stage.w1, &pods(), Some(MOUNT), &below(namespace, name)).await
}

async fn vpod(stage: &Stage, wanted: impl Fn(&Value) -> bool) -> Value {
    until(&stage.compute, &pods(), Some("default"), "web", |pod| pod.is_some_and(&wanted)).await.unwrap()
}

async fn ppod(stage: &Stage, wanted: impl Fn(&Value) -> bool) -> Value {
    until(&stage.w1, &pods(), Some(MOUNT), &below("default", "web"), |pod| pod.is_some_and(&wanted)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn only_pods_on_virtual_nodes_are_run() {
    let (stage, _manager) = leased(json!({})).await;
    make_node(&stage.compute, "ordinary", "4", "8Gi").await;
    for (name, node) in [("waiting", ""), ("elsewhere", "ordinary")] {
        make_pod(&stage.compute, &pod(name, node, "1")).await;
    }
    let mut system = pod("system", VNODE, "1");
    system["metadata"]["namespace"] = "kube-system".into();
    make_pod(&stage.compute, &system).await;
    stage.pass(30).await;
    assert!(stage.w1.list(&pods(), None, "").await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_a_physical_one_just_goes() {
    let (stage, _manager) = leased(json!({})).await;
    let mut daemon = pod("web", VNODE, "1");
    daemon["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": true}]);
    make_pod(&stage.compute, &daemon).await;
    stage.pass(5).await;
    assert!(stage.w1.list(&pods(), None, "").await.unwrap().items.is_empty(), "daemon sets only run where they opt in");
    stage.compute.delete(&pods(), Some("default"), "web", &json!({})).await.unwrap();
    until_gone(&stage.compute, &pods(), Some("default"), "web").await;
}

#[tokio::test(start_paused = true)]
async fn labels_and_annotations_travel_both_ways() {
    let (stage, _manager) = leased(json!({})).await;
    let mut first = pod("web", VNODE, "1");
    first["metadata"]["labels"] = json!({"app": "web", "gone": "1"});
    start_pod(&stage, &first).await;
    let name = below("default", "web");
    patch(
        &stage.compute,
        &pods(),
        Some("default"),
        "web",
        "",
        json!({"metadata": {"labels": {"a": "1", "b": "2", "gone": null}, "annotations": {"c": "3"}}}),
    )
    .await;
    let physical =
        ppod(&stage, |pod| pod["metadata"]["labels"]["b"] == "2" && pod["metadata"]["labels"]["gone"].is_null()).await;
    assert_eq!(physical["metadata"]["annotations"]["c"], "3");
    assert_eq!((label(&physical, "managed-by"), annotation(&physical, "virtual-pod-name")), ("kubeocean", "web"));
    patch(
        &stage.w1,
        &pods(),
        Some(MOUNT),
        &name,
        "",
        json!({"metadata": {"labels": {"below": "1", "b": null}, "annotations": {"ip": "x"}}}),
    )
    .await;
    let virtual_pod = vpod(&stage, |pod| pod["metadata"]["labels"]["below"] == "1").await;
    assert_eq!(
        (&virtual_pod["metadata"]["labels"]["b"], &virtual_pod["metadata"]["annotations"]["ip"]),
        (&Value::Null, &json!("x"))
    );
    for key in ["virtual-pod-name", "virtual-pod-uid", "virtual-node-name", "expected-metadata"] {
        assert_eq!(annotation(&virtual_pod, key), "", "{key} stays below");
    }
    // A label set above at the same moment as a change below is not lost, as it is in the original.
    patch(&stage.compute, &pods(), Some("default"), "web", "", json!({"metadata": {"labels": {"race": "1"}}})).await;
    run(&stage.w1, MOUNT, &name, "n1").await;
    vpod(&stage, |pod| pod["status"]["phase"] == "Running" && pod["metadata"]["labels"]["race"] == "1").await;
    ppod(&stage, |pod| pod["metadata"]["labels"]["race"] == "1").await;
}

#[tokio::test(start_paused = true)]
async fn orphans_go_and_pods_of_others_stay() {
    let (stage, _manager) = leased(json!({})).await;
    let physical = start_pod(&stage, &pod("web", VNODE, "1")).await;
    let copy = |name: &str, change: Value| {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": MOUNT, "labels": physical["metadata"]["labels"], "annotations": physical["metadata"]["annotations"]},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        merge(&mut pod["metadata"], &change);
        pod
    };
    let key = |name: &str| format!("kubeocean.io/{name}");
    let unknown = copy(&below("default", "unknown"), json!({"annotations": {key("virtual-pod-name"): "unknown"}}));
    let mut lost = copy("lost", json!({}));
    lost["metadata"].as_object_mut().unwrap().remove("annotations");
    let mut foreign = copy(&below("default", "foreign"), json!({"annotations": {key("virtual-pod-name"): "foreign"}}));
    foreign["metadata"]["labels"]["atoll.io/computing-cluster"] = "another".into();
    let unmanaged = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "own", "namespace": MOUNT}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for pod in [&unknown, &lost, &foreign, &unmanaged] {
        make_pod(&stage.w1, pod).await;
    }
    until_gone(&stage.w1, &pods(), Some(MOUNT), unknown["metadata"]["name"].as_str().unwrap()).await;
    until_gone(&stage.w1, &pods(), Some(MOUNT), "lost").await;
    stage.pass(400).await;
    for name in [foreign["metadata"]["name"].as_str().unwrap(), "own", &below("default", "web")] {
        assert!(stage.w1.get_opt(&pods(), Some(MOUNT), name).await.unwrap().is_some(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_physical_pod_that_vanishes_fails_the_pod_unless_it_had_ended() {
    let (stage, _manager) = leased(json!({})).await;
    let name = below("default", "web");
    start_pod(&stage, &pod("web", VNODE, "1")).await;
    run(&stage.w1, MOUNT, &name, "n1").await;
    vpod(&stage, |pod| pod["status"]["phase"] == "Running").await;
    kill(&stage.w1, MOUNT, &name).await;
    let lost = vpod(&stage, |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(lost["status"]["reason"], "PhysicalPodLost");
    stage.pass(60).await;
    assert!(stage.w1.get_opt(&pods(), Some(MOUNT), &name).await.unwrap().is_none(), "not made again");
    // In the original a pod that succeeded becomes Failed when the worker cluster cleans up.
    let done = below("default", "done");
    start_pod(&stage, &pod("done", VNODE, "1")).await;
    run(&stage.w1, MOUNT, &done, "n1").await;
    patch(&stage.w1, &pods(), Some(MOUNT), &done, "status", json!({"status": {"phase": "Succeeded"}})).await;
    until(&stage.compute, &pods(), Some("default"), "done", |pod| {
        pod.is_some_and(|pod| pod["status"]["phase"] == "Succeeded")
    })
    .await;
    kill(&stage.w1, MOUNT, &done).await;
    stage.pass(60).await;
    assert_eq!(stage.compute.get(&pods(), Some("default"), "done").await.unwrap()["status"]["phase"], "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_the_same_name_replaces_the_stale_one_and_strangers_are_a_conflict() {
    let (stage, _manager) = leased(json!({})).await;
    start_pod(&stage, &pod("web", VNODE, "1")).await;
    let first = vpod(&stage, |pod| !annotation(pod, "physical-pod-uid").is_empty()).await;
    // Force-deleted above and made again at once.
    kill(&stage.compute, "default", "web").await;
    let second = make_pod(&stage.compute, &pod("web", VNODE, "1")).await;
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    let uid = second["metadata"]["uid"].as_str().unwrap();
    ppod(&stage, |pod| annotation(pod, "virtual-pod-uid") == uid).await;

    let stranger = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": below("default", "taken"), "namespace": MOUNT}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let stranger = make_pod(&stage.w1, &stranger).await;
    make_pod(&stage.compute, &pod("taken", VNODE, "1")).await;
    stage.pass(60).await;
    let there = stage.w1.get(&pods(), Some(MOUNT), &below("default", "taken")).await.unwrap();
    assert_eq!(there["metadata"]["uid"], stranger["metadata"]["uid"], "left alone");
    let told = stage.compute.list(&events(), Some("default"), "").await.unwrap().items;
    assert!(
        told.iter().any(
            |event| event["reason"] == "FailedCreatePod" && event["message"].as_str().unwrap().contains("not ours")
        )
    );
}

#[tokio::test(start_paused = true)]
async fn daemon_sets_run_where_the_binding_or_the_pod_says_so() {
    let (stage, _manager) = leased(json!({"runningDaemonsetByDefault": true})).await;
    let mut daemon = pod("web", VNODE, "1");
    daemon["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": true}]);
    let physical = start_pod(&stage, &daemon).await;
    assert_eq!((label(&physical, "workload-type"), label(&physical, "workload-name")), ("daemonset", "agent"));
}

#[tokio::test(start_paused = true)]
async fn what_the_lessor_does_not_allow_is_refused_until_he_does() {
    let (stage, _manager) = leased(json!({})).await;
    let mut greedy = pod("web", VNODE, "1");
    greedy["spec"]["hostNetwork"] = true.into();
    greedy["spec"]["volumes"] = json!([{"name": "root", "hostPath": {"path": "/"}}]);
    greedy["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    make_pod(&stage.compute, &greedy).await;
    let refused = vpod(&stage, |pod| pod["status"]["reason"] == "LeaseRefused").await;
    let message = refused["status"]["message"].as_str().unwrap();
    for word in ["HostNetwork", "HostPath", "Privileged"] {
        assert!(message.contains(word), "{message}");
    }
    stage.pass(120).await;
    assert!(stage.w1.list(&pods(), None, "").await.unwrap().items.is_empty());
    let since = stage.now();
    patch(
        &stage.w1,
        &policies(),
        None,
        "p1",
        "",
        json!({"spec": {"allow": ["HostNetwork", "HostPath", "Privileged"]}}),
    )
    .await;
    until_there(&stage.w1, &pods(), Some(MOUNT), &below("default", "web")).await;
    assert!(stage.now().duration_since(since).as_secs() < 5, "his word counts at once");
}

#[tokio::test(start_paused = true)]
async fn a_priority_above_the_lessors_own_pods_needs_his_word() {
    let (stage, _manager) = leased(json!({"podPriorityClassName": "batch"})).await;
    let class = |name: &str, value: i64| json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value});
    stage.w1.create(&classes(), None, &class("batch", 1000)).await.unwrap();
    make_pod(&stage.compute, &pod("web", VNODE, "1")).await;
    vpod(&stage, |pod| pod["status"]["reason"] == "LeaseRefused").await;
    patch(&stage.w1, &policies(), None, "p1", "", json!({"spec": {"allow": ["Priority"]}})).await;
    let physical = ppod(&stage, |_| true).await;
    assert_eq!(physical["spec"]["priorityClassName"], "batch");
    assert!(stage.w1.get_opt(&classes(), None, "kubeocean-default").await.unwrap().is_none(), "made only where needed");
}

#[tokio::test(start_paused = true)]
async fn a_pod_refused_for_its_priority_runs_when_the_binding_or_the_class_changes() {
    let (stage, _manager) = leased(json!({"podPriorityClassName": "batch"})).await;
    let class = |name: &str, value: i64| json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value});
    for (name, value) in [("batch", 1000), ("other", 500), ("low", -5)] {
        stage.w1.create(&classes(), None, &class(name, value)).await.unwrap();
    }
    make_pod(&stage.compute, &pod("web", VNODE, "1")).await;
    vpod(&stage, |pod| pod["status"]["reason"] == "LeaseRefused").await;
    let since = stage.now();
    patch(&stage.compute, &bindings(), None, "w1", "", json!({"spec": {"podPriorityClassName": "low"}})).await;
    assert_eq!(ppod(&stage, |_| true).await["spec"]["priorityClassName"], "low");
    assert!(stage.now().duration_since(since).as_secs() < 5, "the binding counts at once");

    patch(&stage.compute, &bindings(), None, "w1", "", json!({"spec": {"podPriorityClassName": "other"}})).await;
    stage.pass(5).await;
    make_pod(&stage.compute, &pod("more", VNODE, "1")).await;
    until(&stage.compute, &pods(), Some("default"), "more", |pod| {
        pod.is_some_and(|pod| pod["status"]["reason"] == "LeaseRefused")
    })
    .await;
    stage.w1.delete(&classes(), None, "other", &json!({})).await.unwrap();
    stage.w1.create(&classes(), None, &class("other", -1)).await.unwrap();
    until_there(&stage.w1, &pods(), Some(MOUNT), &below("default", "more")).await;
    assert!(stage.now().duration_since(since).as_secs() < 600, "a class made again is read again");
}

#[tokio::test(start_paused = true)]
async fn the_few_fields_of_a_running_pod_that_may_change_are_carried_over() {
    let (stage, _manager) = leased(json!({"directScheduling": true})).await;
    let physical = start_pod(&stage, &pod("web", VNODE, "1")).await;
    assert_eq!(physical["spec"]["nodeName"], "n1");
    patch(&stage.compute, &pods(), Some("default"), "web", "", json!({"spec": {"activeDeadlineSeconds": 600}})).await;
    ppod(&stage, |pod| pod["spec"]["activeDeadlineSeconds"] == 600).await;
}

#[tokio::test(start_paused = true)]
async fn pods_find_the_computing_cluster_through_its_services() {
    let stage = Stage::open().await;
    let mut options = stage.options();
    options.intranet_required = true;
    let _manager = atoll_vnode::Manager::start(options, stage.stop.child_token()).await;
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({})).await;
    until_there(&stage.compute, &nodes(), None, VNODE).await;
    make_pod(&stage.compute, &pod("web", VNODE, "1")).await;
    stage.pass(20).await;
    assert!(stage.w1.list(&pods(), None, "").await.unwrap().items.is_empty(), "not without the services");
    for (namespace, name, ip, port) in
        [("default", "kubernetes-intranet", "10.0.0.1", 443), ("kube-system", "kube-dns-intranet", "10.0.0.2", 53)]
    {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}, "spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"], "ports": [{"port": port}]}});
        stage.compute.create(&services(), Some(namespace), &service).await.unwrap();
        patch(
            &stage.compute,
            &services(),
            Some(namespace),
            name,
            "status",
            json!({"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}}),
        )
        .await;
    }
    let physical = ppod(&stage, |_| true).await;
    let env = physical["spec"]["containers"][0]["env"].as_array().unwrap();
    assert!(env.contains(&json!({"name": "KUBERNETES_SERVICE_HOST", "value": "10.0.0.1"})));
    assert_eq!(
        (&physical["spec"]["dnsPolicy"], &physical["spec"]["dnsConfig"]["nameservers"]),
        (&json!("None"), &json!(["10.0.0.2"]))
    );
}

#[tokio::test(start_paused = true)]
async fn two_computing_clusters_share_a_worker_without_touching_each_other() {
    let (stage, _manager) = leased(json!({})).await;
    stage.hub.create_instance("compute2").await.unwrap();
    let other = endpoint(&stage.hub, "compute2");
    for namespace in ["kubeocean-system", "kube-node-lease"] {
        make_namespace(&other, namespace).await;
    }
    let second = Stage {
        compute: other.clone(),
        hub: stage.hub.clone(),
        w1: stage.w1.clone(),
        w2: stage.w2.clone(),
        clock: stage.clock.clone(),
        stop: stage.stop.child_token(),
        line: stage.line.clone(),
    };
    let _other_manager = second.start().await;
    second.bind("w1", json!({})).await;
    until_there(&other, &nodes(), None, VNODE).await;
    start_pod(&stage, &pod("web", VNODE, "1")).await;
    start_pod(&second, &pod("job", VNODE, "1")).await;
    run(&stage.w1, MOUNT, &below("default", "web"), "n1").await;
    // What the one runs is in use for the other, as for everybody else.
    until(&other, &nodes(), None, VNODE, |node| node.is_some_and(|node| node["status"]["allocatable"]["cpu"] == "3"))
        .await;
    // The same name on both sides: the first keeps it, the second is told.
    make_pod(&other, &pod("web", VNODE, "1")).await;
    stage.pass(400).await;
    let physical = stage.w1.get(&pods(), Some(MOUNT), &below("default", "web")).await.unwrap();
    let uid = stage.compute.get(&pods(), Some("default"), "web").await.unwrap()["metadata"]["uid"].clone();
    assert_eq!(annotation(&physical, "virtual-pod-uid"), uid.as_str().unwrap());
    assert!(stage.w1.get_opt(&pods(), Some(MOUNT), &below("default", "job")).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_syncer_that_was_away_catches_up() {
    let (stage, manager) = leased(json!({})).await;
    for name in ["stays", "goes", "ends"] {
        start_pod(&stage, &pod(name, VNODE, "100m")).await;
        run(&stage.w1, MOUNT, &below("default", name), "n1").await;
    }
    until(&stage.compute, &pods(), Some("default"), "ends", |pod| {
        pod.is_some_and(|pod| pod["status"]["phase"] == "Running")
    })
    .await;
    stage.stop.cancel();
    stage.pass(5).await;
    drop(manager);
    kill(&stage.compute, "default", "goes").await;
    patch(
        &stage.w1,
        &pods(),
        Some(MOUNT),
        &below("default", "ends"),
        "status",
        json!({"status": {"phase": "Succeeded"}}),
    )
    .await;
    make_pod(&stage.compute, &pod("comes", VNODE, "100m")).await;
    let again = Stage { stop: Default::default(), ..stage };
    let _manager = again.start().await;
    until_there(&again.w1, &pods(), Some(MOUNT), &below("default", "comes")).await;
    until(&again.w1, &pods(), Some(MOUNT), &below("default", "goes"), |pod| {
        pod.is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    })
    .await;
    until(&again.compute, &pods(), Some("default"), "ends", |pod| {
        pod.is_some_and(|pod| pod["status"]["phase"] == "Succeeded")
    })
    .await;
    let stays = again.w1.get(&pods(), Some(MOUNT), &below("default", "stays")).await.unwrap();
    assert!(stays["metadata"]["deletionTimestamp"].is_null());
}

#[tokio::test(start_paused = true)]
async fn what_the_worker_tells_about_a_pod_is_told_above() {
    let (stage, _manager) = leased(json!({})).await;
    let physical = start_pod(&stage, &pod("web", VNODE, "1")).await;
    vpod(&stage, |pod| !annotation(pod, "physical-pod-uid").is_empty()).await;
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e1", "namespace": MOUNT}, "reason": "Failed", "message": "image not found", "type": "Warning", "count": 1,
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": MOUNT, "name": physical["metadata"]["name"], "uid": physical["metadata"]["uid"]}});
    stage.w1.create(&events(), Some(MOUNT), &event).await.unwrap();
    for _ in 0..100 {
        let told = stage.compute.list(&events(), Some("default"), "").await.unwrap().items;
        if told.iter().any(|event| event["message"] == "image not found" && event["involvedObject"]["name"] == "web") {
            return;
        }
        stage.pass(1).await;
    }
    panic!("nobody told");
}
