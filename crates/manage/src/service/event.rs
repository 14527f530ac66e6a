//! Events of an instance.

use atoll_index::Facet;
use atoll_meta::Status;
use prost_reflect::MethodDescriptor;
use serde_json::{Value, json};

use super::list::{self, Paging};
use crate::ask::Ask;
use crate::context::Ctx;
use crate::kinds::EVENT;

/// Events, the newest first.
pub async fn list(ctx: &Ctx, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let instance = ask.segment("instance")?;
    let mut asked = input.clone();
    // In this list the name is that of the object an event is about.
    asked["name"] = "".into();
    let query = list::query(&EVENT, instance, &asked)?;
    let page = ctx.core.index.query(&query, &*ctx.rights()).await?;
    let name = [ask.text("kindName"), ask.text("name")].into_iter().find(|text| !text.is_empty()).unwrap_or_default();
    let types: Vec<&str> = input["type"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|word| !word.ends_with("UNSPECIFIED"))
        .collect();
    let kind = ask.text("kind");
    let wanted = |event: &Value| {
        let about = &event["involvedObject"];
        (kind.is_empty() || about["kind"] == kind)
            && about["name"].as_str().is_none_or(|own| own.contains(name))
            && (types.is_empty() || types.iter().any(|word| event["type"] == *word))
    };
    let mut events: Vec<Value> = page.items.iter().map(atoll_index::Item::tree).filter(wanted).collect();
    for event in &mut events {
        if event["lastTimestamp"].is_null() {
            let other = [&event["eventTime"], &event["metadata"]["creationTimestamp"]];
            let time = other.into_iter().find(|time| !time.is_null()).cloned().unwrap_or_default();
            event["lastTimestamp"] = time;
        }
    }
    events.sort_by(|a, b| b["lastTimestamp"].as_str().cmp(&a["lastTimestamp"].as_str()));
    if ask.text("sortDir") == "asc" {
        events.reverse();
    }
    let (events, pagination) = Paging::of(input).cut(events);
    Ok(list::answer(method, events, pagination))
}

/// Kinds of objects that events are about.
pub async fn kinds(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let query = list::query(&EVENT, Ask(input).segment("instance")?, &json!({}))?;
    let mut kinds: Vec<String> = ctx
        .core
        .index
        .facet(&query, &Facet::Field("involvedObject.kind".into()), 1000, &*ctx.rights())
        .await?
        .into_iter()
        .map(|(kind, _)| kind)
        .collect();
    kinds.sort_unstable();
    Ok(json!({"data": kinds}))
}
