//! Single objects: read, made, changed and deleted in the instance, as the caller.

use atoll_apiserver::Verb;
use atoll_meta::{Gvr, Status};
use atoll_runtime::{Endpoint, Patch};
use prost_reflect::MethodDescriptor;
use serde_json::{Value, json};

use super::{list, policy, wrap};
use crate::ask::{self, Ask};
use crate::context::Ctx;
use crate::kinds::{CONFIG_MAP, Kind, SECRET};

/// How often a replacement without a resourceVersion is tried against others' changes.
const TRIES: usize = 5;

/// The namespace a request is about; `None` outside namespaces.
fn namespace<'a>(kind: &Kind, input: &'a Value) -> Result<Option<&'a str>, Status> {
    if !kind.namespaced {
        return Ok(None);
    }
    let text = input["namespace"].as_str().unwrap_or_default();
    ask::segment("namespace", text)?;
    Ok(Some(text))
}

/// Reads one object whole: what is edited must not lack anything.
pub async fn get(ctx: &Ctx, kind: &Kind, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let (instance, name) = (ask.segment("instance")?, ask.segment("name")?);
    let object = ctx.endpoint(instance).await?.get(&kind.gvr(), namespace(kind, input)?, name).await?;
    answer(ctx, kind, instance, method, object).await
}

async fn answer(
    ctx: &Ctx,
    kind: &Kind,
    instance: &str,
    method: &MethodDescriptor,
    mut object: Value,
) -> Result<Value, Status> {
    let raw =
        method.output().get_field_by_name("data").is_some() && method.output().get_field_by_name("metadata").is_none();
    if raw {
        if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove("managedFields");
        }
        return Ok(wrap(method, &object));
    }
    let shaped = list::shaped(ctx, kind, instance, vec![object]).await?;
    Ok(wrap(method, shaped.first().unwrap_or(&Value::Null)))
}

/// Makes an object from text.
pub async fn create(ctx: &Ctx, kind: &Kind, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let instance = Ask(input).segment("instance")?;
    let object = prepared(kind, input, None)?;
    let made = ctx.endpoint(instance).await?.create(&kind.gvr(), namespace(kind, input)?, &object).await?;
    ctx.settle(instance, kind, &made).await;
    answer(ctx, kind, instance, method, made).await
}

/// The object in `data`, in the right place and without what must not be written back.
pub fn prepared(kind: &Kind, input: &Value, name: Option<&str>) -> Result<Value, Status> {
    let mut object = ask::object(Ask(input).text("data"))?;
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    for (key, wanted) in [("namespace", namespace(kind, input)?), ("name", name)] {
        let Some(wanted) = wanted else { continue };
        match object["metadata"][key].as_str().filter(|own| !own.is_empty()) {
            Some(own) if own != wanted => {
                return Err(Status::bad_request(format!("metadata.{key} is {own:?} but the path says {wanted:?}")));
            }
            _ => object["metadata"][key] = wanted.into(),
        }
    }
    if !kind.kind.is_empty() && object["kind"].is_null() {
        object["kind"] = (&*kind.kind).into();
        object["apiVersion"] = kind.api_version().into();
    }
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        // Marks of a search index are not part of an object.
        annotations.retain(|key, _| !key.starts_with("shadow.clusterpedia.io/"));
    }
    Ok(object)
}

