//! Runs the test programs of the workspace, several at a time and each within a time limit.
//!
//! `cargo test` runs one program after another and waits for ever for one that hangs. Most of ours wait for other
//! processes, so a few at a time use the machine better. A test that fails is tried once more when nothing else runs:
//! if it passes then, it is named as unsteady and does not fail the run.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// Longest time of one test program. The longest known takes five minutes.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// How many programs run at a time.
const AT_A_TIME: usize = 2;

/// The longest ones, to be started first.
const FIRST: [&str; 5] = ["conformance", "conformance_sim", "karmadactl", "stories", "differential"];

/// A program with tests.
pub struct Program {
    name: String,
    executable: PathBuf,
    directory: PathBuf,
}

/// What came of one.
struct Outcome {
    failed: Vec<String>,
    passed: usize,
    ignored: usize,
    broken: Option<String>,
}

/// Builds all test programs of the workspace, the longest running first.
pub fn build() -> anyhow::Result<Vec<Program>> {
    println!("── tests: cargo test --workspace --no-run");
    let started = Instant::now();
    let mut cargo = Command::new("cargo")
        .args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"])
        // What would make the next build faster takes as much disk as the programs.
        .env("CARGO_INCREMENTAL", "0")
        .stdout(Stdio::piped())
        .spawn()
        .context("starting cargo")?;
    let mut messages = String::new();
    cargo.stdout.take().context("cargo has no output")?.read_to_string(&mut messages)?;
    if !cargo.wait()?.success() {
        bail!("tests do not compile");
    }
    println!("── tests compiled: {} s", started.elapsed().as_secs());
    let mut programs: Vec<Program> = messages.lines().filter_map(program).collect();
    programs.sort_by_key(|program| FIRST.iter().position(|name| program.name.ends_with(name)).unwrap_or(FIRST.len()));
    Ok(programs)
}

/// The test program that a message of cargo tells of.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let directory = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let package = directory.file_name()?.to_str()?;
    Some(Program {
        name: format!("{package}/{}", message["target"]["name"].as_str()?),
        executable: message["executable"].as_str()?.into(),
        directory,
    })
}

/// Runs all of them.
pub fn run(programs: Vec<Program>) -> anyhow::Result<()> {
    let started = Instant::now();
    let count = programs.len();
    println!("── {count} test programs, {AT_A_TIME} at a time");
    let outcomes = at_a_time(programs)?;
    let (mut unsteady, mut failed) = (Vec::new(), Vec::new());
    let (mut passed, mut ignored) = (0, 0);
    for (program, outcome) in outcomes {
        passed += outcome.passed;
        ignored += outcome.ignored;
        let again = match (&outcome.broken, outcome.failed.as_slice()) {
            (None, []) => continue,
            // A program that ended without a word of its tests is run whole.
            (Some(_), _) => once(&program, &[])?,
            (None, names) => once(&program, names)?,
        };
        let names = if outcome.failed.is_empty() { vec!["(all)".to_owned()] } else { outcome.failed };
        for test in names {
            let good = again.broken.is_none() && !again.failed.contains(&test);
            let list = if good { &mut unsteady } else { &mut failed };
            list.push(format!("{}: {test}", program.name));
        }
        passed += if again.broken.is_none() { again.passed } else { 0 };
    }
    println!(
        "── tests: {passed} passed, {} failed, {ignored} ignored in {} s",
        failed.len(),
        started.elapsed().as_secs()
    );
    for test in &unsteady {
        println!("UNSTEADY (failed beside others, passed alone): {test}");
    }
    for test in &failed {
        println!("FAILED twice: {test}");
    }
    if !failed.is_empty() {
        bail!("{} tests failed", failed.len());
    }
    Ok(())
}

fn at_a_time(programs: Vec<Program>) -> anyhow::Result<Vec<(Program, Outcome)>> {
    let waiting = Mutex::new(VecDeque::from(programs));
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_A_TIME)
            .map(|_| {
                scope.spawn(|| -> anyhow::Result<()> {
                    loop {
                        let Some(program) = waiting.lock().expect("nobody panics").pop_front() else { return Ok(()) };
                        let outcome = once(&program, &[])?;
                        done.lock().expect("nobody panics").push((program, outcome));
                    }
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("workers do not panic"))
    })?;
    Ok(done.into_inner().expect("nobody panics"))
}

