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

/// What CI does: programs to compare with, formatting, layers, and every test of the workspace.
pub fn all() -> anyhow::Result<()> {
    peers()?;
    run("formatting", "cargo", &["fmt", "--all", "--check"])?;
    crate::layers::check()?;
    run("tests", "cargo", &["test", "--workspace", "--no-fail-fast"])
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
