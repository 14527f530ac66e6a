//! A tiny shell for simulated containers: enough to believe in, and to know beforehand what a
//! command line does. Time is virtual: `sleep` only moves it, so that a run can be played back.

mod commands;
mod expand;
mod files;
mod network;
mod parse;
mod tar;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

pub use files::Files;
pub use network::{Answer, Network, Refusal};
use parse::{Node, Redirect};

/// Where output goes.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// A piece of output at a moment of a run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Piece {
    /// When, since the start.
    pub at: Duration,
    /// Where.
    pub stream: Stream,
    /// What.
    pub bytes: Vec<u8>,
}

/// How a run goes on after its pieces.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ending {
    /// It ends then, with this code.
    Exit(Duration, i32),
    /// It runs on without a word.
    Forever,
    /// It repeats these pieces, one round every so often.
    Round(Vec<Piece>, Duration),
    /// The command does not exist: its name.
    Unknown(String),
}

/// Why execution stops early.
#[derive(Debug)]
enum Stop {
    Exit(i32),
    Forever,
    Round(usize, Duration),
    Unknown(String),
    Break,
    Continue,
}

type Flow = Result<i32, Stop>;

/// Steps a run may take; more is a loop nobody waits for.
const MOST_STEPS: usize = 20_000;
/// Rounds of an endless loop that are run before it counts as one.
const MOST_ROUNDS: usize = 3;

/// A shell in a container.
pub struct Shell<'a> {
    /// Variables.
    pub variables: BTreeMap<String, String>,
    /// Files of the container.
    pub files: &'a mut Files,
    /// The directory it is in.
    pub directory: String,
    /// The moment it started.
    pub start: Timestamp,
    input: Vec<u8>,
    elapsed: Duration,
    pieces: Vec<Piece>,
    captures: Vec<Vec<u8>>,
    status: i32,
    steps: usize,
    exported: Vec<String>,
    /// Whether a command that is not there ends the run instead of failing.
    strict: bool,
    /// Nothing it waits for beyond this moment comes about.
    limit: Option<Duration>,
    /// Moments up to which it waited.
    waits: Vec<Duration>,
    network: Option<&'a dyn Network>,
}

impl<'a> Shell<'a> {
    /// A shell with these variables and files.
    pub fn new(variables: &[(String, String)], files: &'a mut Files, start: Timestamp) -> Self {
        Self {
            variables: variables.iter().cloned().collect(),
            exported: variables.iter().map(|(name, _)| name.clone()).collect(),
            files,
            directory: "/".into(),
            start,
            input: Vec::new(),
            elapsed: Duration::ZERO,
            pieces: Vec::new(),
            captures: Vec::new(),
            status: 0,
            steps: 0,
            strict: false,
            limit: None,
            waits: Vec::new(),
            network: None,
        }
    }

    /// The same shell with others it can ask.
    pub fn with(self, network: &'a dyn Network) -> Self {
        Self { network: Some(network), ..self }
    }

    /// Runs a command with its arguments, as a container or exec would.
    pub fn run(&mut self, words: &[String], input: Vec<u8>) -> (Vec<Piece>, Ending) {
        self.input = input;
        let result = self.command(words);
        self.finish(result)
    }

    /// Runs a line of an interactive session; what it set stays.
    pub fn run_line(&mut self, line: &str) -> (Vec<Piece>, Ending) {
        self.elapsed = Duration::ZERO;
        self.steps = 0;
        let result = self.script(line);
        self.finish(result)
    }

    fn finish(&mut self, result: Flow) -> (Vec<Piece>, Ending) {
        let mut pieces = std::mem::take(&mut self.pieces);
        let ending = match result {
            Ok(code) | Err(Stop::Exit(code)) => Ending::Exit(self.elapsed, code),
            Err(Stop::Break | Stop::Continue) => Ending::Exit(self.elapsed, 0),
            Err(Stop::Forever) => Ending::Forever,
            Err(Stop::Unknown(name)) => Ending::Unknown(name),
            Err(Stop::Round(from, length)) => {
                let round = pieces.split_off(from.min(pieces.len()));
                let start = round.first().map_or(self.elapsed, |first| first.at.min(self.elapsed));
                let base = self.elapsed.saturating_sub(length).min(start);
                let shifted =
                    round.into_iter().map(|piece| Piece { at: piece.at.saturating_sub(base), ..piece }).collect();
                // The first round is part of the run itself, so that nothing is lost.
                Ending::Round(shifted, length)
            }
        };
        (pieces, ending)
    }

    /// Runs a script.
    fn script(&mut self, text: &str) -> Flow {
        match parse::parse(text) {
            Ok(node) => self.exec(&node),
            Err(why) => {
                self.error(&format!("sh: syntax error: {why}"));
                Ok(2)
            }
        }
    }

