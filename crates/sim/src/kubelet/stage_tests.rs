use super::*;

fn pod(spec: Value, annotations: Value) -> Value {
    let mut tree = json!({
        "metadata": {"name": "p", "namespace": "d", "uid": "u", "generation": 1, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "nginx"}], "restartPolicy": "Always", "nodeName": "n"},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        tree["spec"][key] = value.clone();
    }
    tree
}

fn at(seconds: i64) -> Timestamp {
    time::plus("2026-01-01T00:00:00Z".parse().expect("a moment"), seconds)
}

fn look(pod: &Value, seconds: i64) -> Step {
    step(
        pod,
        &Around { now: at(seconds), ip: "10.1.0.1", host_ip: "172.18.0.2", crashes: false, memory: None, unready: &[] },
    )
}

/// Lets a pod live through moments; returns phase, readiness and state at each.
fn live_through(mut pod: Value, moments: &[i64]) -> Vec<String> {
    let mut told = Vec::new();
    for moment in moments {
        if let Some(status) = look(&pod, *moment).status {
            pod["status"] = status;
        }
        let one = &pod["status"]["containerStatuses"][0];
        let state = one["state"].as_object().and_then(|map| map.iter().next()).map(|(key, value)| match key.as_str() {
            "waiting" => value["reason"].as_str().unwrap_or_default().to_owned(),
            "terminated" => format!("exit {}", value["exitCode"]),
            _ => key.clone(),
        });
        let ready = condition::is_true(&pod["status"]["conditions"], "Ready");
        told.push(format!(
            "{} {} {} {}",
            pod["status"]["phase"].as_str().unwrap_or_default(),
            state.unwrap_or_default(),
            if ready { "ready" } else { "-" },
            one["restartCount"]
        ));
    }
    told
}

#[test]
fn a_pod_is_ready_at_once_unless_it_asks_for_delays() {
    let step = look(&pod(json!({}), json!({})), 0);
    let status = step.status.expect("a status");
    assert_eq!((&status["podIP"], &status["hostIP"]), (&json!("10.1.0.1"), &json!("172.18.0.2")));
    assert_eq!(step.again, None);
    assert_eq!(
        live_through(pod(json!({}), json!({})), &[0, 5]),
        ["Running running ready 0", "Running running ready 0"]
    );
    let slow = pod(json!({}), json!({"sim.atoll.io/start-delay": "5s", "sim.atoll.io/ready-delay": "3s"}));
    assert_eq!(look(&slow, 1).again, Some(Duration::from_secs(4)));
    assert_eq!(
        live_through(slow, &[1, 5, 8]),
        ["Pending ContainerCreating - 0", "Running running - 0", "Running running ready 0"]
    );
}

#[test]
fn looking_again_changes_nothing() {
    let mut tree = pod(json!({}), json!({}));
    tree["status"] = look(&tree, 0).status.expect("a status");
    assert_eq!(crate::diff::merge(&tree["status"], &look(&tree, 60).status.expect("a status")), None);
}

#[test]
fn a_container_that_ends_is_restarted_with_growing_pauses() {
    let crashing = pod(json!({}), json!({"sim.atoll.io/crash-loop": "true"}));
    assert_eq!(
        live_through(crashing, &[0, 1, 2, 11, 12, 13]),
        [
            "Running running ready 0",
            "Running running ready 1",
            "Running CrashLoopBackOff - 1",
            "Running CrashLoopBackOff - 1",
            "Running running ready 2",
            "Running CrashLoopBackOff - 2",
        ]
    );
}

#[test]
fn a_pod_that_may_end_succeeds_or_fails() {
    let run = |policy: &str, code: &str| {
        pod(json!({"restartPolicy": policy}), json!({"sim.atoll.io/run-for": "2s", "sim.atoll.io/exit-code": code}))
    };
    assert_eq!(live_through(run("Never", "0"), &[0, 2]), ["Running running ready 0", "Succeeded exit 0 - 0"]);
    assert_eq!(live_through(run("Never", "3"), &[0, 2]), ["Running running ready 0", "Failed exit 3 - 0"]);
    assert_eq!(live_through(run("OnFailure", "3"), &[0, 2]), ["Running running ready 0", "Running running ready 1"]);
    assert_eq!(live_through(run("OnFailure", "0"), &[0, 2]), ["Running running ready 0", "Succeeded exit 0 - 0"]);
}

