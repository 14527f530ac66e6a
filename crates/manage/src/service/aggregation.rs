//! Several objects with their policies in one call: all are checked first, then made.

use atoll_meta::Status;
use atoll_runtime::Endpoint;
use serde_json::{Value, json};

use crate::ask::{self, Ask};
use crate::context::Ctx;
use crate::kinds::{CLUSTER_OVERRIDE, CLUSTER_POLICY, Kind, OVERRIDE, POLICY};

/// Makes objects and policies together.
pub async fn call(ctx: &Ctx, method: &str, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let instance = ask.segment("instance")?;
    let namespaced = method == "CreateAggregationResource";
    let namespace = if namespaced { Some(ask.segment("namespace")?) } else { None };
    // The contract spells the fields so.
    let (policies, overrides) = if namespaced {
        (("popagrationpolicies", &POLICY), ("overridepolicies", &OVERRIDE))
    } else {
        (("clusterpopagrationpolicies", &CLUSTER_POLICY), ("clusteroverridepolicies", &CLUSTER_OVERRIDE))
    };
    let data = &input["data"];
    let mut plan: Vec<(Kind, Value)> = Vec::new();
    for (key, kind) in [policies, overrides] {
        for text in texts(&data[key]) {
            plan.push((kind.clone(), placed(ask::object(text)?, namespace)));
        }
    }
    for (at, text) in texts(&data["resources"]).enumerate() {
        let gvr = &input["gvr"][at];
        let word = |key: &str| gvr[key].as_str().unwrap_or_default();
        if word("resource").is_empty() {
            return Err(Status::bad_request(format!("gvr: entry {at} must name the resource of object {at}")));
        }
        for key in ["version", "resource"] {
            ask::segment(key, word(key))?;
        }
        plan.push((
            Kind::of(word("group"), word("version"), word("resource"), namespaced),
            placed(ask::object(text)?, namespace),
        ));
    }
    make(&ctx.endpoint(instance).await?, namespace, &plan).await?;
    Ok(data.clone())
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn placed(mut object: Value, namespace: Option<&str>) -> Value {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = namespace.into();
    }
    object
}

/// Tries all without effect, then makes all; what was made is taken back when one fails after all.
async fn make(endpoint: &Endpoint, namespace: Option<&str>, plan: &[(Kind, Value)]) -> Result<(), Status> {
    for (kind, object) in plan {
        let path = format!("{}?dryRun=All", kind.gvr().path(namespace, None));
        endpoint.send(http::Method::POST, &path, "application/json", object.to_string().into()).await?;
    }
    let mut made: Vec<(&Kind, Value)> = Vec::new();
    for (kind, object) in plan {
        match endpoint.create(&kind.gvr(), namespace, object).await {
            Ok(object) => made.push((kind, object)),
            Err(status) => {
                for (kind, object) in made.iter().rev() {
                    let name = object["metadata"]["name"].as_str().unwrap_or_default();
                    let only = json!({"preconditions": {"uid": object["metadata"]["uid"]}});
                    if let Err(status) = endpoint.delete(&kind.gvr(), namespace, name, &only).await {
                        tracing::warn!(%status, name, "could not be taken back");
                    }
                }
                return Err(status);
            }
        }
    }
    Ok(())
}
