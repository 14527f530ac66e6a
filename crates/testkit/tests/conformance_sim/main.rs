//! Kubernetes' own conformance tests of workloads, scheduling and pods against a simulated cluster.
//!
//! `table.yaml` lists the tests of tiers B and C that need controllers, nodes or pods that seem to run,
//! with what comes of each here and why. Those said to pass and not slow are run and must pass;
//! `CONFORMANCE=PATTERN` runs what a pattern selects, slow ones too. The table is part of
//! `docs/conformance-sim.md`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use atoll_testkit::{Options, TestServer, peers};
use serde::Deserialize;

/// Test programs that run side by side, each against a cluster of its own.
const PARTS: usize = 3;
/// Nodes of a cluster.
const NODES: usize = 3;

/// One conformance test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    group: String,
    name: String,
    /// Why it does not pass; empty if it does.
    #[serde(default)]
    fails: String,
    /// It passes, but takes too long to be run each time.
    #[serde(default)]
    slow: bool,
}

fn table() -> Vec<Entry> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance_sim/table.yaml");
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn server() -> TestServer {
    let sim = Some(atoll_sim::Spec::with_nodes(NODES));
    TestServer::start(Options { sim, ..Options::default() }).unwrap()
}

/// Runs tests by name and says which passed.
fn run(program: &Path, kubectl: &Path, server: &TestServer, names: &[&str]) -> BTreeMap<String, bool> {
    let report = server.scratch().join("report");
    std::fs::create_dir_all(&report).unwrap();
    let escaped: Vec<String> = names.iter().map(|name| regex::escape(name)).collect();
    let output = std::fs::File::create(report.join("out")).unwrap();
    let status = Command::new(program)
        .arg("--kubeconfig")
        .arg(server.kubeconfig())
        .arg("--kubectl-path")
        .arg(kubectl)
        .arg(format!("--report-dir={}", report.display()))
        .args(["--provider=skeleton", "--disable-log-dump", "--dump-logs-on-failure=false"])
        .args(["--ginkgo.no-color", "--ginkgo.succinct", "--ginkgo.timeout=60m"])
        .arg(format!("--ginkgo.focus=({})", escaped.join("|")))
        .stdout(Stdio::from(output.try_clone().unwrap()))
        .stderr(Stdio::from(output))
        .status()
        .unwrap();
    if !status.success() {
        let text = std::fs::read_to_string(report.join("out")).unwrap_or_default();
        let faults: Vec<&str> = text.lines().filter(|line| line.contains("[FAIL")).collect();
        eprintln!("{}", faults.join("\n"));
    }
    results(&report.join("junit_01.xml"))
}

/// What the report says of each test that ran.
fn results(path: &Path) -> BTreeMap<String, bool> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let case = regex::Regex::new(r#"<testcase name="\[It\] ([^"]*?)(?: \[sig-[a-z-]+,[^"]*\])?" [^>]*status="(passed|failed|timedout|panicked|interrupted)""#).unwrap();
    let plain =
        |text: &str| text.replace("&#39;", "'").replace("&quot;", "\"").replace("&amp;", "&").replace("&#34;", "\"");
    case.captures_iter(&text).map(|found| (plain(&found[1]), &found[2] == "passed")).collect()
}

#[test]
fn the_tests_that_should_pass_do() {
    let (Some(program), Some(kubectl)) = (peers::find("e2e.test"), peers::find("kubectl")) else { return };
    let table = table();
    let pattern = std::env::var("CONFORMANCE").ok().map(|pattern| regex::Regex::new(&pattern).unwrap());
    let wanted = |entry: &&Entry| match &pattern {
        Some(pattern) => pattern.is_match(&entry.name),
        None => entry.fails.is_empty() && !entry.slow,
    };
    let chosen: Vec<&str> = table.iter().filter(wanted).map(|entry| entry.name.as_str()).collect();
    let parts: Vec<Vec<&str>> =
        (0..PARTS).map(|part| chosen.iter().skip(part).step_by(PARTS).copied().collect()).collect();
    let results: BTreeMap<String, bool> = std::thread::scope(|scope| {
        let running: Vec<_> = parts
            .iter()
            .filter(|names| !names.is_empty())
            .map(|names| scope.spawn(|| run(&program, &kubectl, &server(), names)))
            .collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let failed: Vec<&str> = chosen.iter().copied().filter(|name| results.get(*name) != Some(&true)).collect();
    println!("conformance of simulated clusters: {} of {} passed", chosen.len() - failed.len(), chosen.len());
    assert!(failed.is_empty(), "failed or not run:\n{}", failed.join("\n"));
}

#[test]
fn the_table_is_in_the_docs() {
    let mut groups: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    for entry in table() {
        groups.entry(entry.group.clone()).or_default().push(entry);
    }
    let passed = |entries: &[Entry]| entries.iter().filter(|entry| entry.fails.is_empty()).count();
    let mut out = String::from("| group | passed | of |\n| --- | --- | --- |\n");
    for (group, entries) in &groups {
        out.push_str(&format!("| {group} | {} | {} |\n", passed(entries), entries.len()));
    }
    for (group, entries) in &groups {
        out.push_str(&format!("\n### {group}\n\n| test | result |\n| --- | --- |\n"));
        for entry in entries {
            let name = entry.name.replace(" [Conformance]", "").replace('|', "\\|");
            let result = match (entry.fails.as_str(), entry.slow) {
                ("", false) => "passed".to_owned(),
                ("", true) => "passed (too slow to run each time)".to_owned(),
                (why, _) if why.starts_with("not run") => why.to_owned(),
                (why, _) => format!("failed: {why}"),
            };
            out.push_str(&format!("| {name} | {result} |\n"));
        }
    }
    peers::keep_section("docs/conformance-sim.md", "conformance", &out);
}
