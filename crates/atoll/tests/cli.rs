//! The command line as people meet it: what it prints, where it prints it, and how it ends.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use atoll_runtime::WatchEvent;
use serde_json::{Value, json};

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn transcripts_of_help_and_of_mistakes_hold() {
    trycmd::TestCases::new().case("tests/cli/*.trycmd").env("NO_COLOR", "1");
}

/// A running `atoll up --demo`; it ends when dropped.
struct Hub {
    process: Child,
    directory: tempfile::TempDir,
}

impl Hub {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_atoll"))
            .args(["up", "--demo", "--members", "2", "--nodes", "1", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(directory.path())
            .envs([("ATOLL_METRICS_LISTEN", "off"), ("ATOLL_HEALTH_LISTEN", "off")])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let ready = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("atoll is ready"));
        // Somebody has to read on, or the process would wait for it.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        assert!(ready, "the hub ended before it was ready");
        Self { process, directory }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(PathBuf::from(env!("CARGO_BIN_EXE_atoll")), arguments)
    }

    fn command(&self, program: PathBuf, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments).env("KUBECONFIG", self.directory.path().join("kubeconfig"));
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// What a command prints; it has to succeed.
    fn text(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[arguments, &["-o", "json"]].concat())).unwrap()
    }

    /// Makes a workload in the instance and waits until the members say that it runs.
    fn deploy(&self, name: &str) {
        let labels = json!({"app": name});
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}},
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let read = kube::config::Kubeconfig::read_from(self.directory.path().join("kubeconfig")).unwrap();
            let options = kube::config::KubeConfigOptions { context: Some("fleet".into()), ..Default::default() };
            let config = kube::Config::from_custom_kubeconfig(read, &options).await.unwrap();
            let fleet = atoll_runtime::Endpoint::remote("fleet", config, "test").unwrap();
            let deployments = atoll_meta::Gvr::new("apps", "v1", "deployments");
            let made = fleet.create(&deployments, Some("default"), &object).await.unwrap();
            let from = made["metadata"]["resourceVersion"].as_str().unwrap();
            let mut changes = fleet.watch(&deployments, Some("default"), "", from).await.unwrap();
            let runs = async {
                while let Some(change) = changes.next().await {
                    if let WatchEvent::Modified(now) = change.unwrap()
                        && now["status"]["readyReplicas"] == 2
                    {
                        return;
                    }
                }
                panic!("the watch ended before {name} ran");
            };
            tokio::time::timeout(PATIENCE, runs).await.expect("the members run it");
        });
    }

    /// The name of a pod that runs. What members have is in the index soon after it is ready.
    fn pod(&self) -> (String, String) {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            let found = self.json(&["get", "pods", "-A"]);
            let running = found.as_array().unwrap().iter().find(|one| one["object"]["status"]["phase"] == "Running");
            if let Some(one) = running {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                return (text(&one["object"]["metadata"]["name"]), text(&one["object"]["metadata"]["namespace"]));
            }
        }
        panic!("no pod runs in the members");
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn commands_work_with_a_running_hub() {
    let hub = Hub::start();
    contexts(&hub);
    figures(&hub);
    doctor(&hub);
    codes(&hub);
    plugin(&hub);
    in_a_pod(&hub);
    silence(&hub);
}

/// `config` lists, chooses and hides.
fn contexts(hub: &Hub) {
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let list = hub.json(&["config", "list"]);
    assert!(names(&list).contains(&"fleet".to_owned()), "{list}");
    assert_eq!(hub.text(&["config", "use", "member1"]), "context/member1 is current\n");
    assert_eq!(hub.text(&["get", "nodes"]), "", "a simulated cluster has no members");
    hub.text(&["config", "use", "root"]);
    let token = std::fs::read_to_string(hub.directory.path().join("admin.token")).unwrap();
    assert!(!hub.text(&["config", "view"]).contains(token.trim()));
    assert!(hub.text(&["config", "path"]).trim_end().ends_with("kubeconfig"));
}

/// `get` and `top` speak of every member, on stdout, without colours.
fn figures(hub: &Hub) {
    let nodes = hub.text(&["get", "nodes"]);
    assert!(nodes.starts_with("CLUSTER") && nodes.contains("member1") && nodes.contains("member2"), "{nodes}");
    assert!(!nodes.contains('\x1b'), "{nodes}");
    for what in ["clusters", "nodes"] {
        let since = Instant::now();
        // What members have is gathered soon after they are joined.
        loop {
            let list = hub.json(&["top", what]);
            let list = list.as_array().unwrap();
            assert_eq!(list.len(), 2, "{what}: {list:?}");
            if list.iter().all(|one| one["memoryBytesOf"].as_i64().unwrap() > 0) {
                break;
            }
            assert!(since.elapsed() < PATIENCE, "{what}: {list:?}");
        }
    }
    assert!(hub.text(&["top", "pods", "-A"]).starts_with("CLUSTER"));
    assert_eq!(hub.text(&["get", "nodes", "-o", "name", "--clusters", "member1"]), "member1/node/member1-node-1\n");
    let twice = hub.text(&["get", "nodes", "-o", "name", "--clusters", "member2,member1,member2"]);
    assert_eq!(twice, "member2/node/member2-node-1\nmember1/node/member1-node-1\n");
    assert_eq!(hub.text(&["instance", "get", "fleet", "-o", "name"]), "instance/fleet\n");
    assert!(hub.text(&["account", "list"]).starts_with("NAME"));
    assert!(hub.text(&["top", "nodes", "-o", "yaml"]).contains("cpuMillis:"));
}

