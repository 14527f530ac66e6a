//! From what happened to what is to be looked at.

use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Head;
use atoll_meta::selector::LabelSelector;
use atoll_runtime::{Change, Item};

use crate::kind::Kind;
use crate::kubelet;
use crate::pod::Pod;
use crate::world::{Task, World};

/// Changes of many pods are told to services and budgets together.
const GATHER: Duration = Duration::from_millis(50);

/// A pod that changed, as it is now and as it was before.
pub type Pods = (Option<Arc<Pod>>, Option<Arc<Pod>>);

/// Takes note of a change and puts on the queue who has to look.
pub fn changed(world: &World, kind: Kind, change: &Change) {
    let pods = note(world, kind, change);
    call(world, kind, change, pods);
}

/// Takes note of a change.
pub fn note(world: &World, kind: Kind, change: &Change) -> Pods {
    match kind {
        Kind::Pod => return world.book.write().pod_changed(change),
        Kind::Node => world.book.write().node_changed(change),
        Kind::Service => world.interests.write().service_changed(change),
        Kind::PodDisruptionBudget => world.interests.write().budget_changed(change),
        Kind::ReplicaSet => note_orphan(world, change),
        _ => {}
    }
    (None, None)
}

/// Puts on the queue who has to look at a change that was noted.
pub fn call(world: &World, kind: Kind, change: &Change, pods: Pods) {
    match kind {
        Kind::Pod => pod(world, change, pods),
        Kind::Node => node(world, change),
        Kind::Service => service(world, change),
        Kind::PodDisruptionBudget => world.add(Task::Budget, change.item().key()),
        Kind::PersistentVolumeClaim => {
            world.add(Task::Claim, change.item().key());
            if let Some(volume) = change.item().tree()["spec"]["volumeName"].as_str() {
                world.add(Task::Volume, volume);
            }
            wake_scheduler(world, true);
        }
        Kind::PersistentVolume => {
            world.add(Task::Volume, change.item().key());
            waiting_claims(world);
        }
        Kind::StorageClass => waiting_claims(world),
        Kind::Endpoints | Kind::EndpointSlice => endpoints(world, kind, change),
        Kind::ReplicaSet | Kind::Job => {
            own(world, kind, change.item());
            owner(world, kind, change);
        }
        Kind::ControllerRevision | Kind::Namespace => {}
        _ => own(world, kind, change.item()),
    }
}

fn own(world: &World, kind: Kind, item: &Item) {
    if let Some(task) = Task::of(kind) {
        world.add(task, item.key());
    }
}

/// Keeps track of sets that nobody controls: Deployments look for them.
fn note_orphan(world: &World, change: &Change) {
    let item = change.item();
    let mut orphans = world.orphan_sets.lock();
    if matches!(change, Change::Deleted(_)) || item.object.head.controller().is_some() {
        orphans.remove(&item.key());
    } else {
        orphans.insert(item.key());
    }
}

/// The controller of a set or job looks, too.
fn owner(world: &World, kind: Kind, change: &Change) {
    let head = &change.item().object.head;
    match head.controller() {
        Some(owner) => {
            if let Some(task) = Kind::named(&owner.kind).and_then(Task::of) {
                world.add(task, format!("{}/{}", head.namespace, owner.name));
            }
        }
        None if kind == Kind::ReplicaSet => adopters(world, head, &[Kind::Deployment]),
        None => {}
    }
}

/// Parents that might want an orphan.
fn adopters(world: &World, orphan: &Head, kinds: &[Kind]) {
    for kind in kinds {
        for parent in world.cache(*kind).list_in(&orphan.namespace) {
            let tree = parent.tree();
            let selector = if *kind == Kind::ReplicationController {
                let labels = tree["spec"]["selector"].as_object().cloned().unwrap_or_default();
                LabelSelector::from_labels(&labels)
            } else {
                LabelSelector::from_value(&tree["spec"]["selector"])
            };
            if selector.is_ok_and(|selector| selector.matches_head(orphan)) {
                own(world, *kind, &parent);
            }
        }
    }
}

