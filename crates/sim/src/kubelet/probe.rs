//! Probes, as far as what they ask for can be known of a simulated container.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::agnhost;
use super::program::{environment, words};
use crate::shell::{self, Ending, Files, Shell};

/// Well-known servers: a page each of them has, and the directory it is in.
const PAGES: [(&str, &str, &str); 3] = [
    ("httpd", "/usr/local/apache2/htdocs", "/index.html"),
    ("nginx", "/usr/share/nginx/html", "/index.html"),
    ("agnhost", "", "/localhost.crt"),
];

/// The directory from which an image serves pages, and one of them, if it is known.
pub fn page_of(image: &str) -> Option<(&'static str, &'static str)> {
    let name = image.rsplit('/').next().unwrap_or_default().split([':', '@']).next().unwrap_or_default();
    PAGES.iter().find(|(server, ..)| *server == name).map(|(_, root, page)| (*root, *page))
}

/// Whether the readiness probe of a container fails; `files` are there if somebody wrote some.
pub fn fails(pod: &Value, container: &Value, files: Option<&Files>) -> bool {
    let probe = &container["readinessProbe"];
    if let Some(path) = probe["httpGet"]["path"].as_str() {
        let known = page_of(container["image"].as_str().unwrap_or_default());
        let asked = if path.ends_with('/') { format!("{path}index.html") } else { path.to_owned() };
        return match (known, files) {
            (Some((root, page)), Some(files)) if page == asked => files.read(&format!("{root}{page}")).is_none(),
            // A server is there and answers, unless somebody took its page away.
            _ => false,
        };
    }
    let Some((command, prefix)) = question(probe) else { return false };
    // What the container itself writes is another matter.
    if writes(container, &prefix) {
        return false;
    }
    let mut files = files.cloned().unwrap_or_default();
    fails_with(&command, &environment(pod, container), &mut files)
}

fn fails_with(command: &[String], variables: &[(String, String)], files: &mut Files) -> bool {
    let ending = Shell::new(variables, files, Timestamp::UNIX_EPOCH).run(command, Vec::new()).1;
    matches!(ending, Ending::Exit(_, code) if code != 0 && code != 127)
}

/// The command of a probe that looks at a file, and the constant beginning of that file's path.
fn question(probe: &Value) -> Option<(Vec<String>, String)> {
    let words = probe["exec"]["command"].as_array()?.iter().filter_map(Value::as_str);
    let command: Vec<String> = words.map(Into::into).collect();
    let file = command.last()?.split_whitespace().last()?;
    let prefix = file.split('$').next().unwrap_or_default().to_owned();
    prefix.starts_with('/').then_some((command, prefix))
}

/// Whether the command line of a container speaks of a file.
fn writes(container: &Value, prefix: &str) -> bool {
    words(container).iter().any(|word| word.contains(prefix))
}

/// What the probes of a container come to in one run of it, counted from its start.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Verdict {
    /// When it is ready for the first time; never if absent.
    pub ready: Option<Duration>,
    /// When it is ended because it is not alive, and by which probe.
    pub dies: Option<(Duration, &'static str)>,
}

/// From which moments on a probe succeeds or fails.
type Timeline = Vec<(Duration, bool)>;

/// Most moments of a run that are looked at.
const MOST: usize = 20;

/// Judges a run by its probes. What cannot be known is believed to be well.
pub fn judge(pod: &Value, container: &Value) -> Verdict {
    let mut begin = Duration::ZERO;
    if let Some(start) = Pace::of(&container["startupProbe"]) {
        let timeline = timeline(pod, container, &container["startupProbe"]);
        let (well, ill) = (start.first(&timeline, begin), start.gives_up(&timeline, begin));
        match (well, ill) {
            (Some(well), ill) if ill.is_none_or(|ill| well < ill) => begin = well,
            (_, ill) => return Verdict { ready: None, dies: ill.map(|at| (at, "Startup")) },
        }
    }
    let ready = match Pace::of(&container["readinessProbe"]) {
        Some(pace) => pace.first(&timeline(pod, container, &container["readinessProbe"]), begin),
        None => Some(begin),
    };
    let dies = Pace::of(&container["livenessProbe"])
        .and_then(|pace| pace.gives_up(&timeline(pod, container, &container["livenessProbe"]), begin));
    Verdict { ready, dies: dies.map(|at| (at, "Liveness")) }
}

