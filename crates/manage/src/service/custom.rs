//! Objects of kinds that an instance defines itself.

use atoll_index::Item;
use atoll_meta::Status;
use atoll_runtime::Patch;
use prost_reflect::MethodDescriptor;
use serde_json::{Value, json};

use super::list::{self, Paging};
use super::{object, wrap};
use crate::ask::{self, Ask};
use crate::context::Ctx;
use crate::kinds::Kind;
use crate::pour::pour;

/// Runs one of the methods whose kind is in the request.
pub async fn call(ctx: &Ctx, name: &str, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let kind =
        Kind::of(ask.segment("group")?, ask.segment("version")?, ask.segment("resource")?, !name.contains("Cluster"));
    match name.trim_end_matches("JSON") {
        "ListCustomResources" | "ListClusterCustomResources" => list(ctx, &kind, method, input).await,
        "GetCustomResource" | "GetClusterCustomResource" => {
            let object = read(ctx, &kind, input).await?;
            if name.ends_with("JSON") {
                Ok(wrap(method, &object))
            } else {
                flat(ctx, &kind, input, object, method).await
            }
        }
        "CreateCustomResource" | "CreateClusterCustomResource" => object::create(ctx, &kind, method, input).await,
        "UpdateCustomResource" | "UpdateClusterCustomResource" => object::update(ctx, &kind, method, input).await,
        "DeleteCustomResource" | "DeleteClusterCustomResource" => object::delete(ctx, &kind, input).await,
        _ => patch(ctx, &kind, input).await,
    }
}

fn namespace<'a>(kind: &Kind, ask: &Ask<'a>) -> Result<Option<&'a str>, Status> {
    if kind.namespaced { ask.segment("namespace").map(Some) } else { Ok(None) }
}

async fn read(ctx: &Ctx, kind: &Kind, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    ctx.endpoint(ask.segment("instance")?).await?.get(&kind.gvr(), namespace(kind, &ask)?, ask.segment("name")?).await
}

/// The message has the metadata at its top.
fn raised(mut object: Value) -> Value {
    let meta = object["metadata"].clone();
    for key in ["name", "namespace", "creationTimestamp", "labels", "annotations"] {
        object[key] = meta[key].clone();
    }
    let told = |key: &str| meta["annotations"][key].as_str().map(ToOwned::to_owned);
    object["propagationpolicies"] =
        told(atoll_api::words::annotation::POLICY_NAME).into_iter().collect::<Vec<_>>().into();
    object
}

async fn flat(
    ctx: &Ctx,
    kind: &Kind,
    input: &Value,
    object: Value,
    method: &MethodDescriptor,
) -> Result<Value, Status> {
    let shaped = list::shaped(ctx, kind, Ask(input).segment("instance")?, vec![object]).await?;
    let object = shaped.into_iter().next().unwrap_or_default();
    Ok(pour(&raised(object), &method.output()))
}

async fn list(ctx: &Ctx, kind: &Kind, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let instance = Ask(input).segment("instance")?;
    let query = list::query(kind, instance, input)?;
    let found = match ctx.core.index.shelf(instance, &kind.group, &kind.resource) {
        Some(_) => ctx.core.index.query(&query, &*ctx.rights()).await?.items.iter().map(Item::tree).collect(),
        // Defined a moment ago: not followed yet.
        None => ctx.endpoint(instance).await?.list(&kind.gvr(), namespace(kind, &Ask(input))?, "").await?.items,
    };
    let (page, pagination) = Paging::of(input).cut(found);
    let shaped = list::shaped(ctx, kind, instance, page).await?;
    Ok(list::answer(method, shaped.into_iter().map(raised).collect(), pagination))
}

async fn patch(ctx: &Ctx, kind: &Kind, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let (instance, name) = (ask.segment("instance")?, ask.segment("name")?);
    let language = match ask.text("patchType") {
        "PATCH_TYPE_JSON" => Patch::Json,
        "PATCH_TYPE_STRATEGIC_MERGE" => Patch::Strategic,
        "PATCH_TYPE_APPLY" => Patch::Apply { manager: crate::context::AGENT, force: true },
        _ => Patch::Merge,
    };
    let change = ask::tree(ask.text("data"))?;
    let sub = input["subResources"].get(0).and_then(Value::as_str).unwrap_or_default();
    if !sub.is_empty() {
        ask::segment("subResources", sub)?;
    }
    let endpoint = ctx.endpoint(instance).await?;
    let done = endpoint.patch(&kind.gvr(), namespace(kind, &ask)?, name, sub, language, &change).await?;
    ctx.settle(instance, kind, &done).await;
    Ok(json!({"data": done.to_string()}))
}
