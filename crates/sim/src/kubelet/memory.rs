//! Runs of containers that leave something behind on a volume: what a later run does depends on it.

use std::collections::HashMap;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;

use super::program::{Program, environment, last_words, words};
use super::subpath;
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

/// Where a container sees a volume, which one, and which part of it.
#[derive(Clone, Debug)]
pub struct Mount {
    path: String,
    volume: String,
    part: String,
}

impl Memory {
    /// What a run of a container does that works with files on volumes; `None` for all others.
    /// A run is carried out once, however often it is asked for.
    pub fn program(&self, pod: &Value, container: &Value, status: &Value) -> Option<Program> {
        let mounts = mounts(pod, container);
        let words = words(container);
        if !mounts.iter().any(|mount| words.iter().any(|word| word.contains(&mount.path))) {
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

    /// Puts what is on the volumes of a container into its files.
    pub fn load(&self, mounts: &[Mount], files: &mut Files) {
        self.state.lock().load(mounts, files);
    }

    /// Takes over what somebody changed on the volumes of a container.
    pub fn store(&self, mounts: &[Mount], before: &Files, after: &Files) {
        self.state.lock().store(mounts, before, after);
    }

    /// Forgets a pod that is gone, and its own volumes.
    pub fn forget(&self, pod: &str) {
        let mut state = self.state.lock();
        if !state.runs.is_empty() || !state.volumes.is_empty() {
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
        self.load(mounts, &mut files);
        let before = files.clone();
        let run = shell::foresee(&words(container), &environment(pod, container), start, &mut files)?;
        self.store(mounts, &before, &files);
        let message = last_words(container, &run, &files);
        Some(Program { end: run.end, lines: run.lines, round: run.round, message })
    }

    fn load(&mut self, mounts: &[Mount], files: &mut Files) {
        for mount in mounts {
            files.remove(&mount.path);
            files.make_directory(&mount.path);
            // A part that is not there yet is made when it is asked for.
            self.volumes.entry(mount.volume.clone()).or_default().make_directory(&mount.part);
        }
        for mount in mounts {
            for (path, content) in
                self.volumes.get(&mount.volume).map(|own| inside(own, &mount.part)).unwrap_or_default()
            {
                let path = format!("{}{path}", mount.path);
                match content {
                    Some(bytes) => files.write(&path, &bytes, false),
                    None => files.make_directory(&path),
                }
            }
        }
    }

    fn store(&mut self, mounts: &[Mount], before: &Files, after: &Files) {
        for mount in mounts {
            let (old, new) = (inside(before, &mount.path), inside(after, &mount.path));
            let volume = self.volumes.entry(mount.volume.clone()).or_default();
            for (path, _) in old.iter().filter(|(path, _)| !new.iter().any(|(other, _)| other == path)) {
                volume.remove(&format!("{}{path}", mount.part));
            }
            for (path, content) in new.iter().filter(|one| !old.contains(one)) {
                let path = format!("{}{path}", mount.part);
                match content {
                    Some(bytes) => volume.write(&path, bytes, false),
                    None => volume.make_directory(&path),
                }
            }
        }
    }
}

/// What is in a directory, by path from there.
fn inside(files: &Files, directory: &str) -> Vec<(String, Option<bytes::Bytes>)> {
    let all = files.below(if directory.is_empty() { "/" } else { directory }).into_iter();
    let short = all.filter_map(|(path, content)| Some((path.strip_prefix(directory)?.to_owned(), content)));
    short.filter(|(path, _)| !path.is_empty()).collect()
}

/// The volumes of a container on which files can be written.
pub fn mounts(pod: &Value, container: &Value) -> Vec<Mount> {
    let Some(list) = container["volumeMounts"].as_array().filter(|list| !list.is_empty()) else { return Vec::new() };
    let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    let mut found = Vec::new();
    for mount in list {
        let path = mount["mountPath"].as_str().unwrap_or_default().trim_end_matches('/');
        let mut volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let Some(volume) = volumes.find(|volume| volume["name"] == mount["name"]).filter(|_| !path.is_empty()) else {
            continue;
        };
        let name = if volume["emptyDir"].is_object() {
            format!("{uid}/{}", mount["name"].as_str().unwrap_or_default())
        } else if let Some(place) = volume["hostPath"]["path"].as_str() {
            format!("node {node}:{place}")
        } else {
            continue;
        };
        found.push(Mount { path: path.to_owned(), volume: name, part: subpath::of(mount) });
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

    #[test]
    fn parts_of_a_volume_are_seen_in_both_places() {
        let memory = Memory::default();
        let own = pod("a", json!({"emptyDir": {}}));
        let container = json!({"name": "c", "volumeMounts": [
            {"name": "data", "mountPath": "/part", "subPath": "x/y"}, {"name": "data", "mountPath": "/whole"}]});
        let mounts = mounts(&own, &container);
        let mut files = Files::default();
        memory.load(&mounts, &mut files);
        assert!(files.is_directory("/whole/x/y"));
        let before = files.clone();
        files.write("/whole/x/y/log", b"hi", false);
        memory.store(&mounts, &before, &files);
        let mut again = Files::default();
        memory.load(&mounts, &mut again);
        assert_eq!(again.read("/part/log").as_deref(), Some(b"hi".as_slice()));
        let before = again.clone();
        again.remove("/part/log");
        memory.store(&mounts, &before, &again);
        memory.load(&mounts, &mut again);
        assert_eq!(again.read("/whole/x/y/log"), None);
    }
}
