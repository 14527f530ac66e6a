//! Aggregated ClusterRoles change together with their parts, in one transaction.

use std::sync::Arc;

use atoll_meta::{Object, Status};
use atoll_store::{Entry, Expect, Op, Write};
use serde_json::Value;

use super::{Operation, Review};
use crate::auth::aggregate;
use crate::auth::rbac::GROUP;

/// Fills in an aggregated role, and returns the writes that bring other aggregated roles up to date.
pub async fn follow(review: &Review<'_>, object: &mut Value) -> Result<Vec<Write>, Status> {
    if !review.is(GROUP, "clusterroles") {
        return Ok(Vec::new());
    }
    let snapshot = review.call.hub.snapshot(&review.call.instance).await?;
    let prefix = format!("clusterroles.{GROUP}/");
    let others: Vec<Entry> = snapshot
        .range(&prefix, None)
        .map(|(_, entry)| entry)
        .filter(|entry| *entry.object.head.name != *review.name)
        .cloned()
        .collect();
    let mut roles: Vec<Value> = others.iter().map(|entry| entry.object.tree(entry.modified)).collect();
    let stays = review.operation != Operation::Delete && !goes(object);
    if stays {
        roles.push(object.clone());
    }
    let changed = aggregate::settle(&mut roles);
    if let (true, Some(own)) = (stays, roles.last())
        && aggregate::is_aggregated(own)
    {
        object["rules"] = own["rules"].clone();
    }
    let mut writes = Vec::new();
    for ((entry, role), _) in others.iter().zip(&roles).zip(&changed).filter(|(_, changed)| **changed) {
        let encoded = Arc::new(Object::encode(role).map_err(Status::internal)?);
        let key = review.call.key(&entry.object.head.name);
        writes.push(Write { key, expect: Expect::At(entry.modified), op: Op::Put(encoded) });
    }
    Ok(writes)
}

/// Whether this write is the last of an object that is being deleted.
fn goes(object: &Value) -> bool {
    let meta = &object["metadata"];
    !meta["deletionTimestamp"].is_null() && meta["finalizers"].as_array().is_none_or(Vec::is_empty)
}
