//! Copies of instances: everything one holds as of a moment, and back.

use std::sync::Arc;

use atoll_apiserver::Verb;
use atoll_apiserver::auth::{self, Attributes};
use atoll_meta::{Key, Object, Revision, Status};
use atoll_store::{Expect, Op, Write};
use serde_json::{Value, json};

use crate::api::Reply;
use crate::ask::Ask;
use crate::context::Ctx;
use crate::transcode::status::precondition;

/// How many objects one transaction puts back.
const AT_ONCE: usize = 100;

/// Runs a method of the backup service.
pub async fn call(ctx: &Ctx, method: &str, input: &Value) -> Result<Reply, Status> {
    let name = Ask(input).segment("instance")?;
    let hub = &ctx.core.hub;
    let Some(instance) = hub.instance(name) else {
        ctx.may_in_root(Verb::Get, "instances", name).await?;
        return Err(precondition("only instances of this hub can be copied; an external one is copied where it is"));
    };
    // A copy holds Secrets and roles: it is for who may do everything there.
    let everything = Attributes {
        verb: Verb::Get,
        verb_word: Some("*"),
        group: "*",
        version: "*",
        resource: "*",
        subresource: "",
        namespace: "",
        name: "",
        url: None,
    };
    auth::authorize(hub, &instance, &ctx.identity, &everything).await?;
    if method == "RestoreBackup" {
        return restore(ctx, &instance, input).await.map(Reply::One);
    }
    let snapshot = hub.snapshot(&instance).await?;
    let all: Vec<(Key, Arc<Object>)> =
        snapshot.range("", None).map(|(key, entry)| (key.clone(), entry.object.clone())).collect();
    Ok(Reply::Many(Box::pin(futures::stream::iter(
        all.into_iter()
            .map(|(key, object)| Ok(json!({"key": key.as_str(), "object": object.tree(Revision(0)).to_string()}))),
    ))))
}

async fn restore(ctx: &Ctx, instance: &atoll_apiserver::Instance, input: &Value) -> Result<Value, Status> {
    let mut writes = Vec::new();
    for piece in input["pieces"].as_array().into_iter().flatten() {
        let text = |field: &str| piece[field].as_str().unwrap_or_default();
        let wrong = |why: &dyn std::fmt::Display| Status::bad_request(format!("{}: {why}", text("key")));
        let tree: Value = serde_json::from_str(text("object")).map_err(|error| wrong(&error))?;
        let (meta, key) = (&tree["metadata"], text("key"));
        let named = meta["name"].as_str().is_some_and(|name| key.ends_with(&format!("/{name}")));
        if !named || key.len() > 1024 {
            return Err(wrong(&"the key does not fit the object"));
        }
        let object = Object::encode(&tree).map_err(|error| wrong(&error))?;
        writes.push(Write { key: Key::from_text(key), expect: Expect::Any, op: Op::Put(Arc::new(object)) });
    }
    let restored = writes.len();
    if !ctx.wish.dry_run {
        while !writes.is_empty() {
            let rest = writes.split_off(writes.len().min(AT_ONCE));
            let engine = ctx.core.hub.engine();
            engine.commit(instance.id, std::mem::replace(&mut writes, rest)).await.map_err(Status::internal)?;
        }
    }
    Ok(json!({"restored": restored}))
}
