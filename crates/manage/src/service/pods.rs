//! Logs of pods in members, for who may read them in the instance.

use std::time::Duration;

use atoll_apiserver::{Target, Verb};
use atoll_meta::Status;
use base64::Engine as _;
use bytes::Bytes;
use futures::StreamExt as _;
use http::Method;
use serde_json::{Value, json};

use crate::api::Reply;
use crate::ask::Ask;
use crate::context::Ctx;

/// How often the right to a log that is followed is looked at.
const CHECK: Duration = Duration::from_millis(500);

/// A pod's part, as roles know it.
pub fn target(namespace: &str, name: &str, part: &str) -> Target {
    Target {
        version: "v1".into(),
        resource: "pods".into(),
        namespace: namespace.into(),
        name: name.into(),
        subresource: part.into(),
        ..Target::default()
    }
}

/// Hands out the log of a pod; a log that is followed ends with the right to it.
pub async fn logs(ctx: &Ctx, input: &Value) -> Result<Reply, Status> {
    let ask = Ask(input);
    let (instance, member) = (ask.segment("instance")?.to_owned(), ask.segment("cluster")?);
    let (namespace, name) = (ask.segment("namespace")?, ask.segment("name")?);
    let target = target(namespace, name, "log");
    ctx.may_sub(&instance, &target, Verb::Get).await?;
    let mut path = format!("/api/v1/namespaces/{namespace}/pods/{name}/log?follow={}", input["follow"] == true);
    if let Some(container) = ask.segment_opt("container")? {
        path.push_str(&format!("&container={container}"));
    }
    for (key, field) in [("previous", "previous"), ("timestamps", "timestamps")] {
        if input[field] == true {
            path.push_str(&format!("&{key}=true"));
        }
    }
    for (key, number) in [("tailLines", ask.number("tailLines")), ("sinceSeconds", ask.number("sinceSeconds"))] {
        if number > 0 {
            path.push_str(&format!("&{key}={number}"));
        }
    }
    let answer = ctx.member(&instance, member).await?.open(Method::GET, &path, "", Bytes::new()).await?;
    let code = answer.status().as_u16();
    let mut body = answer.into_body();
    if code >= 400 {
        let mut text = Vec::new();
        while let Some(Ok(piece)) = body.next().await {
            text.extend_from_slice(&piece);
        }
        return Err(Status::from_json(code, &text));
    }
    let check = tokio::time::interval(CHECK);
    let state = (body, check, ctx.clone(), instance, target);
    Ok(Reply::Many(Box::pin(futures::stream::unfold(
        state,
        |(mut body, mut check, ctx, instance, target)| async move {
            loop {
                let piece = tokio::select! {
                    _ = check.tick() => match ctx.may_sub(&instance, &target, Verb::Get).await {
                        Err(status) if status.code == 403 => return None,
                        _ => continue,
                    },
                    piece = body.next() => piece?,
                };
                let told = match piece {
                    Ok(bytes) => Ok(json!({"data": base64::engine::general_purpose::STANDARD.encode(&bytes)})),
                    Err(error) => Err(Status::unavailable(error.to_string())),
                };
                return Some((told, (body, check, ctx, instance, target)));
            }
        },
    ))))
}
