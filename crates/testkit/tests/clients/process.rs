//! A program that runs while the test goes on, and whose lines are read as they come.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long to wait for something a program should say.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running program; it ends when dropped.
pub struct Process {
    child: Child,
    lines: Arc<(Mutex<VecDeque<String>>, Condvar)>,
    seen: Vec<String>,
}

impl Process {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null()).spawn().unwrap();
        let lines = Arc::new((Mutex::new(VecDeque::new()), Condvar::new()));
        let (output, shared) = (child.stdout.take().unwrap(), lines.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                shared.0.lock().unwrap().push_back(line);
                shared.1.notify_all();
            }
        });
        Self { child, lines, seen: Vec::new() }
    }

    /// The next line, or `None` when none comes for a while.
    pub fn line(&mut self, patience: Duration) -> Option<String> {
        let until = Instant::now() + patience;
        let mut lines = self.lines.0.lock().unwrap();
        loop {
            if let Some(line) = lines.pop_front() {
                drop(lines);
                self.seen.push(line.clone());
                return Some(line);
            }
            let left = until.checked_duration_since(Instant::now())?;
            lines = self.lines.1.wait_timeout(lines, left).unwrap().0;
        }
    }

    /// Reads on until a line fits, and returns it.
    #[track_caller]
    pub fn until(&mut self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            match self.line(PATIENCE.saturating_sub(since.elapsed())) {
                Some(line) if fits(&line) => return line,
                Some(_) => {}
                None => break,
            }
        }
        panic!("{what} did not come; what came:\n{}", self.seen.join("\n"));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
