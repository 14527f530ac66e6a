//! `atoll exec`: a command in a pod of any member.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use clap::Args;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, AttachParams, AttachedProcess, TerminalSize};
use tokio::io::{AsyncRead, AsyncWriteExt as _};

use super::access::{Access, Ended, block_on};
use super::pods::{self, Found, member_path};

/// Run a command in a pod of any member.
#[derive(Args)]
#[command(
    after_help = "The exit code is that of the command.\n\nExamples:\n  atoll exec deployment/web -- cat /etc/hostname\n  atoll exec -it deployment/web --clusters member2 -- sh\n  atoll exec web-7957885594-gskvn -c main -- env"
)]
pub struct Exec {
    /// `KIND/NAME` of a workload, or the name of a pod; of several, the first that runs
    target: String,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
    /// Namespace
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Container
    #[arg(short, long)]
    container: Option<String>,
    /// Pass standard input on
    #[arg(short = 'i', long)]
    stdin: bool,
    /// With a terminal
    #[arg(short = 't', long, requires = "stdin")]
    tty: bool,
    /// Only these members, separated by commas
    #[arg(long, value_delimiter = ',')]
    clusters: Vec<String>,
    #[command(flatten)]
    access: Access,
}

impl Exec {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<()> {
        let code = block_on(self.execute())?;
        // What reads the keyboard cannot be interrupted, so the process ends here.
        if code == 0 { Ok(()) } else { Err(Ended(code).into()) }
    }

    async fn execute(self) -> anyhow::Result<u8> {
        anyhow::ensure!(!self.tty || std::io::stdin().is_terminal(), "-t needs a terminal on standard input");
        let fleet = self.access.endpoint("fleet").await?;
        let found = pods::of(&fleet, &self.target, &self.namespace, &self.clusters).await?;
        let one = found.iter().find(|one| one.is_running()).context("none of the pods runs")?;
        if found.len() > 1 {
            eprintln!("in {}/{} (one of {} pods)", one.member, one.name(), found.len());
        }
        let mut process = self.start(one).await?;
        let _raw = self.tty.then(Raw::enter).transpose()?;
        self.attend(&mut process).await
    }

    /// Opens the stream through the proxy of the member.
    async fn start(&self, one: &Found) -> anyhow::Result<AttachedProcess> {
        let mut config = self.access.config("fleet").await?;
        let base = config.cluster_url.to_string();
        config.cluster_url = format!("{}{}", base.trim_end_matches('/'), member_path(&one.member)).parse()?;
        let pods: Api<Pod> = Api::namespaced(kube::Client::try_from(config)?, &self.namespace);
        let params = AttachParams {
            container: self.container.clone(),
            stdin: self.stdin,
            stdout: true,
            stderr: !self.tty,
            tty: self.tty,
            ..AttachParams::default()
        };
        Ok(pods.exec(one.name(), self.command.clone(), &params).await?)
    }

    /// Carries bytes both ways until the command ends; its exit code.
    async fn attend(&self, process: &mut AttachedProcess) -> anyhow::Result<u8> {
        let status = process.take_status().context("the member tells no end of the command")?;
        if let Some(mut stdin) = process.stdin().filter(|_| self.stdin) {
            tokio::spawn(async move {
                let _ = tokio::io::copy(&mut tokio::io::stdin(), &mut stdin).await;
                // Dropping it would not tell the command that its input is at an end.
                let _ = stdin.shutdown().await;
            });
        }
        if self.tty {
            tokio::spawn(follow_size(process.terminal_size()));
        }
        let (out, err) = (process.stdout(), process.stderr());
        tokio::join!(pass(out, tokio::io::stdout()), pass(err, tokio::io::stderr()));
        let Some(status) = status.await else { return Ok(0) };
        if status.status.as_deref() == Some("Success") {
            return Ok(0);
        }
        let causes = status.details.and_then(|details| details.causes).unwrap_or_default();
        let code = causes.iter().find(|cause| cause.reason.as_deref() == Some("ExitCode"));
        match code.and_then(|cause| cause.message.as_deref()).and_then(|text| text.parse::<i32>().ok()) {
            Some(code) => Ok(u8::try_from(code & 0xff).unwrap_or(1)),
            None => anyhow::bail!("{}", status.message.unwrap_or_else(|| "the command could not be run".to_owned())),
        }
    }
}

async fn pass(from: Option<impl AsyncRead + Unpin>, mut to: impl tokio::io::AsyncWrite + Unpin) {
    if let Some(mut from) = from {
        let _ = tokio::io::copy(&mut from, &mut to).await;
        let _ = to.flush().await;
    }
}

/// Tells the size of the terminal now and whenever it changes.
async fn follow_size(sizes: Option<futures::channel::mpsc::Sender<TerminalSize>>) {
    let Some(mut sizes) = sizes else { return };
    let Ok(mut changes) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::window_change()) else { return };
    loop {
        if let Some((height, width)) = terminal_size() {
            let _ = sizes.try_send(TerminalSize { width, height });
        }
        if changes.recv().await.is_none() {
            return;
        }
    }
}

/// Rows and columns, as `stty size` prints them.
fn terminal_size() -> Option<(u16, u16)> {
    let told = stty(&["size"]).ok()?;
    let mut numbers = told.split_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn stty(arguments: &[&str]) -> std::io::Result<String> {
    let ran = std::process::Command::new("stty").args(arguments).stdin(std::process::Stdio::inherit()).output()?;
    Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
}

/// The terminal passing every key on; as it was before when dropped.
struct Raw(String);

impl Raw {
    fn enter() -> anyhow::Result<Self> {
        let before = stty(&["-g"]).context("the terminal cannot be set up: stty is needed")?;
        stty(&["raw", "-echo"])?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = stty(&[&self.0]);
    }
}