fn timeline(pod: &Value, container: &Value, probe: &Value) -> Timeline {
    let port = ["httpGet", "tcpSocket", "grpc"].iter().map(|kind| &probe[*kind]["port"]).find(|port| !port.is_null());
    if let (Some(port), Some(known)) = (port, agnhost::ports(container)) {
        let named = || {
            let list = container["ports"].as_array().into_iter().flatten();
            list.into_iter().find(|own| own["name"] == *port).and_then(|own| own["containerPort"].as_u64())
        };
        let number = port.as_u64().or_else(named);
        let open = known.iter().any(|(own, _)| Some(u64::from(*own)) == number);
        if open && probe["httpGet"].is_object() && agnhost::subcommand(container).as_deref() == Some("liveness") {
            // That server is made to become ill.
            return vec![(Duration::ZERO, true), (Duration::from_secs(10), false)];
        }
        return vec![(Duration::ZERO, open)];
    }
    of_files(pod, container, probe).unwrap_or_else(|| vec![(Duration::ZERO, true)])
}

/// How a probe of a file goes that the container itself writes. Volumes are shared with others, so they are not judged.
fn of_files(pod: &Value, container: &Value, probe: &Value) -> Option<Timeline> {
    let (command, prefix) = question(probe)?;
    let mounts = container["volumeMounts"].as_array().into_iter().flatten();
    let shared = mounts.filter_map(|mount| mount["mountPath"].as_str()).any(|path| prefix.starts_with(path));
    if shared || !writes(container, &prefix) {
        return None;
    }
    let (words, variables) = (words(container), environment(pod, container));
    let mut moments = vec![Duration::ZERO];
    moments.extend(shell::waits(&words, &variables, Timestamp::UNIX_EPOCH).into_iter().take(MOST));
    let mut line = Timeline::new();
    for moment in moments {
        let mut files = shell::files_at(&words, &variables, Timestamp::UNIX_EPOCH, moment)?;
        line.push((moment, !fails_with(&command, &variables, &mut files)));
    }
    Some(line)
}

/// How often a probe asks, and how patiently.
struct Pace {
    delay: Duration,
    period: Duration,
    failures: u32,
}

impl Pace {
    fn of(probe: &Value) -> Option<Self> {
        let number = |field: &str, usual: u64| probe[field].as_u64().unwrap_or(usual);
        probe.is_object().then(|| Self {
            delay: Duration::from_secs(number("initialDelaySeconds", 0)),
            period: Duration::from_secs(number("periodSeconds", 10).max(1)),
            failures: u32::try_from(number("failureThreshold", 3).max(1)).unwrap_or(u32::MAX),
        })
    }

    /// The first question at or after a moment.
    fn after(&self, moment: Duration, begin: Duration) -> Duration {
        let first = begin + self.delay;
        let passed = moment.saturating_sub(first).as_secs_f64() / self.period.as_secs_f64();
        first + self.period.mul_f64(passed.ceil())
    }

    /// When it succeeds for the first time.
    fn first(&self, timeline: &Timeline, begin: Duration) -> Option<Duration> {
        stretches(timeline).filter(|(_, _, well)| *well).find_map(|(from, to, _)| {
            let asked = self.after(from, begin);
            to.is_none_or(|to| asked < to).then_some(asked)
        })
    }

    /// When it has failed too often in a row.
    fn gives_up(&self, timeline: &Timeline, begin: Duration) -> Option<Duration> {
        stretches(timeline).filter(|(_, _, well)| !*well).find_map(|(from, to, _)| {
            let last = self.after(from, begin) + self.period * (self.failures - 1);
            to.is_none_or(|to| last < to).then_some(last)
        })
    }
}

