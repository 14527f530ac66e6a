//! The demonstration as people run it: pods of the computing cluster run on leased nodes.
#![allow(clippy::unwrap_used)]

mod demo;

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
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
    files_and_ports(&demo, name);
    let top = demo.kubectl("compute", &["top", "pod", name, "--no-headers"]).ok();
    assert!(top.contains(name), "{top}");
    let top = demo.kubectl("compute", &["top", "node", "--no-headers"]).ok();
    for node in ["vnode-member1-member1-node-1", "vnode-member2-member2-node-2"] {
        let line = top.lines().find(|line| line.starts_with(node)).unwrap_or_else(|| panic!("{node} in\n{top}"));
        assert!(line.split_whitespace().nth(1).is_some_and(|cpu| cpu.ends_with('m')), "{line}");
    }
    tides(&demo);

    demo.kubectl("compute", &["delete", "deployment", "web", "--wait=true"]).ok();
    demo.kubectl("compute", &["wait", "--for=delete", "pod", "-l", "app=web", "--timeout=60s"]).ok();
    for member in ["member1", "member2"] {
        assert_eq!(demo.list(member, "leased", "pods"), Vec::<Value>::new(), "nothing is left in {member}");
    }
}

/// Files are copied both ways, a terminal is attached and a port is forwarded, as on any other node.
fn files_and_ports(demo: &Demo, pod: &str) {
    let (here, back) = (demo.directory().join("here"), demo.directory().join("back"));
    std::fs::write(&here, "some\ntext\n").unwrap();
    let there = format!("{pod}:/tmp/there");
    demo.kubectl("compute", &["cp", here.to_str().unwrap(), &there]).ok();
    demo.kubectl("compute", &["cp", &there, back.to_str().unwrap()]).ok();
    assert_eq!(std::fs::read_to_string(&back).unwrap(), "some\ntext\n");
    let mut forward = Followed::start(demo, &["port-forward", pod, ":80"]);
    let line = forward.line();
    let answer = peers::through_forward(&line);
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");

    let mut shell = deployment("shell", 1)["spec"]["template"].clone();
    shell["apiVersion"] = "v1".into();
    shell["kind"] = "Pod".into();
    shell["metadata"] = json!({"name": "shell", "namespace": "default"});
    shell["spec"]["containers"][0]["stdin"] = true.into();
    demo.apply("compute", &shell);
    demo.kubectl("compute", &["wait", "--for=condition=Ready", "pod/shell", "--timeout=60s"]).ok();
    let mut attach = command(demo);
    attach.args(["attach", "-i", "shell"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut attach = attach.spawn().unwrap();
    attach.stdin.take().unwrap().write_all(b"echo here\nexit\n").unwrap();
    let said = attach.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).contains("here"), "{said:?}");
    demo.kubectl("compute", &["delete", "pod", "shell", "--wait=true", "--timeout=60s"]).ok();
}

/// kubectl in the computing cluster.
fn command(demo: &Demo) -> Command {
    let mut command = Command::new(peers::find("kubectl").unwrap());
    command.env("KUBECONFIG", demo.kubeconfig()).args(["--context", "compute"]);
    command
}

