//! Everything CI does.

use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::{layers, tests};

/// Checks that need no test: formatting, layers, lints.
pub fn check() -> anyhow::Result<()> {
    formatting()?;
    layers::check()?;
    run("lints", Command::new("cargo").args(["clippy", "--workspace", "--all-targets", "--quiet"]))
}

/// Builds the programs tests compare with; idempotent and cached outside the checkout.
pub fn peers(names: &[&str]) -> anyhow::Result<()> {
    run("peers", Command::new("tests/peers/build").args(names))
}

/// What CI does: formatting, layers, programs to compare with, and every test of the workspace.
pub fn all() -> anyhow::Result<()> {
    formatting()?;
    layers::check()?;
    // Both fetch and link at times when the other can use the processor.
    let programs = thread::spawn(|| peers(&["--tests"]));
    let built = tests::build();
    programs.join().expect("building programs does not panic")?;
    tests::run(built?)
}

fn formatting() -> anyhow::Result<()> {
    run("formatting", Command::new("cargo").args(["fmt", "--all", "--check"]))
}

fn run(what: &str, command: &mut Command) -> anyhow::Result<()> {
    println!("── {what}: {command:?}");
    let started = Instant::now();
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    println!("── {what}: {} s", started.elapsed().as_secs());
    if !status.success() {
        bail!("{what} failed");
    }
    Ok(())
}
