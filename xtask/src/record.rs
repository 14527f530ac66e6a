//! A terminal recording of the demonstration: runs what a newcomer types and draws what really came back.
//!
//! The picture needs no script: a line is hidden until the moment at which it was printed.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

/// What is typed while the hub runs.
const TYPED: [&str; 5] = [
    "kubectl --context fleet get clusters",
    "kubectl --context fleet create deployment web --image=nginx --replicas=6",
    "kubectl --context fleet rollout status deployment/web",
    "atoll get pods",
    "atoll sim fail member1 && atoll sim list",
];

/// Longest pause that is shown, and how long a command is looked at before the next.
const PAUSE: Duration = Duration::from_millis(1500);

/// A line of the terminal and when it came.
struct Line {
    at: Duration,
    text: String,
    typed: bool,
}

/// The terminal: its clock leaves out what nobody wants to wait for.
struct Terminal {
    lines: Vec<Line>,
    clock: Duration,
    hidden: String,
}

impl Terminal {
    fn show(&mut self, text: &str, typed: bool) {
        // Where it ran says nothing to others.
        let text = text.replace(&self.hidden, "~/demo");
        self.lines.push(Line { at: self.clock, text, typed });
    }

    fn pass(&mut self, time: Duration) {
        self.clock += time.min(PAUSE);
    }
}

/// Runs the demonstration with a built program and writes the picture.
pub fn run(program: &Path, kubectl: &Path, picture: &Path) -> anyhow::Result<()> {
    let directory = std::env::temp_dir().join(format!("atoll-record-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let path = [parent(program)?, parent(kubectl)?, PathBuf::from(std::env::var("PATH").unwrap_or_default())];
    let path = path.map(|part| part.display().to_string()).join(":");
    let mut terminal = Terminal { lines: Vec::new(), clock: Duration::ZERO, hidden: directory.display().to_string() };
    let result = demonstrate(&mut terminal, &directory, &path);
    std::fs::remove_dir_all(&directory)?;
    result?;
    std::fs::write(picture, draw(&terminal.lines))?;
    println!("{} lines in {}", terminal.lines.len(), picture.display());
    Ok(())
}

fn parent(file: &Path) -> anyhow::Result<PathBuf> {
    let file = file.canonicalize().with_context(|| format!("{} is not there", file.display()))?;
    Ok(file.parent().context("a program is in a directory")?.to_owned())
}

fn demonstrate(terminal: &mut Terminal, directory: &Path, path: &str) -> anyhow::Result<()> {
    let shell = |line: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(directory).env("PATH", path).env("NO_COLOR", "1");
        command.env("KUBECONFIG", directory.join("atoll-data/kubeconfig")).stdin(Stdio::null());
        command
    };
    terminal.show("atoll up --demo", true);
    terminal.pass(PAUSE);
    let started = Instant::now();
    let mut hub = shell("exec atoll up --demo").stderr(Stdio::piped()).spawn().context("starting the hub")?;
    let result = follow(terminal, &mut hub, started).and_then(|()| {
        for line in TYPED {
            terminal.pass(PAUSE);
            terminal.show("", false);
            terminal.show(line, true);
            terminal.pass(PAUSE / 2);
            answer(terminal, shell(&format!("{{ {line}; }} 2>&1")))?;
        }
        Ok(())
    });
    let down = shell("atoll down").stdout(Stdio::null()).status();
    if !down.is_ok_and(|status| status.success()) {
        // The hub did not come so far.
        let _ = hub.kill();
    }
    hub.wait()?;
    result
}

/// Shows what the hub says until it has said everything about its start.
fn follow(terminal: &mut Terminal, hub: &mut Child, started: Instant) -> anyhow::Result<()> {
    let output = BufReader::new(hub.stderr.take().context("the hub has no output")?);
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    let mut ready = false;
    let mut last = started;
    loop {
        match receive.recv_timeout(if ready { PAUSE } else { Duration::from_secs(60) }) {
            Ok(line) => {
                terminal.pass(last.elapsed());
                last = Instant::now();
                ready |= line.contains("is ready at");
                terminal.show(&line, false);
            }
            Err(_) if ready => return Ok(()),
            Err(_) => bail!("the hub is not ready"),
        }
    }
}

/// Shows what a command says.
fn answer(terminal: &mut Terminal, mut command: Command) -> anyhow::Result<()> {
    let mut last = Instant::now();
    let mut process = command.stdout(Stdio::piped()).spawn()?;
    let output = BufReader::new(process.stdout.take().context("a command has no output")?);
    for line in output.lines() {
        terminal.pass(last.elapsed());
        last = Instant::now();
        terminal.show(&line?, false);
    }
    if !process.wait()?.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}

const COLUMNS: usize = 104;
const ROW: usize = 19;
const LETTER: f64 = 8.2;

/// Draws lines as a terminal shows them.
fn draw(lines: &[Line]) -> String {
    let (width, height) = ((COLUMNS as f64 * LETTER) as usize + 32, lines.len() * ROW + 60);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <style>@keyframes wait{{from,to{{opacity:0}}}}text{{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d7dce2;white-space:pre}}\
         .p{{fill:#7bd88f}}.t{{fill:#fff;font-weight:600}}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#12161c\"/>\n\
         <circle cx=\"20\" cy=\"18\" r=\"6\" fill=\"#ff5f57\"/><circle cx=\"40\" cy=\"18\" r=\"6\" fill=\"#febc2e\"/><circle cx=\"60\" cy=\"18\" r=\"6\" fill=\"#28c840\"/>\n"
    );
    for (at, line) in lines.iter().enumerate() {
        if line.text.is_empty() {
            continue;
        }
        let y = 52 + at * ROW;
        let wait = line.at.as_secs_f64();
        let shown: String = line.text.chars().take(COLUMNS).collect();
        let text = shown.replace('&', "&amp;").replace('<', "&lt;");
        let (prompt, class) = if line.typed { ("<tspan class=\"p\">$ </tspan>", " class=\"t\"") } else { ("", "") };
        // Writing into a string cannot fail.
        let _ = writeln!(
            out,
            "<text x=\"16\" y=\"{y}\"{class} xml:space=\"preserve\" style=\"animation:wait {wait:.2}s step-end\">{prompt}{text}</text>"
        );
    }
    out.push_str("</svg>\n");
    out
}
