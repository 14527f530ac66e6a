//! The demonstration that all tests of this file share, and programs that talk to it.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, Weak};

use atoll_testkit::peers::{self, Ran};
use serde_json::{Value, json};

use crate::demo::Demo;

/// The shared demonstration; it ends with the last test that uses it.
pub struct Fleet {
    demo: Demo,
    files: tempfile::TempDir,
    karmadactl: PathBuf,
}

static SHARED: Mutex<Weak<Fleet>> = Mutex::new(Weak::new());

impl Fleet {
    /// The demonstration, or `None` with a visible note when a program is missing.
    pub fn shared() -> Option<Arc<Self>> {
        let karmadactl = peers::find("karmadactl")?;
        let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(running) = shared.upgrade() {
            return Some(running);
        }
        let demo = Demo::start(&["--members", "2", "--nodes", "2"])?;
        let fleet = Arc::new(Self { demo, files: tempfile::tempdir().unwrap(), karmadactl });
        *shared = Arc::downgrade(&fleet);
        Some(fleet)
    }

    /// Runs `karmadactl VERB` in the instance.
    pub fn karmadactl(&self, verb: &[&str], arguments: &[&str]) -> Ran {
        peers::run(self.karmadactl_command(verb).args(arguments))
    }

    /// `karmadactl VERB` in the instance, not yet started.
    pub fn karmadactl_command(&self, verb: &[&str]) -> Command {
        let mut command = self.program(&self.karmadactl);
        command.args(verb).arg("--kubeconfig").arg(self.kubeconfig()).args(["--karmada-context", "fleet"]);
        command
    }

    /// A program with a home of its own, so that tests see nobody's caches.
    pub fn program(&self, path: &Path) -> Command {
        let mut command = Command::new(path);
        command.env("HOME", self.files.path()).env("KUBECONFIG", self.kubeconfig());
        command
    }

    /// Runs kubectl in a context.
    pub fn kubectl(&self, context: &str, arguments: &[&str]) -> Ran {
        self.demo.kubectl(context, arguments)
    }

    /// Applies an object in a context.
    pub fn apply(&self, context: &str, object: &Value) {
        self.demo.apply(context, object);
    }

    /// An object as JSON, if it is there.
    pub fn get(&self, context: &str, what: &[&str]) -> Option<Value> {
        let ran = self.kubectl(context, &[&["get", "-o", "json"], what].concat());
        (ran.code == 0).then(|| serde_json::from_str(&ran.stdout).unwrap())
    }

    /// Follows a resource in a context until an object of it is as wanted; gives that object.
    pub fn until(&self, context: &str, what: &[&str], mut so: impl FnMut(&Value) -> bool) -> Value {
        let mut command = self.program(&peers::find("kubectl").unwrap());
        command.args(["--context", context, "get", "--watch", "-o", "json", "--request-timeout=60s"]).args(what);
        let mut process = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let told = BufReader::new(process.stdout.take().unwrap());
        let _running = Running(process);
        let mut objects = serde_json::Deserializer::from_reader(told).into_iter::<Value>().map_while(Result::ok);
        objects.find(|object| so(object)).unwrap_or_else(|| panic!("never so: {what:?} in {context}"))
    }

    /// Waits until a cluster is ready, also one that has yet to join.
    pub fn ready(&self, cluster: &str) {
        let named = format!("--field-selector=metadata.name={cluster}");
        self.until("fleet", &["clusters", &named], |cluster| {
            let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        });
    }

    /// Waits until an object is there.
    pub fn there(&self, context: &str, what: &[&str]) {
        self.kubectl(context, &[&["wait", "--for=create", "--timeout=60s"], what].concat()).ok();
    }

    /// Waits until an object is gone.
    pub fn gone(&self, context: &str, what: &[&str]) {
        self.kubectl(context, &[&["wait", "--for=delete", "--timeout=60s"], what].concat()).ok();
    }

    /// Makes a simulated cluster that has not joined; gives the path of a kubeconfig for it.
    pub fn simulate(&self, name: &str) -> PathBuf {
        let instance = json!({"apiVersion": "atoll.io/v1alpha1", "kind": "Instance",
            "metadata": {"name": name, "annotations": {"sim.atoll.io/nodes": "1"}}, "spec": {"type": "Hosted"}});
        self.apply("root", &instance);
        let named = format!("--field-selector=metadata.name={name}");
        self.until("root", &["instances.atoll.io", &named], |instance| instance["status"]["phase"] == "Ready");
        let mut atoll = self.program(Path::new(env!("CARGO_BIN_EXE_atoll")));
        let text =
            peers::run(atoll.args(["instance", "kubeconfig", name]).arg("--kubeconfig").arg(self.kubeconfig())).ok();
        let path = self.files.path().join(format!("{name}.kubeconfig"));
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The kubeconfig of the demonstration.
    pub fn kubeconfig(&self) -> PathBuf {
        self.demo.kubeconfig()
    }

    /// A file that lives as long as the demonstration.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A directory that lives as long as the demonstration.
    pub fn scratch(&self) -> &Path {
        self.files.path()
    }
}

/// A ConfigMap of namespace `default`.
pub fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"key": value}})
}

/// A Deployment of namespace `default`.
pub fn deployment(name: &str, replicas: u32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}})
}

/// A policy that sends one object to these clusters.
pub fn policy(kind: (&str, &str), name: &str, clusters: &[&str]) -> Value {
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": name, "namespace": "default"},
        "spec": {"resourceSelectors": [{"apiVersion": kind.0, "kind": kind.1, "name": name}],
                 "placement": {"clusterAffinity": {"clusterNames": clusters}}}})
}

/// A process that ends with the test.
pub struct Running(pub std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
