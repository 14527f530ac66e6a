//! `pods/log`: what a container said, and says.

use std::sync::Arc;

use atoll_apiserver::{Body, BodyError, Query, Visit, response};
use atoll_meta::Status;
use atoll_stream::{is_upgrade, narrate};
use bytes::Bytes;
use futures::StreamExt as _;
use http::Response;
use jiff::Timestamp;
use serde_json::Value;

use super::container::{Container, find};
use crate::time;
use crate::world::World;

/// What part of a log is wanted.
#[derive(Clone, Debug, Default)]
struct Wanted {
    follow: bool,
    previous: bool,
    timestamps: bool,
    tail: Option<usize>,
    since: Option<Timestamp>,
    limit: Option<usize>,
}

impl Wanted {
    fn read(query: &Query, now: Timestamp) -> Result<Self, Status> {
        let number = |name: &str| -> Result<Option<usize>, Status> {
            Ok(query.number(name)?.and_then(|number| usize::try_from(number).ok()))
        };
        let seconds = query.number("sinceSeconds")?.map(|seconds| time::plus(now, -seconds));
        Ok(Self {
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            tail: number("tailLines")?,
            since: query.get("sinceTime").and_then(atoll_meta::time::parse).or(seconds),
            limit: number("limitBytes")?,
        })
    }

    fn text(&self, lines: &[(Timestamp, String)]) -> String {
        let mut out = String::new();
        for (at, line) in lines {
            if self.timestamps {
                out.push_str(&atoll_meta::time::format_micro(*at));
                out.push(' ');
            }
            out.push_str(line);
            out.push('\n');
        }
        out
    }

    fn choose(&self, mut lines: Vec<(Timestamp, String)>) -> Vec<(Timestamp, String)> {
        if let Some(since) = self.since {
            lines.retain(|(at, _)| *at >= since);
        }
        if let Some(tail) = self.tail {
            lines.drain(..lines.len().saturating_sub(tail));
        }
        lines
    }
}

/// Answers a request for a log.
pub fn serve(world: Arc<World>, mut visit: Visit) -> Result<Response<Body>, Status> {
    let query = Query::parse(visit.request.uri().query());
    let now = world.now();
    let wanted = Wanted::read(&query, now)?;
    let container = find(&world, &visit.target, query.get("container"))?;
    let run = run(&container, wanted.previous)?;
    let lines = wanted.choose(container.said(&world, &run, now));
    let mut text = wanted.text(&lines);
    if let Some(limit) = wanted.limit {
        text.truncate(text.floor_char_boundary(limit));
    }
    let live = run.get("finishedAt").is_none();
    if !(wanted.follow && live && !wanted.previous) {
        let once = futures::stream::iter([Bytes::from(text.clone())]);
        return over_websocket(&mut visit, once).unwrap_or_else(|| Ok(response(200, "text/plain", text)));
    }
    if is_upgrade(visit.request.headers()).is_some() {
        let pieces = follow(world, container, wanted, text, now).filter_map(|piece| std::future::ready(piece.ok()));
        let refused = || Err(Status::bad_request("the log is told over HTTP or a websocket"));
        return over_websocket(&mut visit, pieces).unwrap_or_else(refused);
    }
    Ok(response(200, "text/plain", Body::stream(follow(world, container, wanted, text, now))))
}

/// Tells a log over a websocket, if the caller wants one.
fn over_websocket(
    visit: &mut Visit,
    pieces: impl futures::Stream<Item = Bytes> + Send + 'static,
) -> Option<Result<Response<Body>, Status>> {
    let answer = narrate(&mut visit.request, pieces)?;
    Some(Ok(match answer {
        Ok(response) => response.map(|()| Body::empty()),
        Err(refusal) => refusal.response().map(Body::from),
    }))
}

/// The run of a container whose log is wanted.
fn run(container: &Container, previous: bool) -> Result<Value, Status> {
    let (name, pod) = (&container.name, container.pod.name());
    if previous {
        return container.status["lastState"].get("terminated").cloned().ok_or_else(|| {
            Status::bad_request(format!("previous terminated container {name:?} in pod {pod:?} not found"))
        });
    }
    let state = &container.status["state"];
    if let Some(run) = state.get("running").or(state.get("terminated")) {
        return Ok(run.clone());
    }
    if let Some(last) = container.status["lastState"].get("terminated") {
        return Ok(last.clone());
    }
    let reason = match state["waiting"]["reason"].as_str() {
        Some("ImagePullBackOff" | "ErrImagePull") => "trying and failing to pull image",
        Some(reason) => reason,
        None => "ContainerCreating",
    };
    Err(Status::bad_request(format!("container {name:?} in pod {pod:?} is waiting to start: {reason}")))
}

/// The log from its chosen beginning on, line by line as the container speaks, until it ends.
fn follow(
    world: Arc<World>,
    container: Container,
    wanted: Wanted,
    first: String,
    told: Timestamp,
) -> impl futures::Stream<Item = Result<Bytes, BodyError>> {
    let state = (world, container, wanted, Some(first), told);
    futures::stream::unfold(state, |(world, container, wanted, first, told)| async move {
        if let Some(first) = first {
            return Some((Ok(Bytes::from(first)), (world, container, wanted, None, told)));
        }
        let (text, told) = next(&world, &container, &wanted, told).await?;
        Some((Ok(Bytes::from(text)), (world, container, wanted, None, told)))
    })
}

/// The next lines of a running container; `None` when it has ended.
pub async fn next_lines(
    world: &World,
    container: &Container,
    told: Timestamp,
) -> Option<(Vec<(Timestamp, String)>, Timestamp)> {
    let begin = container.status["state"]["running"]["startedAt"].clone();
    loop {
        let changed = world.pods_changed.notified();
        let now = world.now();
        let current = container.refreshed(world)?;
        let state = &current.status["state"];
        let run = state.get("running").or(state.get("terminated")).filter(|run| run["startedAt"] == begin);
        let run = run.or(current.status["lastState"].get("terminated").filter(|run| run["startedAt"] == begin))?;
        let mut lines = current.said(world, run, now);
        lines.retain(|(at, _)| *at > told);
        if !lines.is_empty() {
            return Some((lines, now));
        }
        if run.get("finishedAt").is_some() {
            return None;
        }
        let pause = current.says_next(world, now).map(|at| time::until(now, at) + std::time::Duration::from_millis(5));
        tokio::select! {
            () = changed => {}
            () = world.stop.cancelled() => return None,
            () = tokio::time::sleep(pause.unwrap_or(std::time::Duration::from_secs(3600))) => {}
        }
    }
}

async fn next(world: &World, container: &Container, wanted: &Wanted, told: Timestamp) -> Option<(String, Timestamp)> {
    let (lines, told) = next_lines(world, container, told).await?;
    Some((wanted.text(&lines), told))
}
