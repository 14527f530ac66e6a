//! The rarer cases of A, C and D: what happens when somebody changes their mind.

use serde_json::{Value, json};

use crate::pods::{leased, start_pod};
use crate::stage::*;

const VNODE: &str = "vnode-w1-n1";
const CLOSED: &str = "kubeocean.io/out-of-time-windows";

async fn until_node(stage: &Stage, wanted: impl Fn(&Value) -> bool) -> Value {
    until(&stage.compute, &nodes(), None, VNODE, |node| node.is_some_and(&wanted)).await.unwrap()
}

fn effect(node: &Value, key: &str) -> String {
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let found = taints.iter().find(|taint| taint["key"] == *key);
    found.map(|taint| taint["effect"].as_str().unwrap().to_owned()).unwrap_or_default()
}

async fn is_going(cluster: &atoll_runtime::Endpoint, namespace: &str, name: &str) -> bool {
    let pod = cluster.get_opt(&pods(), Some(namespace), name).await.unwrap();
    pod.is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string())
}

pub async fn until_going(cluster: &atoll_runtime::Endpoint, namespace: &str, name: &str) {
    until(cluster, &pods(), Some(namespace), name, |pod| {
        pod.is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_turns_to_force_evicts_after_its_grace_and_opens_again() {
    let (stage, _manager) = leased(json!({})).await;
    start_pod(&stage, &pod("web", VNODE, "1")).await;
    run(&stage.w1, MOUNT, &below("default", "web"), "n1").await;
    let set = async |spec: Value| patch(&stage.w1, &policies(), None, "p1", "", json!({"spec": spec})).await;
    set(json!({"timeWindows": [{"start": "01:00", "end": "02:00"}]})).await;
    until_node(&stage, |node| effect(node, CLOSED) == "NoSchedule").await;
    stage.pass(600).await;
    assert!(!is_going(&stage.compute, "default", "web").await, "nothing is evicted without force");
    set(json!({"forceReclaim": true, "gracefulReclaimPeriodSeconds": 700})).await;
    until_node(&stage, |node| effect(node, CLOSED) == "NoExecute").await;
    assert!(!is_going(&stage.compute, "default", "web").await, "the grace period runs from the closing");
    until_going(&stage.compute, "default", "web").await;
    set(json!({"timeWindows": null})).await;
    until_node(&stage, |node| effect(node, CLOSED).is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_is_deleted_takes_the_node_back_with_every_pod() {
    let (stage, _manager) = leased(json!({})).await;
    let mut tolerant = pod("tolerant", VNODE, "1");
    tolerant["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    for pod in [pod("web", VNODE, "1"), tolerant] {
        start_pod(&stage, &pod).await;
        run(&stage.w1, MOUNT, &below("default", pod["metadata"]["name"].as_str().unwrap()), "n1").await;
    }
    stage.w1.delete(&policies(), None, "p1", &json!({})).await.unwrap();
    let node = until_node(&stage, |node| node["metadata"]["deletionTimestamp"].is_string()).await;
    assert!(taint_keys(&node).contains(&"kubeocean.io/vnode-deleting".to_owned()));
    assert_eq!(node["spec"]["unschedulable"], true);
    for name in ["web", "tolerant"] {
        until_going(&stage.w1, MOUNT, &below("default", name)).await;
        kill(&stage.w1, MOUNT, &below("default", name)).await;
        until_gone(&stage.compute, &pods(), Some("default"), name).await;
    }
    until_gone(&stage.compute, &nodes(), None, VNODE).await;
    assert_eq!(label(&stage.w1.get(&nodes(), None, "n1").await.unwrap(), "policy-applied"), "");
}

#[tokio::test(start_paused = true)]
async fn a_virtual_node_that_somebody_deletes_is_emptied_and_comes_back() {
    let (stage, _manager) = leased(json!({})).await;
    let before = stage.compute.get(&nodes(), None, VNODE).await.unwrap();
    start_pod(&stage, &pod("web", VNODE, "1")).await;
    run(&stage.w1, MOUNT, &below("default", "web"), "n1").await;
    stage.compute.delete(&nodes(), None, VNODE, &json!({})).await.unwrap();
    until_going(&stage.w1, MOUNT, &below("default", "web")).await;
    kill(&stage.w1, MOUNT, &below("default", "web")).await;
    until_gone(&stage.compute, &pods(), Some("default"), "web").await;
    until_node(&stage, |node| node["metadata"]["uid"] != before["metadata"]["uid"]).await;
}

#[tokio::test(start_paused = true)]
async fn storage_drivers_known_before_the_node_appear_follow_it_and_strangers_are_left() {
    let (stage, _manager) = Stage::play().await;
    let csi = |name: &str, count: i64| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
               "spec": {"drivers": [{"name": "d", "nodeID": "id", "topologyKeys": ["zone"], "allocatable": {"count": count}}]}})
    };
    stage.w1.create(&csi_nodes(), None, &csi("n1", 8)).await.unwrap();
    stage.w1.create(&csi_nodes(), None, &csi("without-node", 8)).await.unwrap();
    stage.w1.create(&csi_nodes(), None, &csi("n2", 8)).await.unwrap();
    let foreign = stage.compute.create(&csi_nodes(), None, &csi("vnode-w1-n2", 1)).await.unwrap();
    for node in ["n1", "n2"] {
        make_node(&stage.w1, node, "4", "8Gi").await;
    }
    make_policy(&stage.w1, "p1", "w1", json!({})).await;
    stage.bind("w1", json!({})).await;
    let mirrored = until_there(&stage.compute, &csi_nodes(), None, VNODE).await;
    assert_eq!(mirrored["spec"], csi("n1", 8)["spec"]);
    patch(
        &stage.w1,
        &csi_nodes(),
        None,
        "n1",
        "",
        json!({"metadata": {"labels": {"a": "1"}}, "spec": csi("n1", 9)["spec"]}),
    )
    .await;
    let counted = |node: &Value| node["spec"]["drivers"][0]["allocatable"]["count"] == 9;
    until(&stage.compute, &csi_nodes(), None, VNODE, |node| node.is_some_and(counted)).await;
    until_there(&stage.compute, &nodes(), None, "vnode-w1-n2").await;
    stage.w1.delete(&nodes(), None, "n1", &json!({})).await.unwrap();
    stage.w1.delete(&nodes(), None, "n2", &json!({})).await.unwrap();
    until_gone(&stage.compute, &csi_nodes(), None, VNODE).await;
    until_gone(&stage.compute, &nodes(), None, "vnode-w1-n2").await;
    assert!(stage.w1.get_opt(&csi_nodes(), None, "n1").await.unwrap().is_some(), "the worker's own stays");
    assert_eq!(stage.compute.get(&csi_nodes(), None, "vnode-w1-n2").await.unwrap(), foreign, "never touched");
    assert!(stage.compute.get_opt(&csi_nodes(), None, "vnode-w1-without-node").await.unwrap().is_none());
}

/// The placeholder of the virtual node once it holds these ports.
async fn until_ports(stage: &Stage, wanted: &[i64]) -> Option<Value> {
    let mut seen = Vec::new();
    for _ in 0..600 {
        let held = stage.compute.list(&pods(), Some("kubeocean-fake"), "").await.unwrap().items;
        let held: Vec<Value> = held.into_iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).collect();
        let ports = |pod: &Value| {
            let list = pod["spec"]["containers"][0]["ports"].as_array().cloned().unwrap_or_default();
            let mut numbers: Vec<i64> = list.iter().map(|port| port["hostPort"].as_i64().unwrap()).collect();
            numbers.sort_unstable();
            numbers
        };
        seen = held.iter().map(ports).collect();
        if (held.is_empty() && wanted.is_empty()) || (held.len() == 1 && seen[0] == wanted) {
            return held.into_iter().next();
        }
        stage.pass(1).await;
    }
    panic!("{wanted:?} were wanted, the last were {seen:?}");
}

#[tokio::test(start_paused = true)]
async fn one_placeholder_holds_exactly_the_host_ports_of_the_workers_own_pods() {
    let (stage, _manager) = leased(json!({})).await;
    let mut expected = Vec::new();
    for index in 0..7_i64 {
        // Seven pods with 19 ports in containers and init containers.
        let count = if index < 5 { 3 } else { 2 };
        let mut own = pod(&format!("own-{index}"), "n1", "100m");
        let numbers: Vec<i64> = (0..count).map(|port| 7000 + index * 10 + port).collect();
        let ports: Vec<Value> =
            numbers[1..].iter().map(|number| json!({"containerPort": number, "hostPort": number})).collect();
        own["spec"]["containers"][0]["ports"] = ports.into();
        own["spec"]["initContainers"] =
            json!([{"name": "i", "image": "i", "ports": [{"containerPort": 1, "hostPort": numbers[0]}]}]);
        make_pod(&stage.w1, &own).await;
        expected.extend(numbers);
    }
    assert_eq!(expected.len(), 19);
    let mut unplaced = pod("unplaced", "", "100m");
    unplaced["spec"]["containers"][0]["ports"] = json!([{"containerPort": 1, "hostPort": 9999}]);
    make_pod(&stage.w1, &unplaced).await;
    let first = until_ports(&stage, &expected).await.unwrap();
    assert_eq!(first["spec"]["tolerations"], json!([{"operator": "Exists"}]));
    // A leased pod with a host port is counted by the scheduler above already.
    let mut virtual_pod = pod("leased", VNODE, "100m");
    virtual_pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 1, "hostPort": 8888}]);
    make_pod(&stage.compute, &virtual_pod).await;
    stage.pass(30).await;
    assert_eq!(until_ports(&stage, &expected).await.unwrap()["metadata"]["uid"], first["metadata"]["uid"]);
    kill(&stage.w1, "default", "own-0").await;
    until_ports(&stage, &expected[3..]).await;
    for index in 1..7 {
        kill(&stage.w1, "default", &format!("own-{index}")).await;
    }
    until_ports(&stage, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn containers_added_for_debugging_are_added_below_unless_they_ask_too_much() {
    let (stage, _manager) = leased(json!({})).await;
    start_pod(&stage, &pod("web", VNODE, "1")).await;
    let name = below("default", "web");
    run(&stage.w1, MOUNT, &name, "n1").await;
    let add = async |containers: Value| {
        let change = json!({"spec": {"ephemeralContainers": containers}});
        patch(&stage.compute, &pods(), Some("default"), "web", "ephemeralcontainers", change).await
    };
    let plain = json!({"name": "debug", "image": "busybox"});
    add(json!([plain])).await;
    let named = |pod: &Value| {
        let list = pod["spec"]["ephemeralContainers"].as_array().cloned().unwrap_or_default();
        list.iter().map(|own| own["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    until(&stage.w1, &pods(), Some(MOUNT), &name, |pod| pod.is_some_and(|pod| named(pod) == ["debug"])).await;
    let greedy = json!({"name": "greedy", "image": "busybox", "securityContext": {"privileged": true}});
    add(json!([plain, greedy])).await;
    stage.pass(60).await;
    assert_eq!(named(&stage.w1.get(&pods(), Some(MOUNT), &name).await.unwrap()), ["debug"]);
}

#[tokio::test(start_paused = true)]
async fn a_container_is_added_to_a_pod_whose_needs_are_gone() {
    let (stage, _manager) = leased(json!({})).await;
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}, "data": {"k": "v"}});
    stage.compute.create(&configs(), Some("default"), &config).await.unwrap();
    let mut web = pod("web", VNODE, "1");
    web["spec"]["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "c"}}]);
    start_pod(&stage, &web).await;
    let name = below("default", "web");
    run(&stage.w1, MOUNT, &name, "n1").await;
    stage.compute.delete(&configs(), Some("default"), "c", &json!({})).await.unwrap();
    until_gone(&stage.compute, &configs(), Some("default"), "c").await;
    let change = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}});
    patch(&stage.compute, &pods(), Some("default"), "web", "ephemeralcontainers", change).await;
    until(&stage.w1, &pods(), Some(MOUNT), &name, |pod| {
        pod.is_some_and(|pod| pod["spec"]["ephemeralContainers"][0]["name"] == "debug")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_container_added_later_reads_no_secret_but_copies_of_its_own() {
    let (stage, _manager) = leased(json!({})).await;
    start_pod(&stage, &pod("web", VNODE, "1")).await;
    let name = below("default", "web");
    run(&stage.w1, MOUNT, &name, "n1").await;
    let secret = |namespace: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": namespace}, "data": {"k": "dg=="}});
    // One of the lessor's in the namespace where leased pods run.
    stage.w1.create(&secrets(), Some(MOUNT), &secret(MOUNT)).await.unwrap();
    let curious = json!([{"name": "debug", "image": "busybox", "env": [
        {"name": "K", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}},
        {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}]);
    let change = json!({"spec": {"ephemeralContainers": curious}});
    patch(&stage.compute, &pods(), Some("default"), "web", "ephemeralcontainers", change).await;
    stage.pass(60).await;
    let there = stage.w1.get(&pods(), Some(MOUNT), &name).await.unwrap();
    assert!(there["spec"]["ephemeralContainers"].is_null(), "there is no such Secret above: {there:#}");
    stage.compute.create(&secrets(), Some("default"), &secret("default")).await.unwrap();
    let there = until(&stage.w1, &pods(), Some(MOUNT), &name, |pod| {
        pod.is_some_and(|pod| !pod["spec"]["ephemeralContainers"].is_null())
    })
    .await
    .unwrap();
    let env = &there["spec"]["ephemeralContainers"][0]["env"];
    assert_eq!(env[0]["valueFrom"]["secretKeyRef"]["name"], below("default", "key"));
    assert_eq!(env[1]["valueFrom"]["fieldRef"]["fieldPath"], "metadata.annotations['kubeocean.io/virtual-pod-name']");
    until_there(&stage.w1, &secrets(), Some(MOUNT), &below("default", "key")).await;
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_never_worked_goes_at_once() {
    let (stage, manager) = Stage::play().await;
    stage.bind("nowhere", json!({})).await;
    until(&stage.compute, &bindings(), None, "nowhere", |binding| {
        binding.is_some_and(|binding| binding["status"]["phase"] == "Failed")
    })
    .await;
    stage.compute.delete(&bindings(), None, "nowhere", &json!({})).await.unwrap();
    until_gone(&stage.compute, &bindings(), None, "nowhere").await;
    assert!(manager.bindings().is_empty());
}

#[tokio::test(start_paused = true)]
async fn metrics_count_bindings_nodes_and_pods_on_both_sides() {
    let (stage, manager) = Stage::play().await;
    let has = |line: &str| manager.metrics().lines().any(|own| own == line);
    stage.pass(5).await;
    for status in ["Deleting", "Pending", "Ready", "Failed"] {
        assert!(has(&format!("kubeocean_clusterbindings_total{{status={status:?}}} 0")), "{}", manager.metrics());
    }
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    make_policy(&stage.w1, "p1", "w1", json!({"resourceLimits": [{"resource": "cpu", "percent": 50}]})).await;
    make_pod(&stage.w1, &pod("own", "n1", "1")).await;
    stage.bind("w1", json!({})).await;
    until_there(&stage.compute, &nodes(), None, VNODE).await;
    start_pod(&stage, &pod("web", VNODE, "500m")).await;
    run(&stage.w1, MOUNT, &below("default", "web"), "n1").await;
    until(&stage.compute, &pods(), Some("default"), "web", |pod| {
        pod.is_some_and(|pod| pod["status"]["phase"] == "Running")
    })
    .await;
    stage.pass(5).await;
    for line in [
        "kubeocean_clusterbindings_total{status=\"Ready\"} 1",
        "kubeocean_syncer_vnode_total{clusterbinding=\"w1\"} 1",
        "kubeocean_syncer_pod_created_total{clusterbinding=\"w1\"} 1",
        "kubeocean_syncer_virtual_pod_total{clusterbinding=\"w1\",phase=\"Running\"} 1",
        "kubeocean_syncer_physical_pod_total{clusterbinding=\"w1\",phase=\"Running\"} 1",
        "kubeocean_syncer_vnode_origin_resource{clusterbinding=\"w1\",node=\"vnode-w1-n1\",resource=\"cpu\"} 4000",
        "kubeocean_syncer_vnode_available_resource{clusterbinding=\"w1\",node=\"vnode-w1-n1\",resource=\"cpu\"} 1500",
        "kubeocean_syncer_cluster_physical_usage{clusterbinding=\"w1\",resource=\"cpu\"} 1000",
        "kubeocean_syncer_cluster_virtual_usage{clusterbinding=\"w1\",resource=\"cpu\"} 500",
        "kubeocean_syncer_cluster_origin_resource{clusterbinding=\"w1\",resource=\"memory\"} 8192",
    ] {
        assert!(has(line), "{line} in\n{}", manager.metrics());
    }
    assert!(manager.is_ready());
    stage.compute.delete(&bindings(), None, "w1", &json!({})).await.unwrap();
    until_going(&stage.w1, MOUNT, &below("default", "web")).await;
    assert!(has("kubeocean_clusterbindings_total{status=\"Deleting\"} 1"), "{}", manager.metrics());
    kill(&stage.w1, MOUNT, &below("default", "web")).await;
    until_gone(&stage.compute, &bindings(), None, "w1").await;
    stage.pass(5).await;
    assert!(!manager.metrics().contains("clusterbinding=\"w1\""), "nothing is counted for who is gone");
}

/// The same worker and namespace under another binding.
pub async fn bind_again(stage: &Stage, more: Value) {
    let mut spec = json!({"clusterID": "second", "mountNamespace": MOUNT, "secretRef": {"name": "w1", "namespace": "kubeocean-system"}});
    merge(&mut spec, &more);
    let binding = json!({"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ClusterBinding", "metadata": {"name": "second"}, "spec": spec});
    stage.compute.create(&bindings(), None, &binding).await.unwrap();
    until_there(&stage.compute, &nodes(), None, "vnode-second-n1").await;
}

#[tokio::test(start_paused = true)]
async fn two_bindings_of_one_namespace_share_copies_without_a_fight() {
    let (stage, _manager) = leased(json!({"serviceNamespaces": ["shop"]})).await;
    make_policy(&stage.w1, "p2", "second", json!({})).await;
    bind_again(&stage, json!({})).await;
    make_namespace(&stage.compute, "shop").await;
    let metadata = json!({"name": "web", "namespace": "shop"});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}});
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": [{"port": 80}],
        "metadata": {"name": "web", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}}, "endpoints": [{"addresses": ["10.2.0.7"]}]});
    stage.compute.create(&services(), Some("shop"), &service).await.unwrap();
    stage.compute.create(&slices(), Some("shop"), &slice).await.unwrap();
    // One is needed by the first binding only, one by both.
    for name in ["one", "both"] {
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"k": "v"}});
        stage.compute.create(&configs(), Some("default"), &config).await.unwrap();
    }
    for (name, node, needs) in [("a", "vnode-w1-n1", vec!["one", "both"]), ("b", "vnode-second-n1", vec!["both"])] {
        let mut pod = pod(name, node, "100m");
        let from: Vec<Value> = needs.iter().map(|name| json!({"configMapRef": {"name": name}})).collect();
        pod["spec"]["containers"][0]["envFrom"] = from.into();
        start_pod(&stage, &pod).await;
    }
    let copies = [
        (configs(), below("default", "one")),
        (configs(), below("default", "both")),
        (services(), below("shop", "web")),
        (slices(), below("shop", "web")),
    ];
    let versions = async || {
        let mut out = Vec::new();
        for (gvr, name) in &copies {
            out.push(until_there(&stage.w1, gvr, Some(MOUNT), name).await["metadata"]["resourceVersion"].clone());
        }
        out
    };
    stage.pass(30).await;
    let before = versions().await;
    stage.pass(600).await;
    assert_eq!(versions().await, before, "nobody writes");
    kill(&stage.compute, "default", "a").await;
    until_gone(&stage.w1, &configs(), Some(MOUNT), &below("default", "one")).await;
    stage.pass(30).await;
    until_there(&stage.w1, &configs(), Some(MOUNT), &below("default", "both")).await;
    kill(&stage.compute, "default", "b").await;
    until_gone(&stage.w1, &configs(), Some(MOUNT), &below("default", "both")).await;
}

#[tokio::test(start_paused = true)]
async fn two_bindings_of_one_node_do_not_fight_over_its_mark() {
    let (stage, _manager) = leased(json!({})).await;
    let marked = async |policy: &'static str| {
        let wanted = move |node: &Value| label(node, "policy-applied") == policy;
        until(&stage.w1, &nodes(), None, "n1", move |node| node.is_some_and(wanted)).await
    };
    marked("p1").await;
    make_policy(&stage.w1, "p2", "second", json!({})).await;
    bind_again(&stage, json!({})).await;
    stage.pass(10).await;
    let before = stage.w1.get(&nodes(), None, "n1").await.unwrap();
    stage.pass(60).await;
    let after = stage.w1.get(&nodes(), None, "n1").await.unwrap();
    assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"], "nobody writes");
    assert_eq!(label(&after, "policy-applied"), "p1", "the first one's mark");
    stage.compute.delete(&bindings(), None, "w1", &json!({})).await.unwrap();
    until_gone(&stage.compute, &bindings(), None, "w1").await;
    marked("p2").await;
}
