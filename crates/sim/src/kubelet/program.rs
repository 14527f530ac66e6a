//! What a container does: how long it runs, how it ends, what it says.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::agnhost;
use super::wishes::Wishes;
use crate::shell;

/// What a container does when it is started.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Program {
    /// When and how it ends; never if absent.
    pub end: Option<(Duration, i32)>,
    /// What it says, and when.
    pub lines: Vec<(Duration, String)>,
    /// What it says again and again afterwards: lines and the time of one round.
    pub round: Option<(Vec<(Duration, String)>, Duration)>,
    /// What it leaves for its status when it ends.
    pub message: String,
}

/// Most lines that are told of one run.
const MOST_LINES: u64 = 2000;

impl Program {
    /// Everything it says from its start up to a moment, the newest lines if there are too many.
    pub fn between(&self, start: Timestamp, end: Timestamp) -> Vec<(Timestamp, String)> {
        let at = |offset: Duration| start.checked_add(offset).unwrap_or(Timestamp::MAX);
        let mut all: Vec<(Timestamp, String)> = self
            .lines
            .iter()
            .map(|(offset, line)| (at(*offset), line.clone()))
            .filter(|(moment, _)| *moment <= end)
            .collect();
        if let Some((lines, length)) = &self.round {
            let from = self.rounds_from();
            let elapsed = Duration::try_from(end.duration_since(start)).unwrap_or_default().saturating_sub(from);
            let last = u64::try_from(elapsed.as_millis() / length.as_millis().max(1)).unwrap_or(u64::MAX);
            for number in last.saturating_sub(MOST_LINES)..=last {
                let base = from + length.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX));
                all.extend(
                    lines
                        .iter()
                        .map(|(offset, line)| (at(base + *offset), line.clone()))
                        .filter(|(moment, _)| *moment <= end),
                );
            }
        }
        all
    }

    /// The first moment after another one at which it says something.
    pub fn next_after(&self, start: Timestamp, after: Timestamp) -> Option<Timestamp> {
        let at = |offset: Duration| start.checked_add(offset).ok();
        let lines = self.lines.iter().filter_map(|(offset, _)| at(*offset)).filter(|moment| *moment > after).min();
        lines.or_else(|| {
            let (lines, length) = self.round.as_ref()?;
            let from = self.rounds_from();
            let elapsed = Duration::try_from(after.duration_since(start)).unwrap_or_default().saturating_sub(from);
            let number = u32::try_from(elapsed.as_millis() / length.as_millis().max(1)).unwrap_or(u32::MAX);
            let rounds = number..=number.saturating_add(2);
            let moments = rounds.flat_map(|round| {
                lines.iter().filter_map(move |(offset, _)| at(from + length.saturating_mul(round) + *offset))
            });
            moments.filter(|moment| *moment > after).min()
        })
    }

    /// When the first round begins.
    fn rounds_from(&self) -> Duration {
        self.lines.last().map_or(Duration::ZERO, |(offset, _)| *offset)
    }
}

/// How long a container of a Job works that has no command of its own.
const JOB_TIME: Duration = Duration::from_secs(1);

/// What a container of a pod does.
pub fn program_of(pod: &Value, container: &Value, wishes: &Wishes, crashes: bool, start: Timestamp) -> Program {
    let mut program = written(pod, container, start);
    if let Some(line) = &wishes.log {
        program.round = Some((vec![(Duration::ZERO, line.clone())], Duration::from_secs(10)));
    }
    if let Some(time) = wishes.run_for {
        program.end = Some((time, wishes.exit_code.unwrap_or(0)));
    }
    if crashes {
        program.end = Some((Duration::from_secs(1), 1));
        program
            .lines
            .push((Duration::from_secs(1), "panic: this container crashes because a fault was asked for".into()));
    }
    program
}

