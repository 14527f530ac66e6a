//! Who did what: a line for every write and every refusal.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
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

/// A clock set back by more than this, in microseconds, is believed.
const SAME: i64 = 1_000_000;

/// A line of JSON, shared by all who read it.
pub type Line = Arc<str>;

/// Takes lines and hands them on: to the log, to a file, and to whoever listens.
pub struct Audit {
    lines: broadcast::Sender<Line>,
    recent: Mutex<VecDeque<Line>>,
    file: Mutex<Option<Record>>,
    /// When the last line was written, in microseconds. Held while one is: lines are in the order of their times.
    last: Mutex<i64>,
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
            std::fs::rename(&self.path, aside(&self.path))?;
            *self = Self::open(&self.path)?;
        }
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.size += line.len() as u64 + 1;
        Ok(())
    }
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            lines: broadcast::channel(1024).0,
            recent: Mutex::default(),
            file: Mutex::default(),
            last: Mutex::new(i64::MIN),
        }
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
        let recent = read_back(&mut File::open(path)?, record.size, REMEMBERED)?;
        if let Some(at) = recent.back().and_then(|line| time::parse(&time_of(line.as_bytes()))) {
            *self.last.lock() = at.as_microsecond();
        }
        *self.recent.lock() = recent;
        *self.file.lock() = Some(record);
        Ok(())
    }

    /// The last `most` lines from before a time, oldest first; none where no file is kept. Reads the file.
    pub fn before(&self, time: &str, most: usize) -> io::Result<VecDeque<Line>> {
        let Some(path) = self.file.lock().as_ref().map(|record| record.path.clone()) else {
            return Ok(VecDeque::new());
        };
        // All that was put aside is older than what is in the file.
        for path in [path.clone(), aside(&path)] {
            let mut file = match File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            let end = place_of(&mut file, time)?;
            let lines = read_back(&mut file, end, most)?;
            if !lines.is_empty() {
                return Ok(lines);
            }
        }
        Ok(VecDeque::new())
    }

    /// Records a call, if it wrote or was refused.
    pub fn record(&self, identity: &Identity, method: &str, input: &Value, failure: Option<&Status>, now: Timestamp) {
        let refused = failure.is_some_and(|status| matches!(status.code, 401 | 403));
        if is_read(method) && !refused {
            return;
        }
        let mut line = json!({
            "time": "", "user": identity.user, "groups": identity.groups, "method": method,
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
        let mut last = self.last.lock();
        *last = after(*last, now.as_microsecond());
        line["time"] = time::format_micro(Timestamp::from_microsecond(*last).unwrap_or(now)).into();
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

/// The time of a line: later than that of the one before, or pages cut by time would leave some out.
fn after(last: i64, now: i64) -> i64 {
    let next = last.saturating_add(1);
    if (now..now.saturating_add(SAME)).contains(&next) { next } else { now }
}

/// Where a full file is put.
fn aside(path: &Path) -> PathBuf {
    path.with_extension("1.jsonl")
}

/// The last lines before a place in a file; the first one may be cut off and is left out then.
fn read_back(file: &mut File, end: u64, most: usize) -> io::Result<VecDeque<Line>> {
    let begin = end.saturating_sub(READ_BACK);
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(end - begin).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = |line: &&str| serde_json::from_str::<IgnoredAny>(line).is_ok();
    let mut lines: VecDeque<Line> = text.lines().rev().filter(whole).take(most).map(Into::into).collect();
    lines.make_contiguous().reverse();
    Ok(lines)
}

/// Where the first line begins that is not from before a time: lines are in the order of time, so halves are left out.
fn place_of(file: &mut File, time: &str) -> io::Result<u64> {
    let size = file.metadata()?.len();
    let (mut low, mut high) = (0, size);
    while low < high {
        let middle = low + (high - low) / 2;
        match line_from(file, middle)? {
            Some((_, written)) if written.as_str() < time => low = middle + 1,
            _ => high = middle,
        }
    }
    Ok(line_from(file, low)?.map_or(size, |(begin, _)| begin))
}

/// Where the first line begins that begins at a place or after it, and when it was written.
fn line_from(file: &mut File, place: u64) -> io::Result<Option<(u64, String)>> {
    let from = place.saturating_sub(1);
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let begin = if place == 0 { 0 } else { from + reader.read_until(b'\n', &mut line)? as u64 };
    line.clear();
    if reader.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some((begin, time_of(&line))))
}

fn time_of(line: &[u8]) -> String {
    let read: Value = serde_json::from_slice(line).unwrap_or_default();
    read["time"].as_str().unwrap_or_default().to_owned()
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
    fn older_lines_are_read_page_by_page_and_from_the_file_put_aside() {
        let path = std::env::temp_dir().join(format!("audit-{}.jsonl", uuid::Uuid::new_v4()));
        let line = |number: usize| format!("{{\"time\":\"2026-01-01T00:00:{:02}Z\",\"name\":\"{number}\"}}\n", number);
        std::fs::write(aside(&path), (0..5).map(line).collect::<String>()).unwrap();
        std::fs::write(&path, (5..12).map(line).collect::<String>()).unwrap();
        let audit = Audit::default();
        assert!(audit.before("2026-01-01T00:00:11Z", 4).unwrap().is_empty(), "no file is kept");
        audit.keep(&path).unwrap();
        for (time, expected) in [
            ("2027", vec!["8", "9", "10", "11"]),
            ("2026-01-01T00:00:11Z", vec!["7", "8", "9", "10"]),
            ("2026-01-01T00:00:07Z", vec!["5", "6"]),
            ("2026-01-01T00:00:05Z", vec!["1", "2", "3", "4"]),
            ("2026-01-01T00:00:01Z", vec!["0"]),
            ("2026-01-01T00:00:00Z", vec![]),
        ] {
            let names: Vec<Value> =
                audit.before(time, 4).unwrap().iter().map(|line| read(line)["name"].clone()).collect();
            assert_eq!(names, expected, "before {time}");
        }
        std::fs::remove_file(aside(&path)).unwrap();
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn lines_of_one_moment_are_all_found_page_by_page() {
        let path = std::env::temp_dir().join(format!("audit-{}.jsonl", uuid::Uuid::new_v4()));
        let who = Identity { user: "ann".into(), ..Identity::default() };
        for part in [0..3, 3..7] {
            // The second goes on in the same moment after a restart.
            let audit = Audit::default();
            audit.keep(&path).unwrap();
            for name in part {
                let input = json!({"name": name.to_string()});
                audit.record(&who, "Core.CreateSecret", &input, None, Timestamp::UNIX_EPOCH);
            }
        }
        let audit = Audit::default();
        audit.keep(&path).unwrap();
        let (mut names, mut time) = (Vec::new(), "2027".to_owned());
        loop {
            let page = audit.before(&time, 2).unwrap();
            let Some(first) = page.front() else { break };
            names.extend(page.iter().rev().map(|line| read(line)["name"].as_str().unwrap().to_owned()));
            time = time_of(first.as_bytes());
        }
        assert_eq!(names, ["6", "5", "4", "3", "2", "1", "0"]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn times_grow_and_a_clock_set_back_is_believed() {
        for (last, now, expected) in
            [(i64::MIN, 5, 5), (5, 7, 7), (5, 5, 6), (9, 5, 10), (5 + SAME, 5, 5), (i64::MAX, 5, 5)]
        {
            assert_eq!(after(last, now), expected, "{last} {now}");
        }
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
