//! `atoll why` and `atoll plan`, as people run them.

use std::path::Path;

use atoll_testkit::peers::{self, Ran};
use serde_json::json;

use crate::fleet::{Fleet, deployment, policy};

fn atoll(fleet: &Fleet, arguments: &[&str]) -> Ran {
    let mut command = fleet.program(Path::new(env!("CARGO_BIN_EXE_atoll")));
    peers::run(command.args(arguments).arg("--kubeconfig").arg(fleet.kubeconfig()))
}

#[test]
fn why_tells_the_whole_way_and_plans_move_nothing() {
    let Some(fleet) = Fleet::shared() else { return };
    let rule = |clusters: &[&str]| policy(("apps/v1", "Deployment"), "planned", clusters);
    fleet.apply("fleet", &rule(&["member1", "member2"]));
    fleet.apply("fleet", &deployment("planned", 2));
    for member in ["member1", "member2"] {
        fleet.until(member, &["pods", "-l", "app=planned"], |pod| pod["status"]["phase"] == "Running");
    }
    let told = atoll(&fleet, &["why", "deployment/planned"]).ok();
    for line in ["policy   PropagationPolicy default/planned", "● member1  chosen with 2 replicas", "work planned-"] {
        assert!(told.contains(line), "no {line:?} in\n{told}");
    }
    let mut changed = rule(&["member2"]);
    let file = fleet.file("planned.json", &changed.to_string()).display().to_string();
    let planned = atoll(&fleet, &["plan", "-f", &file]);
    assert!(planned.stderr.is_empty(), "the settings of the instance are known: {}", planned.stderr);
    let planned = planned.ok();
    let line = planned.lines().find(|line| line.starts_with("Deployment default/planned:")).unwrap_or_default();
    assert!(line.ends_with(": member1 2→gone member2 2"), "{planned}");
    let without = atoll(&fleet, &["plan", "--without", "member2"]).ok();
    let line = without.lines().find(|line| line.starts_with("Deployment default/planned:")).unwrap_or_default();
    assert!(line.ends_with(": member1 2 member2 2→gone"), "{without}");
    let head = "Failover is off in this instance: losing contact with member2 moves nothing. If member2 is unjoined,";
    assert!(without.starts_with(head), "{without}");
    let moves = atoll(&fleet, &["plan", "--without", "member2", "-o", "json"]).ok();
    let moves: serde_json::Value = serde_json::from_str(&moves).unwrap();
    assert!(moves.as_array().unwrap().iter().all(|step| step["when"] == "Unjoined"), "{moves}");
    changed["spec"]["placement"] = json!({"spreadConstraints": [{"minGroups": 2, "maxGroups": 1}]});
    let wrong = fleet.file("wrong.json", &changed.to_string()).display().to_string();
    assert!(atoll(&fleet, &["plan", "-f", &wrong]).fails().contains("maxGroups"));
    // Nothing of it has happened.
    let binding = fleet.get("fleet", &["resourcebinding", "planned-deployment"]).unwrap();
    let names: Vec<_> = binding["spec"]["clusters"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["member1", "member2"]);
}
