//! Deployments: rollouts of templates through ReplicaSets.

use atoll_meta::Status;
use atoll_runtime::Item;
use serde_json::{Value, json};

use super::rollout::{Act, Plan, REVISION, decide};
use super::{Again, parent, split, tell};
use crate::child::{controller_ref, selector};
use crate::kind::Kind;
use crate::world::{Work, World};
use crate::{diff, write};

/// Looks after one Deployment.
pub async fn reconcile(world: &World, work: &Work) -> Again {
    let Some(deployment) = parent(world, Kind::Deployment, work) else { return Ok(None) };
    let sets = claim_sets(world, work, &deployment).await?;
    let plan = decide(&deployment, &sets, world.now());
    let again = plan.again;
    for act in &plan.acts {
        carry_out(world, work, &deployment, act).await?;
    }
    report(world, work, &deployment, &plan).await?;
    Ok(again)
}

async fn carry_out(world: &World, work: &Work, deployment: &Value, act: &Act) -> Result<(), Status> {
    let (namespace, _) = split(&work.key);
    let written = match act {
        Act::Create(set) => match write::create(&world.manager, Kind::ReplicaSet, namespace, set).await {
            Err(status) if status.code == 409 => return collide(world, work, deployment, set, status).await,
            result => result?,
        },
        Act::Patch(name, patch) => write::merge(&world.manager, Kind::ReplicaSet, (namespace, name), "", patch).await?,
        Act::Delete(name, uid) => write::delete(&world.manager, Kind::ReplicaSet, (namespace, name), uid, None).await?,
        Act::Tell(reason, message) => {
            tell(world, deployment, "Normal", reason, message).await;
            return Ok(());
        }
    };
    world.expect(work, written.revision());
    Ok(())
}

/// The name is taken: either by ourselves a moment ago, or by another template with the same hash.
async fn collide(world: &World, work: &Work, deployment: &Value, set: &Value, status: Status) -> Result<(), Status> {
    let name = set["metadata"]["name"].as_str().unwrap_or_default();
    let (namespace, own) = split(&work.key);
    let there = world.manager.get(Kind::ReplicaSet.gvr(), Some(namespace), name).await?;
    let ours = there["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|owner| owner["uid"] == deployment["metadata"]["uid"]);
    if ours && there["metadata"]["deletionTimestamp"].is_null() && there["spec"]["template"] == set["spec"]["template"]
    {
        return Err(status);
    }
    let count = deployment["status"]["collisionCount"].as_i64().unwrap_or_default() + 1;
    let patch = json!({"status": {"collisionCount": count}});
    write::merge(&world.manager, Kind::Deployment, (namespace, own), "status", &patch).await?;
    Err(status)
}

/// Status and revision go in one write; the status endpoint takes annotations, too.
async fn report(world: &World, work: &Work, deployment: &Value, plan: &Plan) -> Result<(), Status> {
    let mut patch = json!({});
    if let Some(status) = diff::merge(&deployment["status"], &plan.status) {
        patch["status"] = status;
    }
    if let Some(revision) = &plan.revision {
        patch["metadata"] = json!({"annotations": {REVISION: revision}});
    }
    if patch.as_object().is_some_and(serde_json::Map::is_empty) {
        return Ok(());
    }
    let written = write::merge(&world.manager, Kind::Deployment, split(&work.key), "status", &patch).await?;
    world.expect(work, written.revision());
    Ok(())
}

/// The sets of a Deployment; orphans that match are adopted, own ones that do not are released.
async fn claim_sets(world: &World, work: &Work, deployment: &Value) -> Result<Vec<Value>, Status> {
    let (namespace, _) = split(&work.key);
    let uid = deployment["metadata"]["uid"].as_str().unwrap_or_default();
    let selector = selector(deployment);
    let leaving = !deployment["metadata"]["deletionTimestamp"].is_null();
    let mut sets = Vec::new();
    for item in own_sets_and_orphans(world, namespace, uid) {
        let head = &item.object.head;
        let matches = selector.matches_head(head);
        let patch = match head.controller() {
            Some(owner) if *owner.uid == *uid && matches => {
                sets.push(item.tree());
                continue;
            }
            Some(owner) if *owner.uid == *uid && !head.deleting && !leaving => {
                json!([{"$patch": "delete", "uid": uid}])
            }
            None if matches && !head.deleting && !leaving => json!([controller_ref(Kind::Deployment, deployment)]),
            _ => continue,
        };
        let patch = json!({"metadata": {"uid": head.uid, "ownerReferences": patch}});
        let written = write::strategic(&world.manager, Kind::ReplicaSet, (namespace, &head.name), &patch).await?;
        world.expect(work, written.revision());
        if matches {
            sets.push(item.tree());
        }
    }
    Ok(sets)
}

/// Sets that this Deployment controls and those of its namespace that nobody does, by name.
fn own_sets_and_orphans(world: &World, namespace: &str, uid: &str) -> Vec<Item> {
    let cache = world.cache(Kind::ReplicaSet);
    let mut sets = cache.owned_by(uid);
    let prefix = format!("{namespace}/");
    let orphans = world.orphan_sets.lock();
    let keys = orphans.range(prefix.clone()..).take_while(|key| key.starts_with(&prefix));
    // One may be owned by this Deployment without being controlled by it.
    let others = keys.filter_map(|key| cache.get_key(key));
    sets.extend(others.filter(|item| !item.object.head.owners.iter().any(|owner| *owner.uid == *uid)));
    sets.sort_by(|a, b| a.object.head.name.cmp(&b.object.head.name));
    sets
}
