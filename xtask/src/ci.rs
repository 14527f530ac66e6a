//! Everything CI does, in order; the first failure ends it.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};

/// Checks that need no test: formatting, layers, lints.
pub fn check() -> anyhow::Result<()> {
    run("formatting", "cargo", &["fmt", "--all", "--check"])?;
    crate::layers::check()?;
    run("lints", "cargo", &["clippy", "--workspace", "--all-targets", "--quiet"])
}

/// Builds the programs tests compare with; idempotent and cached outside the checkout.
pub fn peers() -> anyhow::Result<()> {
    run("peers", "tests/peers/build", &[])
}

/// Crates whose tests CI runs one after the other; each must pass.
const TESTED: [&str; 15] = [
    "xtask",
    "atoll-meta",
    "atoll-api",
    "atoll-schema",
    "atoll-patch",
    "atoll-builtin",
    "atoll-placement",
    "atoll-interpreter",
    "atoll-lease",
    "atoll-pki",
    "atoll-stream",
    "atoll-runtime",
    "atoll-store",
    "atoll-apiserver",
    "atoll-background",
];

/// What CI does: programs to compare with, layers, the binary, tests.
/// Formatting and lints are `check`: they say nothing about whether it works.
pub fn all() -> anyhow::Result<()> {
    peers()?;
    crate::layers::check()?;
    run("binary", "cargo", &["build", "--package", "atoll"])?;
    let mut arguments = vec!["test", "--no-fail-fast"];
    for package in TESTED {
        arguments.extend(["--package", package]);
    }
    run("tests", "cargo", &arguments)?;
    // Against the real API server, and with clients nobody here wrote.
    run(
        "comparisons",
        "cargo",
        &["test", "--no-fail-fast", "--package", "atoll-testkit", "--test", "differential", "--test", "clients"],
    )
}

fn run(what: &str, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    println!("── {what}: {program} {}", arguments.join(" "));
    let started = Instant::now();
    // Tests that compare with real programs must not be skipped here; none of these needs the web console.
    let status = Command::new(program)
        .args(arguments)
        .env("ATOLL_REQUIRE_PEERS", "1")
        .env("ATOLL_CONSOLE", "off")
        .status()
        .with_context(|| format!("starting {program}"))?;
    println!("── {what}: {} s", started.elapsed().as_secs());
    if !status.success() {
        bail!("{what} failed");
    }
    Ok(())
}
