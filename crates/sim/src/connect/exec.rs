//! `pods/exec`: commands in simulated containers.

use std::sync::Arc;

use atoll_apiserver::{Body, Query, Visit};
use atoll_meta::Status;
use atoll_stream::{ExecOptions, ExecSession, Outcome, Purpose, Session, accept};
use futures::FutureExt as _;
use http::Response;

use super::container::{Container, find};
use super::network::Reach;
use super::{mounted, session};
use crate::shell::Shell;
use crate::world::World;

/// Answers a request to run a command.
pub fn serve(world: Arc<World>, mut visit: Visit) -> Result<Response<Body>, Status> {
    let query = Query::parse(visit.request.uri().query());
    let container = find(&world, &visit.target, query.get("container"))?;
    container.check_running()?;
    let command: Vec<String> = query.all("command").map(ToOwned::to_owned).collect();
    if command.is_empty() {
        return Err(Status::bad_request("you must specify at least one command for the container"));
    }
    let options = ExecOptions::from_query(visit.request.uri().query());
    let (answer, upgraded) = match accept(&mut visit.request, Purpose::Exec(options)) {
        Ok(accepted) => accepted,
        Err(refusal) => return Ok(refusal.response().map(Body::from)),
    };
    tokio::spawn(async move {
        let stop = world.stop.clone();
        let run = async {
            match upgraded.await {
                Ok(Session::Exec(session)) => run(&world, &container, &command, options, *session).boxed().await,
                Ok(Session::PortForward(_)) => {}
                Err(error) => tracing::debug!(%error, "exec did not come about"),
            }
        };
        tokio::select! {
            () = run => {}
            () = stop.cancelled() => {}
        }
    });
    Ok(answer.map(|()| Body::empty()))
}

/// Whether a command is a shell that reads what to do from its input.
fn is_interactive(command: &[String]) -> bool {
    let name = command[0].rsplit('/').next().unwrap_or_default();
    let shell = matches!(name, "sh" | "bash" | "ash" | "dash");
    shell && command[1..].iter().all(|word| word.starts_with('-') && !word.contains('c'))
}

/// Whether the main process of a container is a shell that waits for somebody.
pub fn runs_a_shell(spec: &serde_json::Value) -> bool {
    let words = |field: &str| {
        spec[field].as_array().into_iter().flatten().filter_map(|word| word.as_str()).map(ToOwned::to_owned)
    };
    let command: Vec<String> = words("command").chain(words("args")).collect();
    command.is_empty() || is_interactive(&command)
}

/// Whether a command reads its input to the end.
fn reads_input(command: &[String]) -> bool {
    const READERS: [&str; 7] = ["cat", "tee", "tar", "wc", "grep", "head", "read"];
    command.iter().flat_map(|word| word.split(|c: char| !c.is_alphanumeric())).any(|word| READERS.contains(&word))
}

async fn run(world: &World, container: &Container, command: &[String], options: ExecOptions, mut exec: ExecSession) {
    let variables = mounted::variables(world, container).await;
    let mut disk = mounted::files(world, container).await;
    let reach = Reach::new(world, &container.pod);
    let closed = exec.closed();
    let outcome = if options.stdin && is_interactive(command) {
        let mut shell = Shell::new(&variables, &mut disk.files, world.now()).with(&reach);
        let code = tokio::select! {
            code = session::interact(&mut exec, &mut shell, options.tty) => code,
            () = closed.cancelled() => 0,
        };
        mounted::keep(world, container, disk);
        Outcome::of_exit_code(code)
    } else {
        let mut input = Vec::new();
        if let Some(stdin) = exec.stdin.as_mut().filter(|_| reads_input(command)) {
            while let Some(piece) = stdin.next().await {
                input.extend_from_slice(&piece);
            }
        }
        let mut shell = Shell::new(&variables, &mut disk.files, world.now()).with(&reach);
        let (pieces, ending) = shell.run(command, input);
        mounted::keep(world, container, disk);
        tokio::select! {
            outcome = session::play(&mut exec, pieces, ending, options.tty) => outcome,
            () = closed.cancelled() => Outcome::Success,
        }
    };
    exec.finish(outcome).await;
}
