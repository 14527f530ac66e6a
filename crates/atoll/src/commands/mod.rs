//! The command line: one module per command.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

mod access;
mod doctor;
mod get;
mod instance;
mod join;
mod login;
mod logs;
mod output;
mod serve;
mod store;
mod why;

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
    /// Stop a hub that was started in this data directory
    Down(serve::Down),
    /// Work with instances
    Instance(instance::Instance),
    /// List objects of all members of an instance
    Get(get::Get),
    /// Say why a template is, or is not, where it is
    Why(why::Why),
    /// Show what would move before anything moves
    Plan(why::Plan),
    /// Print the logs of a workload's pods in all members
    Logs(logs::Logs),
    /// Join a cluster to an instance
    Join(join::Join),
    /// Take a cluster out of an instance
    Unjoin(join::Unjoin),
    /// Open a session of a local account and print a kubeconfig for it
    Login(login::Login),
    /// Make, change and close local accounts
    Account(login::Account),
    /// Check a hub and its members
    Doctor(doctor::Doctor),
    /// Back up or restore everything a hub holds
    Store(store::Store),
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

/// Parses the command line and runs the command; the exit code says how it went.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Up(up) => up.run(),
        Command::Serve(serve) => serve.run(),
        Command::Down(down) => down.run(),
        Command::Instance(instance) => instance.run(),
        Command::Get(get) => get.run(),
        Command::Why(why) => why.run(),
        Command::Plan(plan) => plan.run(),
        Command::Logs(logs) => logs.run(),
        Command::Join(join) => join.run(),
        Command::Unjoin(unjoin) => unjoin.run(),
        Command::Login(login) => login.run(),
        Command::Account(account) => account.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Store(store) => store.run(),
        Command::Completion { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "atoll", &mut std::io::stdout());
            Ok(())
        }
        Command::Man => clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout()).map_err(Into::into),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
