//! Subresources that are parts or actions of a stored object.

use atoll_meta::Status;
use http::Response;
use serde_json::{Value, json};

use crate::body::Body;
use crate::call::Call;
use crate::registry::DeleteOptions;
use crate::request::Verb;

/// Answers a request on a subresource.
pub async fn dispatch(call: &Call, verb: Verb, body: &[u8]) -> Result<Response<Body>, Status> {
    let sub = call.target.subresource.clone();
    let Some(known) = call.kind.sub(&sub) else {
        return Err(match call.kind.custom() {
            Some(_) => call.not_found(),
            None => crate::service::unknown_resource(),
        });
    };
    if !known.verbs.iter().any(|own| **own == *verb.as_str()) {
        return Err(crate::service::unknown_method());
    }
    match (sub.as_str(), verb) {
        ("scale", Verb::Get) => call.get_scale().await,
        ("scale", Verb::Update) => call.set_scale(body, false).await,
        ("scale", Verb::Patch) => call.set_scale(body, true).await,
        ("finalize", Verb::Update) => finalize(call, body).await,
        ("approval", Verb::Update | Verb::Patch) => approval(call, verb, body).await,
        ("binding", Verb::Create) => bind(call, body).await,
        ("eviction", Verb::Create) => evict(call, body).await,
        ("token", Verb::Create) => crate::auth::token(call, body).await,
        (_, Verb::Get) => call.get().await,
        (_, Verb::Update) => call.update(&sub, body).await,
        (_, Verb::Patch) => call.patch(&sub, body).await,
        _ => Err(Status::method_not_allowed(&call.kind.group, &call.kind.plural, verb.as_str())),
    }
}

/// A namespace's own finalizers are changed only here.
async fn finalize(call: &Call, body: &[u8]) -> Result<Response<Body>, Status> {
    let given = call.decode(body)?;
    let dry_run = call.query.dry_run()?;
    let stored = call
        .modify("finalize", dry_run, |old| {
            let mut new = old.clone(); // only the finalizers change
            new["metadata"]["resourceVersion"] =
                given["metadata"]["resourceVersion"].as_str().unwrap_or_default().into();
            new["spec"]["finalizers"] = match &given["spec"]["finalizers"] {
                Value::Null => json!([]),
                list => list.clone(),
            };
            Ok(new)
        })
        .await?;
    call.object(200, &stored.entry, stored.revision)
}

/// Only the conditions of a signing request change here.
async fn approval(call: &Call, verb: Verb, body: &[u8]) -> Result<Response<Body>, Status> {
    if verb == Verb::Patch {
        return call.patch("approval", body).await;
    }
    let given = call.decode(body)?;
    let dry_run = call.query.dry_run()?;
    let stored = call
        .modify("approval", dry_run, |old| {
            let mut new = old.clone(); // only the conditions change
            new["metadata"]["resourceVersion"] =
                given["metadata"]["resourceVersion"].as_str().unwrap_or_default().into();
            new["status"]["conditions"] = given["status"]["conditions"].clone();
            Ok(new)
        })
        .await?;
    call.object(200, &stored.entry, stored.revision)
}

/// The scheduler's decision: sets the node of a pod, once.
async fn bind(call: &Call, body: &[u8]) -> Result<Response<Body>, Status> {
    let media = crate::negotiate::content(&call.headers)?;
    let (binding, _) = crate::decode::parse(media, body)?;
    let node = binding["target"]["name"].as_str().unwrap_or_default().to_owned();
    if node.is_empty() {
        // The original has no kinder word for it.
        return Err(Status::new(500, atoll_meta::Reason::Unknown, "target.name: Required value"));
    }
    let now = call.timestamp();
    let conflict = |why: String| Status::conflict("", "pods/binding", &call.target.name, why);
    call.modify("binding", call.query.dry_run()?, |old| {
        let mut new = old.clone(); // only the node and one condition change
        let bound = old["spec"]["nodeName"].as_str().unwrap_or_default();
        if !old["metadata"]["deletionTimestamp"].is_null() {
            return Err(conflict(format!("pod {} is being deleted, cannot be assigned to a host", call.target.name)));
        }
        if !bound.is_empty() {
            return Err(conflict(format!("pod {} is already assigned to node {bound:?}", call.target.name)));
        }
        new["spec"]["nodeName"] = node.clone().into();
        for field in ["annotations", "labels"] {
            if let Some(extra) = binding["metadata"][field].as_object() {
                for (key, value) in extra {
                    new["metadata"][field][key] = value.clone();
                }
            }
        }
        let mut status = std::mem::take(&mut new["status"]);
        crate::crd::set_condition(&mut status, "PodScheduled", ("True", "", String::new()), &now);
        for condition in
            status["conditions"].as_array_mut().into_iter().flatten().filter(|c| c["type"] == "PodScheduled")
        {
            if let Some(map) = condition.as_object_mut() {
                map.retain(|_, value| value != "");
                map.insert("lastProbeTime".into(), Value::Null);
            }
        }
        new["status"] = status;
        new["metadata"]["resourceVersion"] = "".into();
        Ok(new)
    })
    .await?;
    Ok(crate::respond::json(
        201,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    ))
}

/// Deletion that respects disruption budgets.
async fn evict(call: &Call, body: &[u8]) -> Result<Response<Body>, Status> {
    let media = crate::negotiate::content(&call.headers)?;
    let (eviction, _) = crate::decode::parse(media, body)?;
    let named = eviction["metadata"]["name"].as_str().unwrap_or_default();
    if !named.is_empty() && named != call.target.name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let options: DeleteOptions = serde_json::from_value(eviction["deleteOptions"].clone()).unwrap_or_default();
    crate::disruption::check(call).await?;
    call.evict(&options).await?;
    Ok(crate::respond::json(
        201,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    ))
}
