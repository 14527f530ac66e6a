//! Garbage collection: objects follow their owners.
//!
//! Background: an object all of whose owners are gone is deleted. Foreground: an owner waits for the
//! dependents that block it. Orphan: dependents forget the owner, then it goes.

use atoll_meta::{Head, Key, Owner, Status};
use atoll_store::Snapshot;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::hands::Hands;
use crate::owners::Owners;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// How an owner reference stands.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Standing {
    /// The owner lives.
    Solid,
    /// The owner waits for its dependents in foreground deletion.
    Waiting,
    /// The owner is gone.
    Absent,
}

/// Decides about an object whose owners may be gone.
pub async fn check_dependent(hands: &Hands, owners: &Mutex<Owners>, key: &Key) -> Result<(), Status> {
    let snapshot = hands.snapshot().await?;
    let Some(entry) = snapshot.get(key.as_str()) else { return Ok(()) };
    let head = &entry.object.head;
    if head.owners.is_empty() || head.deleting && !head.finalizers.iter().any(|f| &**f == FOREGROUND) {
        return Ok(());
    }
    let standing: Vec<(Standing, &Owner)> =
        head.owners.iter().map(|owner| (stand(hands, &snapshot, head, owner), owner)).collect();
    let any = |wanted: Standing| standing.iter().any(|(standing, _)| *standing == wanted);
    if any(Standing::Solid) {
        let gone: Vec<&str> =
            standing.iter().filter(|(s, _)| *s != Standing::Solid).map(|(_, owner)| &*owner.uid).collect();
        if !gone.is_empty() {
            forget(hands, key, &entry.object.tree(entry.modified), &gone).await?;
        }
        return Ok(());
    }
    if !any(Standing::Waiting) {
        return hands.delete(key, &head.uid, default_policy(head)).await;
    }
    let dependents = owners.lock().of(hands.instance.id, &head.uid);
    let circle = dependents.iter().filter_map(|key| snapshot.get(key.as_str())).any(|other| waits(&other.object.head));
    if circle {
        // Who waits for one that waits for it would wait for ever.
        unblock(hands, key, &entry.object.tree(entry.modified)).await?;
    }
    hands.delete(key, &head.uid, "Foreground").await
}

/// Whether an object is deleted after its dependents.
fn waits(head: &Head) -> bool {
    head.deleting && head.finalizers.iter().any(|finalizer| &**finalizer == FOREGROUND)
}

/// Lets the owners of an object go without it.
async fn unblock(hands: &Hands, key: &Key, tree: &Value) -> Result<(), Status> {
    let mut list = tree["metadata"]["ownerReferences"].clone();
    let blocking =
        list.as_array_mut().into_iter().flatten().filter(|reference| reference["blockOwnerDeletion"] == true);
    let mut any = false;
    for reference in blocking {
        reference["blockOwnerDeletion"] = false.into();
        any = true;
    }
    if !any {
        return Ok(());
    }
    hands.merge(key, &json!({"metadata": {"ownerReferences": list, "uid": tree["metadata"]["uid"]}})).await
}

/// A policy the object's own deletion already asked for is kept.
fn default_policy(head: &Head) -> &'static str {
    match head.finalizers.iter().map(|f| &**f).find(|f| matches!(*f, ORPHAN | FOREGROUND)) {
        Some(ORPHAN) => "Orphan",
        Some(_) => "Foreground",
        None => "Background",
    }
}

fn stand(hands: &Hands, snapshot: &Snapshot, dependent: &Head, owner: &Owner) -> Standing {
    let (group, version) = atoll_meta::split_api_version(&owner.api_version);
    let kind = hands
        .instance
        .kind_named(group, Some(version), &owner.kind)
        .or_else(|| hands.instance.kind_named(group, None, &owner.kind));
    // An owner of an unknown kind may live in a definition that is not here yet: never a reason to delete.
    let Some(kind) = kind else { return Standing::Solid };
    let namespace = if kind.namespaced { &*dependent.namespace } else { "" };
    if kind.namespaced && namespace.is_empty() {
        // A cluster-wide object cannot be owned from inside a namespace.
        return Standing::Absent;
    }
    let key = Key::new(&kind.group, &kind.plural, namespace, &owner.name);
    match snapshot.get(key.as_str()) {
        Some(entry) if entry.object.head.uid == owner.uid => {
            if waits(&entry.object.head) {
                Standing::Waiting
            } else {
                Standing::Solid
            }
        }
        _ => Standing::Absent,
    }
}

/// Removes owner references.
async fn forget(hands: &Hands, key: &Key, tree: &Value, uids: &[&str]) -> Result<(), Status> {
    let kept: Vec<&Value> = tree["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|reference| !uids.contains(&reference["uid"].as_str().unwrap_or_default()))
        .collect();
    let list = if kept.is_empty() { Value::Null } else { json!(kept) };
    let patch = json!({"metadata": {"ownerReferences": list, "uid": tree["metadata"]["uid"],
                                    "resourceVersion": tree["metadata"]["resourceVersion"]}});
    hands.merge(key, &patch).await
}

/// Works on an owner that waits for the garbage collector.
pub async fn finish_owner(hands: &Hands, owners: &Mutex<Owners>, key: &Key) -> Result<(), Status> {
    let snapshot = hands.snapshot().await?;
    let Some(entry) = snapshot.get(key.as_str()) else { return Ok(()) };
    let head = &entry.object.head;
    if !head.deleting {
        return Ok(());
    }
    let dependents = owners.lock().of(hands.instance.id, &head.uid);
    let has = |wanted: &str| head.finalizers.iter().any(|finalizer| &**finalizer == wanted);
    if has(ORPHAN) {
        for dependent in dependents {
            if let Some(other) = snapshot.get(dependent.as_str()) {
                forget(hands, &dependent, &other.object.tree(other.modified), &[&head.uid]).await?;
            }
        }
        return drop_finalizer(hands, key, &entry.object.tree(entry.modified), ORPHAN).await;
    }
    if !has(FOREGROUND) {
        return Ok(());
    }
    let mut blocking = 0;
    for dependent in dependents {
        let Some(other) = snapshot.get(dependent.as_str()) else { continue };
        if other.object.head.owners.iter().any(|owner| owner.uid == head.uid && owner.blocks) {
            blocking += 1;
        }
        check_dependent(hands, owners, &dependent).await?;
    }
    if blocking == 0 {
        drop_finalizer(hands, key, &entry.object.tree(entry.modified), FOREGROUND).await?;
    }
    Ok(())
}

async fn drop_finalizer(hands: &Hands, key: &Key, tree: &Value, finalizer: &str) -> Result<(), Status> {
    let kept: Vec<&Value> =
        tree["metadata"]["finalizers"].as_array().into_iter().flatten().filter(|own| *own != finalizer).collect();
    let patch = json!({"metadata": {"finalizers": kept, "uid": tree["metadata"]["uid"],
                                    "resourceVersion": tree["metadata"]["resourceVersion"]}});
    hands.merge(key, &patch).await
}