fn pod(world: &World, change: &Change, (now, before): Pods) {
    let key: Arc<str> = change.item().key().into();
    let head = &change.item().object.head;
    for pod in [&now, &before].into_iter().flatten() {
        if let Some(owner) = pod.head().controller()
            && let Some(task) = Kind::named(&owner.kind).and_then(Task::of)
        {
            world.add(task, format!("{}/{}", head.namespace, owner.name));
        }
    }
    if now.as_ref().is_some_and(|pod| pod.head().controller().is_none() && pod.is_active()) {
        adopters(world, head, &Kind::POD_OWNERS);
    }
    match &now {
        Some(pod) if !pod.node.is_empty() => {
            world.add(Task::Pod, key.clone());
            let node = world.book.read().node(&pod.node);
            if before.as_ref().is_none_or(|before| before.node.is_empty())
                && node.is_some_and(|node| node.taints.iter().any(|taint| taint.effect == "NoExecute"))
            {
                world.add(Task::Node, &*pod.node);
            }
        }
        Some(_) => {}
        None => {
            world.addresses.lock().release(&head.uid);
            world.files.lock().retain(|(uid, _), _| *uid != head.uid);
            world.memory.forget(&head.uid);
            world.variables.forget(&head.uid);
        }
    }
    world.pods_changed.notify_waiters();
    schedule(world, now.as_deref(), before.as_deref());
    if serves_differently(now.as_deref(), before.as_deref()) {
        interested(world, now.as_deref(), before.as_deref());
    }
}

/// The scheduler looks when a pod waits, or when one makes room.
fn schedule(world: &World, now: Option<&Pod>, before: Option<&Pod>) {
    let makes_room = before.is_some_and(Pod::takes_room) && !now.is_some_and(Pod::takes_room);
    wake_scheduler(world, makes_room);
}

/// Calls the scheduler if pods wait; those it put aside try again when there may be room now.
fn wake_scheduler(world: &World, room: bool) {
    let waiting = {
        let mut book = world.book.write();
        if room {
            book.unpark();
        }
        book.has_waiting()
    };
    if waiting {
        world.add(Task::Schedule, "");
    }
}

/// Whether services or budgets see a difference.
fn serves_differently(now: Option<&Pod>, before: Option<&Pod>) -> bool {
    let face = |pod: &Pod| {
        let head = pod.head();
        (
            pod.phase,
            pod.ready.is_some(),
            pod.ip.clone(),
            pod.node.clone(),
            head.deleting,
            head.labels.clone(),
            head.uid.clone(),
        )
    };
    now.map(face) != before.map(face)
}

fn interested(world: &World, now: Option<&Pod>, before: Option<&Pod>) {
    let interests = world.interests.read();
    for pod in [now, before].into_iter().flatten() {
        let namespace = &pod.head().namespace;
        for name in interests.services(pod.head()) {
            let key: Arc<str> = format!("{namespace}/{name}").into();
            world.add_soon(Task::Endpoints, key.clone(), GATHER);
            world.add_soon(Task::EndpointSlice, key, GATHER);
        }
        for name in interests.budgets(pod.head()) {
            world.add_soon(Task::Budget, format!("{namespace}/{name}"), GATHER);
        }
    }
}

fn node(world: &World, change: &Change) {
    let name = &change.item().object.head.name;
    world.add(Task::Node, &**name);
    for set in world.cache(Kind::DaemonSet).list() {
        world.add_soon(Task::DaemonSet, set.key(), GATHER);
    }
    wake_scheduler(world, true);
    if matches!(change, Change::Added(_)) {
        kubelet::wake_node(world, name);
    }
}

fn service(world: &World, change: &Change) {
    let key: Arc<str> = change.item().key().into();
    for task in [Task::Service, Task::Endpoints, Task::EndpointSlice] {
        world.add(task, key.clone());
    }
}

/// Endpoints that somebody else deleted or changed are put right.
fn endpoints(world: &World, kind: Kind, change: &Change) {
    let head = &change.item().object.head;
    if kind == Kind::Endpoints {
        let key: Arc<str> = change.item().key().into();
        world.add(Task::Endpoints, key.clone());
        // Those written by hand are copied to slices.
        world.add(Task::EndpointSlice, key);
    } else if let Some(name) = head.label("kubernetes.io/service-name") {
        world.add(Task::EndpointSlice, format!("{}/{name}", head.namespace));
    }
}

fn waiting_claims(world: &World) {
    for claim in world.cache(Kind::PersistentVolumeClaim).list() {
        world.add_soon(Task::Claim, claim.key(), GATHER);
    }
}
