//! Development tasks; `cargo run -p xtask -- --help` lists them.

mod bench;
mod ci;
mod layers;
mod record;
mod tables;
mod tests;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Development tasks of this repository.
#[derive(Parser)]
#[command(name = "xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measures, beside the real programs where there are any.
    Bench {
        /// Which: all of them if none is named
        names: Vec<String>,
    },
    /// Everything CI does: formatting, layers, peers, tests.
    Ci,
    /// Formatting, layers, lints and licences.
    Check,
    /// Checks that crates use only their own layer and those above.
    Layers,
    /// Builds the programs Atoll is compared with.
    Peers,
    /// Runs the demonstration with a built program and draws what the terminal showed.
    Record {
        /// The program, built for release.
        #[arg(long, default_value = "target/release/atoll")]
        program: PathBuf,
        /// kubectl.
        #[arg(long)]
        kubectl: PathBuf,
        /// Where the picture goes.
        #[arg(long, default_value = "docs/images/demo.svg")]
        to: PathBuf,
    },
    /// Writes the table of built-in kinds from a description of a real API server.
    Tables {
        /// Directory with discovery/, openapi-v3/ and protobuf-fields.json.
        #[arg(long)]
        from: PathBuf,
        /// Pointer and omission facts, as printed by xtask/gofields.
        #[arg(long, default_value = "xtask/gofields/fields.txt")]
        fields: PathBuf,
        /// Where the table goes.
        #[arg(long, default_value = "crates/builtin/data/kubernetes.table")]
        to: PathBuf,
    },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Bench { names } => bench::run(&names),
        Task::Ci => ci::all(),
        Task::Check => ci::check(),
        Task::Layers => layers::check(),
        Task::Peers => ci::peers(&[]),
        Task::Record { program, kubectl, to } => record::run(&program, &kubectl, &to),
        Task::Tables { from, fields, to } => tables::write(&from, &fields, &to),
    }
}
