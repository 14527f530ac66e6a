//! Where objects are: the members their bindings name.

use std::collections::HashMap;

use atoll_api::names;
use atoll_index::{Everything, Item, Query};
use atoll_meta::Status;
use serde_json::{Value, json};

use crate::context::Ctx;
use crate::kinds::{BINDING, CLUSTER, CLUSTER_BINDING, Kind};

/// Adds `status.clusters` to objects the caller may see: name, provider, and whether it arrived.
pub async fn places(ctx: &Ctx, kind: &Kind, instance: &str, trees: &mut [Value]) -> Result<(), Status> {
    if !spreads(kind) || trees.is_empty() {
        return Ok(());
    }
    let binding_kind = if kind.namespaced { &BINDING } else { &CLUSTER_BINDING };
    let name_of = |tree: &Value| {
        let kind = tree["kind"].as_str().unwrap_or(&kind.kind);
        names::binding(kind, tree["metadata"]["name"].as_str().unwrap_or_default())
    };
    let mut query = Query::of(instance, &binding_kind.group, &binding_kind.resource);
    query.names = trees.iter().map(name_of).collect();
    let mut bindings: HashMap<(String, String), Value> = HashMap::new();
    for item in ctx.core.index.query(&query, &Everything).await?.items {
        bindings.insert((item.namespace.clone(), item.name.clone()), item.tree());
    }
    if bindings.is_empty() {
        return Ok(());
    }
    let providers = providers(ctx, instance).await?;
    for tree in trees {
        let namespace = tree["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let Some(binding) = bindings.get(&(namespace, name_of(tree))) else { continue };
        let found = clusters(binding, &providers);
        if !tree["status"].is_object() {
            tree["status"] = json!({});
        }
        tree["status"]["clusters"] = found.clone();
        tree["clusters"] = found;
    }
    Ok(())
}

/// Kinds whose messages tell where they are.
fn spreads(kind: &Kind) -> bool {
    !kind.group.ends_with("karmada.io") && !matches!(kind.resource.as_ref(), "pods" | "events" | "nodes")
}

fn clusters(binding: &Value, providers: &HashMap<String, Value>) -> Value {
    let applied = |name: &str| {
        let list = binding["status"]["aggregatedStatus"].as_array();
        list.into_iter().flatten().any(|entry| entry["clusterName"] == name && entry["applied"] == true)
    };
    let wanted = binding["spec"]["clusters"].as_array();
    let entry = |name: &str| json!({"name": name, "provider": providers.get(name), "applied": applied(name)});
    wanted.into_iter().flatten().filter_map(|cluster| cluster["name"].as_str()).map(entry).collect()
}

async fn providers(ctx: &Ctx, instance: &str) -> Result<HashMap<String, Value>, Status> {
    let query = Query::of(instance, &CLUSTER.group, &CLUSTER.resource);
    let page = ctx.core.index.query(&query, &Everything).await?;
    Ok(page.items.iter().map(|item: &Item| (item.name.clone(), item.tree()["spec"]["provider"].clone())).collect())
}