/// Replaces an object.
pub async fn update(ctx: &Ctx, kind: &Kind, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let instance = Ask(input).segment("instance")?;
    let mut object = prepared(kind, input, Ask(input).segment_opt("name")?)?;
    if let Some(version) = &ctx.wish.resource_version {
        object["metadata"]["resourceVersion"] = version.as_str().into();
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    ask::segment("metadata.name", &name)?;
    let endpoint = ctx.endpoint(instance).await?;
    let done = replace(&endpoint, &kind.gvr(), namespace(kind, input)?, &name, object).await?;
    ctx.settle(instance, kind, &done).await;
    answer(ctx, kind, instance, method, done).await
}

/// Replaces an object; one that names no resourceVersion replaces whatever there is.
pub async fn replace(
    endpoint: &Endpoint,
    gvr: &Gvr,
    namespace: Option<&str>,
    name: &str,
    mut object: Value,
) -> Result<Value, Status> {
    let given = object["metadata"]["resourceVersion"].as_str().is_some_and(|text| !text.is_empty());
    let mut last = Status::internal("not tried");
    for _ in 0..TRIES {
        match endpoint.get(gvr, namespace, name).await {
            Ok(present) => {
                if !given {
                    object["metadata"]["resourceVersion"] = present["metadata"]["resourceVersion"].clone();
                }
                keep_ids(&present, &mut object);
            }
            // Who may write but not read says everything themselves.
            Err(status) if given && status.code == 403 => {}
            Err(status) => return Err(status),
        }
        match endpoint.update(gvr, namespace, name, &object).await {
            Err(status) if status.code == 409 && !given => last = status,
            result => return result,
        }
    }
    Err(last)
}

/// Ids that the instance gave to an object stay, though who writes it need not know them.
fn keep_ids(present: &Value, object: &mut Value) {
    // Labels that are none are refused by the instance.
    if !matches!(object["metadata"]["labels"], Value::Null | Value::Object(_)) {
        return;
    }
    for (key, id) in present["metadata"]["labels"].as_object().into_iter().flatten() {
        if key.ends_with("/permanent-id") && object["metadata"]["labels"].get(key).is_none() {
            object["metadata"]["labels"][key] = id.clone();
        }
    }
}

/// Changes a part: a merge patch as text, or a map of entries.
pub async fn patch(ctx: &Ctx, kind: &Kind, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let (instance, name) = (ask.segment("instance")?, ask.segment("name")?);
    let mut change = match &input["data"] {
        Value::String(text) => ask::object(text)?,
        // Entries of what such objects mostly hold: data, or annotations.
        entries if *kind == CONFIG_MAP => json!({"data": entries}),
        entries if *kind == SECRET => json!({"stringData": entries}),
        entries => json!({"metadata": {"annotations": entries}}),
    };
    if let Some(version) = &ctx.wish.resource_version {
        if !matches!(change["metadata"], Value::Null | Value::Object(_)) {
            return Err(Status::bad_request("metadata: not an object"));
        }
        change["metadata"]["resourceVersion"] = version.as_str().into();
    }
    let endpoint = ctx.endpoint(instance).await?;
    let done = endpoint.patch(&kind.gvr(), namespace(kind, input)?, name, "", Patch::Merge, &change).await?;
    ctx.settle(instance, kind, &done).await;
    answer(ctx, kind, instance, method, done).await
}

/// Deletes an object; policies in use stay.
pub async fn delete(ctx: &Ctx, kind: &Kind, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let (instance, name) = (ask.segment("instance")?, ask.segment("name")?);
    let endpoint = ctx.endpoint(instance).await?;
    let namespace = namespace(kind, input)?;
    // Only who may delete learns whether it is in use.
    if policy::is_policy(kind) && ctx.may_in(instance, Verb::Delete, &kind.gvr(), namespace.unwrap_or_default()).await?
    {
        policy::refuse_if_used(ctx, kind, instance, namespace.unwrap_or_default(), name).await?;
    }
    // A missing object is told: the caller named it.
    let before = endpoint.get(&kind.gvr(), namespace, name).await?;
    let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background", "preconditions": {"uid": before["metadata"]["uid"]}});
    if let Some(version) = &ctx.wish.resource_version {
        options["preconditions"]["resourceVersion"] = version.as_str().into();
    }
    endpoint.delete(&kind.gvr(), namespace, name, &options).await?;
    if !ctx.wish.dry_run {
        gone(ctx, kind, instance, namespace.unwrap_or_default(), name).await;
    }
    Ok(json!({}))
}

/// Waits a little until a deleted object is no longer found, so that the next list does not show it.
async fn gone(ctx: &Ctx, kind: &Kind, instance: &str, namespace: &str, name: &str) {
    for _ in 0..30 {
        let found = list::find(ctx, kind, instance, namespace, name).await;
        if !matches!(found, Ok(Some(object)) if object["metadata"]["deletionTimestamp"].is_null()) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_when_an_object_is_written_without_them() {
        let present = json!({"metadata": {"labels": {"p.karmada.io/permanent-id": "1", "app": "old"}}});
        let mut object = json!({"metadata": {"name": "p"}});
        keep_ids(&present, &mut object);
        assert_eq!(object, json!({"metadata": {"name": "p", "labels": {"p.karmada.io/permanent-id": "1"}}}));
        // One that was given is judged by the instance.
        let mut other = json!({"metadata": {"labels": {"p.karmada.io/permanent-id": "2"}}});
        keep_ids(&present, &mut other);
        assert_eq!(other["metadata"]["labels"]["p.karmada.io/permanent-id"], "2");
        // What is no map of labels stays as it is, to be refused by the instance.
        for labels in [json!("text"), json!(["a"]), json!(1), json!(true)] {
            let odd = json!({"metadata": {"labels": labels}});
            let mut written = odd.clone();
            keep_ids(&present, &mut written);
            assert_eq!(written, odd);
        }
    }
}
