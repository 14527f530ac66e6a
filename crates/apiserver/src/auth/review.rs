//! Reviews: questions to the server that look like objects but are never stored.

use atoll_meta::Status;
use http::Response;
use serde_json::{Map, Value, json};

use super::access;
use super::authenticate::token_of;
use crate::body::Body;
use crate::call::Call;
use crate::identity::Identity;
use crate::kind::Kind;
use crate::negotiate::{self, Offer};
use crate::request::Verb;

/// Whether a kind is a question to the server rather than an object.
pub fn is_review(kind: &Kind) -> bool {
    matches!(&*kind.group, "authentication.k8s.io" | "authorization.k8s.io") && kind.custom().is_none()
}

/// Answers a review.
pub async fn review(call: &Call, verb: Verb, body: &[u8]) -> Result<Response<Body>, Status> {
    if verb != Verb::Create || !call.target.name.is_empty() {
        return Err(crate::service::unknown_method());
    }
    // A review has no other forms: a table of it means nothing.
    let accept = negotiate::accept(&call.headers, Offer { protobuf: true, list: false, watch: false, forms: false })?;
    call.query.dry_run()?;
    let mut object = call.decode(body)?;
    describe(call, &mut object)?;
    let status = match &*call.kind.kind {
        "TokenReview" => token_review(call, &mut object).await?,
        "SelfSubjectReview" => json!({"userInfo": user_info(&call.identity)}),
        "SubjectAccessReview" => access::subject(call, &object).await?,
        "LocalSubjectAccessReview" => access::local(call, &object).await?,
        "SelfSubjectAccessReview" => access::own(call, &object).await?,
        "SelfSubjectRulesReview" => {
            let status = access::rules(call, &object).await?;
            object["spec"] = json!({});
            status
        }
        _ => return Err(Status::method_not_allowed(&call.kind.group, &call.kind.plural, "create")),
    };
    object["status"] = status;
    let mut answer = crate::respond::tree(201, accept.media, &object)?;
    call.add_warnings(&mut answer);
    Ok(answer)
}

/// The metadata of a review: what one would have if it were stored.
fn describe(call: &Call, object: &mut Value) -> Result<(), Status> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    match &*call.kind.kind {
        "SelfSubjectReview" => object["metadata"]["creationTimestamp"] = call.timestamp().into(),
        "SelfSubjectRulesReview" => {}
        kind => {
            if kind == "LocalSubjectAccessReview" {
                object["metadata"]["namespace"] = call.target.namespace.clone().into();
            }
            call.track(None, object, "")?;
        }
    }
    Ok(())
}

async fn token_review(call: &Call, object: &mut Value) -> Result<Value, Status> {
    let token = object["spec"]["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let audiences: Vec<String> = object["spec"]["audiences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(ToOwned::to_owned)
        .collect();
    let accepted = token_of(&call.hub, &call.instance, token, &audiences).await?;
    Ok(match accepted {
        Some(accepted) => {
            json!({"authenticated": true, "user": user_info(&accepted.identity), "audiences": accepted.audiences})
        }
        None => json!({"user": {}, "error": "invalid bearer token"}),
    })
}

/// A user as reviews show one.
pub fn user_info(identity: &Identity) -> Value {
    let mut map = Map::new();
    map.insert("username".into(), identity.user.clone().into());
    if !identity.uid.is_empty() {
        map.insert("uid".into(), identity.uid.clone().into());
    }
    if !identity.groups.is_empty() {
        map.insert("groups".into(), identity.groups.clone().into());
    }
    if !identity.extra.is_empty() {
        map.insert("extra".into(), json!(identity.extra));
    }
    Value::Object(map)
}
