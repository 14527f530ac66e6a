//! How long the demonstration takes to be ready, and what it takes then.
//!
//! `cargo run --release -p atoll-testkit --example demo -- target/release/atoll MEMBERS` starts `atoll up --demo` in an
//! empty directory and again in the same one, and looks at the process itself.
#![allow(clippy::unwrap_used, reason = "a failure here is a failure of the measurement")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long idleness is watched.
const IDLE: Duration = Duration::from_secs(10);

fn main() {
    let mut words = std::env::args().skip(1);
    let program = words.next().unwrap_or_else(|| "target/release/atoll".into());
    let members = words.next().unwrap_or_else(|| "3".into());
    let directory = tempfile::tempdir().unwrap();
    for start in ["empty directory", "second start"] {
        measure(&program, &members, directory.path(), start);
    }
}

fn measure(program: &str, members: &str, directory: &Path, start: &str) {
    let begin = Instant::now();
    let mut process = Command::new(program)
        .args(["up", "--demo", "--listen", "127.0.0.1:0", "--members", members, "--data-dir"])
        .arg(directory)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let ready = lines.by_ref().map(Result::unwrap).any(|line| line.contains("is ready at"));
    assert!(ready, "{program} ended before it was ready");
    let (time, memory) = (begin.elapsed(), resident(process.id()));
    // The pipe must be read, or its writer waits.
    let reader = std::thread::spawn(move || lines.count());
    let before = processor(process.id());
    std::thread::sleep(IDLE);
    let idle = (processor(process.id()) - before) / IDLE.as_secs_f64() * 100.0;
    println!(
        "{start}: ready after {:.2} s with {:.1} MiB; {} s later {:.1} MiB and {idle:.1} % of a processor meanwhile",
        time.as_secs_f64(),
        memory / 1024.0,
        IDLE.as_secs(),
        resident(process.id()) / 1024.0
    );
    assert!(Command::new(program).args(["down", "--data-dir"]).arg(directory).status().unwrap().success());
    process.wait().unwrap();
    reader.join().unwrap();
}

/// Memory of a process in KiB.
fn resident(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Processor time of a process in seconds.
fn processor(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}
