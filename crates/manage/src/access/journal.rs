//! `GET /manage/v1alpha1/audit`: what was done and refused lately, for who may list `audits` in `root`.

use std::collections::VecDeque;
use std::io;

use atoll_apiserver::{Body, Verb, response};
use atoll_meta::Status;
use bytes::Bytes;
use futures::stream;
use http::Response;
use serde_json::Value;
use tokio::sync::broadcast;

use crate::audit::Line;
use crate::context::Ctx;

/// Where it is asked for.
pub const PATH: &str = "/manage/v1alpha1/audit";

/// So many older lines are given at once.
const PAGE: usize = 500;

/// A line of JSON for each; with `?watch=true` it goes on as long as the caller may see them, and with `?before=TIME` it is
/// those written before that.
pub async fn answer(ctx: Ctx, query: Option<&str>) -> Result<Response<Body>, Status> {
    if let Err(refusal) = may(&ctx).await {
        ctx.core.audit.record(&ctx.identity, "Audit.List", &Value::Null, Some(&refusal), ctx.core.hub.now());
        return Err(refusal);
    }
    let query = query.unwrap_or_default();
    if let Some(time) = query.split('&').find_map(|pair| pair.strip_prefix("before=")) {
        return older(ctx, time.replace("%3A", ":")).await;
    }
    let (past, coming) = ctx.core.audit.lately();
    if !query.split('&').any(|pair| pair == "watch=true") {
        return Ok(together(&past));
    }
    let state = (past, coming, ctx);
    let lines = stream::unfold(state, |(mut past, mut coming, ctx)| async move {
        let line = next(&mut past, &mut coming).await?;
        // Rights may be lost while somebody reads.
        may(&ctx).await.ok()?;
        Some((Ok(Bytes::from(format!("{line}\n"))), (past, coming, ctx)))
    });
    Ok(response(200, "application/json", Body::stream(lines)))
}

async fn older(ctx: Ctx, time: String) -> Result<Response<Body>, Status> {
    let read = tokio::task::spawn_blocking(move || ctx.core.audit.before(&time, PAGE)).await;
    let lines = read.map_err(io::Error::other).flatten();
    lines
        .map(|lines| together(&lines))
        .map_err(|error| Status::internal(format!("the audit file cannot be read: {error}")))
}

fn together(lines: &VecDeque<Line>) -> Response<Body> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    response(200, "application/json", text)
}

async fn next(past: &mut VecDeque<Line>, coming: &mut broadcast::Receiver<Line>) -> Option<Line> {
    loop {
        if let Some(line) = past.pop_front() {
            return Some(line);
        }
        match coming.recv().await {
            Ok(line) => return Some(line),
            // A slow reader misses some; all of them are in the file.
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return None,
        }
    }
}

async fn may(ctx: &Ctx) -> Result<(), Status> {
    ctx.may_in_root(Verb::List, "audits", "").await
}