/// Runs one program, or some of its tests, and prints what it said in one piece.
fn once(program: &Program, tests: &[String]) -> anyhow::Result<Outcome> {
    let started = Instant::now();
    let log = program.executable.with_extension("log");
    let output = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
    let mut command = Command::new(&program.executable);
    if !tests.is_empty() {
        command.arg("--exact").args(tests);
    }
    let mut child = command
        .current_dir(&program.directory)
        .env("CARGO_MANIFEST_DIR", &program.directory)
        // Tests that compare with real programs must not be skipped here.
        .env("ATOLL_REQUIRE_PEERS", "1")
        .env("ATOLL_CONSOLE", "off")
        .stdin(Stdio::null())
        .stderr(output.try_clone()?)
        .stdout(output)
        .spawn()
        .with_context(|| format!("starting {}", program.executable.display()))?;
    let status = wait(&mut child)?;
    let mut bytes = Vec::new();
    File::open(&log)?.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    println!("\n── {} ({} s)\n{}", program.name, started.elapsed().as_secs(), text.trim());
    Ok(outcome(&text, status))
}

/// Waits for the end; past the limit, brings it about.
fn wait(child: &mut Child) -> anyhow::Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// What the tests of a program said of themselves.
fn outcome(text: &str, status: Option<ExitStatus>) -> Outcome {
    let mut results: BTreeMap<&str, &str> = BTreeMap::new();
    let mut ignored = 0;
    for line in text.lines() {
        let Some((name, result)) = line.strip_prefix("test ").and_then(|line| line.split_once(" ... ")) else {
            continue;
        };
        match result.split([',', ' ']).next() {
            Some("ignored") => ignored += 1,
            Some(word @ ("ok" | "FAILED")) => drop(results.insert(name.trim_end_matches(" - should panic"), word)),
            _ => {}
        }
    }
    let failed: Vec<String> =
        results.iter().filter(|(_, result)| **result == "FAILED").map(|(name, _)| (*name).to_owned()).collect();
    let broken = match status {
        None => Some(format!("did not end within {} s", LIMIT.as_secs())),
        Some(status) if !status.success() && failed.is_empty() => Some(format!("ended with {status}")),
        Some(_) => None,
    };
    if let Some(reason) = &broken {
        println!("── {reason}");
    }
    Outcome { passed: results.len() - failed.len(), failed, ignored, broken }
}

#[cfg(test)]
mod reading {
    use super::*;

    const SAID: &str = "running 4 tests
test a::b ... ok
test c ... FAILED
test d - should panic ... ok
test e ... ignored, takes a day
test result: FAILED. 2 passed; 1 failed; 1 ignored";

    #[test]
    fn what_tests_say_is_counted() {
        let code = |text: &str| Command::new("sh").args(["-c", text]).status().ok();
        let seen = outcome(SAID, code("exit 101"));
        assert_eq!((seen.passed, seen.failed, seen.ignored), (2, vec!["c".to_owned()], 1));
        assert_eq!(seen.broken, None);
        let crashed = outcome("running 1 test", code("exit 134"));
        assert!(crashed.broken.expect("it did not say why it ended").contains("134"));
        assert!(outcome(SAID, None).broken.expect("it did not end").contains("900 s"));
    }

    #[test]
    fn only_test_programs_are_run() {
        let message = |test: bool| {
            serde_json::json!({"reason": "compiler-artifact", "manifest_path": "/x/crates/store/Cargo.toml",
                "profile": {"test": test}, "target": {"name": "crash"}, "executable": "/x/target/crash-1"})
        };
        let found = program(&message(true).to_string()).expect("a test program");
        assert_eq!((found.name.as_str(), found.directory.to_str()), ("store/crash", Some("/x/crates/store")));
        assert!(program(&message(false).to_string()).is_none() && program("not a message").is_none());
    }
}
