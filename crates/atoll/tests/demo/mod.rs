//! A demonstration in a process of its own, on a free port; it ends when dropped.
// Each program of tests uses a part of it.
#![allow(dead_code)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use atoll_testkit::peers::{self, Ran};
use serde_json::Value;

/// A running `atoll up --demo`.
pub struct Demo {
    process: Child,
    directory: tempfile::TempDir,
    kubectl: PathBuf,
}

impl Demo {
    /// Starts one, or returns `None` with a visible note when kubectl is not there.
    pub fn start(arguments: &[&str]) -> Option<Self> {
        let kubectl = peers::find("kubectl")?;
        let directory = tempfile::tempdir().expect("a directory for the test");
        let mut process = Command::new(env!("CARGO_BIN_EXE_atoll"))
            .args(["up", "--demo", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(directory.path())
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary of this crate starts");
        let errors = process.stderr.take().expect("it was piped");
        let mut lines = BufReader::new(errors).lines();
        let ready = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("atoll is ready"));
        // Somebody has to read on, or the process would wait for it.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let demo = Self { process, directory, kubectl };
        assert!(ready, "the demonstration ended before it was ready");
        Some(demo)
    }

    /// A directory that lives as long as it does.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Where its kubeconfig is.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    fn command(&self, context: &str) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.env("KUBECONFIG", self.kubeconfig()).args(["--context", context]);
        command
    }

    /// Runs kubectl in a context.
    pub fn kubectl(&self, context: &str, arguments: &[&str]) -> Ran {
        peers::run(self.command(context).args(arguments))
    }

    /// Applies an object.
    pub fn apply(&self, context: &str, object: &Value) {
        let mut child =
            self.command(context).args(["apply", "-f", "-"]).stdin(Stdio::piped()).spawn().expect("kubectl starts");
        let mut input = child.stdin.take().expect("it was piped");
        input.write_all(object.to_string().as_bytes()).expect("kubectl reads");
        drop(input);
        assert!(child.wait().expect("kubectl ends").success());
    }

    /// The objects of a namespace.
    pub fn list(&self, context: &str, namespace: &str, resource: &str) -> Vec<Value> {
        let text = self.kubectl(context, &["-n", namespace, "get", resource, "-o", "json"]).ok();
        let list: Value = serde_json::from_str(&text).expect("kubectl prints JSON");
        list["items"].as_array().cloned().unwrap_or_default()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
