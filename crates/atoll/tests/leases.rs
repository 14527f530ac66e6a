//! The demonstration as people run it: pods of the computing cluster run on leased nodes.
#![allow(clippy::unwrap_used)]

mod demo;

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use atoll_testkit::peers::{self, Ran};
use demo::Demo;
use serde_json::{Value, json};

/// A Deployment that only runs on leased nodes.
fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {
                "nodeSelector": {"type": "virtual-kubelet"},
                "tolerations": [{"key": "kubeocean.io/vnode", "operator": "Exists"}],
                "containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}],
            }},
        },
    })
}

#[test]
fn pods_on_leased_nodes_run_in_the_members_and_answer_to_kubectl() {
    let Some(demo) = Demo::start(&["--members", "2", "--nodes", "2"]) else { return };
    demo.apply("compute", &deployment("web", 8));
    demo.kubectl("compute", &["rollout", "status", "deployment/web", "--timeout=60s"]).ok();

    let pods = demo.list("compute", "default", "pods");
    assert_eq!(pods.len(), 8);
    for pod in &pods {
        assert_eq!(pod["status"]["phase"], "Running");
        assert!(pod["spec"]["nodeName"].as_str().unwrap().starts_with("vnode-member"), "{pod}");
    }
    let below: Vec<Value> =
        ["member1", "member2"].iter().flat_map(|member| demo.list(member, "leased", "pods")).collect();
    assert_eq!(below.len(), 8, "one physical pod for each");
    for pod in &pods {
        let physical = &pod["metadata"]["annotations"]["kubeocean.io/physical-pod-name"];
        assert!(below.iter().any(|own| own["metadata"]["name"] == *physical), "{physical} is in no member");
    }

    let name = pods[0]["metadata"]["name"].as_str().unwrap();
    let logs = demo.kubectl("compute", &["logs", name]).ok();
    assert!(!logs.trim().is_empty(), "logs");
    let said = demo.kubectl("compute", &["exec", name, "--", "echo", "here"]).ok();
    assert_eq!(said.trim(), "here");
    let top = demo.kubectl("compute", &["top", "pod", name, "--no-headers"]).ok();
    assert!(top.contains(name), "{top}");

    demo.kubectl("compute", &["delete", "deployment", "web", "--wait=true"]).ok();
    demo.kubectl("compute", &["wait", "--for=delete", "pod", "-l", "app=web", "--timeout=60s"]).ok();
    for member in ["member1", "member2"] {
        assert_eq!(demo.list(member, "leased", "pods"), Vec::<Value>::new(), "nothing is left in {member}");
    }
}

/// A command of this binary in a context of the demonstration.
fn atoll(demo: &Demo, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    peers::run(command.env("KUBECONFIG", demo.kubeconfig()).args(arguments))
}

#[test]
fn bindings_and_policies_are_shown_in_words() {
    let Some(demo) = Demo::start(&["--members", "2", "--nodes", "3"]) else { return };
    demo.kubectl(
        "compute",
        &["wait", "--for=jsonpath={.status.phase}=Ready", "clusterbindings", "--all", "--timeout=60s"],
    )
    .ok();
    demo.kubectl("compute", &["wait", "--for=create", "node/vnode-member2-member2-node-3", "--timeout=60s"]).ok();
    let list = atoll(&demo, &["lease", "list"]).ok();
    assert!(list.lines().any(|line| line.starts_with("member1") && line.contains("Ready")), "{list}");
    let policies = atoll(&demo, &["lease", "policies", "--context", "member1"]).ok();
    assert!(policies.contains("lends 12 of 24 CPU") && policies.contains("on 3 nodes, always"), "{policies}");

    let file = demo.directory().join("night.yaml");
    let night = json!({"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ResourceLeasingPolicy", "metadata": {"name": "night"},
        "spec": {"cluster": "member1", "resourceLimits": [{"resource": "cpu", "quantity": "2"}],
                 "timeWindows": [{"start": "20:00", "end": "07:59", "timeZone": "UTC"}]}});
    std::fs::write(&file, night.to_string()).unwrap();
    let said = atoll(
        &demo,
        &["lease", "preview", "-f", file.to_str().unwrap(), "--context", "member1", "--at", "2026-01-05T12:00:00Z"],
    )
    .ok();
    assert!(said.starts_with("this policy lends 6 of 24 CPU"), "{said}");
    assert!(said.lines().next().unwrap().contains("next window"), "{said}");
    assert_eq!(said.lines().filter(|line| line.starts_with("member1-node-")).count(), 3, "{said}");

    let roles = atoll(&demo, &["lease", "roles", "--mount-namespace", "leased"]).ok();
    let (everywhere, here) = roles.split_once("kind: Role\n").unwrap();
    assert!(
        !everywhere.contains("secrets") && here.contains("secrets"),
        "Secrets only in the mount namespace: {roles}"
    );

    // A worker that is left by force: what stays there is listed.
    demo.apply("compute", &deployment("web", 2));
    demo.kubectl("compute", &["rollout", "status", "deployment/web", "--timeout=60s"]).ok();
    let pods = demo.list("compute", "default", "pods");
    let worker =
        if pods[0]["spec"]["nodeName"].as_str().unwrap().starts_with("vnode-member1") { "member1" } else { "member2" };
    let left = atoll(&demo, &["lease", "unbind", worker, "--force", "--timeout", "60"]).ok();
    let physical = pods[0]["metadata"]["annotations"]["kubeocean.io/physical-pod-name"].as_str().unwrap();
    assert!(left.contains("left behind in the worker cluster:") && left.contains(physical), "{left}");
}