#[test]
fn images_that_do_not_exist_are_not_run() {
    let missing = pod(json!({"containers": [{"name": "c", "image": "web:does-not-exist"}]}), json!({}));
    assert_eq!(live_through(missing.clone(), &[0, 60]), ["Pending ImagePullBackOff - 0"; 2]);
    assert!(look(&missing, 0).events.iter().any(|(_, reason, _)| *reason == "Failed"));
    let asked = pod(json!({}), json!({"sim.atoll.io/image-pull": "fail"}));
    assert_eq!(live_through(asked, &[0]), ["Pending ImagePullBackOff - 0"]);
}

#[test]
fn init_containers_run_first() {
    let init = json!({"initContainers": [{"name": "i", "image": "b", "command": ["sleep", "5"]}]});
    assert_eq!(live_through(pod(init, json!({})), &[0, 5]), ["Pending PodInitializing - 0", "Running running ready 0"]);
    let failing =
        json!({"restartPolicy": "Never", "initContainers": [{"name": "i", "image": "b", "command": ["false"]}]});
    assert_eq!(live_through(pod(failing, json!({})), &[0]), ["Failed PodInitializing - 0"]);
    let sidecar = json!({"initContainers": [{"name": "i", "image": "b", "restartPolicy": "Always"}]});
    assert_eq!(live_through(pod(sidecar, json!({})), &[0]), ["Running running ready 0"]);
}

#[test]
fn a_pod_that_never_gets_ready_runs_on() {
    assert_eq!(
        live_through(pod(json!({}), json!({"sim.atoll.io/never-ready": "true"})), &[0, 99]),
        ["Running running - 0"; 2]
    );
}

#[test]
fn a_pod_stops_after_its_delay_but_within_its_grace() {
    let mut leaving = pod(json!({}), json!({"sim.atoll.io/stop-delay": "10s"}));
    leaving["metadata"]["deletionTimestamp"] = time::text(at(30)).into();
    leaving["metadata"]["deletionGracePeriodSeconds"] = 30.into();
    assert_eq!(look(&leaving, 1).again, Some(Duration::from_secs(9)));
    assert!(look(&leaving, 10).remove);
    leaving["metadata"]["deletionGracePeriodSeconds"] = 2.into();
    leaving["metadata"]["deletionTimestamp"] = time::text(at(2)).into();
    assert!(look(&leaving, 2).remove);
    leaving["metadata"]["finalizers"] = json!(["x"]);
    assert_eq!(look(&leaving, 2).status.expect("a status")["phase"], "Failed");
}

#[test]
fn a_deadline_ends_a_pod() {
    let mut tree = pod(json!({"activeDeadlineSeconds": 5}), json!({}));
    let first = look(&tree, 0);
    assert_eq!(first.again, Some(Duration::from_secs(5)));
    tree["status"] = first.status.expect("a status");
    assert_eq!(look(&tree, 5).status.expect("a status")["reason"], "DeadlineExceeded");
}

#[test]
fn a_guest_runs_beside_the_containers() {
    let mut tree = pod(json!({}), json!({}));
    tree["status"] = look(&tree, 0).status.expect("a status");
    tree["spec"]["ephemeralContainers"] = json!([{"name": "debugger", "image": "busybox", "command": ["sleep", "5"]}]);
    let status = look(&tree, 10).status.expect("a status");
    assert!(status["ephemeralContainerStatuses"][0]["state"].get("running").is_some(), "{status}");
    tree["status"] = status;
    let status = look(&tree, 16).status.expect("a status");
    assert_eq!(status["ephemeralContainerStatuses"][0]["state"]["terminated"]["exitCode"], 0);
    assert_eq!(status["phase"], "Running");
}
