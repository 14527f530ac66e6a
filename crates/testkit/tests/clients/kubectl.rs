//! kubectl, in two minor versions.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use atoll_testkit::{TestServer, peers};

use crate::process::Process;

/// A kubectl that speaks to one namespace.
struct Kubectl<'a> {
    program: PathBuf,
    server: &'a TestServer,
    namespace: String,
}

const DEPLOYMENT: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: "nginx:1", ports: [{containerPort: 80}]}
"#;

impl Kubectl<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(self.server.kubeconfig()).arg("--namespace").arg(&self.namespace);
        command.arg(format!("--cache-dir={}/cache", self.server.scratch().display()));
        command.args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> peers::Ran {
        peers::run(&mut self.command(arguments))
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        self.run(arguments).ok()
    }

    fn with_input(&self, arguments: &[&str], input: &str) -> peers::Ran {
        let path = self.server.scratch().join(format!("{}-input.yaml", self.namespace));
        std::fs::write(&path, input).unwrap();
        let mut command = self.command(arguments);
        command.arg("-f").arg(&path);
        peers::run(&mut command)
    }

    #[track_caller]
    fn field(&self, what: &str, path: &str) -> String {
        self.ok(&["get", what, "-o", &format!("jsonpath={path}")])
    }
}

fn objects(kubectl: &Kubectl) {
    kubectl.ok(&["create", "configmap", "a", "--from-literal=k=v"]);
    assert!(kubectl.run(&["create", "configmap", "a"]).fails().contains("already exists"));
    kubectl.ok(&["create", "secret", "generic", "s", "--from-literal=p=q"]);
    assert_eq!(kubectl.field("configmap/a", "{.data.k}"), "v");
    assert!(kubectl.ok(&["get", "configmap", "a", "-o", "yaml"]).contains("kind: ConfigMap"));
    assert!(kubectl.ok(&["get", "cm,secrets"]).contains("secret/s"));
    assert!(kubectl.run(&["get", "configmap", "none"]).fails().contains("NotFound"));
    kubectl.ok(&["label", "configmap", "a", "x=y"]);
    assert!(kubectl.ok(&["get", "cm", "-l", "x=y", "-o", "name"]).contains("configmap/a"));
    kubectl.ok(&["label", "configmap", "a", "x-"]);
    kubectl.ok(&["annotate", "configmap", "a", "note=1"]);
    assert_eq!(kubectl.field("cm/a", "{.metadata.annotations.note}"), "1");
    kubectl.ok(&["describe", "configmap", "a"]);
    kubectl.ok(&["create", "serviceaccount", "robot"]);
    assert!(kubectl.ok(&["create", "token", "robot"]).starts_with("ey"));
    kubectl.ok(&["create", "role", "reader", "--verb=get", "--resource=pods"]);
    kubectl.ok(&["create", "rolebinding", "reader", "--role=reader", "--user=jane"]);
    assert_eq!(kubectl.ok(&["auth", "can-i", "get", "pods", "--as=jane"]).trim(), "yes");
    assert_eq!(kubectl.run(&["auth", "can-i", "delete", "pods", "--as=jane"]).stdout.trim(), "no");
    assert!(kubectl.ok(&["auth", "whoami"]).contains("atoll:admin"));
}

