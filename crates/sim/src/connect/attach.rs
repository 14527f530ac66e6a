//! `pods/attach`: the streams of a container that runs already.

use std::sync::Arc;

use atoll_apiserver::{Body, Query, Visit};
use atoll_meta::Status;
use atoll_stream::{ExecOptions, ExecSession, Outcome, Purpose, Session, accept};
use http::Response;
use tokio::io::AsyncWriteExt as _;

use super::container::{Container, find};
use super::network::Reach;
use super::{exec, logs, mounted, session};
use crate::shell::Shell;
use crate::world::World;

/// Answers a request to attach.
pub fn serve(world: Arc<World>, mut visit: Visit) -> Result<Response<Body>, Status> {
    let query = Query::parse(visit.request.uri().query());
    let container = find(&world, &visit.target, query.get("container"))?;
    container.check_running()?;
    let options = ExecOptions::from_query(visit.request.uri().query());
    let (answer, upgraded) = match accept(&mut visit.request, Purpose::Exec(options)) {
        Ok(accepted) => accepted,
        Err(refusal) => return Ok(refusal.response().map(Body::from)),
    };
    tokio::spawn(async move {
        match upgraded.await {
            Ok(Session::Exec(exec)) => watch(&world, &container, options, *exec).await,
            Ok(Session::PortForward(_)) => {}
            Err(error) => tracing::debug!(%error, "attach did not come about"),
        }
    });
    Ok(answer.map(|()| Body::empty()))
}

/// Shows what the container says until it ends or the caller leaves. One that waits for input
/// is a shell.
async fn watch(world: &World, container: &Container, options: ExecOptions, mut exec: ExecSession) {
    let closed = exec.closed();
    if options.stdin && container.spec["stdin"] == true && exec::runs_a_shell(&container.spec) {
        let variables = mounted::variables(world, container).await;
        let mut disk = mounted::files(world, container).await;
        let reach = Reach::new(world, &container.pod);
        let mut shell = Shell::new(&variables, &mut disk.files, world.now()).with(&reach);
        let code = tokio::select! {
            code = session::interact(&mut exec, &mut shell, options.tty) => code,
            () = closed.cancelled() => 0,
        };
        mounted::keep(world, container, disk);
        return exec.finish(Outcome::of_exit_code(code)).await;
    }
    let mut told = world.now();
    loop {
        let next = tokio::select! {
            next = logs::next_lines(world, container, told) => next,
            () = closed.cancelled() => None,
        };
        let Some((lines, until)) = next else { break };
        told = until;
        if let Some(stdout) = exec.stdout.as_mut() {
            let end = if options.tty { "\r\n" } else { "\n" };
            let text: String = lines.iter().map(|(_, line)| format!("{line}{end}")).collect();
            // Whoever listened is gone then; the session ends by itself.
            let _ = stdout.write_all(text.as_bytes()).await;
        }
    }
    exec.finish(Outcome::Success).await;
}
