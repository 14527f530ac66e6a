//! Rollouts as people steer them.

use crate::hub::Hub;

const STATEFUL: &str = r#"
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "postgres:1"}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: "agent:1"}]}
"#;

fn image(hub: &Hub, object: &str) -> String {
    hub.kubectl(&format!("get {object} -o jsonpath={{.spec.template.spec.containers[0].image}}")).ok()
}

#[track_caller]
fn rolled_out(hub: &Hub, object: &str) {
    hub.kubectl(&format!("rollout status {object} --timeout=60s")).ok();
}

#[test]
fn a_deployment_is_rolled_out_undone_paused_restarted_and_scaled() {
    let Some(hub) = Hub::demo() else { return };
    hub.kubectl("create deployment web --image=nginx:1 --replicas=3").ok();
    let told = hub.kubectl("rollout status deployment/web --timeout=60s").ok();
    assert!(told.contains("deployment \"web\" successfully rolled out"), "{told}");

    hub.kubectl("set image deployment/web nginx=nginx:2").ok();
    rolled_out(&hub, "deployment/web");
    let history = hub.kubectl("rollout history deployment/web").ok();
    let revisions = |text: &str| -> Vec<String> {
        let rows = text.lines().filter_map(|line| line.split_whitespace().next());
        rows.filter(|word| word.parse::<u32>().is_ok()).map(ToOwned::to_owned).collect()
    };
    assert_eq!(revisions(&history), ["1", "2"], "{history}");

    hub.kubectl("rollout undo deployment/web").ok();
    rolled_out(&hub, "deployment/web");
    assert_eq!(image(&hub, "deployment/web"), "nginx:1");
    assert_eq!(revisions(&hub.kubectl("rollout history deployment/web").ok()), ["2", "3"]);
    let detail = hub.kubectl("rollout history deployment/web --revision=2").ok();
    assert!(detail.contains("nginx:2"), "{detail}");
    hub.kubectl("rollout undo deployment/web --to-revision=2").ok();
    rolled_out(&hub, "deployment/web");
    assert_eq!(image(&hub, "deployment/web"), "nginx:2");
    // The old ones take a moment to stop.
    let images = "get pods -l app=web -o jsonpath={.items[*].spec.containers[0].image}";
    hub.until(images, |text| text == "nginx:2 nginx:2 nginx:2");

    hub.kubectl("rollout pause deployment/web").ok();
    hub.kubectl("set image deployment/web nginx=nginx:3").ok();
    hub.until("get deployment web -o jsonpath={.status.observedGeneration}/{.metadata.generation}", |text| {
        text.split_once('/').is_some_and(|(seen, now)| seen == now)
    });
    assert_eq!(hub.kubectl(images).ok(), "nginx:2 nginx:2 nginx:2", "a paused rollout moves nothing");
    hub.kubectl("rollout resume deployment/web").ok();
    rolled_out(&hub, "deployment/web");

    let before = hub.kubectl("get pods -l app=web -o name").ok();
    hub.kubectl("rollout restart deployment/web").ok();
    rolled_out(&hub, "deployment/web");
    let after = hub.until("get pods -l app=web -o name", |text| text.lines().count() == 3);
    assert!(after.lines().all(|name| !before.contains(name)), "{before} and {after}");

    hub.kubectl("scale deployment/web --replicas=5").ok();
    rolled_out(&hub, "deployment/web");
    let wrong = hub.kubectl("scale deployment/web --current-replicas=3 --replicas=9").fails();
    assert!(wrong.contains("Expected replicas to be 3, was 5"), "{wrong}");
    assert!(hub.kubectl("get deployment web").ok().contains("5/5"));
    hub.kubectl("autoscale deployment/web --min=1 --max=5 --cpu=80%").ok();
}

#[test]
fn sets_and_daemons_are_rolled_out_and_undone() {
    let Some(hub) = Hub::demo() else { return };
    hub.apply(STATEFUL);
    rolled_out(&hub, "statefulset/db");
    rolled_out(&hub, "daemonset/agent");
    hub.kubectl("set image statefulset/db db=postgres:2").ok();
    rolled_out(&hub, "statefulset/db");
    hub.kubectl("rollout undo statefulset/db").ok();
    rolled_out(&hub, "statefulset/db");
    assert_eq!(image(&hub, "statefulset/db"), "postgres:1");
    hub.kubectl("scale statefulset/db --replicas=3").ok();
    rolled_out(&hub, "statefulset/db");
    assert_eq!(hub.kubectl("get pods -l app=db -o name").ok(), "pod/db-0\npod/db-1\npod/db-2\n");

    hub.kubectl("set image daemonset/agent agent=agent:2").ok();
    rolled_out(&hub, "daemonset/agent");
    hub.kubectl("rollout undo daemonset/agent").ok();
    rolled_out(&hub, "daemonset/agent");
    assert_eq!(image(&hub, "daemonset/agent"), "agent:1");
    hub.kubectl("rollout restart daemonset/agent").ok();
    rolled_out(&hub, "daemonset/agent");
}