/// The command line of a container.
pub fn words(container: &Value) -> Vec<String> {
    let fields = ["command", "args"].iter().flat_map(|field| container[*field].as_array().into_iter().flatten());
    fields.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// What its command line says, or what its image would do.
fn written(pod: &Value, container: &Value, start: Timestamp) -> Program {
    let words = words(container);
    if let Some(program) = agnhost::program(pod, container, &words) {
        return program;
    }
    let mut files = shell::Files::default();
    if container["securityContext"]["readOnlyRootFilesystem"] == true {
        files.protect();
    }
    // Arguments alone are the command of an image without one of its own; others are not known to the shell.
    if !words.is_empty()
        && let Some(run) = shell::foresee(&words, &environment(pod, container), start, &mut files)
    {
        let message = last_words(container, &run, &files);
        return Program { end: run.end, lines: run.lines, round: run.round, message };
    }
    let of_job =
        pod["metadata"]["ownerReferences"].as_array().into_iter().flatten().any(|owner| owner["kind"] == "Job");
    let name = container["name"].as_str().unwrap_or_default();
    let image = container["image"].as_str().unwrap_or_default();
    let mut lines = vec![(Duration::ZERO, format!("{name}: simulated container of image {image} started"))];
    if of_job && !image.contains("pause") {
        lines.push((JOB_TIME, format!("{name}: work done")));
        return Program { end: Some((JOB_TIME, 0)), lines, ..Program::default() };
    }
    let round = (vec![(Duration::from_secs(10), format!("{name}: alive"))], Duration::from_secs(10));
    Program { lines, round: Some(round), ..Program::default() }
}

/// What a run leaves for the status: the file its container names, or what it said last if it failed.
pub fn last_words(container: &Value, run: &shell::Run, files: &shell::Files) -> String {
    let path = container["terminationMessagePath"].as_str().unwrap_or("/dev/termination-log");
    let written = files.read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let failed = run.end.is_some_and(|(_, code)| code != 0);
    if !written.is_empty() || !failed || container["terminationMessagePolicy"] != "FallbackToLogsOnError" {
        return written;
    }
    let last = run.lines.iter().rev().take(80).map(|(_, line)| line.as_str());
    last.collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// Variables of a container that are given literally.
pub fn environment(pod: &Value, container: &Value) -> Vec<(String, String)> {
    let mut all = vec![
        ("PATH".to_owned(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
        ("HOSTNAME".to_owned(), pod["metadata"]["name"].as_str().unwrap_or_default().to_owned()),
        ("HOME".to_owned(), "/root".to_owned()),
    ];
    for variable in container["env"].as_array().into_iter().flatten() {
        let name = variable["name"].as_str().unwrap_or_default().to_owned();
        let value = match variable["value"].as_str() {
            Some(value) => value.to_owned(),
            None => downward(pod, &variable["valueFrom"]["fieldRef"]["fieldPath"]),
        };
        all.push((name, value));
    }
    all
}

/// A field of the pod that a variable shows.
pub fn downward(pod: &Value, path: &Value) -> String {
    let path = path.as_str().unwrap_or_default();
    let (base, key) = match path.split_once("['") {
        Some((base, rest)) => (base, Some(rest.trim_end_matches("']"))),
        None => (path, None),
    };
    let mut place = pod;
    for part in base.split('.').filter(|part| !part.is_empty()) {
        place = &place[part];
    }
    if let Some(key) = key {
        place = &place[key];
    }
    let addresses = || place.as_array().into_iter().flatten().filter_map(|one| one["ip"].as_str()).collect::<Vec<_>>();
    place.as_str().map_or_else(|| addresses().join(","), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_container_may_leave_a_word() {
        let left = |container: Value| {
            program_of(&json!({}), &container, &Wishes::default(), false, Timestamp::UNIX_EPOCH).message
        };
        let policy = "FallbackToLogsOnError";
        let table = [
            (json!({"command": ["sh", "-c", "echo -n DONE > /dev/termination-log"]}), "DONE"),
            (json!({"command": ["sh", "-c", "echo -n A > /dev/own"], "terminationMessagePath": "/dev/own"}), "A"),
            (json!({"command": ["sh", "-c", "echo DONE; exit 1"], "terminationMessagePolicy": policy}), "DONE"),
            (json!({"command": ["sh", "-c", "echo DONE"], "terminationMessagePolicy": policy}), ""),
        ];
        for (container, expected) in table {
            assert_eq!(left(container.clone()), expected, "{container}");
        }
    }

    fn run(pod: Value, container: Value) -> Option<(Duration, i32)> {
        program_of(&pod, &container, &Wishes::of(&pod), false, Timestamp::UNIX_EPOCH).end
    }

    #[test]
    fn a_program_speaks_at_its_times() {
        let seconds = Duration::from_secs;
        let program = Program {
            end: None,
            lines: vec![(seconds(0), "start".into())],
            round: Some((vec![(seconds(10), "tick".into())], seconds(10))),
            message: String::new(),
        };
        let (start, at) = (Timestamp::UNIX_EPOCH, |s: i64| Timestamp::from_second(s).expect("a moment"));
        let told: Vec<i64> = program.between(start, at(35)).iter().map(|(moment, _)| moment.as_second()).collect();
        assert_eq!(told, [0, 10, 20, 30]);
        assert_eq!(program.next_after(start, at(35)), Some(at(40)));
        assert_eq!(program.next_after(start, at(0)), Some(at(10)));
        assert_eq!(program.between(start, at(1_000_000)).len(), 2001);
    }

    #[test]
    fn containers_end_as_their_command_says() {
        let seconds = Duration::from_secs;
        let job = json!({"metadata": {"ownerReferences": [{"kind": "Job"}]}});
        let table = [
            (json!({}), json!({"image": "nginx"}), None),
            (json!({}), json!({"image": "busybox", "args": ["echo", "hi"]}), Some((seconds(0), 0))),
            (json!({}), json!({"image": "web", "args": ["--port=80"]}), None),
            (json!({}), json!({"command": ["sleep", "3"]}), Some((seconds(3), 0))),
            (json!({}), json!({"command": ["sh", "-c", "exit 3"]}), Some((seconds(0), 3))),
            (json!({}), json!({"command": ["sh", "-c"], "args": ["sleep 2; false"]}), Some((seconds(2), 1))),
            (job, json!({"command": ["perl", "-Mbignum=bpi", "-wle", "print bpi(2000)"]}), Some((seconds(1), 0))),
            (json!({"metadata": {"annotations": {"sim.atoll.io/run-for": "7s"}}}), json!({}), Some((seconds(7), 0))),
        ];
        for (pod, container, expected) in table {
            assert_eq!(run(pod, container.clone()), expected, "{container}");
        }
    }
}
