//! `clusters/*/proxy`: one question to all members.

use std::sync::Arc;

use atoll_api::words::annotation;
use atoll_apiserver::{Body, Connect, Hub, Incoming, Instance, Visit};
use atoll_meta::{Key, Status};
use bytes::BytesMut;
use futures::future::{BoxFuture, join_all};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

/// Largest answer of one member that is merged.
const LARGEST: usize = 64 * 1024 * 1024;

/// Asks every cluster of an instance through `way`: lists are merged, of single objects there may be one.
pub async fn ask(way: &dyn Connect, visit: Visit) -> Result<Response<Body>, Status> {
    let query = visit.request.uri().query().unwrap_or_default();
    let follows = query.split('&').any(|part| matches!(part, "watch" | "watch=true" | "watch=1"));
    if visit.request.method() != Method::GET || follows {
        return Err(Status::bad_request("all clusters at once can only be asked to get or to list"));
    }
    let names = clusters(visit.hub.clone(), visit.instance.clone()).await?;
    let asked = names.iter().map(|name| {
        let question = question(&visit, name);
        async move { (name.as_str(), read(way.connect(question).await).await) }
    });
    let answers = join_all(asked).await;
    let answer = merge(answers.into_iter().map(|(name, answer)| (name.to_owned(), answer)).collect())?;
    let body = serde_json::to_vec(&answer).map_err(Status::internal)?;
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn clusters(hub: Arc<Hub>, instance: Arc<Instance>) -> BoxFuture<'static, Result<Vec<String>, Status>> {
    Box::pin(async move {
        let prefix = Key::prefix("cluster.karmada.io", "clusters", "");
        let snapshot = hub.snapshot(&instance).await?;
        Ok(snapshot.range(&prefix, None).map(|(_, entry)| entry.object.head.name.to_string()).collect())
    })
}

/// The same question for one cluster; the answer has to be such that it can be merged.
fn question(visit: &Visit, cluster: &str) -> Visit {
    let mut request = Request::new(Incoming::default());
    *request.uri_mut() = visit.request.uri().clone();
    *request.headers_mut() = visit.request.headers().clone();
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    let mut target = visit.target.clone();
    cluster.clone_into(&mut target.name);
    Visit {
        hub: visit.hub.clone(),
        instance: visit.instance.clone(),
        identity: visit.identity.clone(),
        target,
        path: visit.path.clone(),
        request,
    }
}

async fn read(answer: Result<Response<Body>, Status>) -> Result<Value, Status> {
    let (parts, mut body) = answer?.into_parts();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Status::unavailable(format!("the answer could not be read: {error}")))?;
        if let Ok(piece) = frame.into_data() {
            if all.len() + piece.len() > LARGEST {
                return Err(Status::too_large(format!("limit is {LARGEST}")));
            }
            all.extend_from_slice(&piece);
        }
    }
    let tree: Value = serde_json::from_slice(&all).map_err(|_| Status::unavailable("the answer is not JSON"))?;
    if parts.status.is_success() {
        return Ok(tree);
    }
    let message = tree["message"].as_str().unwrap_or_default().to_owned();
    let reason = serde_json::from_value(tree["reason"].clone()).unwrap_or(atoll_meta::Reason::Unknown);
    Err(Status::new(parts.status.as_u16(), reason, message))
}

/// One answer out of many. A list without the part of a cluster that fails would look like the truth, so it fails.
fn merge(answers: Vec<(String, Result<Value, Status>)>) -> Result<Value, Status> {
    let mut found: Vec<(String, Value)> = Vec::new();
    let mut refusals: Vec<Status> = Vec::new();
    for (cluster, answer) in answers {
        match answer {
            Ok(tree) => found.push((cluster, tree)),
            Err(status) => {
                refusals.push(Status { message: format!("cluster {cluster}: {}", status.message), ..status })
            }
        }
    }
    if let Some(at) = refusals.iter().position(|status| status.code != 404) {
        return Err(refusals.swap_remove(at));
    }
    if found.iter().any(|(_, tree)| tree["items"].is_array()) {
        return Ok(lists(found));
    }
    match (found.len(), refusals.pop()) {
        (1, _) => Ok(found.remove(0).1),
        (0, Some(status)) => Err(status),
        (0, None) => Err(Status::unavailable("no cluster has joined")),
        _ => {
            let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
            let why = format!("it is in more than one cluster: {}", names.join(", "));
            Err(Status::new(409, atoll_meta::Reason::Conflict, why))
        }
    }
}

fn lists(found: Vec<(String, Value)>) -> Value {
    let mut whole = json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": ""}});
    let mut items = Vec::new();
    for (cluster, mut tree) in found {
        for field in ["kind", "apiVersion"] {
            whole[field] = tree[field].take();
        }
        for mut item in tree["items"].as_array_mut().map(std::mem::take).unwrap_or_default() {
            if !item["metadata"]["annotations"].is_object() {
                item["metadata"]["annotations"] = json!({});
            }
            item["metadata"]["annotations"][annotation::CACHED_FROM_CLUSTER] = cluster.as_str().into();
            items.push(item);
        }
    }
    whole["items"] = items.into();
    whole
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lists_are_merged_and_single_objects_must_be_single() {
        let one = |name: &str| json!({"kind": "Pod", "metadata": {"name": name}});
        let list = |names: &[&str]| json!({"kind": "PodList", "apiVersion": "v1", "items": names.iter().map(|name| one(name)).collect::<Vec<_>>()});
        let absent = || Err(Status::not_found("", "pods", "a"));
        let both =
            merge(vec![("m1".into(), Ok(list(&["a"]))), ("m2".into(), Ok(list(&["a", "b"]))), ("m3".into(), absent())]);
        let both = both.unwrap();
        assert_eq!((&both["kind"], both["items"].as_array().unwrap().len()), (&json!("PodList"), 3));
        assert_eq!(both["items"][1]["metadata"]["annotations"][annotation::CACHED_FROM_CLUSTER], "m2");
        assert_eq!(merge(vec![("m1".into(), absent()), ("m2".into(), Ok(one("a")))]).unwrap(), one("a"));
        let refused = |answers| merge(answers).unwrap_err();
        assert_eq!(refused(vec![("m1".into(), Ok(one("a"))), ("m2".into(), Ok(one("a")))]).code, 409);
        assert_eq!(refused(vec![("m1".into(), absent())]).code, 404);
        let lost = || Err(Status::unavailable("gone"));
        let status = refused(vec![("m1".into(), Ok(list(&["a"]))), ("m2".into(), lost())]);
        assert_eq!((status.code, status.message.as_str()), (503, "cluster m2: gone"));
        assert_eq!(refused(Vec::new()).code, 503);
    }
}
