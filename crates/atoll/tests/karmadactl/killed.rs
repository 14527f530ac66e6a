//! A hub that is killed in the middle of work resumes it from its data, deletes nothing that is wanted, and its index
//! agrees.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use atoll_testkit::peers::{self, Ran};
use serde_json::{Value, json};

use crate::fleet::Running;

/// A hub at one address over one directory, started as often as it is killed.
pub struct Mortal {
    pub directory: tempfile::TempDir,
    address: String,
    words: &'static [&'static str],
    process: Option<Running>,
}

impl Mortal {
    /// Starts one with further words.
    pub fn new(words: &'static [&'static str]) -> Self {
        // The address is part of what members are known by, so it must stay.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut own = Self { directory: tempfile::tempdir().unwrap(), address: free.to_string(), words, process: None };
        own.start();
        own
    }

    /// Starts it over what it left behind.
    pub fn start(&mut self) {
        let mut process = Command::new(env!("CARGO_BIN_EXE_atoll"))
            .args(["up", "--listen", &self.address])
            .args(self.words)
            .arg("--data-dir")
            .arg(self.directory.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let ready = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("atoll is ready"));
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        self.process = Some(Running(process));
        assert!(ready, "the hub ended before it was ready");
    }

    /// SIGKILL: no chance to finish anything.
    pub fn kill(&mut self) {
        self.process = None;
    }

    fn kubectl(&self, context: &str, arguments: &[&str]) -> Ran {
        let kubeconfig = self.directory.path().join("kubeconfig");
        let mut command = Command::new(peers::find("kubectl").unwrap());
        command.env("KUBECONFIG", kubeconfig).args(["--context", context, "--request-timeout=30s"]);
        peers::run(command.args(arguments))
    }

    fn apply(&self, context: &str, file: &Path) {
        self.kubectl(context, &["apply", "--server-side", "-f", &file.display().to_string()]).ok();
    }

    /// What a member holds, by name: uid of each.
    fn held(&self, member: &str) -> BTreeMap<String, String> {
        let ran = self.kubectl(member, &["get", "configmaps", "-l", "story=killed", "-o", "json"]);
        let list: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|map| named(&map["metadata"])).collect()
    }

    /// What the index has of a member, likewise, once it has everything up to now.
    fn indexed(&self, member: &str) -> BTreeMap<String, String> {
        let last = ["create", "configmap", "last", "-o", "jsonpath={.metadata.resourceVersion}"];
        let revision = self.kubectl(member, &last).ok();
        let search = format!(
            "/manage/v1alpha1/search?sources=fleet%2F{member}&resources=configmaps&labelSelector=story%3Dkilled&limit=500\
             &waitFor=fleet%2F{member}%20configmaps%20{revision}"
        );
        let found: Value = serde_json::from_str(&self.kubectl("root", &["get", "--raw", &search]).ok()).unwrap();
        found["items"].as_array().unwrap().iter().map(named).collect()
    }

    /// Waits for ConfigMaps of a member to come or to go.
    fn wait(&self, member: &str, what: &str, which: &[&str]) {
        self.kubectl(member, &[&["wait", what, "--timeout=90s", "--request-timeout=90s"], which].concat()).ok();
    }
}

/// Name and uid of an object.
fn named(metadata: &Value) -> (String, String) {
    let text = |key: &str| metadata[key].as_str().unwrap().to_owned();
    (text("name"), text("uid"))
}

#[test]
fn a_killed_hub_resumes_and_members_end_with_exactly_what_is_wanted() {
    if peers::find("kubectl").is_none() {
        return;
    }
    let mut hub = Mortal::new(&["--demo", "--members", "2", "--nodes", "1"]);
    let policy = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "killed", "namespace": "default"},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"story": "killed"}}}], "placement": {}}});
    let map = |number: usize| {
        let half = if number.is_multiple_of(2) { "even" } else { "odd" };
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("killed-{number}"), "namespace": "default",
            "labels": {"story": "killed", "half": half}}, "data": {"number": number.to_string()}})
    };
    let documents: Vec<String> = std::iter::once(policy).chain((0..30).map(map)).map(|one| one.to_string()).collect();
    let file = hub.directory.path().join("objects.yaml");
    std::fs::write(&file, documents.join("\n---\n")).unwrap();
    hub.apply("fleet", &file);
    hub.kill();
    hub.start();
    let names: Vec<String> = (0..30).map(|number| format!("configmap/killed-{number}")).collect();
    for member in ["member1", "member2"] {
        hub.wait(member, "--for=create", &names.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let before = ["member1", "member2"].map(|member| hub.held(member));
    assert!(before.iter().all(|held| held.len() == 30));
    hub.kubectl("fleet", &["delete", "configmaps", "-l", "half=even", "--wait=false"]).ok();
    hub.kill();
    hub.start();
    for (member, before) in ["member1", "member2"].into_iter().zip(before) {
        hub.wait(member, "--for=delete", &["configmaps", "-l", "half=even"]);
        let held = hub.held(member);
        assert_eq!(held.len(), 15, "half are left in {member}");
        for (name, uid) in &held {
            assert_eq!(before.get(name), Some(uid), "{name} in {member} was never deleted");
        }
        assert_eq!(hub.indexed(member), held, "the index followed {member} over both deaths");
    }
    let bindings = hub.kubectl("fleet", &["get", "resourcebindings", "-o", "name"]).ok();
    assert_eq!(bindings.lines().filter(|line| line.contains("killed-")).count(), 15);
}