    fn exec(&mut self, node: &Node) -> Flow {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(Stop::Forever);
        }
        let code = match node {
            Node::Simple(words, redirects) => self.simple(words, redirects)?,
            Node::Pipe(parts) => self.pipe(parts)?,
            Node::Not(inner) => i32::from(self.exec(inner)? == 0),
            Node::And(left, right) => match self.exec(left)? {
                0 => self.exec(right)?,
                code => code,
            },
            Node::Or(left, right) => match self.exec(left)? {
                0 => 0,
                _ => self.exec(right)?,
            },
            Node::Sequence(list) => {
                let mut code = 0;
                for one in list {
                    code = self.exec(one)?;
                }
                code
            }
            Node::Background(inner) => self.aside(inner)?,
            Node::If(condition, then, otherwise) => match (self.exec(condition)?, otherwise) {
                (0, _) => self.exec(then)?,
                (_, Some(otherwise)) => self.exec(otherwise)?,
                _ => 0,
            },
            Node::While(condition, until, body) => self.repeat(condition, *until, body)?,
            Node::For(name, words, body) => self.each(name, words, body)?,
        };
        self.status = code;
        Ok(code)
    }

    /// A background command takes no time of the foreground.
    fn aside(&mut self, inner: &Node) -> Flow {
        let before = self.elapsed;
        let result = self.exec(inner);
        self.elapsed = before;
        match result {
            Ok(_) | Err(Stop::Forever | Stop::Round(..) | Stop::Exit(_)) => Ok(0),
            Err(other) => Err(other),
        }
    }

    fn pipe(&mut self, parts: &[Node]) -> Flow {
        let mut code = 0;
        let mut left = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            if at + 1 == parts.len() {
                code = self.exec(part)?;
            } else {
                self.captures.push(Vec::new());
                let result = self.exec(part);
                let output = self.captures.pop().unwrap_or_default();
                let input = std::mem::replace(&mut self.input, output);
                if at == 0 {
                    // What the first command did not read is there for those after the pipe.
                    left = input;
                }
                result?;
            }
        }
        self.input = left;
        Ok(code)
    }

    fn repeat(&mut self, condition: &Node, until: bool, body: &Node) -> Flow {
        let mut code = 0;
        let endless = !until && condition.is_constant_true();
        let mut rounds = 0;
        loop {
            let (from, begin) = (self.pieces.len(), self.elapsed);
            if (self.exec(condition)? == 0) == until {
                return Ok(code);
            }
            match self.exec(body) {
                Ok(result) => code = result,
                Err(Stop::Break) => return Ok(code),
                Err(Stop::Continue) => {}
                Err(other) => return Err(other),
            }
            rounds += 1;
            if endless && rounds >= MOST_ROUNDS {
                let length = (self.elapsed - begin).max(Duration::from_secs(1));
                return Err(Stop::Round(from, length));
            }
        }
    }

    fn each(&mut self, name: &str, words: &[String], body: &Node) -> Flow {
        let mut code = 0;
        let mut values = Vec::new();
        for word in words {
            values.extend(self.expand(word)?);
        }
        for value in values {
            self.variables.insert(name.to_owned(), value);
            match self.exec(body) {
                Ok(result) => code = result,
                Err(Stop::Break) => break,
                Err(Stop::Continue) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(code)
    }

    fn simple(&mut self, words: &[String], redirects: &[Redirect]) -> Flow {
        let mut fields = Vec::new();
        let mut assigned = Vec::new();
        for word in words {
            match parse::assignment(word) {
                Some((name, value)) if fields.is_empty() => {
                    let value = self.expand(value)?.join(" ");
                    assigned.push((name.to_owned(), value));
                }
                _ => fields.extend(self.expand(word)?),
            }
        }
        if fields.is_empty() {
            self.variables.extend(assigned);
            return Ok(0);
        }
        let saved: Vec<(String, Option<String>)> =
            assigned.iter().map(|(name, _)| (name.clone(), self.variables.get(name).cloned())).collect();
        self.variables.extend(assigned);
        let result = self.redirected(&fields, redirects);
        for (name, value) in saved {
            match value {
                Some(value) => drop(self.variables.insert(name, value)),
                None => drop(self.variables.remove(&name)),
            }
        }
        result
    }

    fn redirected(&mut self, fields: &[String], redirects: &[Redirect]) -> Flow {
        let mut targets = Vec::new();
        for redirect in redirects {
            let target = self.expand(&redirect.target)?.join(" ");
            if redirect.input {
                match self.files.read(&self.absolute(&target)) {
                    Some(bytes) => self.input = bytes.to_vec(),
                    None => {
                        self.error(&format!("sh: can't open {target}: no such file"));
                        return Ok(1);
                    }
                }
            } else if redirect.descriptor == 1 && !target.starts_with('&') {
                if self.files.is_protected(&self.absolute(&target)) {
                    self.error(&format!("/bin/sh: can't create {target}: Read-only file system"));
                    return Ok(1);
                }
                targets.push((target, redirect.append));
            }
        }
        let to_errors = redirects.iter().any(|one| one.descriptor == 1 && !one.input && one.target == "&2");
        let quiet = redirects.iter().any(|one| one.descriptor == 2 && !one.target.starts_with('&'));
        let errors_before = self.pieces.len();
        if !targets.is_empty() {
            self.captures.push(Vec::new());
        }
        if to_errors {
            self.captures.push(Vec::new());
        }
        let result = self.command(fields);
        if to_errors {
            let bytes = self.captures.pop().unwrap_or_default();
            self.pieces.push(Piece { at: self.elapsed, stream: Stream::Err, bytes });
        }
        if !targets.is_empty() {
            let bytes = self.captures.pop().unwrap_or_default();
            for (target, append) in targets {
                let path = self.absolute(&target);
                self.files.write(&path, &bytes, append);
            }
        }
        if quiet {
            let kept: Vec<Piece> =
                self.pieces.drain(errors_before..).filter(|piece| piece.stream == Stream::Out).collect();
            self.pieces.extend(kept);
        }
        result
    }

    /// A path from the root.
    fn absolute(&self, path: &str) -> String {
        files::normalize(&if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.directory) })
    }

    /// Writes to standard output, or into the pipe or file it is led to.
    fn out(&mut self, bytes: &[u8]) {
        match self.captures.last_mut() {
            Some(capture) => capture.extend_from_slice(bytes),
            None if bytes.is_empty() => {}
            None => self.pieces.push(Piece { at: self.elapsed, stream: Stream::Out, bytes: bytes.to_vec() }),
        }
    }

    fn line(&mut self, text: &str) {
        self.out(format!("{text}\n").as_bytes());
    }

    fn error(&mut self, text: &str) {
        self.pieces.push(Piece { at: self.elapsed, stream: Stream::Err, bytes: format!("{text}\n").into_bytes() });
    }

    fn now(&self) -> Timestamp {
        self.start.checked_add(self.elapsed).unwrap_or(self.start)
    }
}

