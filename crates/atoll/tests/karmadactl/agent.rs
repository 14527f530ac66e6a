//! `atoll agent`: a member that pulls, from its invitation to its leave.

use std::path::Path;
use std::process::Stdio;

use atoll_testkit::peers;
use serde_json::json;

use crate::fleet::{Fleet, Running, config_map, policy};

#[test]
fn an_invited_cluster_enrols_itself_with_few_rights_and_comes_back_without_the_token() {
    let Some(fleet) = Fleet::shared() else { return };
    let kubeconfig = fleet.simulate("edge");
    let atoll = Path::new(env!("CARGO_BIN_EXE_atoll"));
    let hub = fleet.kubeconfig();
    let mut invite = fleet.program(atoll);
    let printed = peers::run(invite.args(["invite", "edge", "--kubeconfig"]).arg(&hub)).ok();
    let words: Vec<String> = printed.split_whitespace().skip(1).map(ToOwned::to_owned).collect();
    assert!(printed.contains("--ca-hash sha256:"), "{printed}");
    let data = fleet.scratch().join("edge-agent");
    let start = |words: &[String]| {
        let mut agent = fleet.program(atoll);
        agent.args(words).args(["--context", "edge", "--region", "far", "--probe-seconds", "1", "--kubeconfig"]);
        Running(agent.arg(&kubeconfig).arg("--data-dir").arg(&data).stderr(Stdio::null()).spawn().unwrap())
    };
    let agent = start(&words);
    fleet.ready("edge");
    let cluster = fleet.get("fleet", &["clusters", "edge"]).unwrap();
    assert_eq!((&cluster["spec"]["syncMode"], &cluster["spec"]["region"]), (&json!("Pull"), &json!("far")));

    let kube = kubeconfig.display().to_string();
    let copied = |name: &str| fleet.there("edge", &["--kubeconfig", &kube, &format!("configmap/{name}")]);
    fleet.apply("fleet", &config_map("first", "1"));
    fleet.apply("fleet", &policy(("v1", "ConfigMap"), "first", &["edge"]));
    copied("first");

    // What the member refuses is told at the work and at the template.
    fleet.kubectl("edge", &["--kubeconfig", &kube, "create", "configmap", "taken"]).ok();
    fleet.apply("fleet", &config_map("taken", "1"));
    fleet.apply("fleet", &policy(("v1", "ConfigMap"), "taken", &["edge"]));
    for (namespace, kind) in [("karmada-es-edge", "Work"), ("default", "ConfigMap")] {
        fleet.until("fleet", &["events", "-n", namespace], |event| {
            let about = &event["involvedObject"];
            let named = about["name"].as_str().is_some_and(|name| name.starts_with("taken"));
            named && about["kind"] == kind && event["reason"] == "SyncFailed"
        });
    }

    let own = data.join("edge.kubeconfig").display().to_string();
    let kubectl = peers::find("kubectl").unwrap();
    let may = |arguments: &[&str]| {
        let ran = peers::run(fleet.program(&kubectl).args(["--kubeconfig", &own, "auth", "can-i"]).args(arguments));
        ran.stdout.trim() == "yes"
    };
    assert!(may(&["list", "works", "-n", "karmada-es-edge"]) && may(&["get", "clusters/edge"]));
    for more in [
        &["list", "works", "-n", "karmada-es-member1"][..],
        &["get", "secrets", "-n", "karmada-cluster"],
        &["get", "secrets/member1", "-n", "karmada-cluster"],
        &["update", "clusters/member1"],
        &["delete", "works", "-n", "karmada-es-edge"],
        &["create", "clusterroles"],
        &["get", "pods", "-n", "default"],
        &["get", "events", "-n", "default"],
    ] {
        assert!(!may(more), "an agent may not {more:?}");
    }

    // Another start needs neither token nor address: the certificate is kept, readable by its owner only.
    drop(agent);
    fleet.apply("fleet", &config_map("second", "1"));
    fleet.apply("fleet", &policy(("v1", "ConfigMap"), "second", &["edge"]));
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o600);
    let agent = start(&["agent".to_owned(), "edge".to_owned()]);
    // The agent goes on where it stopped.
    copied("second");

    // Nobody takes the place of a member that has joined, token or not.
    let other = fleet.scratch().join("impostor");
    let mut impostor = fleet.program(atoll);
    impostor.args(&words).args(["--context", "edge", "--kubeconfig"]).arg(&kubeconfig).arg("--data-dir").arg(&other);
    let _impostor = Running(impostor.stderr(Stdio::null()).spawn().unwrap());
    // The second request waits for a person.
    fleet.until("fleet", &["certificatesigningrequests"], |request| {
        request["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("edge-"))
            && request["status"]["conditions"].is_null()
    });
    assert!(!other.join("edge.kubeconfig").exists());

    let mut unjoin = fleet.program(atoll);
    peers::run(unjoin.args(["unjoin", "edge", "--hub-kubeconfig"]).arg(&hub)).ok();
    let left = fleet.kubectl("edge", &["--kubeconfig", &kube, "get", "configmap", "first"]);
    assert!(left.code != 0, "the agent removed the copies before the member left");
    assert!(!may(&["list", "works", "-n", "karmada-es-edge"]), "and may do nothing any more");
    drop(agent);
}
