use super::*;

fn deployment(spec: Value) -> Value {
    let mut tree = json!({
        "metadata": {"name": "web", "namespace": "d", "uid": "u", "generation": 1},
        "spec": {"replicas": 10, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 1, "selector": {"matchLabels": {"app": "web"}},
                 "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}},
                 "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"image": "new"}}},
        "status": {},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        tree["spec"][key] = value.clone();
    }
    tree
}

fn set(name: &str, image: &str, replicas: i64, available: i64) -> Value {
    json!({
        "metadata": {"name": name, "uid": name, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
                     "annotations": {REVISION: name, DESIRED: "10", MAXIMUM: "13"}},
        "spec": {"replicas": replicas, "template": {"metadata": {"labels": {"app": "web", HASH: name}}, "spec": {"image": image}}},
        "status": {"replicas": replicas, "readyReplicas": available, "availableReplicas": available, "observedGeneration": 1},
    })
}

fn run(deployment: &Value, sets: &[Value]) -> Plan {
    decide(deployment, sets, "2026-01-01T01:00:00Z".parse().expect("a moment"))
}

/// Names and new replicas of the sets that are scaled.
fn scaled(plan: &Plan) -> Vec<(String, i64)> {
    let patches = plan.acts.iter().filter_map(|act| match act {
        Act::Patch(name, patch) => Some((name.clone(), patch["spec"]["replicas"].as_i64()?)),
        _ => None,
    });
    patches.collect()
}

fn made(plan: &Plan) -> Option<&Value> {
    plan.acts.iter().find_map(|act| match act {
        Act::Create(set) => Some(set),
        _ => None,
    })
}

fn reason(plan: &Plan, kind: &str) -> String {
    crate::condition::get(&plan.status["conditions"], kind)
        .and_then(|c| c["reason"].as_str())
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn the_first_set_gets_everything() {
    let plan = run(&deployment(json!({})), &[]);
    let set = made(&plan).expect("a set");
    assert_eq!(set["spec"]["replicas"], 10);
    let hash = set["metadata"]["labels"][HASH].as_str().expect("a hash");
    assert_eq!(set["metadata"]["name"], format!("web-{hash}"));
    assert_eq!(set["spec"]["selector"]["matchLabels"][HASH], hash);
    assert_eq!(set["metadata"]["annotations"][REVISION], "1");
    assert_eq!(plan.revision.as_deref(), Some("1"));
    assert_eq!(reason(&plan, "Progressing"), "NewReplicaSetCreated");
    assert_eq!(reason(&plan, "Available"), "MinimumReplicasUnavailable");
}

#[test]
fn a_new_set_starts_within_the_surge() {
    let plan = run(&deployment(json!({})), &[set("1", "old", 10, 10)]);
    assert_eq!(made(&plan).expect("a set")["spec"]["replicas"], 3);
    assert_eq!(plan.revision.as_deref(), Some("2"));
}

#[test]
fn replicas_move_within_the_bounds() {
    let table = [
        // Old sets give what may be missing.
        (set("1", "old", 10, 10), set("2", "new", 3, 0), vec![("1", 8)]),
        // New pods that serve let more old ones go.
        (set("1", "old", 8, 8), set("2", "new", 5, 3), vec![("1", 5)]),
        // Room for new pods is used first.
        (set("1", "old", 5, 5), set("2", "new", 5, 5), vec![("2", 8)]),
        // Pods that do not serve go first.
        (set("1", "old", 10, 6), set("2", "new", 3, 0), vec![("1", 8)]),
        (set("1", "old", 0, 0), set("2", "new", 10, 10), vec![]),
    ];
    for (old, new, expected) in table {
        let plan = run(&deployment(json!({})), &[old.clone(), new.clone()]);
        let expected: Vec<(String, i64)> = expected.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        assert_eq!(scaled(&plan), expected, "{} and {}", old["spec"]["replicas"], new["spec"]["replicas"]);
    }
}

#[test]
fn a_change_of_scale_is_shared_out() {
    let sets = [set("1", "old", 8, 8), set("2", "new", 5, 3)];
    let plan = run(&deployment(json!({"replicas": 20})), &sets);
    // 13 become 23: the larger set gets its share of ten, rounded, the smaller one the rest.
    assert_eq!(scaled(&plan), [("1".to_owned(), 14), ("2".to_owned(), 9)]);
    let only = run(&deployment(json!({"replicas": 4})), &[set("2", "new", 10, 10)]);
    assert_eq!(scaled(&only), [("2".to_owned(), 4)]);
    let none = run(&deployment(json!({"replicas": 0})), &sets);
    assert_eq!(scaled(&none), [("1".to_owned(), 0), ("2".to_owned(), 0)]);
}

#[test]
fn old_pods_go_first_when_recreating() {
    let strategy = json!({"strategy": {"type": "Recreate"}});
    let plan = run(&deployment(strategy.clone()), &[set("1", "old", 10, 10)]);
    assert_eq!((scaled(&plan), made(&plan)), (vec![("1".to_owned(), 0)], None));
    let mut gone = set("1", "old", 0, 0);
    let plan = run(&deployment(strategy.clone()), &[gone.clone()]);
    assert_eq!(made(&plan).expect("a set")["spec"]["replicas"], 10);
    gone["status"]["replicas"] = 2.into();
    assert_eq!(made(&run(&deployment(strategy), &[gone])), None);
}

#[test]
fn a_paused_rollout_only_scales() {
    let plan = run(&deployment(json!({"paused": true})), &[set("1", "old", 10, 10)]);
    assert_eq!(made(&plan), None);
    assert_eq!(reason(&plan, "Progressing"), "DeploymentPaused");
    let plan = run(&deployment(json!({"paused": true, "replicas": 3})), &[set("1", "old", 10, 10)]);
    assert_eq!(scaled(&plan), [("1".to_owned(), 3)]);
}

#[test]
fn the_end_of_a_pause_is_told_before_anything_is_done() {
    let mut resumed = deployment(json!({}));
    resumed["status"] = json!({"observedGeneration": 0, "conditions": [
        {"type": "Progressing", "status": "Unknown", "reason": "DeploymentPaused"}]});
    let told = run(&resumed, &[set("1", "old", 10, 10)]);
    assert_eq!((reason(&told, "Progressing").as_str(), told.acts.len()), ("DeploymentResumed", 0));
    assert_eq!(told.status["observedGeneration"], 0, "or it would look done");
    resumed["status"] = told.status;
    let plan = run(&resumed, &[set("1", "old", 10, 10)]);
    assert!(made(&plan).is_some());
    assert_eq!(reason(&plan, "Progressing"), "DeploymentResumed");
}

#[test]
fn a_template_that_comes_back_finds_its_set() {
    let plan = run(&deployment(json!({})), &[set("1", "new", 0, 0), set("2", "old", 10, 10)]);
    assert_eq!(made(&plan), None);
    assert_eq!(plan.revision.as_deref(), Some("3"));
    assert_eq!(scaled(&plan), [("1".to_owned(), 3)]);
}

#[test]
fn old_sets_beyond_the_history_go() {
    let sets = [set("1", "a", 0, 0), set("2", "b", 0, 0), set("3", "new", 10, 10)];
    let plan = run(&deployment(json!({})), &sets);
    assert!(plan.acts.contains(&Act::Delete("1".into(), "1".into())));
    assert_eq!(plan.status["availableReplicas"], 10);
    assert_eq!(reason(&plan, "Progressing"), "NewReplicaSetAvailable");
}

#[test]
fn a_rollout_without_progress_times_out() {
    let mut stuck = deployment(json!({}));
    stuck["status"] = json!({"replicas": 13, "updatedReplicas": 3, "readyReplicas": 10, "availableReplicas": 10, "conditions": [
        {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "lastUpdateTime": "2026-01-01T00:00:00Z"}]});
    let sets = [set("1", "old", 8, 8), set("2", "new", 5, 0)];
    stuck["status"]["replicas"] = 13.into();
    stuck["status"]["updatedReplicas"] = 5.into();
    let plan = run(&stuck, &sets);
    assert_eq!(reason(&plan, "Progressing"), "ProgressDeadlineExceeded");
    stuck["status"]["conditions"][0]["lastUpdateTime"] = "2026-01-01T00:59:00Z".into();
    let plan = run(&stuck, &sets);
    assert_eq!(reason(&plan, "Progressing"), "ReplicaSetUpdated");
    assert!(plan.again.is_some_and(|wait| (500..=600).contains(&wait.as_secs())));
}
