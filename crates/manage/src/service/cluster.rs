//! Members of an instance.

use atoll_api::words::taint;
use atoll_index::{Item, Query};
use atoll_meta::{Quantity, Status};
use atoll_runtime::Patch;
use prost_reflect::MethodDescriptor;
use serde_json::{Value, json};

use super::list::{self, Paging};
use super::{object, visible_instances, wrap};
use crate::ask::Ask;
use crate::context::Ctx;
use crate::kinds::CLUSTER;

/// Runs a method of the cluster service.
pub async fn call(ctx: &Ctx, name: &str, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    match name {
        "ListJoinedClusters" => {
            let query = list::query(&CLUSTER, Ask(input).segment("instance")?, input)?;
            page(ctx, method, &query, input).await
        }
        "ListClusters" => candidates(ctx, method, input).await,
        "ListClustersLabels" => {
            let entry = |cluster: &Value| json!({"cluster": cluster["metadata"]["name"], "labels": cluster["metadata"]["labels"]});
            Ok(json!({"clusterLabels": all(ctx, input).await?.iter().map(entry).collect::<Vec<_>>()}))
        }
        "ListClustersLocationSummary" => {
            let entry = |cluster: &Value| {
                let spec = &cluster["spec"];
                json!({"cluster": cluster["metadata"]["name"], "provider": spec["provider"], "region": spec["region"], "zone": zone(spec)})
            };
            Ok(json!({"locations": all(ctx, input).await?.iter().map(entry).collect::<Vec<_>>()}))
        }
        "JoinCluster" => join(ctx, input).await,
        "UpdateJoinedCluster" => update(ctx, method, input).await,
        _ => object::delete(ctx, &CLUSTER, input).await,
    }
}

async fn all(ctx: &Ctx, input: &Value) -> Result<Vec<Value>, Status> {
    let query = Query::of(Ask(input).segment("instance")?, &CLUSTER.group, &CLUSTER.resource);
    Ok(ctx.core.index.query(&query, &*ctx.rights()).await?.items.iter().map(Item::tree).collect())
}

/// Clusters known to any instance the caller may see; with an instance, those that are not joined to it.
async fn candidates(ctx: &Ctx, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let except = Ask(input).text("instance");
    let visible = visible_instances(ctx).await?;
    let names =
        visible.iter().filter_map(|instance| instance["metadata"]["name"].as_str()).filter(|name| *name != except);
    let mut query = list::query(&CLUSTER, "", input)?;
    query.sources = names.map(ToOwned::to_owned).collect();
    if query.sources.is_empty() {
        return Ok(list::answer(method, Vec::new(), Paging::of(input).tell(0)));
    }
    page(ctx, method, &query, input).await
}

async fn page(ctx: &Ctx, method: &MethodDescriptor, query: &Query, input: &Value) -> Result<Value, Status> {
    let found = ctx.core.index.query(query, &*ctx.rights()).await?;
    let ask = Ask(input);
    let same = |key: &str, own: &Value| {
        ask.text(key).is_empty() || own.as_str().is_some_and(|text| text.eq_ignore_ascii_case(ask.text(key)))
    };
    let fits = |cluster: &Value| {
        same("region", &cluster["spec"]["region"])
            && same("zone", &cluster["spec"]["zone"])
            && same("provider", &cluster["spec"]["provider"])
            && same("phase", &cluster["status"]["phase"])
            && same("kubernetesVersion", &cluster["status"]["kubernetesVersion"])
    };
    let clusters: Vec<Value> =
        found.items.iter().map(|item| shaped(item.tree(), &item.shelf.key.source)).filter(fits).collect();
    let mut paging = Paging::of(input);
    if input["allCluster"] == true {
        paging = Paging::of(&json!({"pageSize": -1}));
    }
    let (clusters, pagination) = paging.cut(clusters);
    Ok(list::answer(method, clusters, pagination))
}

fn zone(spec: &Value) -> Value {
    match spec["zone"].as_str().filter(|zone| !zone.is_empty()) {
        Some(zone) => zone.into(),
        None => spec["zones"].get(0).cloned().unwrap_or_default(),
    }
}

