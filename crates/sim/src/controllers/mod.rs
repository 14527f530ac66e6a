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
mod mirror;
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
use crate::teller::{self, Teller};
use crate::world::{Work, World};
use crate::write::{self, Written};

/// What a reconciliation returns: when to look again without an event, if at all.
pub type Again = Result<Option<Duration>, Status>;

/// How many pods are written at once.
const WIDTH: usize = 32;

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

/// Pods made so far and the first failure.
pub type Made = (usize, Option<Status>);

/// Creates pods: one, then two, then four and so on, so that a refusal is met once and not a hundred times.
pub async fn create_pods(world: &World, work: &Work, parent: &Value, pods: Vec<Value>) -> Made {
    let (mut made, mut newest, mut failure) = (0, 0, None);
    let (mut rest, mut width) = (pods.as_slice(), 1);
    while !rest.is_empty() && failure.is_none() {
        let (batch, later) = rest.split_at(width.min(rest.len()));
        for result in create_batch(world, work, parent, batch).await {
            match result {
                Ok(written) => {
                    made += 1;
                    newest = newest.max(written.revision());
                }
                Err(status) => failure = failure.or(Some(status)),
            }
        }
        (rest, width) = (later, width * 2);
    }
    world.expect(work, newest);
    (made, failure)
}

async fn create_batch(world: &World, work: &Work, parent: &Value, batch: &[Value]) -> Vec<Result<Written, Status>> {
    let (namespace, _) = split(&work.key);
    let writes: Vec<_> = batch
        .iter()
        .map(|pod| {
            async move {
                let result = write::create(&world.manager, Kind::Pod, namespace, pod).await;
                tell_creation(world, parent, pod, &result).await;
                result
            }
            .boxed()
        })
        .collect();
    futures::stream::iter(writes).buffer_unordered(WIDTH).collect().await
}

async fn tell_creation(world: &World, parent: &Value, pod: &Value, result: &Result<Written, Status>) {
    let numbered = parent["kind"] == "StatefulSet";
    let own = parent["metadata"]["name"].as_str().unwrap_or_default();
    match result {
        Ok(_) if !world.spec.verbose_events => {}
        Ok(written) => {
            let message = match (numbered, written.name()) {
                (true, name) => format!("Create Pod {name} in StatefulSet {own} successful"),
                (false, name) => format!("Created pod: {name}"),
            };
            tell(world, parent, "Normal", "SuccessfulCreate", &message).await;
        }
        Err(status) if ends(status) || status.code == 409 => {}
        Err(status) => {
            let message = if numbered {
                let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                format!("Create Pod {name} in StatefulSet {own} failed error: {status}")
            } else {
                format!("Error creating: {status}")
            };
            tell(world, parent, "Warning", "FailedCreate", &message).await;
        }
    }
}

/// Whether a refusal means that the namespace is going: nothing to tell and nothing to try again.
pub fn ends(status: &Status) -> bool {
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// What becomes of a failure to make pods: another try later, unless there is no use in it.
pub fn retry(failure: Option<Status>, again: Option<Duration>) -> Again {
    match failure {
        Some(status) if !ends(&status) => Err(status),
        _ => Ok(again),
    }
}

/// Deletes pods, several at a time.
pub async fn delete_pods(world: &World, work: &Work, parent: &Value, pods: &[(String, String)]) -> Result<(), Status> {
    let (namespace, _) = split(&work.key);
    let writes: Vec<_> = pods
        .iter()
        .map(|(name, uid)| {
            async move {
                let written = write::delete(&world.manager, Kind::Pod, (namespace, name), uid, None).await?;
                if world.spec.verbose_events && written.revision() > 0 {
                    tell_deletion(world, parent, name).await;
                }
                Ok(written)
            }
            .boxed()
        })
        .collect();
    let mut results = futures::stream::iter(writes).buffer_unordered(WIDTH);
    let mut newest = 0;
    let mut failure = None;
    while let Some(result) = results.next().await {
        let result: Result<Written, Status> = result;
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

async fn tell_deletion(world: &World, parent: &Value, name: &str) {
    let own = parent["metadata"]["name"].as_str().unwrap_or_default();
    let message = if parent["kind"] == "StatefulSet" {
        format!("Delete Pod {name} in StatefulSet {own} successful")
    } else {
        format!("Deleted pod: {name}")
    };
    tell(world, parent, "Normal", "SuccessfulDelete", &message).await;
}

/// Tells an event about an object in the name of its controller.
pub async fn tell(world: &World, about: &Value, kind: &str, reason: &str, message: &str) {
    teller::tell(world, Teller::Controller, about, kind, reason, message).await;
}