/// Stretches of time in which a probe goes the same way: begin, end if there is one, and how.
fn stretches(timeline: &Timeline) -> impl Iterator<Item = (Duration, Option<Duration>, bool)> {
    let mut merged: Timeline = Vec::new();
    for (at, well) in timeline {
        if merged.last().is_none_or(|(_, last)| last != well) {
            merged.push((*at, *well));
        }
    }
    let ends: Vec<Option<Duration>> = merged.iter().skip(1).map(|(at, _)| Some(*at)).chain([None]).collect();
    merged.into_iter().zip(ends).map(|((from, well), to)| (from, to, well))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_server_without_its_page_is_not_ready() {
        let container = json!({"image": "registry.k8s.io/httpd:2.4", "readinessProbe": {"httpGet": {"path": "/index.html", "port": 80}}});
        assert!(!fails(&json!({}), &container, None));
        let mut files = Files::default();
        assert!(fails(&json!({}), &container, Some(&files)));
        files.write("/usr/local/apache2/htdocs/index.html", b"x", false);
        assert!(!fails(&json!({}), &container, Some(&files)));
        let other = json!({"image": "web", "readinessProbe": {"httpGet": {"path": "/", "port": 80}}});
        assert!(!fails(&json!({}), &other, Some(&Files::default())), "nothing is known of its pages");
    }

    #[test]
    fn commands_of_probes_look_at_files() {
        let with = |command: Value, own: Value| json!({"image": "web", "args": own, "readinessProbe": {"exec": {"command": command}}});
        let waits = with(json!(["test", "-f", "/data/go"]), json!([]));
        assert!(fails(&json!({}), &waits, None));
        let mut files = Files::default();
        files.write("/data/go", b"", false);
        assert!(!fails(&json!({}), &waits, Some(&files)));
        let table = [
            with(json!(["cat", "/tmp/healthy"]), json!(["sh", "-c", "touch /tmp/healthy; sleep 600"])),
            with(json!(["pg_isready"]), json!([])),
            with(json!(["sh", "-c", "cat /data/foo-$INDEX"]), json!(["touch /data/foo-$INDEX"])),
        ];
        for container in table {
            assert!(!fails(&json!({}), &container, None), "{container}");
        }
    }

    #[test]
    fn probes_judge_a_run() {
        let seconds = Duration::from_secs;
        let test = |words: &[&str], more: Value| {
            let mut container = json!({"image": "x/agnhost:2", "args": words});
            for (key, value) in more.as_object().into_iter().flatten() {
                container[key] = value.clone();
            }
            container
        };
        let http = |port: u16, delay: u32, failures: u32| json!({"httpGet": {"path": "/healthz", "port": port}, "initialDelaySeconds": delay, "failureThreshold": failures});
        let shell = |script: &str, probes: Value| {
            let mut container = probes;
            container["image"] = "busybox".into();
            container["command"] = json!(["sh", "-c", script]);
            container
        };
        let file =
            json!({"exec": {"command": ["cat", "/tmp/health"]}, "initialDelaySeconds": 15, "failureThreshold": 1});
        let ill = "echo ok >/tmp/health; sleep 10; rm -rf /tmp/health; sleep 600";
        let table = [
            (json!({"image": "nginx", "livenessProbe": http(80, 0, 1)}), Some(0), None),
            (test(&["liveness"], json!({"livenessProbe": http(8080, 15, 1)})), Some(0), Some(15)),
            (test(&["liveness"], json!({"livenessProbe": http(8080, 0, 3)})), Some(0), Some(30)),
            (test(&["netexec"], json!({"livenessProbe": http(8080, 15, 1)})), Some(0), None),
            (test(&["test-webserver"], json!({"readinessProbe": http(81, 5, 1)})), None, None),
            (test(&["test-webserver"], json!({"readinessProbe": http(80, 5, 1)})), Some(5), None),
            (shell(ill, json!({"livenessProbe": file})), Some(0), Some(15)),
            (shell("echo ok >/tmp/health; sleep 600", json!({"livenessProbe": file})), Some(0), None),
            (shell("sleep 12; touch /tmp/health; sleep 99", json!({"readinessProbe": file})), Some(15), None),
            (shell("sleep 16; touch /tmp/health; sleep 99", json!({"readinessProbe": file})), Some(25), None),
            (shell("sleep 16; touch /tmp/health; sleep 99", json!({"startupProbe": file})), None, Some(15)),
        ];
        for (container, ready, dies) in table {
            let verdict = judge(&json!({}), &container);
            assert_eq!(verdict.ready, ready.map(seconds), "{container}");
            assert_eq!(verdict.dies.map(|(at, _)| at), dies.map(seconds), "{container}");
        }
    }
}
