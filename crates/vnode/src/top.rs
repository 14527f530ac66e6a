//! `metrics.k8s.io` of a computing cluster that is an instance of this hub: what virtual nodes and their pods use,
//! as the worker clusters measure it, beside what is measured here.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_apiserver::{Body, Instance, Mount, MountedResource, Query, Visit, json as answer};
use atoll_meta::{Status, time};
use atoll_runtime::Item;
use http::Response;
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::manager::Manager;
use crate::proxier::Use;
use crate::syncer::Syncer;
use crate::tree;

const GROUP: &str = "metrics.k8s.io";
const VERSION: &str = "v1beta1";

struct Usage {
    manager: Manager,
    instance: String,
    otherwise: Option<Arc<dyn Mount>>,
}

/// Serves `metrics.k8s.io` of a computing cluster; `otherwise` measures what is not leased.
pub fn usage(manager: Manager, instance: &str, otherwise: Option<Arc<dyn Mount>>) -> Arc<dyn Mount> {
    Arc::new(Usage { manager, instance: instance.to_owned(), otherwise })
}

#[async_trait::async_trait]
impl Mount for Usage {
    fn group(&self) -> &str {
        GROUP
    }

    fn version(&self) -> &str {
        VERSION
    }

    fn resources(&self) -> Vec<MountedResource> {
        if self.otherwise.is_some() {
            // It has named them.
            return Vec::new();
        }
        vec![
            MountedResource::readable("nodes", "NodeMetrics", false),
            MountedResource::readable("pods", "PodMetrics", true),
        ]
    }

    fn serves(&self, instance: &Instance) -> bool {
        *instance.name == *self.instance
    }

    async fn handle(&self, visit: Visit) -> Result<Response<Body>, Status> {
        let selector = Query::parse(visit.request.uri().query()).labels()?;
        let target = visit.target.clone();
        let kind = match target.resource.as_str() {
            "nodes" => "NodeMetrics",
            "pods" => "PodMetrics",
            other => return Err(Status::not_found(GROUP, other, &target.name)),
        };
        let mut rows = BTreeMap::new();
        let mut leased = |item: &Item, row: Value| {
            let head = &item.object.head;
            let here = target.namespace.is_empty() || *head.namespace == *target.namespace;
            let asked = target.name.is_empty() || *head.name == *target.name;
            if here && asked && selector.matches_head(head) {
                rows.insert(item.key(), row);
            }
        };
        let bindings = self.manager.bindings();
        for syncer in bindings.iter().filter_map(|binding| self.manager.syncer(binding)) {
            if target.resource == "nodes" {
                nodes(&syncer, &mut leased).await;
            } else {
                pods(&syncer, &mut leased).await;
            }
        }
        let one = !target.name.is_empty();
        match rows.pop_first() {
            Some((_, mut row)) if one => {
                row["kind"] = kind.into();
                row["apiVersion"] = format!("{GROUP}/{VERSION}").into();
                return Ok(answer(200, &row));
            }
            Some((key, row)) => drop(rows.insert(key, row)),
            None => {}
        }
        match self.otherwise.as_ref().filter(|other| other.serves(&visit.instance)) {
            Some(other) if one => return other.handle(visit).await,
            Some(other) => add(&mut rows, other.handle(visit).await?).await?,
            None if one => return Err(Status::not_found(GROUP, &target.resource, &target.name)),
            None => {}
        }
        let items: Vec<Value> = rows.into_values().collect();
        let list = json!({"kind": format!("{kind}List"), "apiVersion": format!("{GROUP}/{VERSION}"), "metadata": {}, "items": items});
        Ok(answer(200, &list))
    }
}

/// Adds the rows of a list that are not there yet.
async fn add(rows: &mut BTreeMap<String, Value>, list: Response<Body>) -> Result<(), Status> {
    let bytes = list.into_body().collect().await.map_err(|error| Status::internal(error.to_string()))?.to_bytes();
    let mut list: Value = serde_json::from_slice(&bytes).map_err(|error| Status::internal(error.to_string()))?;
    for row in list["items"].as_array_mut().map(std::mem::take).into_iter().flatten() {
        rows.entry(tree::key(tree::namespace(&row), tree::name(&row))).or_insert(row);
    }
    Ok(())
}

/// Hands over the virtual nodes of a binding, each with what its pods use.
async fn nodes(syncer: &Syncer, take: &mut impl FnMut(&Item, Value)) {
    let Ok(reading) = syncer.board.reading().await else { return };
    for node in syncer.computing.nodes_of(&syncer.binding().name) {
        let uses = reading.get(&*node.object.head.name).map_or(&[][..], Vec::as_slice);
        let mut row = row(&node, uses, syncer.now());
        row["usage"] = used(uses.iter());
        take(&node, row);
    }
}

/// Hands over the pods on virtual nodes of a binding.
async fn pods(syncer: &Syncer, take: &mut impl FnMut(&Item, Value)) {
    let Ok(reading) = syncer.board.reading().await else { return };
    let mut by_pod: BTreeMap<(&str, &str), Vec<&Use>> = BTreeMap::new();
    for own in reading.values().flatten() {
        by_pod.entry((&own.namespace, &own.pod)).or_default().push(own);
    }
    for ((namespace, name), uses) in by_pod {
        let Some(pod) = syncer.computing.pods.get(namespace, name) else { continue };
        let mut row = row(&pod, uses.iter().copied(), syncer.now());
        row["metadata"]["namespace"] = namespace.into();
        let containers = uses.iter().map(|own| json!({"name": own.container, "usage": used(std::iter::once(*own))}));
        row["containers"] = containers.collect();
        take(&pod, row);
    }
}

fn row<'a>(item: &Item, uses: impl IntoIterator<Item = &'a Use>, now: Timestamp) -> Value {
    let head = &item.object.head;
    let labels: Map<String, Value> =
        head.labels.iter().map(|(key, value)| (key.to_string(), (**value).into())).collect();
    let at = time::format(uses.into_iter().map(|own| own.at).max().unwrap_or(now));
    json!({"metadata": {"name": head.name, "labels": labels, "creationTimestamp": at}, "timestamp": at, "window": "30s"})
}

fn used<'a>(uses: impl Iterator<Item = &'a Use>) -> Value {
    let (milli, bytes) = uses.fold((0, 0), |(milli, bytes), own| (milli + own.milli, bytes + own.bytes));
    json!({"cpu": format!("{milli}m"), "memory": format!("{}Ki", bytes / 1024)})
}