/// A kubectl that goes on until it is dropped.
struct Followed {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Followed {
    fn start(demo: &Demo, arguments: &[&str]) -> Self {
        let mut command = command(demo);
        let mut process = command.args(arguments).stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The windows of a member close: its pods go and come up in the other; they open, and its nodes take pods again.
fn tides(demo: &Demo) {
    let minute = |later: i64| {
        let at = jiff::Timestamp::now().checked_add(jiff::SignedDuration::from_mins(later)).unwrap();
        at.to_zoned(jiff::tz::TimeZone::UTC).strftime("%H:%M").to_string()
    };
    let set = |start: i64, end: i64| {
        let windows = json!([{"start": minute(start), "end": minute(end), "timeZone": "UTC"}]);
        let patch = json!({"spec": {"timeWindows": windows, "forceReclaim": true, "gracefulReclaimPeriodSeconds": 0}});
        let patch = patch.to_string();
        demo.kubectl("member1", &["patch", "resourceleasingpolicy", "half", "--type=merge", "-p", &patch]).ok();
    };
    let tainted = |wanted: bool| {
        let keys = r#"jsonpath=taints {.spec.taints[*].key}{"\n"}"#;
        let node = ["get", "node", "vnode-member1-member1-node-1", "--watch", "--request-timeout=60s", "-o", keys];
        let mut events = Followed::start(demo, &node);
        // An empty line is the end of what is told.
        let told = std::iter::from_fn(|| Some(events.line()).filter(|line| !line.is_empty()));
        let mut has = told.map(|line| line.contains("kubeocean.io/out-of-time-windows"));
        assert!(has.any(|has| has == wanted), "the taint is never {wanted}");
    };
    set(120, 180);
    tainted(true);
    demo.kubectl("compute", &["rollout", "status", "deployment/web", "--timeout=60s"]).ok();
    demo.kubectl("member1", &["wait", "pods", "--all", "-n", "leased", "--for=delete", "--timeout=60s"]).ok();
    assert!(demo.list("member1", "leased", "pods").is_empty(), "pods stay in a member whose windows are closed");
    for pod in
        demo.list("compute", "default", "pods").iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
    {
        assert!(!pod["spec"]["nodeName"].as_str().unwrap_or_default().starts_with("vnode-member1"), "{pod}");
    }
    set(-60, 120);
    tainted(false);
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
fn ask(arguments: &[&str], address: &str) -> u16 {
    ask_all(arguments, &[address.to_owned()])[0]
}

/// Status codes of several requests that are alike.
fn ask_all(arguments: &[&str], addresses: &[String]) -> Vec<u16> {
    let mut command = Command::new("curl");
    command.args(["-sk", "--max-time", "5", "-w", "%{http_code}\n"]).args(arguments);
    for address in addresses {
        command.args(["-o", "/dev/null", address]);
    }
    let ran = peers::run(&mut command);
    let codes: Vec<u16> = ran.stdout.lines().map(|line| line.trim().parse().unwrap_or_default()).collect();
    assert_eq!(codes.len(), addresses.len(), "{}: {}", ran.command, ran.stderr);
    codes
}

/// Paths of a kubelet, of health and metrics, and some that should be nowhere.
const PATHS: [&str; 9] = [
    "/",
    "/metrics",
    "/healthz",
    "/readyz",
    "/pods",
    "/debug/pprof/",
    "/exec/default/web/c",
    "/run/default/web/c",
    "/containerLogs/default/web/c",
];

/// What anybody gets from a port without being known, by method and path; with TLS nothing, whoever they say they are.
fn given_to_anybody(port: u16) -> Vec<String> {
    let mut open = Vec::new();
    for method in ["GET", "POST"] {
        let at = |scheme: &str| PATHS.map(|path| format!("{scheme}://127.0.0.1:{port}{path}"));
        let plain = ask_all(&["-X", method], &at("http"));
        let given = PATHS.iter().zip(plain).filter(|(_, code)| *code == 200);
        open.extend(given.map(|(path, _)| format!("{method} {path}")));
        for more in [&[][..], &["-H", "Authorization: Bearer made-up"]] {
            let codes = ask_all(&[&["-X", method][..], more].concat(), &at("https"));
            assert!(codes.iter().all(|code| [0, 401].contains(code)), "{method} on {port} {more:?}: {codes:?}");
        }
    }
    open
}

/// An instance that leases nodes of the demonstration's members.
struct Lessee<'a> {
    demo: &'a Demo,
    kubeconfig: PathBuf,
}

impl<'a> Lessee<'a> {
    fn new(demo: &'a Demo) -> Self {
        atoll(demo, &["instance", "create", "lessee"]).ok();
        let kubeconfig = demo.directory().join("lessee.kubeconfig");
        std::fs::write(&kubeconfig, atoll(demo, &["instance", "kubeconfig", "lessee"]).ok()).unwrap();
        let policy = json!({"apiVersion": "cloud.tencent.com/v1beta1", "kind": "ResourceLeasingPolicy", "metadata": {"name": "m1"}, "spec": {"cluster": "m1"}});
        demo.apply("member1", &policy);
        Self { demo, kubeconfig }
    }

    /// kubectl in the instance.
    fn kubectl(&self, arguments: &[&str]) -> String {
        self.kubectl_with(&self.kubeconfig, arguments)
    }

    fn kubectl_with(&self, kubeconfig: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new(peers::find("kubectl").unwrap());
        peers::run(command.env("KUBECONFIG", kubeconfig).args(arguments)).ok()
    }

    /// Binds member1 as `m1` and waits until that is ready.
    fn bind(&self) {
        let worker = self.demo.kubeconfig();
        let own = self.kubeconfig.to_str().unwrap();
        let bind = ["lease", "bind", "m1", "--kubeconfig", own, "--worker-kubeconfig", worker.to_str().unwrap()];
        let bind = [&bind[..], &["--worker-context", "member1", "--mount-namespace", "for-lessee"]].concat();
        let bound = atoll(self.demo, &bind).ok();
        assert!(bound.contains("clusterbinding/m1 is ready"), "{bound}");
    }

    fn unbind(&self) {
        let own = self.kubeconfig.to_str().unwrap();
        let unbound = atoll(self.demo, &["lease", "unbind", "m1", "--kubeconfig", own, "--timeout", "60"]).ok();
        assert!(unbound.contains("clusterbinding/m1 unbound"), "{unbound}");
        assert_eq!(self.demo.list("member1", "for-lessee", "pods"), Vec::<Value>::new());
    }

    /// Has a pod run on a leased node.
    fn run_pod(&self) {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"nodeName": "vnode-m1-member1-node-1",
            "containers": [{"name": "c", "image": "nginx"}]}});
        let file = self.demo.directory().join("pod.json");
        std::fs::write(&file, pod.to_string()).unwrap();
        self.kubectl(&["apply", "-f", file.to_str().unwrap()]);
        self.kubectl(&["wait", "--for=jsonpath={.status.phase}=Running", "pod/web", "--timeout=60s"]);
        assert_eq!(self.demo.list("member1", "for-lessee", "pods").len(), 1);
    }

