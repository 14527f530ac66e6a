//! Statistics of instances, written to their status when they change, and not more often than needed.

use std::sync::Arc;
use std::time::Duration;

use atoll_index::{Everything, Item, LiveEvent, Query, ResourceName};
use atoll_meta::selector::FieldSelector;
use atoll_meta::{Quantity, Status};
use atoll_runtime::{Patch, Queue, work};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::context::Core;
use crate::kinds::{CLUSTER, INSTANCE, POD};

/// Changes are gathered for so long before they are counted.
const GATHER: Duration = Duration::from_secs(2);

/// Keeps the statistics of all instances until `stop`.
pub async fn run(core: Arc<Core>, stop: CancellationToken) {
    let queue: Queue<String> = Queue::default();
    let mut changes = core.index.changes();
    for instance in core.hub.instances() {
        queue.add(instance.name.to_string());
    }
    let keys = queue.clone();
    let (listening, known) = (stop.clone(), core.clone());
    tokio::spawn(async move {
        loop {
            let event = tokio::select! {
                () = listening.cancelled() => return,
                event = changes.recv() => event,
            };
            match event {
                Ok(event) => {
                    if let Some(instance) = concerns(&event) {
                        keys.add_after(instance, GATHER);
                    }
                }
                // Too many at once: any of them may have counted.
                Err(RecvError::Lagged(_)) => known
                    .index
                    .known_sources()
                    .iter()
                    .filter_map(|name| name.split('/').next())
                    .for_each(|name| keys.add_after(name.to_owned(), GATHER)),
                Err(RecvError::Closed) => return,
            }
        }
    });
    work(queue, 2, stop, move |instance: String| {
        let core = core.clone();
        async move { tell(&core, &instance).await }
    })
    .await;
}

/// The instance whose statistics a change may change.
fn concerns(event: &LiveEvent) -> Option<String> {
    let (LiveEvent::Put(shelf, _) | LiveEvent::Removed(shelf, _)) = event;
    let key = &shelf.key;
    let counted = match key.source.contains('/') {
        true => key.resource == POD.resource && key.group.is_empty(),
        false => key.resource == CLUSTER.resource && key.group == CLUSTER.group,
    };
    counted.then(|| key.source.split('/').next().unwrap_or_default().to_owned())
}

async fn tell(core: &Core, instance: &str) -> Result<Option<Duration>, Status> {
    let root = core.own_endpoint("root");
    let Some(object) = root.get_opt(&INSTANCE.gvr(), None, instance).await? else { return Ok(None) };
    let clusters = core.index.query(&Query::of(instance, &CLUSTER.group, &CLUSTER.resource), &Everything).await?;
    let mut pods = Query {
        sources: vec![format!("{instance}/*")],
        resources: vec![ResourceName::new("", "pods")],
        ..Query::default()
    };
    let all = total(core, &pods).await?;
    pods.fields = FieldSelector::exactly("status.phase", "Running");
    let running = total(core, &pods).await?;
    let trees: Vec<Value> = clusters.items.iter().map(Item::tree).collect();
    let statistics = count(&trees, all, running);
    let present = &object["status"]["statistics"];
    if *present == statistics {
        return Ok(None);
    }
    // What is no longer counted must be said to be gone.
    let mut change = statistics;
    for (key, _) in present.as_object().into_iter().flatten() {
        if change.get(key).is_none() {
            change[key] = Value::Null;
        }
    }
    root.patch(&INSTANCE.gvr(), None, instance, "status", Patch::Merge, &json!({"status": {"statistics": change}}))
        .await?;
    Ok(None)
}

async fn total(core: &Core, query: &Query) -> Result<u64, Status> {
    Ok(core.index.count(query, &Everything).await?.iter().map(|(_, count)| count).sum())
}

/// Sums over the members; zeros are left out, as the definition does.
fn count(clusters: &[Value], pods: u64, running: u64) -> Value {
    let ready = clusters.iter().filter(|cluster| {
        let conditions = cluster["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    });
    let nodes =
        |key: &str| clusters.iter().filter_map(|cluster| cluster["status"]["nodeSummary"][key].as_u64()).sum::<u64>();
    let mut out = Map::new();
    let numbers = [
        ("clusters", clusters.len() as u64),
        ("readyClusters", ready.count() as u64),
        ("nodes", nodes("totalNum")),
        ("readyNodes", nodes("readyNum")),
        ("pods", pods),
        ("runningPods", running),
    ];
    for (key, number) in numbers.into_iter().filter(|(_, number)| *number > 0) {
        out.insert(key.into(), number.into());
    }
    let amounts = [
        ("cpuCapacity", "allocatable", "cpu"),
        ("cpuAllocated", "allocated", "cpu"),
        ("memoryCapacity", "allocatable", "memory"),
        ("memoryAllocated", "allocated", "memory"),
    ];
    for (key, part, resource) in amounts {
        let found = clusters
            .iter()
            .filter_map(|cluster| Quantity::parse(cluster["status"]["resourceSummary"][part][resource].as_str()?).ok());
        let sum: Quantity = found.sum();
        if !sum.is_zero() {
            out.insert(key.into(), sum.to_string().into());
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_summed() {
        let member = |ready: &str, cpu: &str| {
            json!({"status": {"conditions": [{"type": "Ready", "status": ready}], "nodeSummary": {"totalNum": 3, "readyNum": 2},
                              "resourceSummary": {"allocatable": {"cpu": cpu, "memory": "1Gi"}, "allocated": {"cpu": "500m"}}}})
        };
        let sums = count(&[member("True", "4"), member("False", "1500m")], 7, 5);
        assert_eq!(
            sums,
            json!({"clusters": 2, "readyClusters": 1, "nodes": 6, "readyNodes": 4, "pods": 7, "runningPods": 5,
                   "cpuCapacity": "5500m", "cpuAllocated": "1", "memoryCapacity": "2Gi"})
        );
        assert_eq!(count(&[], 0, 0), json!({}));
    }
}
