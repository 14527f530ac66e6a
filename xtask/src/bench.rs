//! The benchmarks by name; how each is read is told in `docs/benchmarks.md`.

use std::process::Command;

use anyhow::{Context as _, bail};

/// Name, and what is run for it.
const BENCHES: [(&str, &[&str]); 8] = [
    ("apiserver", &["run", "--release", "--package", "atoll-load", "--", "apiserver"]),
    ("store", &["bench", "--package", "atoll-store", "--bench", "engines"]),
    ("placement", &["bench", "--package", "atoll-placement", "--bench", "decide"]),
    ("density", &["bench", "--package", "atoll-apiserver", "--bench", "density"]),
    ("sim", &["run", "--release", "--package", "atoll-sim", "--example", "scale", "--", "10", "100", "10000"]),
    (
        "fleet",
        &["bench", "--package", "atoll-fleet", "--bench", "spread", "--", "demo", "--atoll", "target/release/atoll"],
    ),
    ("vnode", &["bench", "--package", "atoll-vnode", "--bench", "lease"]),
    ("index", &["bench", "--package", "atoll-index", "--bench", "load"]),
];

/// Runs the named benchmarks, or all, one after the other.
pub fn run(names: &[String]) -> anyhow::Result<()> {
    if let Some(unknown) = names.iter().find(|name| !BENCHES.iter().any(|(known, _)| known == name)) {
        let known: Vec<&str> = BENCHES.iter().map(|(name, _)| *name).collect();
        bail!("no benchmark {unknown}; there are {}", known.join(", "));
    }
    // The binary first: some of them start it.
    cargo(&["build", "--release", "--package", "atoll"])?;
    for (name, arguments) in BENCHES {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            println!("── {name}");
            cargo(arguments)?;
        }
    }
    Ok(())
}

fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("cargo").args(arguments).status().context("starting cargo")?;
    if status.success() { Ok(()) } else { bail!("cargo {} failed", arguments.join(" ")) }
}
