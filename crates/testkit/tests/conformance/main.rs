//! Kubernetes' own conformance tests against Atoll.
//!
//! `table.yaml` lists every test that needs no nodes (tier A) or only controllers (tier B), with what
//! comes of it here and why. All that are said to pass are run and must pass; the table is part of
//! `docs/conformance.md`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use atoll_testkit::{Options, TestServer, peers};
use serde::Deserialize;

/// Test programs that run side by side, each against a server of its own.
const PARTS: usize = 2;

/// One conformance test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    tier: String,
    name: String,
    /// Why it does not pass; empty if it does.
    #[serde(default)]
    fails: String,
    /// It passes, but takes too long to be run each time.
    #[serde(default)]
    slow: bool,
}

fn table() -> Vec<Entry> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/table.yaml");
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A simulated cluster: some tests of controllers count the nodes before they start.
fn server() -> TestServer {
    let sim = Some(atoll_sim::Spec::with_nodes(2));
    TestServer::start(Options { sim, ..Options::default() }).unwrap()
}

/// Something always changes in a cluster, if only the leases of its nodes. Simulated nodes renew none, so that
/// idle clusters cost nothing; but without a change there is no history to forget, which one test waits for.
fn live(server: &TestServer) {
    let endpoint = server.endpoint("root");
    let leases = atoll_meta::Gvr::new("coordination.k8s.io", "v1", "leases");
    let renewed = atoll_meta::time::format_micro(server.hub().now());
    let lease = serde_json::json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "conformance"}, "spec": {"holderIdentity": "conformance", "renewTime": renewed}});
    let renewing = async move {
        let namespace = Some("kube-node-lease");
        endpoint.ensure(&leases, namespace, &lease).await?;
        let patch = serde_json::json!({"spec": lease["spec"]});
        endpoint.patch(&leases, namespace, "conformance", "", atoll_runtime::Patch::Merge, &patch).await
    };
    server.wait(renewing).unwrap().unwrap();
}

/// Runs tests by name and says which passed.
fn run(program: &Path, kubectl: &Path, server: &TestServer, names: &[&str]) -> BTreeMap<String, bool> {
    let report = server.scratch().join("report");
    std::fs::create_dir_all(&report).unwrap();
    let escaped: Vec<String> = names.iter().map(|name| regex::escape(name)).collect();
    let output = std::fs::File::create(report.join("out")).unwrap();
    let mut running = Command::new(program)
        .arg("--kubeconfig")
        .arg(server.kubeconfig())
        .arg("--kubectl-path")
        .arg(kubectl)
        .arg(format!("--report-dir={}", report.display()))
        .args(["--provider=skeleton", "--allowed-not-ready-nodes=-1", "--minStartupPods=-1", "--num-nodes=1"])
        .args(["--disable-log-dump", "--dump-logs-on-failure=false"])
        .args(["--ginkgo.no-color", "--ginkgo.succinct", "--ginkgo.timeout=20m"])
        .arg(format!("--ginkgo.focus=({})", escaped.join("|")))
        .stdout(Stdio::from(output.try_clone().unwrap()))
        .stderr(Stdio::from(output))
        .spawn()
        .unwrap();
    let status = loop {
        if let Some(status) = running.try_wait().unwrap() {
            break status;
        }
        live(server);
        std::thread::sleep(std::time::Duration::from_secs(1));
    };
    let results = results(&report.join("junit_01.xml"));
    if !status.success() {
        let text = std::fs::read_to_string(report.join("out")).unwrap_or_default();
        let faults: Vec<&str> =
            text.lines().filter(|line| line.contains("[FAILED]") || line.contains("[FAIL]")).collect();
        eprintln!("{}", faults.join("\n"));
    }
    results
}

/// What the report says of each test that ran.
fn results(path: &PathBuf) -> BTreeMap<String, bool> {
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
    let slow = std::env::var_os("CONFORMANCE_SLOW").is_some();
    // For writing the table: everything, or what a pattern selects.
    let all = std::env::var("CONFORMANCE").ok();
    let chosen: Vec<&str> = match &all {
        Some(pattern) => {
            let pattern = regex::Regex::new(pattern).unwrap();
            table.iter().map(|entry| entry.name.as_str()).filter(|name| pattern.is_match(name)).collect()
        }
        None => table
            .iter()
            .filter(|entry| entry.fails.is_empty() && (slow || !entry.slow))
            .map(|entry| entry.name.as_str())
            .collect(),
    };
    let parts: Vec<Vec<&str>> =
        (0..PARTS).map(|part| chosen.iter().skip(part).step_by(PARTS).copied().collect()).collect();
    let results: BTreeMap<String, bool> = std::thread::scope(|scope| {
        let running: Vec<_> = parts
            .iter()
            .filter(|names| !names.is_empty())
            .map(|names| {
                let (program, kubectl) = (&program, &kubectl);
                scope.spawn(move || run(program, kubectl, &server(), names))
            })
            .collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let failed: Vec<&str> = chosen.iter().copied().filter(|name| results.get(*name) != Some(&true)).collect();
    println!("conformance: {} of {} tests passed", chosen.len() - failed.len(), chosen.len());
    assert!(failed.is_empty(), "failed or not run:\n{}", failed.join("\n"));
}

#[test]
fn the_table_is_in_the_docs() {
    let mut out = String::new();
    for (tier, what) in [
        ("A", "need only an API server and what every instance does in the background"),
        ("B", "need controllers besides"),
    ] {
        let entries: Vec<Entry> = table().into_iter().filter(|entry| entry.tier == tier).collect();
        let passed = entries.iter().filter(|entry| entry.fails.is_empty()).count();
        out.push_str(&format!(
            "\nTier {tier}: tests that {what}. {passed} of {} pass.\n\n| test | result |\n| --- | --- |\n",
            entries.len()
        ));
        for entry in entries {
            let name = entry.name.replace(" [Conformance]", "").replace('|', "\\|");
            let result = match (entry.fails.as_str(), entry.slow) {
                ("", false) => "passed".to_owned(),
                ("", true) => "passed (slow)".to_owned(),
                (why, _) => format!("failed: {why}"),
            };
            out.push_str(&format!("| {name} | {result} |\n"));
        }
    }
    peers::keep_section("docs/conformance.md", "conformance", &out);
}
