//! Helm: a small chart with a definition, its objects and hooks.

use std::path::PathBuf;
use std::process::Command;

use atoll_testkit::{TestServer, peers};

struct Helm<'a> {
    program: PathBuf,
    server: &'a TestServer,
    namespace: String,
}

impl Helm<'_> {
    fn run(&self, arguments: &[&str]) -> peers::Ran {
        let home = self.server.scratch().join("helm");
        let mut command = Command::new(&self.program);
        command
            .arg("--kubeconfig")
            .arg(self.server.kubeconfig())
            .args(["--namespace", &self.namespace])
            .args(arguments);
        peers::run(command.env("HELM_CACHE_HOME", &home).env("HELM_CONFIG_HOME", &home).env("HELM_DATA_HOME", &home))
    }
}

fn story(name: &str) {
    let (Some(program), Some(kubectl)) = (peers::find(name), peers::find("kubectl")) else { return };
    let server = TestServer::memory().unwrap();
    let helm = Helm { program, server: &server, namespace: "charts".into() };
    let chart = peers::checkout().join("tests/charts/tiny");
    let chart = chart.to_str().unwrap();
    let get = |what: &[&str]| {
        let mut command = Command::new(&kubectl);
        command.arg("--kubeconfig").arg(server.kubeconfig()).args(["--namespace", "charts", "get"]).args(what);
        peers::run(&mut command)
    };
    helm.run(&["install", "tiny", chart, "--create-namespace", "--set", "message=one"]).ok();
    let message = || get(&["configmap", "tiny", "-o", "jsonpath={.data.message}"]).ok();
    assert_eq!(message(), "one");
    assert_eq!(get(&["greetings.tiny.example.com", "tiny", "-o", "jsonpath={.spec.text}"]).ok(), "one");
    assert_eq!(get(&["configmap", "tiny-post-install", "-o", "jsonpath={.data.ran}"]).ok(), "yes");
    helm.run(&["upgrade", "tiny", chart, "--set", "message=two", "--set", "extra=true"]).ok();
    assert_eq!(message(), "two");
    assert_eq!(get(&["configmap", "tiny-extra", "-o", "name"]).ok().trim(), "configmap/tiny-extra");
    helm.run(&["rollback", "tiny", "1"]).ok();
    assert_eq!(message(), "one");
    get(&["configmap", "tiny-extra"]).fails();
    let history = helm.run(&["history", "tiny"]).ok();
    assert!(history.contains("superseded") && history.contains("Rollback to 1"), "{history}");
    assert!(
        helm.run(&["upgrade", "tiny", chart, "--set", "message="]).fails().contains("spec.text"),
        "a refusal of the server reaches the user"
    );
    assert!(helm.run(&["list"]).ok().contains("tiny"));
    helm.run(&["uninstall", "tiny"]).ok();
    get(&["configmap", "tiny"]).fails();
    assert!(!helm.run(&["list"]).ok().contains("deployed"));
}

#[test]
fn helm_3_installs_upgrades_rolls_back_and_uninstalls() {
    story("helm");
}

#[test]
fn helm_4_installs_upgrades_rolls_back_and_uninstalls() {
    story("helm4");
}
