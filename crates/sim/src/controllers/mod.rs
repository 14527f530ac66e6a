//! Workload controllers: each decides in a pure function and carries out what was decided.

mod backend;
mod completion;
pub mod cronjob;
pub mod daemonset;
pub mod deployment;
pub mod disruption;
pub mod endpoints;
pub mod endpointslice;
mod failure_policy;
mod indexes;
pub mod job;
pub mod node_lifecycle;
mod ordinal;
pub mod replicaset;
pub mod replication;
pub mod revision;
pub mod rollout;
mod rollout_scale;
mod rollout_status;
mod schedule;
pub mod service;
pub mod statefulset;
pub mod volume;

use std::time::Duration;

use atoll_meta::Status;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::Value;

use crate::kind::Kind;
use crate::world::{Work, World};
use crate::write;

/// What a reconciliation returns: when to look again without an event, if at all.
pub type Again = Result<Option<Duration>, Status>;

/// How many pods are written at once.
const WIDTH: usize = 8;

/// Splits `namespace/name`.
pub fn split(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}

/// The object some work is about.
pub fn parent(world: &World, kind: Kind, work: &Work) -> Option<Value> {
    world.cache(kind).get_key(&work.key).map(|item| item.tree())
}

/// Writes the status of a parent and remembers to see it before the next look.
pub async fn write_status(
    world: &World,
    work: &Work,
    kind: Kind,
    object: &Value,
    status: &Value,
) -> Result<(), Status> {
    if let Some(written) = write::status(&world.manager, kind, object, status).await? {
        world.expect(work, written.revision());
    }
    Ok(())
}

/// Creates pods, several at a time; returns how many were made and the first failure.
pub async fn create_pods(world: &World, work: &Work, pods: Vec<Value>) -> (usize, Option<Status>) {
    let (namespace, _) = split(&work.key);
    let writes: Vec<_> =
        pods.iter().map(|pod| write::create(&world.manager, Kind::Pod, namespace, pod).boxed()).collect();
    let mut results = futures::stream::iter(writes).buffer_unordered(WIDTH);
    let (mut made, mut failure, mut newest) = (0, None, 0);
    while let Some(result) = results.next().await {
        match result {
            Ok(written) => {
                made += 1;
                newest = newest.max(written.revision());
            }
            Err(status) => failure = failure.or(Some(status)),
        }
    }
    world.expect(work, newest);
    (made, failure)
}

/// Deletes pods, several at a time.
pub async fn delete_pods(world: &World, work: &Work, pods: &[(String, String)]) -> Result<(), Status> {
    let (namespace, _) = split(&work.key);
    let writes: Vec<_> = pods
        .iter()
        .map(|(name, uid)| write::delete(&world.manager, Kind::Pod, (namespace, name), uid, None).boxed())
        .collect();
    let mut results = futures::stream::iter(writes).buffer_unordered(WIDTH);
    let mut newest = 0;
    let mut failure = None;
    while let Some(result) = results.next().await {
        match result {
            Ok(written) => newest = newest.max(written.revision()),
            // Gone and replaced by one of the same name: nothing left to delete.
            Err(status) if status.code == 409 => {}
            Err(status) => failure = failure.or(Some(status)),
        }
    }
    world.expect(work, newest);
    failure.map_or(Ok(()), Err)
}

/// Tells an event about an object.
pub async fn tell(world: &World, about: &Value, kind: &str, reason: &str, message: &str) {
    world.manager.event(about, kind, reason, message, world.now()).await;
}
