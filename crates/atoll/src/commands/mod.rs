//! The command line: one module per command.

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

mod access;
mod agent;
mod checks;
mod config;
mod doctor;
mod exec;
mod get;
mod instance;
mod join;
mod lease;
mod login;
mod logs;
mod output;
mod pods;
mod serve;
mod sim;
mod store;
mod top;
mod vnode_manager;
mod why;

/// Many Kubernetes clusters as one.
#[derive(Parser)]
#[command(
    name = "atoll",
    version,
    about,
    max_term_width = 100,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 not allowed, 5 no answer.\nAs a plugin: link it as `kubectl-atoll` and say `kubectl atoll ...`."
)]
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
    /// Make, break and repair simulated clusters
    Sim(sim::Sim),
    /// List objects of all members of an instance
    Get(get::Get),
    /// Say why a template is, or is not, where it is
    Why(why::Why),
    /// Show what would move before anything moves
    Plan(why::Plan),
    /// Print the logs of a workload's pods in all members
    Logs(logs::Logs),
    /// Run a command in a pod of any member
    Exec(exec::Exec),
    /// Show usage and capacity of all members
    Top(top::Top),
    /// Join a cluster to an instance
    Join(join::Join),
    /// Remove a cluster from an instance
    Unjoin(join::Unjoin),
    /// Run the agent of a cluster that the hub cannot reach
    Agent(agent::Agent),
    /// Create a bootstrap token for a cluster that joins by itself
    Invite(agent::Invite),
    /// Lend nodes of worker clusters to a computing cluster
    Lease(lease::Lease),
    /// Run virtual nodes for any computing cluster
    VnodeManager(vnode_manager::VnodeManager),
    /// Open a session of a local account and print a kubeconfig for it
    Login(login::Login),
    /// Make, list, change and close local accounts
    Account(login::Account),
    /// Show and choose which hub and instance commands talk to
    Config(config::Config),
    /// Check a hub and its members
    Doctor(doctor::Doctor),
    /// Back up or restore everything a hub holds
    Store(store::Store),
    /// Print a completion script for a shell
    #[command(
        after_help = "Examples:\n  atoll completion bash > /etc/bash_completion.d/atoll\n  atoll completion zsh > ~/.zfunc/_atoll"
    )]
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, of everything or of one command
    #[command(
        after_help = "Examples:\n  atoll man > /usr/share/man/man1/atoll.1\n  atoll man get > /usr/share/man/man1/atoll-get.1\n  atoll man lease bind | man -l -"
    )]
    Man {
        /// The command
        command: Vec<String>,
    },
}

/// Parses the command line and runs the command; the exit code says how it went.
pub fn run() -> ExitCode {
    let name = called_as(std::env::args_os().next());
    let matches = Cli::command().bin_name(name).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let result = match cli.command {
        Command::Up(up) => up.run(),
        Command::Serve(serve) => serve.run(),
        Command::Down(down) => down.run(),
        Command::Instance(instance) => instance.run(),
        Command::Sim(sim) => sim.run(),
        Command::Get(get) => get.run(),
        Command::Why(why) => why.run(),
        Command::Plan(plan) => plan.run(),
        Command::Logs(logs) => logs.run(),
        Command::Exec(exec) => exec.run(),
        Command::Top(top) => top.run(),
        Command::Join(join) => join.run(),
        Command::Unjoin(unjoin) => unjoin.run(),
        Command::Agent(agent) => agent.run(),
        Command::Invite(invite) => invite.run(),
        Command::Lease(lease) => lease.run(),
        Command::VnodeManager(manager) => manager.run(),
        Command::Login(login) => login.run(),
        Command::Account(account) => account.run(),
        Command::Config(config) => config.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Store(store) => store.run(),
        Command::Completion { shell } => {
            if shell == clap_complete::Shell::Bash {
                // The script splits words on purpose where it offers them.
                output::line("# shellcheck disable=SC2207");
            }
            // A closed pipe is no error, so the script is printed like everything else.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "atoll", &mut script);
            output::line(String::from_utf8_lossy(&script).trim_end());
            Ok(())
        }
        Command::Man { command } => manual(&command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is::<access::Ended>() {
                eprintln!("error: {error:#}");
            }
            ExitCode::from(access::exit_code(&error))
        }
    }
}

/// Prints the manual page of a command, in the form that `man` reads.
fn manual(command: &[String]) -> anyhow::Result<()> {
    let mut whole = Cli::command();
    // Makes the pages of commands name the commands they are below, and the options of all.
    whole.build();
    let mut page = &whole;
    for word in command {
        page = page
            .find_subcommand(word)
            .ok_or_else(|| access::Fault::Usage(format!("there is no command {}", command.join(" "))))?;
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(page.clone()).render(&mut text)?;
    output::line(String::from_utf8_lossy(&text).trim_end());
    Ok(())
}

/// What help calls the program: kubectl runs `kubectl-atoll` for `kubectl atoll`.
fn called_as(program: Option<std::ffi::OsString>) -> &'static str {
    let path = program.map(std::path::PathBuf::from).unwrap_or_default();
    match path.file_stem().and_then(std::ffi::OsStr::to_str) {
        Some("kubectl-atoll") => "kubectl atoll",
        _ => "atoll",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_shows_an_example() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{}", command.get_name());
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn it_is_a_plugin_of_kubectl_when_called_so() {
        assert_eq!(called_as(Some("/usr/bin/kubectl-atoll".into())), "kubectl atoll");
        assert_eq!(called_as(Some("./atoll".into())), "atoll");
        assert_eq!(called_as(None), "atoll");
    }
}
