use super::*;
use serde_json::json;

fn pod(spec: serde_json::Value, status: serde_json::Value) -> Pod {
    let tree = json!({"kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": "p", "namespace": "d", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-02T03:04:05Z"},
        "spec": spec, "status": status});
    Pod::of(&Item::of(&tree).expect("an object")).expect("a pod")
}

#[test]
fn a_pod_asks_for_its_containers_or_its_largest_init_container() {
    let container = |cpu: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    let stays = |cpu: &str| json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
    let table = [
        (json!({"containers": [container("100m"), container("1")]}), 1100),
        (json!({"containers": [container("100m")], "initContainers": [container("2"), container("300m")]}), 2000),
        (json!({"containers": [container("100m")], "initContainers": [stays("200m"), container("300m")]}), 500),
        (json!({"containers": [container("100m")], "overhead": {"cpu": "5m"}}), 105),
        (json!({"containers": [container("100m")], "resources": {"requests": {"cpu": "2"}}}), 2000),
    ];
    for (spec, expected) in table {
        assert_eq!(pod(spec.clone(), json!({})).request.cpu, expected, "{spec}");
    }
}

#[test]
fn a_pod_is_available_after_it_was_ready_long_enough() {
    let ready = json!({"phase": "Running", "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:05:00Z"}]});
    let pod = pod(json!({"containers": []}), ready);
    let at = |text: &str| text.parse().expect("a moment");
    assert!(pod.is_available(0, at("2026-01-02T03:05:00Z")));
    assert!(!pod.is_available(10, at("2026-01-02T03:05:09Z")));
    assert!(pod.is_available(10, at("2026-01-02T03:05:10Z")));
}

#[test]
fn ports_collide_on_the_same_address_only() {
    let port = |ip: &str, port| HostPort { ip: ip.into(), protocol: "TCP".into(), port };
    assert!(port("", 80).collides(&port("10.0.0.1", 80)));
    assert!(port("10.0.0.1", 80).collides(&port("10.0.0.1", 80)));
    assert!(!port("10.0.0.1", 80).collides(&port("10.0.0.2", 80)));
    assert!(!port("", 80).collides(&port("", 81)));
}