fn workloads(kubectl: &Kubectl) {
    assert!(kubectl.with_input(&["apply"], DEPLOYMENT).ok().contains("created"));
    assert!(kubectl.with_input(&["apply"], DEPLOYMENT).ok().contains("unchanged"));
    assert!(kubectl.with_input(&["diff"], DEPLOYMENT).ok().is_empty());
    let changed = DEPLOYMENT.replace("nginx:1", "nginx:2");
    let differing = kubectl.with_input(&["diff"], &changed);
    assert_eq!(differing.code, 1, "{}", differing.stderr);
    assert!(
        differing.stdout.contains("+        image: nginx:2") || differing.stdout.contains("+      - image: nginx:2"),
        "{}",
        differing.stdout
    );
    assert!(kubectl.with_input(&["apply"], &changed).ok().contains("configured"));
    let wide = kubectl.ok(&["get", "deployment", "web", "-o", "wide"]);
    assert!(wide.contains("READY") && wide.contains("IMAGES") && wide.contains("nginx:2"), "{wide}");
    kubectl.ok(&["scale", "deployment", "web", "--replicas=5"]);
    assert_eq!(kubectl.field("deploy/web", "{.spec.replicas}"), "5");
    kubectl.ok(&[
        "patch",
        "deploy",
        "web",
        "-p",
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"}]}]}}}}"#,
    ]);
    assert_eq!(kubectl.field("deploy/web", "{.spec.template.spec.containers[0].env[0].name}"), "A");
    assert_eq!(kubectl.field("deploy/web", "{.spec.template.spec.containers[0].image}"), "nginx:2");
    kubectl.ok(&["patch", "deploy", "web", "--type=merge", "-p", r#"{"metadata":{"annotations":{"m":"1"}}}"#]);
    kubectl.ok(&[
        "patch",
        "deploy",
        "web",
        "--type=json",
        "-p",
        r#"[{"op":"replace","path":"/spec/replicas","value":1}]"#,
    ]);
    assert_eq!(kubectl.field("deploy/web", "{.spec.replicas}{.metadata.annotations.m}"), "11");
    kubectl.ok(&["set", "image", "deploy/web", "c=nginx:3"]);
    let mut edit = kubectl.command(&["edit", "deployment", "web"]);
    assert!(peers::run(edit.env("KUBE_EDITOR", "sed -i s/nginx:3/nginx:4/")).ok().contains("edited"));
    assert_eq!(kubectl.field("deploy/web", "{.spec.template.spec.containers[0].image}"), "nginx:4");
    kubectl.ok(&["patch", "deploy", "web", "--subresource=status", "--type=merge", "-p",
        r#"{"status":{"conditions":[{"type":"Available","status":"True","reason":"r","message":"m","lastTransitionTime":"2024-01-01T00:00:00Z","lastUpdateTime":"2024-01-01T00:00:00Z"}]}}"#]);
    kubectl.ok(&["wait", "--for=condition=Available", "deployment/web", "--timeout=20s"]);
    kubectl.ok(&["wait", "--for=jsonpath={.spec.replicas}=1", "deployment/web", "--timeout=20s"]);
    assert!(kubectl.ok(&["get", "all"]).contains("deployment.apps/web"));
    kubectl.ok(&["delete", "deployment", "web"]);
    kubectl.ok(&["wait", "--for=delete", "deployment/web", "--timeout=20s"]);
}

/// A list is checked before it is sent, with the old form of the description of types.
fn lists(kubectl: &Kubectl) {
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: listed}\n  data: {x: '1'}\n";
    assert!(kubectl.with_input(&["apply"], list).ok().contains("configmap/listed created"));
    let refused = kubectl.with_input(&["apply"], &list.replace("data:", "dada:")).fails();
    assert!(refused.contains("unknown field \"dada\""), "{refused}");
}

fn server_side(kubectl: &Kubectl) {
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ssa}\ndata: {k: one}\n";
    kubectl.with_input(&["apply", "--server-side", "--field-manager=one"], config).ok();
    let other = config.replace("one", "two");
    let conflict = kubectl.with_input(&["apply", "--server-side", "--field-manager=two"], &other).fails();
    assert!(conflict.contains("Apply failed with 1 conflict") && conflict.contains(".data.k"), "{conflict}");
    kubectl.with_input(&["apply", "--server-side", "--field-manager=two", "--force-conflicts"], &other).ok();
    assert_eq!(kubectl.field("cm/ssa", "{.data.k}"), "two");
    let typo = kubectl
        .with_input(&["create"], "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: typo}\ndat: {k: v}\n")
        .fails();
    assert!(typo.contains("unknown field \"dat\""), "{typo}");
    assert!(kubectl.ok(&["run", "p", "--image=nginx", "--dry-run=server", "-o", "name"]).contains("pod/p"));
    assert!(kubectl.run(&["get", "pod", "p"]).fails().contains("NotFound"));
}

fn discovery(kubectl: &Kubectl) {
    let resources = kubectl.ok(&["api-resources"]);
    assert!(resources.contains("deployments") && resources.contains("poddisruptionbudgets"), "{resources}");
    assert!(kubectl.ok(&["api-versions"]).contains("apps/v1"));
    let explained = kubectl.ok(&["explain", "deployment.spec.strategy"]);
    assert!(explained.contains("rollingUpdate") && explained.contains("FIELDS"), "{explained}");
    assert!(kubectl.run(&["explain", "deployment.spec.nothing"]).fails().contains("does not exist"));
    assert!(kubectl.ok(&["version"]).contains("Server Version: v1.35"));
    assert!(kubectl.ok(&["get", "--raw", "/readyz?verbose"]).contains("readyz check passed"));
}

fn watching(kubectl: &Kubectl) {
    let mut watch = Process::start(&mut kubectl.command(&["get", "configmaps", "-w", "--no-headers", "-o", "name"]));
    watch.until("the present state", |line| line == "configmap/a");
    kubectl.ok(&["create", "configmap", "late"]);
    watch.until("a new object", |line| line == "configmap/late");
    kubectl.ok(&["delete", "configmap", "late"]);
    watch.until("its deletion", |line| line == "configmap/late");
}

fn definitions(kubectl: &Kubectl, group: &str) {
    let crd = format!(
        r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: boats.{group}}}
spec:
  group: {group}
  names: {{plural: boats, kind: Boat, shortNames: [bt]}}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {{status: {{}}}}
    additionalPrinterColumns: [{{name: Sails, type: integer, jsonPath: .spec.sails}}]
    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, description: What it has., required: [sails], properties: {{sails: {{type: integer, minimum: 1}}}}}}}}}}}}
