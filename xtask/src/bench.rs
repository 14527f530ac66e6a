//! The benchmarks by name; how each is read is told in `docs/benchmarks.md`.

use std::process::Command;

use anyhow::{Context as _, bail};

/// Name, and what is run for it, one after the other.
const BENCHES: [(&str, &[&str]); 9] = [
    ("apiserver", &["run --release --package atoll-load -- apiserver"]),
    ("store", &["bench --package atoll-store --bench engines"]),
    ("placement", &["bench --package atoll-placement --bench decide"]),
    ("density", &["bench --package atoll-apiserver --bench density"]),
    ("write", &["bench --package atoll-apiserver --bench write"]),
    (
        "sim",
        &[
            "run --release --package atoll-sim --example scale -- 10 100 10000",
            "run --release --package atoll-sim --example scale -- 100 50 0",
            "run --release --package atoll-testkit --example demo -- target/release/atoll 3",
            "run --release --package atoll-testkit --example kwok -- target/release/atoll 1000 100",
        ],
    ),
    (
        "fleet",
        &[
            "bench --package atoll-fleet --bench spread -- schedule",
            "bench --package atoll-fleet --bench spread -- restart",
            "bench --package atoll-fleet --bench spread -- demo --atoll ../../target/release/atoll",
            "bench --package atoll-fleet --bench spread -- beside --atoll ../../target/release/atoll",
        ],
    ),
    ("vnode", &["bench --package atoll-vnode --bench lease"]),
    ("index", &["bench --package atoll-index --bench load"]),
];

/// Runs the named benchmarks, or all, one after the other.
pub fn run(names: &[String]) -> anyhow::Result<()> {
    if let Some(unknown) = names.iter().find(|name| !BENCHES.iter().any(|(known, _)| known == name)) {
        let known: Vec<&str> = BENCHES.iter().map(|(name, _)| *name).collect();
        bail!("no benchmark {unknown}; there are {}", known.join(", "));
    }
    // The binary first: some of them start it.
    cargo(&["build", "--release", "--package", "atoll"])?;
    for (name, commands) in BENCHES {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            for command in commands {
                println!("── {name}: cargo {command}");
                cargo(&command.split(' ').collect::<Vec<_>>())?;
            }
        }
    }
    Ok(())
}

fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("cargo").args(arguments).status().context("starting cargo")?;
    if status.success() { Ok(()) } else { bail!("cargo {} failed", arguments.join(" ")) }
}
