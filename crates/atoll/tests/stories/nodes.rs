//! Nodes as people look after them.

use crate::hub::Hub;

const NODE: &str = "member1-node-1";

fn pods_on(hub: &Hub, node: &str) -> usize {
    let all = hub.kubectl(&format!("get pods -A --field-selector spec.nodeName={node} -o name")).ok();
    all.lines().count()
}

#[test]
fn a_node_is_cordoned_drained_and_used_again() {
    let Some(hub) = Hub::demo() else { return };
    hub.kubectl("create deployment web --image=nginx --replicas=6").ok();
    hub.kubectl("rollout status deployment/web --timeout=60s").ok();
    assert!(pods_on(&hub, NODE) > 0);
    hub.kubectl(&format!("cordon {NODE}")).ok();
    assert!(hub.kubectl(&format!("get node {NODE}")).ok().contains("Ready,SchedulingDisabled"));

    let told = hub.kubectl(&format!("drain {NODE} --ignore-daemonsets --timeout=60s")).ok();
    assert!(told.contains(&format!("node/{NODE} drained")), "{told}");
    assert_eq!(pods_on(&hub, NODE), 0);
    hub.kubectl("rollout status deployment/web --timeout=60s").ok();
    hub.kubectl(&format!("uncordon {NODE}")).ok();
    hub.kubectl("scale deployment/web --replicas=12").ok();
    hub.kubectl("rollout status deployment/web --timeout=60s").ok();
    assert!(pods_on(&hub, NODE) > 0);
}

#[test]
fn a_budget_holds_a_drain_up() {
    let Some(hub) = Hub::demo() else { return };
    hub.kubectl("create deployment web --image=nginx --replicas=3").ok();
    hub.kubectl("rollout status deployment/web --timeout=60s").ok();
    hub.kubectl("create poddisruptionbudget web --selector=app=web --min-available=3").ok();
    hub.until("get pdb web -o jsonpath={.status.currentHealthy}", |text| text == "3");
    let node = hub.kubectl("get pods -l app=web -o jsonpath={.items[0].spec.nodeName}").ok();
    let told = hub.kubectl(&format!("drain {node} --ignore-daemonsets --timeout=2s")).fails();
    assert!(told.contains("Cannot evict pod as it would violate the pod's disruption budget."), "{told}");
    hub.kubectl_with(&["patch", "pdb", "web", "--type=merge", "-p", r#"{"spec":{"minAvailable":1}}"#]).ok();
    hub.kubectl(&format!("drain {node} --ignore-daemonsets --timeout=60s")).ok();
}

#[test]
fn taints_move_pods_and_top_shows_what_they_use() {
    let Some(hub) = Hub::demo() else { return };
    hub.kubectl("create deployment web --image=nginx --replicas=6").ok();
    hub.kubectl("rollout status deployment/web --timeout=60s").ok();
    hub.kubectl(&format!("taint node {NODE} broken=yes:NoExecute")).ok();
    hub.until(&format!("get pods --field-selector spec.nodeName={NODE} -o name"), str::is_empty);
    hub.kubectl("rollout status deployment/web --timeout=60s").ok();
    hub.kubectl(&format!("taint node {NODE} broken:NoExecute-")).ok();

    let nodes = hub.kubectl("top node").ok();
    assert!(nodes.lines().next().is_some_and(|line| line.starts_with("NAME") && line.contains("CPU")), "{nodes}");
    assert_eq!(nodes.lines().count(), 4, "{nodes}");
    let pods = hub.kubectl("top pod -l app=web").ok();
    assert_eq!(pods.lines().count(), 7, "{pods}");
    let containers = hub.kubectl("top pod -l app=web --containers").ok();
    assert!(containers.contains("nginx"), "{containers}");
}
