//! Runs of containers that leave something behind on a volume: what a later run does depends on it.

use std::collections::HashMap;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;

use super::program::{Program, environment, last_words, words};
use crate::shell::{self, Files};
use crate::time;

/// Pod, container and how often it was started before.
type Run = (String, String, u64);

/// What containers left behind on volumes, and what each of their runs did.
#[derive(Debug, Default)]
pub struct Memory {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    runs: HashMap<Run, Option<Program>>,
    volumes: HashMap<String, Files>,
}

/// Where a container sees a volume, and which one.
struct Mount {
    path: String,
    volume: String,
}

impl Memory {
    /// What a run of a container does that works with files on volumes; `None` for all others.
    /// A run is carried out once, however often it is asked for.
    pub fn program(&self, pod: &Value, container: &Value, status: &Value) -> Option<Program> {
        let mounts = mounts(pod, container);
        if mounts.is_empty() {
            return None;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let number = status["restartCount"].as_u64().unwrap_or_default();
        let key = (text(&pod["metadata"]["uid"]), text(&container["name"]), number);
        let start = time::read(&status["state"]["running"]["startedAt"]).unwrap_or_default();
        let mut state = self.state.lock();
        if let Some(known) = state.runs.get(&key) {
            return known.clone();
        }
        let program = state.run(pod, container, &mounts, start);
        state.runs.insert(key, program.clone());
        program
    }

    /// What a run did that was carried out before.
    pub fn recall(&self, pod: &str, container: &str, number: u64) -> Option<Program> {
        self.state.lock().runs.get(&(pod.to_owned(), container.to_owned(), number)).cloned().flatten()
    }

    /// Forgets a pod that is gone, and its own volumes.
    pub fn forget(&self, pod: &str) {
        let mut state = self.state.lock();
        if !state.runs.is_empty() {
            state.runs.retain(|(uid, _, _), _| uid != pod);
            let own = format!("{pod}/");
            state.volumes.retain(|volume, _| !volume.starts_with(&own));
        }
    }
}

impl State {
    fn run(&mut self, pod: &Value, container: &Value, mounts: &[Mount], start: Timestamp) -> Option<Program> {
        let mut files = Files::default();
        if container["securityContext"]["readOnlyRootFilesystem"] == true {
            files.protect();
        }
        for mount in mounts {
            files.make_directory(&mount.path);
            for (path, content) in self.volumes.get(&mount.volume).map(|own| own.below("/")).unwrap_or_default() {
                if let Some(bytes) = content {
                    files.write(&format!("{}{path}", mount.path), &bytes, false);
                }
            }
        }
        let run = shell::foresee(&words(container), &environment(pod, container), start, &mut files)?;
        for mount in mounts {
            let kept = self.volumes.entry(mount.volume.clone()).or_default();
            *kept = Files::default();
            for (path, content) in files.below(&mount.path) {
                if let (Some(bytes), Some(below)) = (content, path.strip_prefix(&mount.path)) {
                    kept.write(below, &bytes, false);
                }
            }
        }
        let message = last_words(container, &run, &files);
        Some(Program { end: run.end, lines: run.lines, round: run.round, message })
    }
}

/// Volumes a container's command line speaks of, if files on them can be written.
fn mounts(pod: &Value, container: &Value) -> Vec<Mount> {
    let Some(list) = container["volumeMounts"].as_array().filter(|list| !list.is_empty()) else { return Vec::new() };
    let words = words(container);
    let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    let mut found = Vec::new();
    for mount in list {
        let path = mount["mountPath"].as_str().unwrap_or_default().trim_end_matches('/');
        if path.is_empty() || !words.iter().any(|word| word.contains(path)) {
            continue;
        }
        let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let Some(volume) = volumes.into_iter().find(|volume| volume["name"] == mount["name"]) else { continue };
        let name = if volume["emptyDir"].is_object() {
            format!("{uid}/{}", mount["name"].as_str().unwrap_or_default())
        } else if let Some(place) = volume["hostPath"]["path"].as_str() {
            format!("node {node}:{place}")
        } else {
            continue;
        };
        found.push(Mount { path: path.to_owned(), volume: name });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(uid: &str, volume: Value) -> Value {
        let mut volume = volume;
        volume["name"] = "data".into();
        json!({"metadata": {"uid": uid, "name": uid}, "spec": {"nodeName": "n", "volumes": [volume]}})
    }

    fn exit(memory: &Memory, pod: &Value, run: u64) -> Option<i32> {
        let script = "\n if [[ -r /data/foo ]]\n then\n exit 0\n else\n touch /data/foo\n exit 42\n fi\n";
        let container = json!({"name": "c", "command": ["/bin/sh", "-c"], "args": [script],
                               "volumeMounts": [{"name": "data", "mountPath": "/data"}]});
        let status = json!({"restartCount": run, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}});
        memory.program(pod, &container, &status).and_then(|program| program.end).map(|(_, code)| code)
    }

    #[test]
    fn a_container_finds_what_it_left_on_its_volume() {
        let memory = Memory::default();
        let own = pod("a", json!({"emptyDir": {}}));
        assert_eq!(exit(&memory, &own, 0), Some(42));
        assert_eq!(exit(&memory, &own, 0), Some(42), "the same run is not carried out twice");
        assert_eq!(exit(&memory, &own, 1), Some(0));
        assert_eq!(exit(&memory, &pod("b", json!({"emptyDir": {}})), 0), Some(42), "another pod has its own");
        memory.forget("a");
        assert_eq!(exit(&memory, &own, 0), Some(42));
    }

    #[test]
    fn pods_of_a_node_share_its_directories() {
        let memory = Memory::default();
        let host = json!({"hostPath": {"path": "/tmp/x"}});
        assert_eq!(exit(&memory, &pod("a", host.clone()), 0), Some(42));
        memory.forget("a");
        assert_eq!(exit(&memory, &pod("b", host), 0), Some(0));
        assert_eq!(exit(&memory, &pod("c", json!({"configMap": {"name": "m"}})), 0), None, "nothing to write on");
    }
}