/// Adds what the message shows beyond the object.
fn shaped(mut cluster: Value, instance: &str) -> Value {
    let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready =
        conditions.iter().find(|condition| condition["type"] == "Ready").map(|condition| condition["status"].clone());
    let phase = match ready.as_ref().and_then(Value::as_str) {
        _ if !cluster["metadata"]["deletionTimestamp"].is_null() => "DELETING",
        Some("True") => "RUNNING",
        Some("False") => "FAILED",
        Some(_) => "UNKNOWN",
        None => "CREATING",
    };
    cluster["metadata"]["cluster"] = instance.into();
    cluster["spec"]["zone"] = zone(&cluster["spec"]);
    let share = |resource: &str| {
        let amount = |part: &str| Quantity::parse(cluster["status"]["resourceSummary"][part][resource].as_str()?).ok();
        let (used, whole) = (amount("allocated")?, amount("allocatable")?);
        (!whole.is_zero()).then(|| used.as_f64() / whole.as_f64())
    };
    let (cpu, memory) = (share("cpu"), share("memory"));
    if !cluster["status"].is_object() {
        cluster["status"] = json!({});
    }
    cluster["status"]["phase"] = phase.into();
    cluster["status"]["cpuUsage"] = cpu.into();
    cluster["status"]["memoryUsage"] = memory.into();
    cluster["status"]["kubeSystemID"] = cluster["spec"]["id"].clone();
    cluster
}

/// Joins a cluster: its address and the Secret with its credentials are in the request.
async fn join(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let (instance, name) = (ask.segment("instance")?, ask.segment("name")?);
    let given = &input["cluster"];
    let spec = &given["spec"];
    let text = |key: &str| spec[key].as_str().filter(|text| !text.is_empty());
    let mut wanted = json!({"syncMode": "Push"});
    for key in ["apiEndpoint", "region", "zone"] {
        if let Some(value) = text(key) {
            wanted[key] = value.into();
        }
    }
    if let Some(provider) = text("provider") {
        wanted["provider"] = provider.into();
    }
    if let Some(secret) = spec["secretRef"]["name"].as_str().filter(|name| !name.is_empty()) {
        wanted["secretRef"] = json!({"name": secret, "namespace": spec["secretRef"]["namespace"]});
    }
    wanted["taints"] = taints(&spec["taints"]);
    let cluster = json!({
        "kind": "Cluster", "apiVersion": CLUSTER.api_version(), "spec": wanted,
        "metadata": {"name": name, "labels": given["metadata"]["labels"], "annotations": given["metadata"]["annotations"]},
    });
    let made = ctx.endpoint(instance).await?.create(&CLUSTER.gvr(), None, &cluster).await?;
    ctx.settle(instance, &CLUSTER, &made).await;
    Ok(json!({}))
}

fn taints(list: &Value) -> Value {
    let entry = |taint: &Value| json!({"key": taint["key"], "value": taint["value"], "effect": taint["effect"]});
    list.as_array().into_iter().flatten().map(entry).collect()
}

/// Replaces labels and taints.
async fn update(ctx: &Ctx, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let (instance, name) = (ask.segment("instance")?, ask.segment("name")?);
    let endpoint = ctx.endpoint(instance).await?;
    let present = endpoint.get(&CLUSTER.gvr(), None, name).await?;
    let given = &input["cluster"];
    let mut labels = given["metadata"]["labels"].clone();
    for (key, _) in present["metadata"]["labels"].as_object().into_iter().flatten() {
        if labels.get(key).is_none() {
            labels[key] = Value::Null;
        }
    }
    // Taints the hub itself keeps stay whatever is asked.
    let own = [taint::NOT_READY, taint::UNREACHABLE];
    let kept = present["spec"]["taints"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|taint| own.iter().any(|key| taint["key"] == *key))
        .cloned();
    let asked = taints(&given["spec"]["taints"]).as_array().cloned().unwrap_or_default();
    let asked = asked.into_iter().filter(|taint| !own.iter().any(|key| taint["key"] == *key));
    let taints: Vec<Value> = kept.chain(asked).collect();
    let version = &present["metadata"]["resourceVersion"];
    let change = json!({"metadata": {"labels": labels, "resourceVersion": version}, "spec": {"taints": taints}});
    let done = endpoint.patch(&CLUSTER.gvr(), None, name, "", Patch::Merge, &change).await?;
    ctx.settle(instance, &CLUSTER, &done).await;
    Ok(wrap(method, &shaped(done, instance)))
}
