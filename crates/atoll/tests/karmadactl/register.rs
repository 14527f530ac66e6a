//! `karmadactl register` and the original agent, for members that pull.

use std::process::Stdio;

use atoll_testkit::peers;
use base64::Engine as _;
use serde_json::json;

use crate::fleet::{Fleet, Running, config_map, policy};

#[test]
fn register_enrols_a_cluster_and_the_original_agent_serves_it() {
    let Some(fleet) = Fleet::shared() else { return };
    let (Some(karmadactl), Some(agent)) = (peers::find("karmadactl"), peers::find("karmada-agent")) else { return };
    let kubeconfig = fleet.simulate("puller");
    let printed = fleet.karmadactl(&["token", "create"], &["--print-register-command"]).ok();
    let words: Vec<&str> = printed.split_whitespace().skip(1).collect();
    let mut register = fleet.program(&karmadactl);
    register.args(&words).args(["--cluster-name=puller", "--context=puller", "--discovery-timeout=60s"]);
    let said = peers::run(register.arg("--kubeconfig").arg(&kubeconfig)).ok();
    assert!(said.contains("cluster(puller) is joined successfully"), "{said}");
    let kube = kubeconfig.display().to_string();
    let secret = fleet
        .kubectl(
            "puller",
            &["--kubeconfig", &kube, "-n", "karmada-system", "get", "secret", "karmada-kubeconfig", "-o", "json"],
        )
        .ok();
    let secret: serde_json::Value = serde_json::from_str(&secret).unwrap();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(secret["data"]["karmada-kubeconfig"].as_str().unwrap())
        .unwrap();
    let own = fleet.file("puller-agent.kubeconfig", &String::from_utf8(bytes).unwrap());

    // What the certificate allows: its own Cluster, and not the secrets of others.
    let own_text = own.display().to_string();
    let mut kubectl = fleet.program(&peers::find("kubectl").unwrap());
    let refused =
        peers::run(kubectl.args(["--kubeconfig", &own_text, "-n", "karmada-cluster", "get", "secret", "member1"]))
            .fails();
    assert!(refused.contains("forbidden"), "{refused}");

    let _agent = Running(
        fleet
            .program(&agent)
            .arg(format!("--karmada-kubeconfig={own_text}"))
            .args(["--cluster-name=puller", "--cluster-api-endpoint=", "--cluster-namespace=karmada-cluster"])
            .args([
                "--cluster-status-update-frequency=1s",
                "--leader-elect=false",
                "--metrics-bind-address=127.0.0.1:0",
            ])
            .args(["--health-probe-bind-address=127.0.0.1:0", "--report-secrets=None"])
            .env("KUBECONFIG", &kubeconfig)
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    fleet.ready("puller");
    let cluster = fleet.get("fleet", &["clusters", "puller"]).unwrap();
    assert_eq!(cluster["spec"]["syncMode"], json!("Pull"));
    fleet.apply("fleet", &config_map("pulled", "1"));
    fleet.apply("fleet", &policy(("v1", "ConfigMap"), "pulled", &["puller"]));
    // The original agent makes the copy and tells so.
    fleet.there("puller", &["--kubeconfig", &kube, "configmap/pulled"]);
    let binding = ["resourcebindings", "--field-selector=metadata.name=pulled-configmap"];
    fleet.until("fleet", &binding, |binding| binding["status"]["aggregatedStatus"][0]["applied"] == true);

    // As with the original: what policies still send there would come back while it is being removed.
    fleet.kubectl("fleet", &["delete", "configmap", "pulled"]).ok();
    fleet.gone("puller", &["--kubeconfig", &kube, "configmap/pulled"]);
    let way = format!("--cluster-kubeconfig={kube}");
    let mut unregister = fleet.program(&karmadactl);
    peers::run(unregister.args(["unregister", "puller", &way, "--cluster-context=puller"])).ok();
    assert!(fleet.get("fleet", &["clusters", "puller"]).is_none());
}