"#
    );
    kubectl.with_input(&["apply"], &crd).ok();
    kubectl.ok(&["wait", "--for=condition=Established", &format!("crd/boats.{group}"), "--timeout=20s"]);
    let boat = format!("apiVersion: {group}/v1\nkind: Boat\nmetadata: {{name: a}}\nspec: {{sails: 2}}\n");
    kubectl.with_input(&["apply"], &boat).ok();
    let table = kubectl.ok(&["get", &format!("boats.{group}")]);
    assert!(table.contains("SAILS") && table.contains('2'), "{table}");
    let refused = kubectl.with_input(&["apply"], &boat.replace("sails: 2", "sails: 0")).fails();
    assert!(refused.contains("spec.sails") && refused.contains("greater than or equal to 1"), "{refused}");
    assert!(kubectl.ok(&["explain", "boats.spec", "--api-version", &format!("{group}/v1")]).contains("What it has."));
    kubectl.ok(&["delete", "crd", &format!("boats.{group}")]);
    assert!(
        kubectl.run(&["get", &format!("boats.{group}")]).fails().contains("the server doesn't have a resource type")
    );
}

/// The whole story of one kubectl.
fn story(name: &str) {
    let Some(program) = peers::find(name) else { return };
    let server = crate::shared();
    let kubectl = Kubectl { program, server: &server, namespace: format!("story-{name}") };
    kubectl.ok(&["create", "namespace", &kubectl.namespace]);
    objects(&kubectl);
    workloads(&kubectl);
    lists(&kubectl);
    server_side(&kubectl);
    discovery(&kubectl);
    watching(&kubectl);
    definitions(&kubectl, &format!("{name}.example.com"));
    kubectl.ok(&["delete", "namespace", &kubectl.namespace, "--timeout=60s"]);
    assert!(kubectl.run(&["get", "namespace", &kubectl.namespace]).fails().contains("NotFound"));
}

#[test]
fn kubectl_of_the_same_version_works() {
    story("kubectl");
}

#[test]
fn kubectl_of_an_older_version_works() {
    story("kubectl-old");
}

#[test]
fn kubectl_works_in_an_instance_behind_a_path() {
    let Some(program) = peers::find("kubectl") else { return };
    let server = TestServer::memory().unwrap();
    server.create_instance("side").unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("--kubeconfig").arg(server.kubeconfig()).args(["--context", "side"]).args(arguments);
        peers::run(&mut command)
    };
    run(&["create", "configmap", "only-here"]).ok();
    assert!(run(&["get", "cm", "-o", "name"]).ok().contains("only-here"));
    apply(&program, &server.kubeconfig(), DEPLOYMENT);
    assert!(run(&["explain", "pod.spec"]).ok().contains("FIELDS"));
    let mut root = Command::new(&program);
    assert!(
        !peers::run(root.arg("--kubeconfig").arg(server.kubeconfig()).args(["get", "cm", "-o", "name"]))
            .ok()
            .contains("only-here")
    );
}

/// `kubectl apply` from its input.
fn apply(program: &Path, kubeconfig: &Path, text: &str) {
    let mut command = Command::new(program);
    command
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["--context", "side", "apply", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
