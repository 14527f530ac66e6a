//! Who did what: a line for every write and every refusal.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atoll_apiserver::Identity;
use atoll_meta::{Status, time};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::broadcast;

/// The fields of a request that say what it was about; nothing else of it is written down.
const ABOUT: [&str; 8] = ["instance", "cluster", "namespace", "name", "group", "version", "resource", "workspace"];

/// The file is put aside when it has grown to this.
const LARGEST: u64 = 64 << 20;

/// So many lines are remembered to be shown.
const REMEMBERED: usize = 2000;

/// No more of the file than this is read when it is opened.
const READ_BACK: u64 = 1 << 20;

/// A line of JSON, shared by all who read it.
pub type Line = Arc<str>;

/// Takes lines and hands them on: to the log, to a file, and to whoever listens.
pub struct Audit {
    lines: broadcast::Sender<Line>,
    recent: Mutex<VecDeque<Line>>,
    file: Mutex<Option<Record>>,
}

/// The file lines are added to.
struct Record {
    path: PathBuf,
    file: File,
    size: u64,
}

impl Record {
    fn open(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, size })
    }

    /// Adds a line with one write, so that lines of several threads stay whole.
    fn add(&mut self, line: &str) -> io::Result<()> {
        if self.size >= LARGEST {
            std::fs::rename(&self.path, self.path.with_extension("1.jsonl"))?;
            *self = Self::open(&self.path)?;
        }
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.size += line.len() as u64 + 1;
        Ok(())
    }
}

impl Default for Audit {
    fn default() -> Self {
        Self { lines: broadcast::channel(1024).0, recent: Mutex::default(), file: Mutex::default() }
    }
}

impl Audit {
    /// Lines as they are written.
    pub fn subscribe(&self) -> broadcast::Receiver<Line> {
        self.lines.subscribe()
    }

    /// The latest lines, and those that are written from now on.
    pub fn lately(&self) -> (VecDeque<Line>, broadcast::Receiver<Line>) {
        let recent = self.recent.lock();
        (recent.clone(), self.lines.subscribe())
    }

    /// Keeps lines in a file from now on; a full one is put aside, replacing the one before.
    pub fn keep(&self, path: &Path) -> io::Result<()> {
        let record = Record::open(path)?;
        *self.recent.lock() = read_back(path)?;
        *self.file.lock() = Some(record);
        Ok(())
    }

    /// Records a call, if it wrote or was refused.
    pub fn record(&self, identity: &Identity, method: &str, input: &Value, failure: Option<&Status>, now: Timestamp) {
        let refused = failure.is_some_and(|status| matches!(status.code, 401 | 403));
        if is_read(method) && !refused {
            return;
        }
        let mut line = json!({
            "time": time::format_micro(now), "user": identity.user, "groups": identity.groups, "method": method,
            "outcome": match failure { None => "done", Some(_) if refused => "refused", Some(_) => "failed" },
        });
        for key in ABOUT {
            if let Some(text) = input[key].as_str().filter(|text| !text.is_empty()) {
                line[key] = text.into();
            }
        }
        if let Some(status) = failure {
            line["code"] = status.code.into();
        }
        let line: Line = line.to_string().into();
        tracing::info!(target: "atoll::audit", "{line}");
        if let Some(record) = &mut *self.file.lock()
            && let Err(error) = record.add(&line)
        {
            tracing::error!(%error, "an audit line is not in the file: {line}");
        }
        let mut recent = self.recent.lock();
        if recent.len() == REMEMBERED {
            recent.pop_front();
        }
        recent.push_back(line.clone());
        // Sent before anybody can look again, so that nobody sees a line twice. Nobody may be listening.
        let _ = self.lines.send(line);
    }
}

/// The last lines of a file; the first one may be cut off and is left out then.
fn read_back(path: &Path) -> io::Result<VecDeque<Line>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(READ_BACK)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = |line: &&str| serde_json::from_str::<IgnoredAny>(line).is_ok();
    let mut lines: VecDeque<Line> = text.lines().rev().filter(whole).take(REMEMBERED).map(Into::into).collect();
    lines.make_contiguous().reverse();
    Ok(lines)
}

fn is_read(method: &str) -> bool {
    if let Some((verb, _)) = method.split_once(' ') {
        return matches!(verb, "GET" | "HEAD" | "OPTIONS");
    }
    let name = method.rsplit('.').next().unwrap_or(method);
    ["List", "Get", "Search", "Facets", "Watch", "Query", "Detect"].iter().any(|verb| name.starts_with(verb))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(line: &str) -> Value {
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn the_latest_lines_are_known_after_a_restart() {
        let path = std::env::temp_dir().join(format!("audit-{}.jsonl", uuid::Uuid::new_v4()));
        let who = Identity { user: "ann".into(), ..Identity::default() };
        let first = Audit::default();
        first.keep(&path).unwrap();
        for name in ["a", "b"] {
            first.record(&who, "Core.CreateSecret", &json!({"name": name}), None, Timestamp::UNIX_EPOCH);
        }
        let second = Audit::default();
        second.keep(&path).unwrap();
        let (past, mut coming) = second.lately();
        assert_eq!(past.iter().map(|line| read(line)["name"].clone()).collect::<Vec<_>>(), ["a", "b"]);
        second.record(&who, "Core.CreateSecret", &json!({"name": "c"}), None, Timestamp::UNIX_EPOCH);
        assert_eq!(read(&coming.try_recv().unwrap())["name"], "c");
        assert_eq!(second.lately().0.len(), 3);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn writes_and_refusals_are_recorded_without_their_contents() {
        let audit = Audit::default();
        let mut lines = audit.subscribe();
        let who = Identity { user: "ann".into(), ..Identity::default() };
        let input = json!({"instance": "fleet", "name": "s", "data": "password: canary"});
        audit.record(&who, "Core.GetSecret", &input, None, Timestamp::UNIX_EPOCH);
        assert!(lines.try_recv().is_err());
        audit.record(&who, "Core.CreateSecret", &input, None, Timestamp::UNIX_EPOCH);
        let line = read(&lines.try_recv().unwrap());
        assert_eq!((&line["user"], &line["outcome"], &line["name"]), (&json!("ann"), &json!("done"), &json!("s")));
        assert!(!line.to_string().contains("canary"));
        audit.record(&who, "Core.GetSecret", &input, Some(&Status::unauthorized()), Timestamp::UNIX_EPOCH);
        assert_eq!(read(&lines.try_recv().unwrap())["outcome"], "refused");
    }
}
