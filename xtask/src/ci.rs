//! Everything CI does.

use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::{layers, tests};

/// Checks that need no test: formatting, layers, lints, licences.
pub fn check() -> anyhow::Result<()> {
    formatting()?;
    layers::check()?;
    run("lints", Command::new("cargo").args(["clippy", "--workspace", "--all-targets", "--quiet"]))?;
    let deny = run("licences", Command::new("cargo").args(["deny", "check", "licenses", "bans", "sources"]));
    deny.context("`cargo install --locked cargo-deny` brings what checks licences")
}

/// Builds the programs tests compare with; idempotent and cached outside the checkout.
pub fn peers(names: &[&str]) -> anyhow::Result<()> {
    run("peers", Command::new("tests/peers/build").args(names))
}

/// What CI does: formatting, layers, programs to compare with, every test of the workspace, and the console in a
/// browser.
pub fn all() -> anyhow::Result<()> {
    formatting()?;
    layers::check()?;
    disk();
    // Both fetch and link at times when the other can use the processor.
    let programs = thread::spawn(|| peers(&["--tests"]));
    let built = tests::build();
    disk();
    programs.join().expect("building programs does not panic")?;
    let tested = tests::run(built?);
    let shown = browser();
    tested.and(shown)
}

/// The browser tests of the console, against the program that the tests were built with. Where there is no browser they
/// say that they are skipped.
fn browser() -> anyhow::Result<()> {
    let mut command = Command::new("console/e2e/run");
    run("browser tests", command.env("ATOLL", "target/debug/atoll").env("ATOLL_E2E_EMBEDDED", "1"))
}

/// Tells how much disk is left: a linker that finds it full only says that it crashed.
fn disk() {
    // Where there is no such program there is nothing to tell.
    let said = Command::new("df").args(["-h", "--output=size,avail", "."]).output();
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    if let Some([size, free]) = said.lines().nth(1).map(|line| line.split_whitespace().collect::<Vec<_>>()).as_deref() {
        println!("── disk: {free} of {size} free");
    }
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