fn doctor(hub: &Hub) {
    let ran = hub.run(&["doctor", "-o", "json"]);
    let found: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let checks: Vec<&str> = found.as_array().unwrap().iter().map(|one| one["check"].as_str().unwrap()).collect();
    for wanted in ["server", "version", "clock", "disk", "permissions", "instance fleet", "member member1", "lag"] {
        assert!(checks.contains(&wanted), "{wanted} is not among {checks:?}");
    }
    assert!(checks.iter().any(|check| check.starts_with("authority of")), "{checks:?}");
    let bad = found.as_array().unwrap().iter().any(|one| one["ok"] == false);
    assert_eq!(ran.status.code(), Some(i32::from(bad)), "{found}");
}

/// Exit codes tell what went wrong.
fn codes(hub: &Hub) {
    let code = |arguments: &[&str]| hub.run(arguments).status.code();
    assert_eq!(code(&["get", "nodes"]), Some(0));
    assert_eq!(code(&["instance", "get", "none"]), Some(3));
    assert_eq!(code(&["get", "nothings"]), Some(3));
    assert_eq!(code(&["get", "node/none"]), Some(3));
    assert_eq!(code(&["get", "nodes", "--clusters", "none"]), Some(3));
    assert_eq!(code(&["get", "nodes", "--context", "none"]), Some(3));
    assert_eq!(code(&["instance", "kubeconfig", "fleet", "--context", "none"]), Some(3));
    assert_eq!(code(&["config", "use", "none"]), Some(3));
    assert_eq!(code(&["why", "deployment/none"]), Some(3));
    assert_eq!(code(&["why", "nonsense/none"]), Some(3));
    assert_eq!(code(&["sim", "fail", "member1", "--node", "none"]), Some(3));
    assert_eq!(code(&["sim", "fail", "member1", "--zone", "none"]), Some(3));
    assert_eq!(code(&["why", "none"]), Some(2));
    assert_eq!(code(&["unjoin", "none"]), Some(3));
    assert_eq!(code(&["join", "none"]), Some(2));
    assert_eq!(code(&["get"]), Some(2));
    let silent = hub.run(&["instance", "get", "none"]);
    assert!(silent.stdout.is_empty() && String::from_utf8_lossy(&silent.stderr).starts_with("error: "));
}

/// Under the name that kubectl looks for it is a plugin.
fn plugin(hub: &Hub) {
    let link = hub.directory.path().join("kubectl-atoll");
    symlink(env!("CARGO_BIN_EXE_atoll"), &link).unwrap();
    let help = hub.command(link.clone(), &["get", "--help"]);
    assert!(String::from_utf8_lossy(&help.stdout).contains("Usage: kubectl atoll get"), "{help:?}");
    assert!(hub.command(link, &["get", "nodes"]).status.success());
}

/// `exec` passes output and exit code on, `logs` says whose line it is.
fn in_a_pod(hub: &Hub) {
    hub.deploy("web");
    let (pod, namespace) = hub.pod();
    assert_eq!(hub.text(&["exec", &pod, "-n", &namespace, "--", "echo", "island"]), "island\n");
    let failed = hub.run(&["exec", &pod, "-n", &namespace, "--", "sh", "-c", "exit 42"]);
    assert_eq!(failed.status.code(), Some(42), "{failed:?}");
    let workload = hub.text(&["exec", "deployment/web", "--", "echo", "any"]);
    assert_eq!(workload, "any\n");
    let nobody = hub.run(&["exec", "nobody", "--", "true"]);
    assert_eq!(nobody.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("no pods of nobody"), "{nobody:?}");
    for line in hub.text(&["logs", &pod, "-n", &namespace, "--tail", "3"]).lines() {
        assert!(line.contains(&pod), "{line}");
    }
}

/// A pod may be in a member that does not answer: that it is not there is not said.
fn silence(hub: &Hub) {
    hub.text(&["sim", "fail", "member1"]);
    let since = Instant::now();
    for command in [["logs", "nobody"].as_slice(), &["exec", "nobody", "--", "true"]] {
        loop {
            let ran = hub.run(command);
            if ran.status.code() == Some(5) {
                assert!(String::from_utf8_lossy(&ran.stderr).contains("some members did not answer"), "{ran:?}");
                break;
            }
            // Faults begin soon after they are written down.
            assert!(since.elapsed() < PATIENCE, "{ran:?}");
        }
    }
    hub.text(&["sim", "heal", "member1"]);
}

#[test]
fn completion_scripts_are_clean() {
    if Command::new("shellcheck").arg("--version").output().is_err() {
        println!("SKIPPED: shellcheck is not installed (Debian: shellcheck)");
        return;
    }
    let script = Command::new(env!("CARGO_BIN_EXE_atoll")).args(["completion", "bash"]).output().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("atoll.bash");
    std::fs::write(&path, script.stdout).unwrap();
    let ran = Command::new("shellcheck").arg("--shell=bash").arg(&path).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}
