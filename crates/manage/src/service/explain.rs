//! Why something is where it is, and what a change would move: asked as the caller.

use atoll_fleet::{plan, why};
use atoll_meta::{Key, Status};
use serde_json::{Value, json};

use crate::ask::{self, Ask};
use crate::context::Ctx;

/// Runs a method of the explain service.
pub async fn call(ctx: &Ctx, method: &str, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let endpoint = ctx.endpoint(ask.segment("instance")?).await?;
    let settings = settings(ctx, ask.segment("instance")?).await?;
    if method == "GetWhy" {
        let (kind, namespace, name) = (ask.segment("kind")?, ask.segment("namespace")?, ask.segment("name")?);
        let trace = why::trace_with(&endpoint, &settings, kind, namespace, name).await?;
        return Ok(
            json!({"text": trace.to_string(), "trace": serde_json::to_string(&trace).map_err(Status::internal)?}),
        );
    }
    let now = ctx.core.hub.now();
    let moves = match (ask.text("policy"), ask.segment_opt("without")?) {
        ("", Some(cluster)) => plan::plan_without(&endpoint, &settings, cluster, now).await?.moves,
        (text, None) if !text.is_empty() => plan::plan(&endpoint, &settings, &ask::object(text)?, now).await?,
        _ => return Err(Status::bad_request("give either a policy or a cluster that might be lost")),
    };
    let moves: Vec<Value> = moves
        .iter()
        .filter(|step| !step.is_nothing())
        .map(|step| {
            let error = step.error.clone().unwrap_or_default();
            json!({"subject": step.subject, "before": step.before, "after": step.after, "error": error, "text": step.to_string()})
        })
        .collect();
    Ok(json!({"moves": moves}))
}

/// The settings of an instance, by which its fleet decides whoever asks; one elsewhere keeps them to itself.
async fn settings(ctx: &Ctx, instance: &str) -> Result<Value, Status> {
    let hub = &ctx.core.hub;
    let described = hub.read(&hub.root(), Key::new("atoll.io", "instances", "", instance).as_str()).await?;
    Ok(described.map(|entry| entry.object.tree(entry.modified)["metadata"]["annotations"].clone()).unwrap_or_default())
}