    /// A kubeconfig of the instance with a token of a ServiceAccount.
    fn account(&self, name: &str) -> PathBuf {
        let token = self.kubectl(&["create", "token", name, "--namespace=kubeocean-system"]);
        let account = self.demo.directory().join(name);
        std::fs::copy(&self.kubeconfig, &account).unwrap();
        self.kubectl_with(&account, &["config", "set-credentials", "account", &format!("--token={}", token.trim())]);
        self.kubectl_with(&account, &["config", "set-context", "--current", "--user=account"]);
        account
    }
}

#[test]
fn a_manager_of_its_own_binds_runs_pods_and_opens_no_door_to_strangers() {
    let Some(demo) = Demo::start(&["--members", "1", "--nodes", "2"]) else { return };
    let lessee = Lessee::new(&demo);
    let manager = Manager::start(&lessee.kubeconfig, &["--kubelet-address", "127.0.0.1"]);
    lessee.bind();
    lessee.kubectl(&["wait", "--for=create", "node/vnode-m1-member1-node-2", "--timeout=60s"]);
    lessee.run_pod();

    // Every socket of the process, found by looking: metrics, health, and one for each virtual node.
    let ports = listening(manager.process.id());
    assert_eq!(ports.len(), 4, "{ports:?}");
    let mut open: Vec<String> = ports.iter().flat_map(|port| given_to_anybody(*port)).collect();
    open.sort();
    assert_eq!(open, ["GET /healthz", "GET /metrics", "GET /readyz"], "what anybody may read");

    lessee.unbind();
}

#[test]
fn a_binding_runs_in_two_processes_of_its_own_with_the_accounts_its_manager_made() {
    let Some(demo) = Demo::start(&["--members", "1", "--nodes", "1"]) else { return };
    let lessee = Lessee::new(&demo);
    let _manager = Manager::start(&lessee.kubeconfig, &["--deploy", "atoll:test"]);
    let system = "--namespace=kubeocean-system";
    std::thread::scope(|scope| {
        let bound = scope.spawn(|| lessee.bind());
        // Nobody here runs what the Deployments ask for, so the test does.
        let [syncer, proxier] = ["kubeocean-syncer-m1", "kubeocean-proxier-m1"].map(|name| {
            lessee.kubectl(&["wait", "--for=create", "deployment", name, system, "--timeout=60s"]);
            lessee.account(name)
        });
        let _syncer = Manager::start(&syncer, &["--syncer", "m1"]);
        // The same node has the same port in the test above.
        let _proxier = Manager::start(&proxier, &["--proxier", "m1", "--kubelet-address", "127.0.0.2"]);
        bound.join().unwrap();
        lessee.kubectl(&["wait", "--for=condition=Ready", "node/vnode-m1-member1-node-1", "--timeout=60s"]);
        lessee.run_pod();
        let port = "jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}";
        let port: u16 = lessee.kubectl(&["get", "node", "vnode-m1-member1-node-1", "-o", port]).parse().unwrap();
        let logs = |more: &[&str]| {
            let address = format!("https://127.0.0.2:{port}/containerLogs/default/web/c");
            // The proxier hears of the node and the pod a moment after the others.
            ask(&[&["--retry", "100", "--retry-max-time", "60", "--retry-connrefused"], more].concat(), &address)
        };
        assert_eq!(logs(&[]), 401);
        let token = lessee.kubectl(&["create", "token", "kubeocean-syncer-m1", system]);
        assert_eq!(logs(&["-H", &format!("Authorization: Bearer {}", token.trim())]), 403);
        lessee.kubectl(&[
            "create",
            "clusterrolebinding",
            "reads",
            "--clusterrole=cluster-admin",
            "--serviceaccount=default:default",
        ]);
        let token = lessee.kubectl(&["create", "token", "default"]);
        let header = format!("Authorization: Bearer {}", token.trim());
        assert_eq!(logs(&["--fail", "--retry-all-errors", "-H", &header]), 200);

        lessee.unbind();
        assert_eq!(
            lessee.kubectl(&["get", "deployments,serviceaccounts,services", system, "-o", "name"]).trim(),
            "serviceaccount/default"
        );
    });
}

/// A manager in a process of its own; it ends when dropped.
struct Manager {
    process: Child,
}

impl Manager {
    fn start(kubeconfig: &Path, more: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_atoll"))
            .args(["vnode-manager", "--without-intranet", "--kubeconfig"])
            .arg(kubeconfig)
            .args(more)
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
