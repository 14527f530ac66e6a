//! `atoll sim`: clusters that are made, broken and repaired.

use crate::hub::Hub;

#[test]
fn a_member_is_broken_in_many_ways_and_repaired() {
    let Some(hub) = Hub::demo() else { return };
    assert!(hub.atoll("sim list").ok().contains("member1"));
    hub.atoll("sim fail member1").ok();
    assert!(hub.atoll("sim list").ok().contains("unreachable"));
    hub.until_fails("get --raw /version", "connection refused");
    hub.atoll("sim heal member1").ok();
    hub.until("get nodes -o name", |names| names.lines().count() == 3);

    for (how, told) in [("refusing", "refuse all requests"), ("expired", "certificate has expired")] {
        hub.atoll(&format!("sim fail member1 --how {how}")).ok();
        hub.until_fails("get --raw /version", told);
        hub.atoll("sim heal member1").ok();
        hub.until("get --raw /version", |text| text.contains("gitVersion"));
    }
    hub.atoll("sim fail member1 --how slow --delay 10m").ok();
    hub.until_fails("get --raw /version --request-timeout=1s", "request");
    hub.atoll("sim fail member1 --how slow --delay 1ms").ok();
    hub.until("get --raw /version", |text| text.contains("gitVersion"));
    hub.atoll("sim heal member1").ok();
    assert!(hub.atoll("sim fail fleet").fails().contains("not a simulated cluster"));
    assert!(hub.atoll("sim fail member1 --clock-skew soon").fails().contains("no duration"));
    let refused = hub.atoll("sim fail member1 --zone nowhere").fails();
    assert!(refused.contains("has no zone \"nowhere\"; it has easta"), "{refused}");
}

#[test]
fn nodes_zones_and_pods_fail_and_recover() {
    let Some(hub) = Hub::demo() else { return };
    hub.kubectl("create deployment web --image=nginx --replicas=3").ok();
    hub.kubectl("rollout status deployment/web --timeout=60s").ok();
    hub.atoll("sim fail member1 --node member1-node-1").ok();
    hub.kubectl("wait --for=condition=Ready=Unknown node/member1-node-1 --timeout=60s").ok();
    hub.atoll("sim heal member1").ok();
    hub.kubectl("wait --for=condition=Ready node/member1-node-1 --timeout=60s").ok();
    hub.atoll("sim fail member1 --zone easta").ok();
    hub.kubectl("wait --for=condition=Ready=Unknown node --all --timeout=60s").ok();
    hub.atoll("sim heal member1 --zone easta").ok();
    hub.kubectl("wait --for=condition=Ready node --all --timeout=60s").ok();

    hub.atoll("sim fail member1 --crash app=web").ok();
    hub.until("get pods -l app=web -o jsonpath={.items[*].status.containerStatuses[0].restartCount}", |counts| {
        counts.split_whitespace().filter_map(|count| count.parse::<u32>().ok()).sum::<u32>() > 0
    });
    hub.atoll("sim heal member1").ok();
    hub.kubectl("rollout status deployment/web --timeout=60s").ok();

    hub.atoll("sim fail member1 --clock-skew -24h").ok();
    hub.kubectl("create deployment late --image=nginx").ok();
    hub.kubectl("rollout status deployment/late --timeout=60s").ok();
    let path = "-o jsonpath={.items[0].status.startTime}/{.items[0].metadata.creationTimestamp}";
    let said = hub.kubectl(&format!("get pods -l app=late {path}")).ok();
    let (started, made) = said.split_once('/').unwrap_or_else(|| panic!("{said}"));
    // The node's clock goes a day late, the API server's does not.
    assert!(!started.is_empty() && started < made, "{said}");
    hub.atoll("sim heal member1").ok();
}

#[test]
fn the_fleet_sees_a_broken_member() {
    let Some(hub) = Hub::demo() else { return };
    hub.atoll("sim fail member1").ok();
    hub.in_fleet("wait --for=condition=Ready=False cluster/member1 --timeout=150s").ok();
    hub.atoll("sim heal member1").ok();
    hub.in_fleet("wait --for=condition=Ready cluster/member1 --timeout=150s").ok();
}

#[test]
fn the_others_answer_at_once_when_a_member_is_broken() {
    let Some(hub) = Hub::demo_of(2) else { return };
    for how in ["unreachable", "refusing", "expired", "slow --delay 10m"] {
        hub.atoll(&format!("sim fail member1 --how {how}")).ok();
        let started = std::time::Instant::now();
        let ran = hub.atoll("get nodes --timeout 2");
        // Repeated requests would take minutes.
        assert!(started.elapsed().as_secs() < 40, "{how}: {:?}", started.elapsed());
        assert_ne!(ran.code, 0, "{how}: {ran:?}");
        assert!(ran.stdout.contains("member2-node-1") && !ran.stdout.contains("member1-node-1"), "{how}: {ran:?}");
        assert!(ran.stderr.contains("member1:") && !ran.stderr.contains("member2:"), "{how}: {ran:?}");
        hub.atoll("sim heal member1").ok();
    }
    assert!(hub.atoll("get nodes").ok().contains("member1-node-1"));
}

#[test]
fn leased_nodes_feel_a_broken_worker() {
    let Some(hub) = Hub::demo_of(2) else { return };
    let (node, other) = ("node/vnode-member1-member1-node-1", "node/vnode-member2-member2-node-1");
    for lent in [node, other] {
        // A busy machine lends them a moment after it says that it is ready.
        hub.kubectl_in("compute", &format!("wait --for=create {lent} --timeout=60s")).ok();
    }
    hub.atoll("sim fail member1").ok();
    hub.kubectl_in("compute", &format!("wait --for=condition=Ready=Unknown {node} --timeout=120s")).ok();
    hub.kubectl_in("compute", &format!("wait --for=condition=Ready {other} --timeout=10s")).ok();
    hub.atoll("sim heal member1").ok();
    hub.kubectl_in("compute", &format!("wait --for=condition=Ready {node} --timeout=120s")).ok();
}

#[test]
fn clusters_are_made_and_deleted() {
    let Some(hub) = Hub::demo() else { return };
    hub.atoll("sim create extra --nodes 5 --region south").ok();
    let list = hub.atoll("sim list").ok();
    assert!(list.lines().any(|line| line.starts_with("extra") && line.contains('5')), "{list}");
    std::fs::write(hub.file("extra"), hub.atoll("instance kubeconfig extra").ok()).unwrap();
    let path = hub.file("extra");
    let nodes =
        hub.kubectl_with(&["--kubeconfig", path.to_str().unwrap(), "--context", "extra", "get", "nodes", "-o", "name"]);
    assert_eq!(nodes.ok().lines().count(), 5);
    hub.atoll("sim delete extra").ok();
}
