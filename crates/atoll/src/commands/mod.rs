//! The command line: one module per command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod serve;

/// Many Kubernetes clusters as one.
#[derive(Parser)]
#[command(name = "atoll", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run everything in one process on the embedded store
    Up(serve::Up),
    /// Run the server for production
    Serve(serve::Serve),
}

/// Parses the command line and runs the command; the exit code says how it went.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Up(up) => up.run(),
        Command::Serve(serve) => serve.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