/// Listening TCP ports of a process, from its descriptors.
fn listening(process: u32) -> Vec<u16> {
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let sockets: HashSet<String> = descriptors
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .filter_map(|target| Some(target.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned()))
        .collect();
    let mut ports = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/{process}/net/{table}")).unwrap_or_default();
        for row in text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>()) {
            if row.len() > 9 && row[3] == "0A" && sockets.contains(row[9]) {
                ports.push(u16::from_str_radix(row[1].rsplit(':').next().unwrap(), 16).unwrap());
            }
        }
    }
    ports.sort_unstable();
    ports
}

/// Status code of a request, with curl; 0 when there was no answer.
fn ask(arguments: &[&str]) -> u16 {
    let mut command = Command::new("curl");
    command.args(["-sk", "-o", "/dev/null", "--max-time", "5", "-w", "%{http_code}"]).args(arguments);
    peers::run(&mut command).stdout.trim().parse().unwrap_or_default()
}

#[test]
fn a_manager_of_its_own_binds_runs_pods_and_opens_no_door_to_strangers() {
    let Some(demo) = Demo::start(&["--members", "1", "--nodes", "2"]) else { return };
    atoll(&demo, &["instance", "create", "lessee"]).ok();
    let kubeconfig = demo.directory().join("lessee.kubeconfig");
    std::fs::write(&kubeconfig, atoll(&demo, &["instance", "kubeconfig", "lessee"]).ok()).unwrap();
    let lessee = |arguments: &[&str]| {
        let mut command = Command::new(peers::find("kubectl").unwrap());
        peers::run(command.env("KUBECONFIG", &kubeconfig).args(arguments))
    };
    let manager = Manager::start(&kubeconfig);
    let bound = atoll(
        &demo,
        &[
            "lease",
            "bind",
            "m1",
            "--kubeconfig",
            kubeconfig.to_str().unwrap(),
            "--worker-kubeconfig",
            demo.kubeconfig().to_str().unwrap(),
            "--worker-context",
            "member1",
            "--mount-namespace",
            "for-lessee",
        ],
    )
    .ok();
    assert!(bound.contains("clusterbinding/m1 is ready"), "{bound}");
    let policy = json!({"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ResourceLeasingPolicy", "metadata": {"name": "m1"}, "spec": {"cluster": "m1"}});
    demo.apply("member1", &policy);
    lessee(&["wait", "--for=create", "node/vnode-m1-member1-node-2", "--timeout=60s"]).ok();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"nodeName": "vnode-m1-member1-node-1",
        "containers": [{"name": "c", "image": "nginx"}]}});
    std::fs::write(demo.directory().join("pod.json"), pod.to_string()).unwrap();
    lessee(&["apply", "-f", demo.directory().join("pod.json").to_str().unwrap()]).ok();
    lessee(&["wait", "--for=jsonpath={.status.phase}=Running", "pod/web", "--timeout=60s"]).ok();
    assert_eq!(demo.list("member1", "for-lessee", "pods").len(), 1);

    // Every socket of the process, found by looking: metrics, health, and one for each virtual node.
    let ports = listening(manager.process.id());
    assert_eq!(ports.len(), 4, "{ports:?}");
    let mut open = Vec::new();
    for port in &ports {
        for path in [
            "/",
            "/metrics",
            "/healthz",
            "/readyz",
            "/pods",
            "/debug/pprof/",
            "/exec/default/web/c",
            "/run/default/web/c",
            "/containerLogs/default/web/c",
        ] {
            for method in ["GET", "POST"] {
                let plain = ask(&["-X", method, &format!("http://127.0.0.1:{port}{path}")]);
                let tls = ask(&["-X", method, &format!("https://127.0.0.1:{port}{path}")]);
                let liar = ask(&[
                    "-X",
                    method,
                    "-H",
                    "Authorization: Bearer made-up",
                    &format!("https://127.0.0.1:{port}{path}"),
                ]);
                if plain == 200 || tls == 200 || liar == 200 {
                    open.push(format!("{method} {path}"));
                }
                assert!(
                    [0, 401].contains(&tls) && [0, 401].contains(&liar),
                    "{method} {path} on {port}: {tls}, {liar}"
                );
            }
        }
    }
    open.sort();
    assert_eq!(open, ["GET /healthz", "GET /metrics", "GET /readyz"], "what anybody may read");

    let unbound =
        atoll(&demo, &["lease", "unbind", "m1", "--kubeconfig", kubeconfig.to_str().unwrap(), "--timeout", "60"]).ok();
    assert!(unbound.contains("clusterbinding/m1 unbound"), "{unbound}");
    assert_eq!(demo.list("member1", "for-lessee", "pods"), Vec::<Value>::new());
}

/// A manager in a process of its own; it ends when dropped.
struct Manager {
    process: Child,
}

impl Manager {
    fn start(kubeconfig: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_atoll"))
            .args(["vnode-manager", "--without-intranet", "--kubelet-address", "127.0.0.1", "--kubeconfig"])
            .arg(kubeconfig)
            .args(["--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let serves = lines.by_ref().map_while(Result::ok).any(|line| line.contains("atoll vnode-manager serves"));
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let manager = Self { process };
        assert!(serves, "the manager ended at once");
        manager
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