/// What a command line would do.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// When and how it ends.
    pub end: Option<(Duration, i32)>,
    /// What it says, and when.
    pub lines: Vec<(Duration, String)>,
    /// What it says again and again afterwards.
    pub round: Option<(Vec<(Duration, String)>, Duration)>,
}

/// Looks ahead at what a command line does; `None` if that cannot be known.
pub fn foresee(words: &[String], variables: &[(String, String)], start: Timestamp, files: &mut Files) -> Option<Run> {
    let mut shell = Shell::new(variables, files, start);
    shell.strict = true;
    let (pieces, ending) = shell.run(words, Vec::new());
    let mut run = Run { lines: lines(&pieces), ..Run::default() };
    match ending {
        Ending::Exit(at, code) => run.end = Some((at, code)),
        Ending::Forever => {}
        Ending::Round(pieces, length) => run.round = Some((lines(&pieces), length)),
        Ending::Unknown(_) => return None,
    }
    Some(run)
}

/// Moments up to which a command line waits; nothing changes in between. Empty if that cannot be known.
pub fn waits(words: &[String], variables: &[(String, String)], start: Timestamp) -> Vec<Duration> {
    let mut files = Files::default();
    let mut shell = Shell::new(variables, &mut files, start);
    shell.strict = true;
    match shell.run(words, Vec::new()).1 {
        Ending::Unknown(_) => Vec::new(),
        _ => shell.waits,
    }
}

/// The files a command line leaves until a moment of its run; `None` if that cannot be known.
pub fn files_at(words: &[String], variables: &[(String, String)], start: Timestamp, moment: Duration) -> Option<Files> {
    let mut files = Files::default();
    let mut shell = Shell::new(variables, &mut files, start);
    (shell.strict, shell.limit) = (true, Some(moment));
    match shell.run(words, Vec::new()).1 {
        Ending::Unknown(_) => None,
        _ => Some(files),
    }
}

fn lines(pieces: &[Piece]) -> Vec<(Duration, String)> {
    let mut all = Vec::new();
    for piece in pieces {
        let text = String::from_utf8_lossy(&piece.bytes);
        all.extend(text.lines().map(|line| (piece.at, line.to_owned())));
    }
    all
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
